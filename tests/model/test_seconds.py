"""Every option in seconds refuses what is no duration: in Python, by one shared check."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stator import Design, Engine, Entity, connect, connect_async, ident, soft_delete, ttl
from stator.errors import StatorError
from stator.model.seconds import LONGEST_SECONDS, is_seconds
from stator.patterns import Lock, Once, Outbox, Series
from stator.patterns.blob_audit import BlobAudit
from stator.pipeline import ParquetSink, StreamApp, View, WebhookSink, WorkerOptions, count
from stator.pipeline.bulk.copy import CopyOptions
from stator.pipeline.bulk.export.export import ExportOptions
from stator.pipeline.bulk.job.governor import Governor
from stator.pipeline.bulk.load.load import LoadOptions
from stator.pipeline.views.rebuild.rebuild import RebuildOptions
from stator.pipeline.workers.worker_threads import RunningWorker
from tests.patterns.meters import Event, Reading
from tests.tables.shop import shop

NO_SECONDS: tuple[Any, ...] = (
    math.nan,
    math.inf,
    -math.inf,
    -1,
    1e308,
    10**400,
    LONGEST_SECONDS * 1.001,
    "5",
    True,
    timedelta(seconds=5),
)


class Sample(Entity):
    sample_id: str = ident()


def _db() -> Any:
    return connect(shop())


def _running() -> RunningWorker:
    made: RunningWorker = object.__new__(RunningWorker)  # options are checked before all else
    return made


_unnamed: Any = vars(BlobAudit)["unnamed"]._plan

# What makes the object or the call, given an option in seconds.
TAKERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "WorkerOptions": (WorkerOptions, WorkerOptions),
    "RebuildOptions": (RebuildOptions, RebuildOptions),
    "LoadOptions": (LoadOptions, LoadOptions),
    "CopyOptions": (CopyOptions, CopyOptions),
    "ExportOptions": (ExportOptions, ExportOptions),
    "Lock": (Lock, lambda **option: Lock(_db(), "x", **option)),
    "Lock.acquire": (Lock(_db(), "x").acquire._plan, lambda **o: Lock(_db(), "x").acquire(**o)),
    "Once": (Once, lambda **option: Once(_db(), "x", **option)),
    "Outbox": (Outbox, lambda **option: Outbox(_db(), "x", **option)),
    "BlobAudit.unnamed": (
        _unnamed,
        # The option is checked before the object is used.
        lambda **option: next(_unnamed(object.__new__(BlobAudit), **option)),
    ),
    "WebhookSink": (WebhookSink, lambda **o: WebhookSink("x", "http://localhost:1", **o)),
    "ParquetSink": (ParquetSink, lambda **option: ParquetSink("x", Path("x"), **option)),
    "RunningWorker.stop": (RunningWorker.stop, lambda **option: _running().stop(**option)),
    "RunningWorker.wait": (RunningWorker.wait, lambda **option: _running().wait(**option)),
    "RunningWorker.catch_up": (RunningWorker.catch_up, lambda **o: _running().catch_up(**o)),
    "Engine.open": (Engine.open, Engine.open),
}


def seconds_of(taker: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(taker).parameters if name.endswith("_seconds")]


CASES = [
    *((name, option) for name, (taker, _) in TAKERS.items() for option in seconds_of(taker)),
]


def test_every_taker_has_options_in_seconds() -> None:
    without = {name for name in TAKERS if name not in {taker for taker, _ in CASES}}
    assert without == {"LoadOptions", "CopyOptions", "ExportOptions"}  # theirs are rates


@pytest.mark.parametrize(("name", "option"), CASES)
def test_what_is_no_number_of_seconds_is_refused(name: str, option: str) -> None:
    make = TAKERS[name][1]
    for value in NO_SECONDS:
        if value == -1 and name == "BlobAudit.unnamed":
            continue  # an age may be negative
        if value is True and name == "Engine.open":
            continue  # compiled code takes it for 1.0
        with pytest.raises((StatorError, TypeError)) as refused:
            make(**{option: value})
        if isinstance(refused.value, StatorError):
            assert option in str(refused.value) and refused.value.hint
        else:  # compiled code refuses what is not a float at all
            assert name == "Engine.open" and "float object expected" in str(refused.value)


REMOTE = ("connect_timeout_seconds", "read_timeout_seconds", "max_backoff_seconds")


@pytest.mark.parametrize("opened", [connect, connect_async])
@pytest.mark.parametrize("option", [*REMOTE, "deadline_seconds"])
def test_times_of_a_connection_are_checked(opened: Any, option: str) -> None:
    keys = {"access_key_id": "x", "secret_access_key": "x"}
    for value in NO_SECONDS:
        with pytest.raises(StatorError, match=option):
            opened(shop(), "http://127.0.0.1:9", **keys, **{option: value})


def test_a_deadline_is_checked() -> None:
    for value in NO_SECONDS:
        with pytest.raises(StatorError, match=r"within\(\): seconds="):
            _db().within(value)


RATES = (math.nan, math.inf, -math.inf, 0, -5)


def test_rates_are_checked() -> None:
    for rate in RATES:
        with pytest.raises(StatorError, match="cannot be kept"):
            Governor(None, rate)  # type: ignore[arg-type]


@pytest.mark.parametrize("marker", [ttl, soft_delete])
@pytest.mark.parametrize("unit", ["days", "hours"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -1, 1e308, 10**400, "5"])
def test_durations_of_markers_are_checked(marker: Any, unit: str, value: Any) -> None:
    with pytest.raises(StatorError, match=f"{marker.__name__}.*is not a duration"):
        marker(**{unit: value})


@pytest.mark.parametrize("keep", [timedelta(0), timedelta(-1), timedelta.max])
def test_durations_of_buckets_are_checked(keep: timedelta) -> None:
    with pytest.raises(StatorError, match="keep="):
        Series(_db(), Reading, by=Reading.sensor_id, at=Reading.at, keep=keep)
    with pytest.raises(StatorError, match="keep="):
        View("x", of=Event, by=Event.device, bucket=(Event.at, "hour"), keep=keep, events=count())


def test_usual_durations_pass() -> None:
    for value in (1e-9, 0.5, 1, 86_400, LONGEST_SECONDS):
        assert is_seconds(value)
    assert is_seconds(0, or_zero=True) and not is_seconds(0)
    options = partial(WorkerOptions, drift_seconds=0, window_seconds=0.0)
    assert options(lease_seconds=3600).lease_seconds == 3600
    assert StreamApp(Design("d", [Sample], []), "x").name == "x"
