"""For all tests: compiled modules are not older than their sources, and `-m quick` selects.

Hypothesis never fails a test because the machine is slow, and tests work in the background, where a
shell without job control makes processes ignore Ctrl-C.
"""

from __future__ import annotations

import signal
import sysconfig
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("stator", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stator")

_TESTS = Path(__file__).resolve().parent
_SOURCES = _TESTS.parent / "src"

# `make quick` leaves these files and tests to `make test`: they start processes or servers, try
# many schedules, or take about a second. `make quick` names the tests that should join this list.
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
    "*s3*",
    "*::*behaves_like*",
    "*::*it_does_what*",
    "*::*wherever_it_died",
    "client/test_calls.py::test_an_answer_in_pieces",
    "client/test_calls.py::test_a_connection_that_died*",
    "design/export/test_tables.py::test_cfn*",
    "design/test_planner.py::test_too_many*",
    "engine/recovery/test_data_formats.py::test_items_come_back*",
    "engine/streams/test_expiry.py::test_on_the_systems_clock*",
    "engine/streams/test_shards.py::test_a_shard_that_is_hot*",
    "house/test_github.py::test_actionlint*",
    "house/test_github.py::test_the_hook_for*",
    "model/test_numbers.py::test_what_looks_normal*",
    "patterns/test_rollups.py::test_a_rebuild_survives*",
    "patterns/test_rollups.py::test_roll_ups_are*",
    "patterns/test_unique_audit.py::test_after_a_repair*",
    "pipeline/bulk/test_entity_columns.py::test_both_ways*",
    "pipeline/maintenance/test_maintenance.py::test_messages_are_delivered*",
    "pipeline/sinks/test_audit.py::test_any_single*",
    "pipeline/sinks/test_parquet.py::test_staged*",
    "pipeline/sinks/test_table.py::test_any_replay*",
    "pipeline/sinks/test_table.py::test_the_target_can_be*",
    "pipeline/views/test_views.py::test_views_are_built_anew*",
    "pipeline/views/test_views.py::test_what_does_not_decode*",
    "server/test_http.py::test_a_body_of_tiny_chunks*",
    "stored/test_v1_application.py::test_a_rebuild*",
    "tables/test_outcomes.py::test_acknowledged*",
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_quick(item):
            item.add_marker(pytest.mark.quick)


def _is_quick(item: pytest.Item) -> bool:
    path = item.path.relative_to(_TESTS).as_posix() if item.path.is_relative_to(_TESTS) else ""
    name, _, parameters = item.name.partition("[")
    return (
        item.get_closest_marker("slow") is None
        and not any(
            fnmatch(place, pattern) for place in (path, f"{path}::{name}") for pattern in NOT_QUICK
        )
        and not any(word in parameters for word in NOT_QUICK_PARAMETERS)
    )
