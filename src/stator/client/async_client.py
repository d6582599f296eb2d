"""The asyncio client: a lean protocol on keep-alive connections, one request at a time on each."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, cast

from stator.client.async_credentials import AsyncCredentials
from stator.client.endpoint import Endpoint, connect_request
from stator.client.exchange import Exchange, Limits, not_sent, timeout_left
from stator.client.idle_connection import may_be_used
from stator.client.replies import HttpReply, ReplyParser
from stator.clock import Clock, pause
from stator.errors import ConnectionTrouble, ReplyLost, ServiceError, Unreachable


class AsyncClient:
    def __init__(
        self,
        endpoint: Endpoint,
        region: str,
        credentials: AsyncCredentials,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self.exchange = Exchange(endpoint, region, limits, clock)
        self.credentials = credentials
        self._read_timeout = limits.read_timeout_seconds
        self._pool = _Pool(endpoint, limits.connect_timeout_seconds, limits.max_connections)

    async def call(
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
                credentials = self.credentials.fresh() or await self.credentials.current(until)
                message = exchange.message(operation, body, credentials)
                answer = exchange.judged(await self._pool.send(message, self._read_timeout, until))
            except (ServiceError, ConnectionTrouble) as error:
                await pause(exchange.clock, exchange.before_retry(operation, attempts, error))
            else:
                attempts.succeeded()
                return answer

    async def close(self) -> None:
        self._pool.close()


class _Pool:
    def __init__(
        self, endpoint: Endpoint, connect_timeout_seconds: float, max_connections: int
    ) -> None:
        self._endpoint = endpoint
        self._connect_timeout = connect_timeout_seconds
        self._max = max_connections
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: deque[_Connection] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._used = 0
        self._closed = False

    async def send(self, message: bytes, timeout_seconds: float, until: float | None) -> HttpReply:
        self._enter_loop()
        if self._used >= self._max:
            await self._turn(until)
        self._used += 1
        try:
            connection = self._taken() or await self._opened(until)
            try:
                reply = await connection.send(
                    message, timeout_left(timeout_seconds, until, time.monotonic())
                )
            except BaseException:  # cancelled, too: what comes later on this connection would be taken for another's answer
                connection.close()
                raise
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
        """Connections belong to a loop; a client may be used in one after the other."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._idle.clear()
            self._waiting.clear()
            self._used = 0
            self._closed = False

    async def _turn(self, until: float | None) -> None:
        assert self._loop is not None
        while self._used >= self._max:
            turn = self._loop.create_future()
            self._waiting.append(turn)
            try:
                left = None if until is None else max(0.0, until - time.monotonic())
                await asyncio.wait_for(turn, left)
            except BaseException as error:
                if turn.done() and not turn.cancelled():
                    self._wake_next()  # the turn was given to one who is no longer there
                if isinstance(error, TimeoutError):
                    raise not_sent("no connection became free within the time given") from None
                raise
            finally:
                if turn in self._waiting:
                    self._waiting.remove(turn)

    def _wake_next(self) -> None:
        while self._waiting and self._used < self._max:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _taken(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            idle = time.monotonic() - connection.idle_since
            if connection.is_open and may_be_used(idle, connection.descriptor):
                return connection
            connection.close()
        return None

    async def _opened(self, until: float | None) -> _Connection:
        endpoint = self._endpoint
        allowed = timeout_left(self._connect_timeout, until, time.monotonic())
        try:
            async with asyncio.timeout(allowed):
                return await _open(endpoint)
        except TimeoutError:
            raise Unreachable(
                f"no connection to {endpoint.authority} within {allowed:g} seconds"
            ) from None
        except ssl.SSLCertVerificationError as error:
            trouble = Unreachable(
                f"{endpoint.authority} has a certificate that is not trusted: {error.verify_message}"
            )
            trouble.hint = "give its authority with ca_bundle=..., or AWS_CA_BUNDLE"
            raise trouble from None
        except OSError as error:
            raise Unreachable(
                f"no connection to {endpoint.authority}: {error}",
                hint="is it running, and is the address right?",
            ) from None

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


async def _open(endpoint: Endpoint) -> _Connection:
    loop = asyncio.get_running_loop()
    if endpoint.proxy is None:
        _, made = await loop.create_connection(
            _Connection,
            endpoint.host,
            endpoint.port,
            ssl=endpoint.tls,
            server_hostname=endpoint.host if endpoint.tls is not None else None,
        )
        return made
    transport, made = await loop.create_connection(
        _Connection, endpoint.proxy.host, endpoint.proxy.port
    )
    if endpoint.tls is not None:
        try:
            answer = await made.tunnel(connect_request(endpoint))
            if answer[9:12] != b"200":
                raise OSError(
                    f"the proxy answered {answer.split(bytes([13]), 1)[0].decode(errors='replace')}"
                )
            inner = await loop.start_tls(
                transport, made, endpoint.tls, server_hostname=endpoint.host
            )
        except BaseException:
            transport.close()
            raise
        assert inner is not None
        made.connection_made(inner)
    return made


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
            raise ReplyLost("the connection was closed before the answer was there")
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
        """Ask a proxy for a tunnel; what it answers."""
        assert self._transport is not None
        self._reply = asyncio.get_running_loop().create_future()
        self._transport.write(message)
        answer: bytes = await self._reply
        self._reply = None
        return answer

    def _late(self, seconds: float) -> None:
        self._fail(ReplyLost(f"no answer within {seconds:g} seconds"))

    def _fail(self, error: ConnectionTrouble) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(error)

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are not subclasses of it
        self.is_open = True
        made = transport.get_extra_info("socket")
        if made is not None:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        waiting = self._reply
        if waiting is None or waiting.done():
            self.close()  # nobody asked
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
                    f"the connection broke before the answer was there{f': {exc}' if exc else ''}"
                )
            )
