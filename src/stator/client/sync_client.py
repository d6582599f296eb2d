"""The blocking client: a pool of keep-alive connections that any number of threads share."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from stator.client.connections import (
    check_tunnel,
    connect_request,
    is_reusable,
    not_sent,
    seconds_left,
    timeout_left,
    unreachable,
)
from stator.client.credentials import CredentialSource
from stator.client.endpoint import Endpoint
from stator.client.exchange import Exchange, Limits
from stator.client.replies import HttpReply, ReplyParser
from stator.errors import ConnectionTrouble, ReplyLost, ServiceError

_RECEIVE_BYTES = 65_536


class Client:
    parallel = True

    def __init__(self, exchange: Exchange, credentials: CredentialSource) -> None:
        self.exchange = exchange
        self.credentials = credentials
        self._pool = _Pool(exchange.endpoint, exchange.limits)
        self.address = exchange.endpoint.address

    def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        idempotent: bool = True,
        deadline_seconds: float | None = None,
    ) -> dict[str, Any]:
        exchange = self.exchange
        body = exchange.encode(request)
        attempts = exchange.attempts(idempotent, deadline_seconds)
        deadline = None if deadline_seconds is None else time.monotonic() + deadline_seconds
        while True:
            try:
                message = exchange.message(operation, body, self.credentials.current())
                answer = exchange.decode(self._pool.send(message, deadline))
            except (ServiceError, ConnectionTrouble) as error:
                exchange.clock.sleep(exchange.before_retry(operation, attempts, error))
            else:
                attempts.succeeded()
                return answer

    def close(self) -> None:
        self._pool.close()


class _Pool:
    """A stack of idle connections. At most ``max_connections`` are in use; further callers wait."""

    def __init__(self, endpoint: Endpoint, limits: Limits) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._idle: deque[_Connection] = deque()
        self._free = threading.BoundedSemaphore(limits.max_connections)
        self._process = os.getpid()
        self._closed = False

    def send(self, message: bytes, deadline: float | None) -> HttpReply:
        limits = self._limits
        if not self._free.acquire(timeout=seconds_left(deadline)):
            raise not_sent("the deadline passed before a connection became free")
        try:
            connection = self._take_idle()
            if connection is None:
                timeout_seconds = timeout_left(limits.connect_timeout_seconds, deadline)
                connection = _Connection(self._endpoint, timeout_seconds)
            try:
                reply = connection.send(
                    message, timeout_left(limits.read_timeout_seconds, deadline)
                )
            except BaseException:
                connection.close()
                raise
            if reply.keeps_alive and not self._closed:
                connection.idle_since = time.monotonic()
                self._idle.append(connection)
            else:
                connection.close()
            return reply
        finally:
            self._free.release()

    def _take_idle(self) -> _Connection | None:
        if self._process != os.getpid():  # a fork must not share its parent's connections
            self._idle.clear()
            self._process = os.getpid()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if is_reusable(time.monotonic() - connection.idle_since, connection.descriptor):
                return connection
            connection.close()

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


class _Connection:
    def __init__(self, endpoint: Endpoint, connect_timeout_seconds: float) -> None:
        self.idle_since = 0.0
        self._socket = _open(endpoint, connect_timeout_seconds)
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
                    raise ReplyLost("the connection was closed before the reply arrived")
                # The timeout applies to the whole reply, not to each part of it.
                left = timeout_seconds - (time.monotonic() - started)
                if left <= 0:
                    raise TimeoutError
                self._set_timeout(left)
        except TimeoutError:
            raise ReplyLost(f"no reply within {timeout_seconds:g} seconds") from None
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


def _open(endpoint: Endpoint, timeout_seconds: float) -> socket.socket:
    proxy = endpoint.proxy
    address = (endpoint.host, endpoint.port) if proxy is None else (proxy.host, proxy.port)
    try:
        opened = socket.create_connection(address, timeout_seconds)
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if endpoint.tls is None:
                return opened
            if proxy is not None:
                _tunnel(opened, endpoint)
            return endpoint.tls.wrap_socket(opened, server_hostname=endpoint.host)
        except BaseException:
            opened.close()
            raise
    except OSError as error:
        where = endpoint.authority if proxy is None else f"{proxy.host}:{proxy.port}"
        raise unreachable(where, error) from None


def _tunnel(opened: socket.socket, endpoint: Endpoint) -> None:
    opened.sendall(connect_request(endpoint))
    reply = b""
    while b"\r\n\r\n" not in reply:
        data = opened.recv(4096)
        if not data:
            raise OSError("the proxy closed the connection")
        reply += data
    check_tunnel(reply)
