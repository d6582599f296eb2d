from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from stator.server import BackgroundServer, ServerOptions

from .fake_engine import FakeEngine
from .wire import WireClient

Serve = Callable[..., BackgroundServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers on free ports and stops them after the test."""
    with ExitStack() as stack:

        def start(engine: FakeEngine, **options: Any) -> BackgroundServer:
            settings = ServerOptions(port=0, stop_seconds=5.0, **options)
            server = BackgroundServer(engine, settings)
            return stack.enter_context(server)

        yield start


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def server(serve: Serve, engine: FakeEngine) -> BackgroundServer:
    return serve(engine)


@pytest.fixture
def client(server: BackgroundServer) -> Iterator[WireClient]:
    with WireClient(server.port) as client:
        yield client
