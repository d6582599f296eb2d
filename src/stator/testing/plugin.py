"""The pytest plugin: a fresh engine per test, opened in a millisecond, with no server.

Fixtures:
    stator_clock          a virtual clock; ``stator_clock.advance(60)`` moves the engine's time
    stator_engine         an engine in memory on that clock
    stator_connect        ``stator_connect(design)`` returns a Db on that engine, tables included
    stator_connect_async  the same for an AsyncDb
    dynamodb_client       a boto3 client wired into the engine
    dynamodb_resource     a boto3 resource wired into the engine
    cloudwatch_client     a boto3 client for the metrics and alarms of the engine

The marker ``@pytest.mark.stator(throughput="enforced")`` opens the engine with that option, so that
the test sees throttling. The marker takes every option of ``Engine.open`` except the clock.

Every pytest run of an environment loads this module, so fixtures import what they need when used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from stator.clock import VirtualClock

if TYPE_CHECKING:
    from stator.design.design import Design
    from stator.engine import Engine
    from stator.tables.db import AsyncDb, Db


@pytest.fixture
def stator_clock() -> VirtualClock:
    return VirtualClock()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "stator(**options): open stator_engine with these options of Engine.open"
    )


@pytest.fixture
def stator_engine(stator_clock: VirtualClock, request: pytest.FixtureRequest) -> Iterator[Engine]:
    from stator.engine import Engine

    marker = request.node.get_closest_marker("stator")
    options: dict[str, Any] = {} if marker is None else dict(marker.kwargs)
    with Engine.open(clock=stator_clock, **options) as engine:
        yield engine


@pytest.fixture
def stator_connect(stator_engine: Engine, stator_clock: VirtualClock) -> Callable[..., Db]:
    from stator.tables.connection import connect

    def make(design: Design, **options: Any) -> Db:
        options.setdefault("clock", stator_clock)
        return connect(design, stator_engine, **options)

    return make


@pytest.fixture
def stator_connect_async(
    stator_engine: Engine, stator_clock: VirtualClock
) -> Callable[..., AsyncDb]:
    from stator.tables.connection import connect_async

    def make(design: Design, **options: Any) -> AsyncDb:
        options.setdefault("clock", stator_clock)
        return connect_async(design, stator_engine, **options)

    return make


@pytest.fixture
def dynamodb_client(stator_engine: Engine) -> Any:
    from stator.testing.boto import boto3_client

    return boto3_client(stator_engine)


@pytest.fixture
def dynamodb_resource(stator_engine: Engine) -> Any:
    from stator.testing.boto import boto3_resource

    return boto3_resource(stator_engine)


@pytest.fixture
def cloudwatch_client(stator_engine: Engine) -> Any:
    from stator.testing.boto import boto3_session

    return boto3_session(stator_engine).client("cloudwatch")
