from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine


@pytest.fixture
def clock() -> VirtualClock:
    # Thursday, 8 October 2026, 20:00:00.25 UTC
    return VirtualClock(1_791_489_600.25)


@pytest.fixture(params=["memory", "disk"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, clock: VirtualClock) -> Iterator[Engine]:
    path = str(tmp_path / "data") if request.param == "disk" else None
    with Engine.open(path, durability="process", clock=clock) as opened:
        yield opened
