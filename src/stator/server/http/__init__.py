"""HTTP/1.1 for the server: connections, requests, replies, compression and time limits.

``http_server`` owns the listening socket; ``connection`` serves one client. The content of requests
is handled one layer up, in ``stator.server.dispatcher``.
"""
