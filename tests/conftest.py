"""For all tests: no compiled module may be older than its source, and no test fails because the machine is busy."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("stator", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stator")

_SOURCES = Path(__file__).resolve().parent.parent / "src"


def pytest_sessionstart(session: pytest.Session) -> None:
    for source in _SOURCES.rglob("*.py"):
        for compiled in source.parent.glob(f"{source.stem}.*.so"):
            if compiled.stat().st_mtime < source.stat().st_mtime:
                shown = source.relative_to(_SOURCES)
                pytest.exit(f"{shown} has changed since it was compiled: `make compile`, or `make interpreted`", 4)
