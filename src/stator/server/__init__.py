"""DynamoDB's HTTP interface (JSON 1.0 over HTTP/1.1, SigV4) in front of an engine.

The way of a request, file by file::

    connection    bytes in, replies out in the same order; back-pressure
      whole_request    the usual request, read by hand; every other one is parsed by httptools
    dispatcher    AWS's wire-level rules: method, content type, target, caller
      authentication   form of the authorization, and (with credentials) its signature
      backend          the engine, behind a protocol of three methods
    settlement    a reply waits until its write is durable
    reply         the bytes of the answer

``http_server`` owns the listening socket and the sweep over slow clients; ``run`` gives it a loop.
It does not know tables or items: a request's body reaches the engine as it came.
"""

from stator.server.auth.credentials import Credential, read_credentials
from stator.server.http.http_server import HttpServer
from stator.server.http.limits import ServerLimits
from stator.server.options import ServerOptions
from stator.server.run import BackgroundServer, run_until_signal
from stator.server.tls import server_context

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
