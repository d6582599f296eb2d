"""The listening server: accepts connections, closes overdue ones, and drains the rest on stop."""

from __future__ import annotations

import asyncio

from stator.server.auth.authenticator import Authenticator
from stator.server.dispatcher import Dispatcher
from stator.server.http.connection import Connection
from stator.server.http.context import ServerContext
from stator.server.http.reply import ReplyRenderer
from stator.server.http.settlement import Settlement
from stator.server.options import ServerOptions
from stator.server.protocols import Backend

_ACCEPT_QUEUE = 1024


class HttpServer:
    """DynamoDB over HTTP in front of one engine. The server does not close the engine."""

    def __init__(self, backend: Backend, options: ServerOptions) -> None:
        self._loop = asyncio.get_running_loop()
        self._options = options
        self._renderer = ReplyRenderer(options.clock.now())
        authenticator = Authenticator(options.credentials, options.clock)
        self.context = ServerContext(
            dispatcher=Dispatcher(backend, authenticator, options.limits, options.region),
            renderer=self._renderer,
            settlement=Settlement(backend, self._loop),
            limits=options.limits,
            now=self._loop.time(),
            call_soon=self._loop.call_soon,
        )

    async def start(self) -> None:
        """Start listening. Raises the system's OSError if the address cannot be bound."""
        self._server = await self._loop.create_server(
            lambda: Connection(self.context),
            self._options.host,
            self._options.port,
            ssl=self._options.tls,
            backlog=_ACCEPT_QUEUE,
        )
        self._schedule_sweep()

    @property
    def port(self) -> int:
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """The URL under which a client on this machine reaches the server."""
        scheme = "http" if self._options.tls is None else "https"
        addresses = [listening.getsockname() for listening in self._server.sockets]
        # A name with an IPv4 and an IPv6 address gets two free ports: then only an address is
        # unambiguous.
        same_port = len({port for _, port, *_ in addresses}) == 1
        host = self._options.host if same_port else addresses[0][0]
        return f"{scheme}://{_reachable(host)}:{self.port}"

    async def stop(self, timeout_seconds: float | None = None) -> None:
        """Stop accepting connections, answer the requests in flight, and close.

        Connections that are not done after ``timeout_seconds`` (by default ``stop_seconds`` of the
        options) are aborted.
        """
        self._server.close()
        self._next_sweep.cancel()
        await self.context.drain(
            self._options.stop_seconds if timeout_seconds is None else timeout_seconds
        )

    def _schedule_sweep(self) -> None:
        self._next_sweep = self._loop.call_later(self._options.limits.sweep_seconds, self._sweep)

    def _sweep(self) -> None:
        self._renderer.set_time(self._options.clock.now())
        self.context.sweep(self._loop.time())
        self._schedule_sweep()


def _reachable(host: str) -> str:
    if host in ("", "0.0.0.0"):  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host
