"""HTTP/1.1 for the server: connections, requests, replies, compression and time limits.

``http_server`` owns the listening socket, ``connection`` one client. What a request means is
decided one floor up, in ``stator.server.dispatcher``.
"""
