"""The pytest plugin: a fresh engine per test, opened in a millisecond, with no server.

Fixtures:
    stator_clock        a virtual clock; ``stator_clock.advance(60)`` moves the engine's time
    stator_engine       an engine in memory on that clock
    dynamodb_client     a boto3 client wired into the engine
    dynamodb_resource   a boto3 resource wired into the engine
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.testing.boto import boto3_client, boto3_resource


@pytest.fixture
def stator_clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def stator_engine(stator_clock: VirtualClock) -> Iterator[Engine]:
    with Engine.open(clock=stator_clock) as engine:
        yield engine


@pytest.fixture
def dynamodb_client(stator_engine: Engine) -> Any:
    return boto3_client(stator_engine)


@pytest.fixture
def dynamodb_resource(stator_engine: Engine) -> Any:
    return boto3_resource(stator_engine)
