"""The blocking client: a pool of keep-alive connections, one request at a time on each, from any number of threads."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from stator.client.credentials import CredentialSource
from stator.client.endpoint import Endpoint, connect_request
from stator.client.exchange import Exchange, Limits, not_sent, timeout_left
from stator.client.idle_connection import may_be_used
from stator.client.replies import HttpReply, ReplyParser
from stator.clock import Clock
from stator.errors import ConnectionTrouble, ReplyLost, ServiceError, Unreachable

_RECEIVE_BYTES = 65_536
# A connection that has been idle for this long is looked at before it is used again, and after this much longer not used at all.


class Client:
    parallel = True

    def __init__(
        self,
        endpoint: Endpoint,
        region: str,
        credentials: CredentialSource,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self.exchange = Exchange(endpoint, region, limits, clock)
        self.credentials = credentials
        self._read_timeout = limits.read_timeout_seconds
        self._pool = _Pool(endpoint, limits.connect_timeout_seconds, limits.max_connections)

    def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        idempotent: bool = True,
        deadline_seconds: float | None = None,
    ) -> dict[str, Any]:
        exchange = self.exchange
        body = exchange.encoded(request)
        attempts = exchange.attempts(idempotent, deadline_seconds)
        until = None if deadline_seconds is None else time.monotonic() + deadline_seconds
        while True:
            try:
                message = exchange.message(operation, body, self.credentials.current())
                answer = exchange.judged(self._pool.send(message, self._read_timeout, until))
            except (ServiceError, ConnectionTrouble) as error:
                exchange.clock.sleep(exchange.before_retry(operation, attempts, error))
            else:
                attempts.succeeded()
                return answer

    def close(self) -> None:
        self._pool.close()


class _Pool:
    """Idle connections, the one used last on top; ``max_connections`` are in use at once, and who comes later waits."""

    def __init__(
        self, endpoint: Endpoint, connect_timeout_seconds: float, max_connections: int
    ) -> None:
        self._endpoint = endpoint
        self._connect_timeout = connect_timeout_seconds
        self._idle: deque[_Connection] = deque()
        self._free = threading.BoundedSemaphore(max_connections)
        self._process = os.getpid()
        self._closed = False

    def send(self, message: bytes, timeout_seconds: float, until: float | None) -> HttpReply:
        left = None if until is None else max(0.0, until - time.monotonic())
        if not self._free.acquire(timeout=left):
            raise not_sent("no connection became free within the time given")
        try:
            connection = self._taken()
            if connection is None:
                allowed = timeout_left(self._connect_timeout, until, time.monotonic())
                connection = _Connection(self._endpoint, allowed)
            try:
                reply = connection.send(
                    message, timeout_left(timeout_seconds, until, time.monotonic())
                )
            except BaseException:
                connection.close()
                raise
            if reply.keeps_alive and not self._closed:
                connection.used = time.monotonic()
                self._idle.append(connection)
            else:
                connection.close()
            return reply
        finally:
            self._free.release()

    def _taken(self) -> _Connection | None:
        if self._process != os.getpid():  # a fork must not share its parent's connections
            self._idle.clear()
            self._process = os.getpid()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if may_be_used(time.monotonic() - connection.used, connection.descriptor):
                return connection
            connection.close()

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


class _Connection:
    def __init__(self, endpoint: Endpoint, connect_timeout_seconds: float) -> None:
        self.used = 0.0
        self._socket = _opened(endpoint, connect_timeout_seconds)
        self._timeout = connect_timeout_seconds

    def send(self, message: bytes, timeout_seconds: float) -> HttpReply:
        connection = self._socket
        self._set_timeout(timeout_seconds)
        parser = ReplyParser()
        started = time.monotonic()
        try:
            connection.sendall(message)
            while True:
                data = connection.recv(_RECEIVE_BYTES)
                reply = parser.feed(data) if data else parser.closed()
                if reply is not None:
                    return reply
                if not data:
                    raise ReplyLost("the connection was closed before the answer was there")
                # The time is for the whole answer, not for each part of it.
                left = timeout_seconds - (time.monotonic() - started)
                if left <= 0:
                    raise TimeoutError
                self._set_timeout(left)
        except TimeoutError:
            raise ReplyLost(f"no answer within {timeout_seconds:g} seconds") from None
        except OSError as error:
            raise ReplyLost(f"the connection broke: {error}") from None

    def _set_timeout(self, seconds: float) -> None:
        if seconds != self._timeout:
            self._socket.settimeout(seconds)
            self._timeout = seconds

    @property
    def descriptor(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()


def _opened(endpoint: Endpoint, timeout_seconds: float) -> socket.socket:
    proxy = endpoint.proxy
    place = (endpoint.host, endpoint.port) if proxy is None else (proxy.host, proxy.port)
    try:
        made = socket.create_connection(place, timeout_seconds)
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if endpoint.tls is None:
                return made
            if proxy is not None:
                _tunnel(made, endpoint)
            return endpoint.tls.wrap_socket(made, server_hostname=endpoint.host)
        except BaseException:
            made.close()
            raise
    except ssl.SSLCertVerificationError as error:
        trouble = Unreachable(
            f"{endpoint.authority} has a certificate that is not trusted: {error.verify_message}"
        )
        trouble.hint = "give its authority with ca_bundle=..., or AWS_CA_BUNDLE"
        raise trouble from None
    except OSError as error:
        raise Unreachable(
            f"no connection to {place[0]}:{place[1]}: {error}",
            hint="is it running, and is the address right?",
        ) from None


def _tunnel(made: socket.socket, endpoint: Endpoint) -> None:
    made.sendall(connect_request(endpoint))
    answer = b""
    while b"\r\n\r\n" not in answer:
        data = made.recv(4096)
        if not data:
            raise OSError("the proxy closed the connection")
        answer += data
    if answer[9:12] != b"200":
        raise OSError(
            f"the proxy answered {answer.split(bytes([13]), 1)[0].decode(errors='replace')}"
        )
