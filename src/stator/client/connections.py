"""Opening, reusing and timing connections: the rules that both clients share, without the I/O."""

from __future__ import annotations

import select
import ssl
import time

from stator.client.endpoint import Endpoint
from stator.errors import DeadlineExceeded, Unreachable

_CHECK_AFTER_SECONDS = 1.0
_DROP_AFTER_SECONDS = 20.0


def is_reusable(idle_seconds: float, descriptor: int) -> bool:
    """Whether an idle connection can carry another request.

    An idle connection has nothing to read. If its socket is readable, the other side has closed it.
    A busy event loop may not have noticed that yet, so the socket itself is polled.
    """
    if idle_seconds < _CHECK_AFTER_SECONDS:
        return True
    if idle_seconds >= _DROP_AFTER_SECONDS or descriptor < 0:
        return False
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)


_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE")
"""The reasons of OpenSSL for a reply that is no TLS."""


def unreachable(authority: str, error: OSError) -> Unreachable:
    """Return the error for a connection that could not be opened."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Unreachable(
            f"{authority} has a certificate that is not trusted: {error.verify_message}",
            hint="set ca_bundle=... or AWS_CA_BUNDLE to the file of its certificate authority",
        )
    if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS:
        return Unreachable(
            f"{authority} does not speak TLS: it seems to answer http",
            hint=f"write http://{authority}",
        )
    return Unreachable(
        f"no connection to {authority}: {error}",
        hint="check that the server is running and that the address is right",
    )


def closed() -> Unreachable:
    """Return the error for a request that was not sent because the client was closed."""
    return Unreachable(
        "the client was closed before the request was sent", hint="open a new connection"
    )


def connect_request(endpoint: Endpoint) -> bytes:
    """Return the CONNECT request that asks the proxy for a tunnel to a TLS endpoint."""
    assert endpoint.proxy is not None
    authority = f"{endpoint.host}:{endpoint.port}"
    login = endpoint.proxy.authorization
    header = f"Proxy-Authorization: {login}\r\n" if login else ""
    return f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{header}\r\n".encode()


def check_tunnel(reply: bytes) -> None:
    """Raise OSError unless the proxy has opened the tunnel."""
    if reply[9:12] != b"200":
        status_line = reply.split(b"\r", 1)[0].decode(errors="replace")
        raise OSError(f"the proxy refused the tunnel: {status_line}")


# -- deadlines, on the monotonic clock


def seconds_left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def timeout_left(timeout_seconds: float, deadline: float | None) -> float:
    """Return the timeout for the next step, shortened if the deadline comes first.

    Raises DeadlineExceeded if the deadline has passed.
    """
    if deadline is None:
        return timeout_seconds
    left = deadline - time.monotonic()
    if left <= 0:
        raise not_sent("the deadline passed before the request could be sent")
    return min(timeout_seconds, left)


def not_sent(message: str) -> DeadlineExceeded:
    """Return the error for a deadline that passed before the request was sent."""
    error = DeadlineExceeded(message)
    error.sent = False
    return error
