"""For all tests: compiled modules match their sources, and a busy machine fails no test."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("stator", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stator")

_SOURCES = Path(__file__).resolve().parent.parent / "src"


def pytest_sessionstart(session: pytest.Session) -> None:
    # A shell without job control lets what it starts in the background ignore Ctrl-C, and so would
    # every process of a test.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for source in _SOURCES.rglob("*.py"):
        for compiled in source.parent.glob(f"{source.stem}.*.so"):
            if compiled.stat().st_mtime < source.stat().st_mtime:
                shown = source.relative_to(_SOURCES)
                pytest.exit(
                    f"{shown} has changed since it was compiled: run `make compile`",
                    4,
                )
