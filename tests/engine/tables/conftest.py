from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine


@pytest.fixture(params=["memory", "disk"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    path = str(tmp_path / "data") if request.param == "disk" else None
    with Engine.open(path, durability="process") as opened:
        yield opened


@pytest.fixture
def clock() -> VirtualClock:
    # Thursday, 8 October 2026, 20:00:00 UTC
    return VirtualClock(1_791_489_600.0)


@pytest.fixture
def timed(clock: VirtualClock) -> Iterator[Engine]:
    """An engine under a virtual clock whose tables take ten seconds for each change."""
    with Engine.open(clock=clock, status_delay_seconds=10) as opened:
        yield opened
