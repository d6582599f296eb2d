from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine

from .world import START, World


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture(params=["memory", "disk"])
def world(request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path) -> Iterator[World]:
    """An engine under a virtual clock, in memory or on disk, with one bucket in a folder."""
    (tmp_path / "buckets" / "exports").mkdir(parents=True)
    path = str(tmp_path / "data") if request.param == "disk" else None
    with Engine.open(
        path, durability="process", clock=clock, buckets=str(tmp_path / "buckets")
    ) as engine:
        yield World(engine, clock, tmp_path / "buckets" / "exports")
