"""The blocking client: a pool of keep-alive connections that any number of threads share."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Unpack

from stator.client.connections import (
    check_tunnel,
    closed,
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
from stator.clock import sleep_until_set
from stator.errors import ConnectionTrouble, ReplyLost, ServiceError
from stator.transport import CallOptions, ResentReply

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
        **options: Unpack[CallOptions],
    ) -> dict[str, Any]:
        exchange = self.exchange
        body = exchange.encode(request)
        attempts = exchange.attempts(operation, request, options)
        deadline_seconds = options.get("deadline_seconds")
        deadline = None if deadline_seconds is None else time.monotonic() + deadline_seconds
        if wait := attempts.before(exchange.clock.now()):
            sleep_until_set(exchange.clock, wait, self._pool.closing)
        is_uncertain = False
        while True:
            try:
                message = exchange.message(operation, body, self.credentials.current())
                answer = exchange.decode(operation, self._pool.send(message, deadline))
            except (ServiceError, ConnectionTrouble) as error:
                delay = exchange.before_retry(operation, attempts, error)
                is_uncertain = is_uncertain or error.sent
                sleep_until_set(exchange.clock, delay, self._pool.closing)
                if self._pool.closing.is_set():
                    raise error  # the client was closed: nobody waits for another attempt
            else:
                attempts.succeeded(exchange.clock.now())
                return ResentReply(answer) if is_uncertain else answer

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
        self._used: set[_Connection] = set()
        self.closing = threading.Event()

    def send(self, message: bytes, deadline: float | None) -> HttpReply:
        limits = self._limits
        if not self._free.acquire(timeout=seconds_left(deadline)):
            raise not_sent("the deadline passed before a connection became free")
        try:
            connection = self._take_idle()
            if connection is None:
                timeout_seconds = timeout_left(limits.connect_timeout_seconds, deadline)
                connection = _Connection(self._endpoint, timeout_seconds)
            self._used.add(connection)  # before the look: close() aborts what it finds here
            if self.closing.is_set():
                self._used.discard(connection)
                connection.close()
                raise closed()
            try:
                reply = connection.send(
                    message, timeout_left(limits.read_timeout_seconds, deadline)
                )
            except BaseException:
                connection.close()
                raise
            finally:
                self._used.discard(connection)
            if reply.keeps_alive and not self.closing.is_set():
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
            self._used.clear()
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
        """Close the idle connections, and end the requests that other threads wait for."""
        self.closing.set()
        while self._idle:
            self._idle.pop().close()
        if self._process == os.getpid():  # a fork must not shut its parent's connections down
            for connection in list(self._used):
                connection.abort()


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

    def abort(self) -> None:
        """Make a ``send`` in another thread fail at once with ReplyLost."""
        with contextlib.suppress(OSError):
            # Not SSLSocket.shutdown, which would take the TLS layer away from the other thread.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

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
