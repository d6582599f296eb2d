"""``--between``: jobs work in their hours, wait outside of them, and can be stopped meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ConfigurationError, ThroughputExceeded
from stator.pipeline.bulk.copy import Copy, CopyOptions
from stator.pipeline.bulk.export.export import ExportOptions
from stator.pipeline.bulk.export.sources import table_export
from stator.pipeline.bulk.job.daily_hours import DailyHours, Gate
from stator.pipeline.bulk.load.load import LoadOptions, LoadPlan

from .stock import ITEMS, ROWS, Through, create, stored, target_through, write_lines

NIGHT = "01:00-05:00"


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The machine's time zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield str(request.param)
    monkeypatch.undo()
    time.tzset()


def moment(hour: int, minute: int = 0, day: int = 10) -> float:
    """A moment of local time."""
    return datetime(2026, 6, day, hour, minute).timestamp()


@pytest.mark.parametrize(
    ("hours", "now", "opens"),
    [
        (NIGHT, (0, 59), (1, 0, 10)),
        (NIGHT, (1, 0), None),
        (NIGHT, (4, 59), None),
        (NIGHT, (5, 0), (1, 0, 11)),
        ("22:00-04:00", (21, 59), (22, 0, 10)),
        ("22:00-04:00", (22, 0), None),
        ("22:00-04:00", (0, 0), None),
        ("22:00-04:00", (3, 59), None),
        ("22:00-04:00", (4, 0), (22, 0, 10)),
        ("9:30-24:00", (23, 59), None),
        ("9:30-24:00", (0, 0), (9, 30, 10)),
    ],
)
def test_the_hours_of_a_day(
    zone: str, hours: str, now: tuple[int, int], opens: tuple[int, int, int] | None
) -> None:
    expected = None if opens is None else moment(*opens)
    assert DailyHours.parse(hours).opens_at(moment(*now)) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("night", "is not a range of times"),
        ("01:00", "is not a range of times"),
        ("1-5", "is not a range of times"),
        ("01:00-25:00", "has a time that does not exist"),
        ("01:60-05:00", "has a time that does not exist"),
        ("24:00-05:00", "has a time that does not exist"),
        ("05:00-05:00", "begins and ends at the same time"),
        ("00:00-24:00", "begins and ends at the same time"),
    ],
)
def test_hours_that_cannot_be_kept_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=f"--between {text} {reason}") as raised:
        DailyHours.parse(text)
    assert "01:00-05:00" in str(raised.value.hint)


class HourLog:
    """Remembers the local hour of every call that works on items, and lets each take time."""

    def __init__(self, clock: VirtualClock, call_seconds: float) -> None:
        self._clock = clock
        self._seconds = call_seconds
        self.hours: list[int] = []

    def __call__(self, operation: str, request: Mapping[str, Any]) -> None:
        if operation in ("Scan", "BatchWriteItem", "PutItem"):
            self.hours.append(datetime.fromtimestamp(self._clock.now()).hour)
            self._clock.advance(self._seconds)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(moment(18))


def test_a_load_works_at_night_only_and_says_that_it_waits(
    clock: VirtualClock, tmp_path: Path
) -> None:
    """Each request takes two hours, so the load needs more than one night."""
    seen: list[float | None] = []
    log = HourLog(clock, 2 * 3600)
    rows = [{"pk": f"{number}"} for number in range(100)]
    with Engine.open() as engine:
        create(engine)
        plan = LoadPlan(
            str(write_lines(tmp_path / "x.jsonl", rows)),
            target_through(Through(engine, log)),
            LoadOptions(between=NIGHT, writers=1),
            clock=clock,
        )
        _with_slow_waits(plan.gate, lambda: seen.append(plan.gate.closed_until))
        report = plan.run(lambda progress: seen.append(progress.waits_until))
        assert report.written == 100
        assert len(stored(engine)) == 100
    assert len(log.hours) == 4 and all(1 <= hour < 5 for hour in log.hours)
    waited = [each for each in seen if each is not None]
    assert waited and datetime.fromtimestamp(waited[0]).hour == 1
    assert seen[-1] is None


def _with_slow_waits(gate: Gate, watch: Callable[[], None]) -> None:
    """Call ``watch`` while the gate is closed: virtual hours pass between two looks of the job."""
    wait = gate.wait
    gate.wait = lambda watch=watch: wait(watch)  # type: ignore[method-assign] # for this test


def test_a_service_that_throttles_after_the_pause_gets_its_patience_anew(
    clock: VirtualClock, tmp_path: Path
) -> None:
    calls = 0

    def throttle_first(operation: str, request: Mapping[str, Any]) -> None:
        nonlocal calls
        calls += operation == "BatchWriteItem"
        if operation == "BatchWriteItem" and calls <= 2:
            raise ThroughputExceeded

    with Engine.open() as engine:
        create(engine)
        report = LoadPlan(
            str(write_lines(tmp_path / "x.jsonl", ROWS)),
            target_through(Through(engine, throttle_first)),
            LoadOptions(between=NIGHT),
            clock=clock,
        ).run()
        assert report.written == len(ROWS)


def test_a_copy_reads_writes_and_verifies_at_night_only(
    clock: VirtualClock, tmp_path: Path
) -> None:
    reads, writes = HourLog(clock, 3 * 3600), HourLog(clock, 3 * 3600)
    with Engine.open() as source, Engine.open() as other:
        create(source)
        create(other)
        for item in ITEMS.values():
            source.call("PutItem", {"TableName": "orders", "Item": item})
        report = Copy(
            target_through(Through(source, reads)),
            target_through(Through(other, writes), place="other"),
            CopyOptions(
                journal=tmp_path / "journal", between=NIGHT, segments=2, readers=1, writers=1
            ),
            clock=clock,
        ).run()
        assert (report.written, report.verified) == (60, True)
        assert stored(other) == stored(source)
    first_look = writes.hours.pop(0)  # whether the target is empty, before the work begins
    assert first_look == 18
    # A reader and a writer may pass the gate together, and then the first moves the clock.
    assert set(reads.hours + writes.hours) <= {1, 2, 3, 4, 5, 6, 7}


def test_an_export_reads_at_night_only(clock: VirtualClock, tmp_path: Path) -> None:
    log = HourLog(clock, 2 * 3600)
    with Engine.open() as engine:
        create(engine)
        for item in ITEMS.values():
            engine.call("PutItem", {"TableName": "orders", "Item": item})
        report = table_export(
            target_through(Through(engine, log)),
            str(tmp_path / "out"),
            ExportOptions(between=NIGHT, readers=1),
            segments=4,
            clock=clock,
        ).run()
        assert report.items == 60
    assert len(log.hours) == 4 and all(1 <= hour < 5 for hour in log.hours)


class DayClock(VirtualClock):
    """A clock on which it stays day, however long a thread sleeps."""

    def __init__(self) -> None:
        super().__init__(moment(18))
        self.asleep = threading.Event()

    def sleep(self, seconds: float) -> None:
        self.asleep.set()
        time.sleep(0.01)

    def interrupt(self, _: object) -> None:
        """Press Ctrl-C once a thread sleeps."""
        if self.asleep.is_set():
            raise KeyboardInterrupt


def test_a_copy_that_waits_for_the_night_stops_without_a_request(tmp_path: Path) -> None:
    clock = DayClock()
    with Engine.open() as source, Engine.open() as other:
        create(source)
        create(other)
        reads, writes = Through(source), Through(other)
        options = CopyOptions(journal=tmp_path / "journal", between=NIGHT)
        target = target_through(writes, place="other")
        with pytest.raises(KeyboardInterrupt):
            Copy(target_through(reads), target, options, clock=clock).run(clock.interrupt)
        assert "Scan" not in reads.operations
        assert (tmp_path / "journal").exists()


def test_an_export_that_waits_for_the_night_stops_and_resumes(
    clock: VirtualClock, tmp_path: Path
) -> None:
    day = DayClock()
    with Engine.open() as engine:
        create(engine)
        transport = Through(engine)
        target, out = target_through(transport), str(tmp_path / "out")
        with pytest.raises(KeyboardInterrupt):
            table_export(target, out, ExportOptions(between=NIGHT), clock=day).run(day.interrupt)
        assert "Scan" not in transport.operations
        assert (tmp_path / "out" / ".journal").exists()
        options = ExportOptions(between=NIGHT, resume=True)
        assert table_export(target, out, options, clock=clock).run().items == 0


def test_a_job_that_waits_for_the_night_stops_at_once_and_resumes(
    clock: VirtualClock, tmp_path: Path
) -> None:
    """Ctrl-C arrives while the writers sleep; nothing is sent, and the journal stays."""
    day = DayClock()
    path = write_lines(tmp_path / "x.jsonl", ROWS)
    with Engine.open() as engine:
        create(engine)
        transport = Through(engine)
        with pytest.raises(KeyboardInterrupt):
            LoadPlan(
                str(path),
                target_through(transport),
                LoadOptions(between=NIGHT),
                clock=day,
            ).run(day.interrupt)
        assert "BatchWriteItem" not in transport.operations
        assert list(tmp_path.glob("*.journal"))
        report = LoadPlan(
            str(path), target_through(transport), LoadOptions(resume=True), clock=clock
        ).run()
        assert report.written == 60
