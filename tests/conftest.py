"""For all tests: compiled modules are not older than their sources, and `-m quick` selects.

Hypothesis never fails a test because the machine is slow, and tests work in the background, where a
shell without job control makes processes ignore Ctrl-C.
"""

from __future__ import annotations

import signal
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("stator", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stator")

_TESTS = Path(__file__).resolve().parent
_SOURCES = _TESTS.parent / "src"

# `make quick` leaves these to `make test`: they start processes or servers, or try many schedules.
NOT_QUICK: Final = (
    "browser/*",
    "cli/*",
    "client/test_conn*",
    "client/test_cred*",
    "compare/*",
    "demo/*",
    "docs/*",
    "examples/*",
    "fuzz/*",
    "typing/*",
    "test_wheel.py",
    "*crash*",
    "*fault*",
    "*kafka*",
    "*optimal*",
    "*process*",
    "*schedules*",
    "*servers*",
    "*_command.py",
    "*/test_aws*",
    "*/test_bulk*",
    "*/test_bad_rows*",
    "*/test_damage*",
    "*/test_handler_order*",
    "*/test_large_requests*",
    "*/test_moments*",
    "*/test_properties*",
    "*/test_replay*",
    "*/test_s3*",
    "*/test_set_aside*",
    "*/test_storage*",
    "*/test_stream_views*",
    "*/test_verification*",
    "*/test_window*",
    "*/test_worker_errors*",
)
# Targets and other parameters that need a server, or a disk.
NOT_QUICK_PARAMETERS: Final = ("http", "dynamodb-local", "disk", "pyright_errors", "mypy_errors")


def pytest_sessionstart(session: pytest.Session) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for source in _SOURCES.rglob("*.py"):
        for compiled in source.parent.glob(f"{source.stem}.*.so"):
            if compiled.stat().st_mtime < source.stat().st_mtime:
                shown = source.relative_to(_SOURCES)
                pytest.exit(
                    f"{shown} has changed since it was compiled; "
                    "run `make compile`, or `make interpreted`",
                    4,
                )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_quick(item):
            item.add_marker(pytest.mark.quick)


def _is_quick(item: pytest.Item) -> bool:
    path = item.path.relative_to(_TESTS).as_posix() if item.path.is_relative_to(_TESTS) else ""
    parameters = item.name.partition("[")[2]
    return (
        item.get_closest_marker("slow") is None
        and not any(fnmatch(path, pattern) for pattern in NOT_QUICK)
        and not any(word in parameters for word in NOT_QUICK_PARAMETERS)
    )
