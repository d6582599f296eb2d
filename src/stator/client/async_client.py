"""The asyncio client: a pool of keep-alive connections, one request at a time on each."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Unpack, cast

from stator.client.async_credentials import AsyncCredentials
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
from stator.client.endpoint import Endpoint
from stator.client.exchange import Exchange, Limits
from stator.client.replies import HttpReply, ReplyParser
from stator.clock import Clock, SystemClock, pause
from stator.errors import ConnectionTrouble, ReplyLost, ServiceError, Unreachable
from stator.transport import CallOptions, ResentReply


class AsyncClient:
    def __init__(self, exchange: Exchange, credentials: AsyncCredentials) -> None:
        self.exchange = exchange
        self.credentials = credentials
        self._pool = _Pool(exchange.endpoint, exchange.limits)
        self.address = exchange.endpoint.address

    async def call(
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
            await self._pool.pause(exchange.clock, wait)
        is_uncertain = False
        while True:
            try:
                credentials = self.credentials.fresh() or await self.credentials.current(deadline)
                message = exchange.message(operation, body, credentials)
                answer = exchange.decode(operation, await self._pool.send(message, deadline))
            except (ServiceError, ConnectionTrouble) as error:
                delay = exchange.before_retry(operation, attempts, error)
                is_uncertain = is_uncertain or error.sent
                if await self._pool.pause(exchange.clock, delay):
                    raise error  # the client was closed: nobody waits for another attempt
            else:
                attempts.succeeded(exchange.clock.now())
                return ResentReply(answer) if is_uncertain else answer

    async def close(self) -> None:
        self._pool.close()


class _Pool:
    def __init__(self, endpoint: Endpoint, limits: Limits) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: deque[_Connection] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._used = 0
        self._closed = False
        self._in_use: set[_Connection] = set()
        self._pauses: set[asyncio.Future[None]] = set()

    async def send(self, message: bytes, deadline: float | None) -> HttpReply:
        self._enter_loop()
        if self._used >= self._limits.max_connections:
            await self._wait_for_turn(deadline)
        self._used += 1
        try:
            connection = self._take_idle() or await self._open(deadline)
            if self._closed:  # meanwhile
                connection.close()
                raise closed()
            self._in_use.add(connection)
            try:
                reply = await connection.send(
                    message, timeout_left(self._limits.read_timeout_seconds, deadline)
                )
            except BaseException:  # cancelled, too: a late reply would pass for the next request's
                connection.close()
                raise
            finally:
                self._in_use.discard(connection)
            if reply.keeps_alive and not self._closed:
                connection.idle_since = time.monotonic()
                self._idle.append(connection)
            else:
                connection.close()
            return reply
        finally:
            self._used -= 1
            self._wake_next()

    def _enter_loop(self) -> None:
        """Start with an empty pool if the event loop is a new one.

        Connections of an earlier loop cannot be used in it. A pool that was closed opens again.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._idle.clear()
            self._waiting.clear()
            self._in_use.clear()
            self._pauses.clear()
            self._used = 0
            self._closed = False

    async def _wait_for_turn(self, deadline: float | None) -> None:
        assert self._loop is not None
        while self._used >= self._limits.max_connections:
            turn = self._loop.create_future()
            self._waiting.append(turn)
            try:
                await asyncio.wait_for(turn, seconds_left(deadline))
            except BaseException as error:
                if turn.done() and not turn.cancelled():
                    self._wake_next()  # this caller has given up: the turn goes to the next
                if isinstance(error, TimeoutError):
                    raise not_sent("the deadline passed before a connection became free") from None
                raise
            finally:
                if turn in self._waiting:
                    self._waiting.remove(turn)

    def _wake_next(self) -> None:
        while self._waiting and self._used < self._limits.max_connections:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _take_idle(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            idle = time.monotonic() - connection.idle_since
            if connection.is_open and is_reusable(idle, connection.descriptor):
                return connection
            connection.close()
        return None

    async def _open(self, deadline: float | None) -> _Connection:
        authority = self._endpoint.authority
        timeout_seconds = timeout_left(self._limits.connect_timeout_seconds, deadline)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await _open(self._endpoint)
        except TimeoutError:
            raise Unreachable(
                f"no connection to {authority} within {timeout_seconds:g} seconds"
            ) from None
        except OSError as error:
            raise unreachable(authority, error) from None

    async def pause(self, clock: Clock, seconds: float) -> bool:
        """Sleep before a retry, or until the pool is closed. Return whether it is closed."""
        if not isinstance(clock, SystemClock):
            await pause(clock, seconds)
        elif not self._closed:
            loop = asyncio.get_running_loop()
            waiting: asyncio.Future[None] = loop.create_future()
            timer = loop.call_later(seconds, _wake, waiting)
            self._pauses.add(waiting)
            try:
                await waiting
            finally:
                timer.cancel()
                self._pauses.discard(waiting)
        return self._closed

    def close(self) -> None:
        """Close the idle connections, and end the requests that other tasks wait for."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        if self._loop is not asyncio.get_running_loop():
            return  # their event loop is over
        for connection in list(self._in_use):
            connection.abort()
        for waiting in list(self._pauses):
            _wake(waiting)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _open(endpoint: Endpoint) -> _Connection:
    loop = asyncio.get_running_loop()
    if endpoint.proxy is None:
        _, connection = await loop.create_connection(
            _Connection,
            endpoint.host,
            endpoint.port,
            ssl=endpoint.tls,
            server_hostname=endpoint.host if endpoint.tls is not None else None,
        )
        return connection
    transport, connection = await loop.create_connection(
        _Connection, endpoint.proxy.host, endpoint.proxy.port
    )
    if endpoint.tls is not None:
        try:
            check_tunnel(await connection.tunnel(connect_request(endpoint)))
            inner = await loop.start_tls(
                transport, connection, endpoint.tls, server_hostname=endpoint.host
            )
        except BaseException:
            transport.close()
            raise
        assert inner is not None
        connection.connection_made(inner)
    return connection


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.idle_since = 0.0
        self.is_open = False
        self._transport: asyncio.Transport | None = None
        self._parser: ReplyParser | None = None
        self._reply: asyncio.Future[Any] | None = None
        self._tunnel = b""

    async def send(self, message: bytes, timeout_seconds: float) -> HttpReply:
        transport = self._transport
        if transport is None or not self.is_open:
            raise ReplyLost("the connection was closed before the reply arrived")
        loop = asyncio.get_running_loop()
        self._parser = ReplyParser()
        self._reply = loop.create_future()
        timer = loop.call_later(timeout_seconds, self._late, timeout_seconds)
        transport.write(message)
        try:
            reply: HttpReply = await self._reply
            return reply
        finally:
            timer.cancel()
            self._reply = None

    @property
    def descriptor(self) -> int:
        opened = None if self._transport is None else self._transport.get_extra_info("socket")
        return -1 if opened is None else int(opened.fileno())

    async def tunnel(self, message: bytes) -> bytes:
        """Ask a proxy for a tunnel, and return the proxy's reply."""
        assert self._transport is not None
        self._reply = asyncio.get_running_loop().create_future()
        self._transport.write(message)
        answer: bytes = await self._reply
        self._reply = None
        return answer

    def _late(self, seconds: float) -> None:
        self._fail(ReplyLost(f"no reply within {seconds:g} seconds"))

    def _fail(self, error: ConnectionTrouble) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(error)

    def abort(self) -> None:
        """Make a ``send`` of another task fail at once."""
        self._fail(ReplyLost("the client was closed before the reply arrived"))

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, because uvloop's transports are not subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True
        opened = transport.get_extra_info("socket")
        if opened is not None:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        waiting = self._reply
        if waiting is None or waiting.done():
            self.close()  # no request is waiting for this
            return
        if self._parser is None:
            self._tunnel += data
            if b"\r\n\r\n" in self._tunnel:
                waiting.set_result(self._tunnel)
            return
        try:
            reply = self._parser.feed(data)
        except ConnectionTrouble as error:
            self._fail(error)
            return
        if reply is not None:
            waiting.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._reply is None or self._reply.done():
            return
        reply = None if self._parser is None or exc is not None else self._parser.closed()
        if reply is not None:
            self._reply.set_result(reply)
        elif self._parser is None:
            self._reply.set_exception(OSError("the proxy closed the connection"))
        else:
            self._fail(
                ReplyLost(
                    f"the connection broke before the reply arrived{f': {exc}' if exc else ''}"
                )
            )
