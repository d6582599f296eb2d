"""Runs a server: in this thread until a signal arrives, or in a background thread."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

from stator.server.http.http_server import HttpServer
from stator.server.options import ServerOptions
from stator.server.protocols import Backend

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_until_signal(
    backend: Backend,
    options: ServerOptions,
    on_ready: Callable[[HttpServer], None],
    *,
    on_report: Callable[[], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. A second signal disconnects clients that still wait.

    SIGUSR1 calls ``on_report``, if it is given and the system has this signal.
    """

    async def serve() -> None:
        server = HttpServer(backend, options)
        await server.start()
        stop = _stop_on_signals(asyncio.get_running_loop())
        if on_report is not None and hasattr(signal, "SIGUSR1"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, on_report)
        on_ready(server)
        await stop.wait()
        stop.clear()
        draining = asyncio.ensure_future(server.stop())
        hurry = asyncio.ensure_future(stop.wait())
        await asyncio.wait((draining, hurry), return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        draining.cancel()

    _run(serve())


def _stop_on_signals(loop: asyncio.AbstractEventLoop) -> asyncio.Event:
    stop = asyncio.Event()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
    return stop


def _run(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop, which is twice as fast, or on asyncio's loop where uvloop is missing."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


class BackgroundServer:
    """A server in a background thread, for tests and for programs that embed the engine.

    with BackgroundServer(engine) as server:
        boto3.client("dynamodb", endpoint_url=server.url, ...)
    """

    def __init__(self, backend: Backend, options: ServerOptions | None = None) -> None:
        self._backend = backend
        self._options = options or ServerOptions(port=0)
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name="stator-server", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def port(self) -> int:
        return self.server.port

    def start(self) -> None:
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Drain the connections, stop, and wait for the thread. Stopping twice is harmless."""
        if self._thread.is_alive():
            self.call_soon(self._stop.set)
            self._thread.join()

    def call_soon(self, action: Callable[[], object]) -> None:
        """Run ``action`` on the server's thread, which owns all of the server's state."""
        self._loop.call_soon_threadsafe(action)

    def _main(self) -> None:
        try:
            _run(self._serve())
        except BaseException as failure:  # start() raises it in the caller's thread
            self._failure = failure
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self.server = HttpServer(self._backend, self._options)
        await self.server.start()
        self._started.set()
        await self._stop.wait()
        await self.server.stop()
