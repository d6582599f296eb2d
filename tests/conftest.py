"""For all tests: compiled modules are not older than their sources, and `-m quick` selects.

Hypothesis never fails a test because the machine is slow, and tests work in the background, where a
shell without job control makes processes ignore Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sysconfig
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import botocore.session
import pytest
from hypothesis import HealthCheck, settings

from stator.testing.boto import shared_loader

settings.register_profile("stator", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stator")

_TESTS = Path(__file__).resolve().parent
_SOURCES = _TESTS.parent / "src"

# `make quick` does not read these files: they start processes or servers, or try many schedules.
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
    "design/test_planner_random.py",
    "pipeline/test_workers.py",
    "pipeline/views/test_views_on*",
)
# Targets and other parameters that need a server, or a disk.
NOT_QUICK_PARAMETERS: Final = (
    "http",
    "dynamodb-local",
    "disk",
    "moto",
    "seaweedfs",
    "pyright_errors",
    "mypy_errors",
)
# The tests of the other files that take long, all parameters together, by `make quick-list`.
SLOW_TESTS: Final = _TESTS / "slow_tests.txt"
_SLOW_SECONDS: Final = 0.2
# The temporary folders of tests are in memory, where there is a file system for that: on a disk,
# opening an engine takes forty times as long, for it waits for the disk. A killed process leaves
# the same behind on both. tests/storage/test_storage.py uses the disk.
MEMORY: Final = Path("/dev/shm")
_ROOM_BYTES: Final = 4 << 30
_seconds: defaultdict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--with-slow-tests",
        action="store_true",
        help=f"-m quick also selects the tests in {SLOW_TESTS.name}",
    )
    parser.addoption(
        "--list-slow-tests",
        action="store_true",
        help=f"the same, and write the tests that took {_SLOW_SECONDS} s or more to that file",
    )


def pytest_configure() -> None:
    # xdist tells its workers a width, and commands would wrap their lines at it.
    os.environ.pop("COLUMNS", None)
    # Hundreds of tests make sessions of botocore, and each would parse the service models anew.
    botocore.session.create_loader = shared_loader
    if _is_roomy(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def _is_roomy(folder: Path) -> bool:
    """Whether tests can work in a folder: it has room, and programs in it may run."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    free = found.f_bavail * found.f_frsize
    return free >= _ROOM_BYTES and not found.f_flag & os.ST_NOEXEC and os.access(folder, os.W_OK)


def pytest_sessionstart(session: pytest.Session) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    suffix = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
    for source in _SOURCES.rglob("*.py"):
        for compiled in source.parent.glob(f"{source.stem}{suffix}"):
            if compiled.stat().st_mtime < source.stat().st_mtime:
                shown = source.relative_to(_SOURCES)
                pytest.exit(
                    f"{shown} has changed since it was compiled; "
                    "run `make compile`, or `make interpreted`",
                    4,
                )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m quick`, do not import the files that have no quick test."""
    if config.option.markexpr != "quick" or not collection_path.is_relative_to(_TESTS):
        return None
    place = collection_path.relative_to(_TESTS).as_posix()
    return any(fnmatch(place, pattern) for pattern in NOT_QUICK) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    option = config.option
    every = option.with_slow_tests or option.list_slow_tests
    slow = set() if every else set(SLOW_TESTS.read_text().split())
    for item in items:
        if _is_quick(item, slow):
            item.add_marker(pytest.mark.quick)


def _is_quick(item: pytest.Item, slow: set[str]) -> bool:
    if item.get_closest_marker("slow") is not None or not item.path.is_relative_to(_TESTS):
        return False
    path = item.path.relative_to(_TESTS).as_posix()
    name, _, parameters = item.name.partition("[")
    return (
        not any(fnmatch(path, pattern) for pattern in NOT_QUICK)
        and not any(word in parameters for word in NOT_QUICK_PARAMETERS)
        and _without_parameters(item.nodeid) not in slow
        and "s3" not in name
    )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[_without_parameters(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the list, once: under xdist, in the process that hears of all tests."""
    if session.config.option.list_slow_tests and not hasattr(session.config, "workerinput"):
        slow = sorted(name for name, total in _seconds.items() if total >= _SLOW_SECONDS)
        SLOW_TESTS.write_text("".join(f"{name}\n" for name in slow))


def _without_parameters(nodeid: str) -> str:
    return nodeid.partition("[")[0].removeprefix("tests/")
