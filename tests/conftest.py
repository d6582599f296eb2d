"""A compiled module that is older than its source would test what is no longer there."""

from __future__ import annotations

from pathlib import Path

import pytest

_SOURCES = Path(__file__).resolve().parent.parent / "src"


def pytest_sessionstart(session: pytest.Session) -> None:
    for source in _SOURCES.rglob("*.py"):
        for compiled in source.parent.glob(f"{source.stem}.*.so"):
            if compiled.stat().st_mtime < source.stat().st_mtime:
                shown = source.relative_to(_SOURCES)
                pytest.exit(f"{shown} has changed since it was compiled: `make compile`, or `make interpreted`", 4)
