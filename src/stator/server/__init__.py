"""DynamoDB's HTTP interface (JSON 1.0 over HTTP/1.1, SigV4) in front of an engine.

A request passes through these modules::

    http.connection      bytes in, replies out in the same order; back-pressure
      http.request       reads the usual request by hand; httptools parses every other one
    dispatcher           AWS's wire-level rules: method, content type, target, caller
      auth               the form of the authorization and, with credentials, its signature
      protocols          the engine, behind a protocol of three methods
    http.settlement      holds a reply until its write is durable
    http.reply           the bytes of the reply

``http.http_server`` owns the listening socket and the sweep over slow clients; ``run`` runs it on
an event loop. The server knows neither tables nor items: it passes the body of a request to the
engine unread.
"""

from stator.server.auth.credentials import Credential, read_credentials
from stator.server.http.http_server import HttpServer
from stator.server.http.limits import ServerLimits
from stator.server.options import ServerOptions, server_context
from stator.server.run import BackgroundServer, run_until_signal

__all__ = [
    "BackgroundServer",
    "Credential",
    "HttpServer",
    "ServerLimits",
    "ServerOptions",
    "read_credentials",
    "run_until_signal",
    "server_context",
]
