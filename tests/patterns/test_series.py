"""Series return what was added, ordered by time, whatever the buckets and shards."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import Entity, connect, ident, version
from stator.addresses import TransportOptions
from stator.clock import VirtualClock
from stator.design.design import Layout
from stator.engine import Engine
from stator.errors import (
    BatchFailed,
    ConfigurationError,
    CursorRefused,
    DeadlineExceeded,
    RequestRefused,
    ServiceError,
    StatorError,
    ThroughputExceeded,
    ValidationFailed,
)
from stator.patterns.series.series import Series
from stator.patterns.series.spread import Spread
from stator.tables.db import Db
from tests.client.scripted import Connection, ok, refuse, scripted
from tests.patterns.crashing import Form, crash_everywhere
from tests.patterns.faults import with_faults
from tests.patterns.meters import T0, Event, Reading, reading
from tests.tables.shop import shop
from tests.targets import Target


def series(db: Db, **options: Any) -> Series[Db, Reading]:
    given: dict[str, Any] = {
        "by": Reading.sensor_id,
        "at": Reading.at,
        "bucket": "hour",
        "shards": 3,
    }
    return Series(db, Reading, **(given | options))


def all_pages(of: Series[Db, Any], by: Any, limit: int, **options: Any) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = of.page(by, limit=limit, cursor=cursor, **options)
        assert len(page) <= limit
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("layout", ["single-table", "table-per-entity"])
def test_a_range_is_returned_in_order(target: Target, layout: Layout) -> None:
    readings = series(target.connect(shop(layout)))
    added = [reading(minutes, minutes) for minutes in range(0, 400, 7)]
    for each in added[:5]:
        readings.add(each)
    result = readings.add_many(added)
    assert result.ok and result.written == len(added)
    readings.add(reading(5, sensor="s2"))
    assert list(readings.range("s1", newest_first=False)) == added
    assert list(readings.range("s1")) == added[::-1]
    start, end = added[3].at, added[30].at
    assert list(readings.range("s1", start, end, newest_first=False)) == added[3:30]
    assert list(readings.range("s1", start, end, limit=4)) == added[26:30][::-1]
    assert list(readings.range("nobody")) == []
    assert readings.latest("s1", 3) == added[:-4:-1]
    assert readings.latest("nobody", 3) == []
    assert readings.count("s1") == len(added) and readings.count("s1", start, end) == 27
    assert all_pages(readings, "s1", 5) == added[::-1]
    assert all_pages(readings, "s1", 100, newest_first=False, start=start, end=end) == added[3:30]


def test_several_readings_at_one_time_and_fields_named_like_keys(target: Target) -> None:
    db = target.connect(shop("table-per-entity"))
    events = Series(db, Event, by="device", at="at", shards=4, shard_by=Event.level, name="events")
    added = [
        Event(event_id=f"e{number}", device="d", at=T0, level=number, PK=f"p{number}")
        for number in range(6)
    ]
    assert events.add_many(added).ok
    assert list(events.range("d", newest_first=False)) == added
    assert all_pages(events, "d", 2) == added[::-1]


def test_a_series_works_on_an_async_db(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(shop()) as db:
            readings = Series(
                db, Reading, by=Reading.sensor_id, at=Reading.at, bucket="hour", shards=3
            )
            added = [reading(minutes, minutes) for minutes in range(0, 300, 10)]
            await asyncio.gather(*(readings.add(each) for each in added[:10]))
            assert (await readings.add_many(added[10:])).ok
            assert [each async for each in readings.range("s1", newest_first=False)] == added
            assert await readings.latest("s1") == added[-1:]
            page = await readings.page("s1", limit=4)
            following = await readings.page("s1", limit=4, cursor=page.cursor)
            assert page.items + following.items == added[:-9:-1]

    asyncio.run(main())


def test_threads_write_the_same_and_different_readings(target: Target) -> None:
    db = target.connect(shop())
    added = [reading(minutes, minutes) for minutes in range(0, 240, 6)]

    def write(mine: Series[Db, Reading]) -> None:
        for each in added:
            mine.add(each)

    threads = [
        threading.Thread(target=write, args=(series(db, shards=shards),)) for shards in (1, 2, 4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    readings = series(db)
    assert list(readings.range("s1", newest_first=False, consistent=True)) == added
    assert readings.count("s1", consistent=True) == len(added)


def test_readings_stay_readable_when_a_bucket_grows(target: Target) -> None:
    db = target.connect(shop())
    first = series(db, bucket="day", shards=1)
    assert first.add_many(reading(minutes, 1) for minutes in range(0, 60, 2)).ok
    wide = series(db, bucket="day", shards=5)
    assert wide.add_many(reading(minutes, 2) for minutes in range(30, 90, 2)).ok
    expected = {reading(minutes).at: 1 if minutes < 30 else 2 for minutes in range(0, 90, 2)}
    for reader in (first, wide, series(db, bucket="day", shards=2)):
        found = list(reader.range("s1", newest_first=False))
        assert {each.at: int(each.value) for each in found} == expected
        assert len(found) == len(expected) == reader.count("s1")
        assert all_pages(reader, "s1", 7) == found[::-1]
    first.add(reading(500, 3))  # it does not know of the growth yet, and writes to the old shard
    assert wide.latest("s1")[0].value == 3


def test_a_cursor_outlives_growth() -> None:
    db = connect(shop())
    narrow = series(db, bucket="day", shards=1)
    narrow.add_many(reading(minutes) for minutes in range(20))
    page = narrow.page("s1", limit=6)
    wide = series(db, bucket="day", shards=7)
    wide.add_many(reading(minutes + 0.5) for minutes in range(20))
    rest = wide.page("s1", limit=100, cursor=page.cursor)
    minutes = [(each.at - T0) / timedelta(minutes=1) for each in rest]
    assert minutes == [each / 2 for each in range(27, -1, -1)]


def test_a_cursor_is_bound_to_its_arguments() -> None:
    readings = series(connect(shop(), cursor_key=b"secret"))
    readings.add_many(reading(minutes) for minutes in range(20))
    cursor = readings.page("s1", limit=3).cursor
    assert cursor is not None
    with pytest.raises(CursorRefused):
        readings.page("s2", limit=3, cursor=cursor)
    with pytest.raises(CursorRefused):
        readings.page("s1", limit=3, cursor=cursor, newest_first=False)
    with pytest.raises(CursorRefused):
        readings.page("s1", limit=3, cursor=cursor[:-4] + "AAAA")
    with pytest.raises(CursorRefused):
        series(connect(shop()), name="other").page("s1", limit=3, cursor=cursor)


# --- adaptive ---------------------------------------------------------------------------------


class Busy:
    """A partition accepts a number of writes in each second of a clock."""

    def __init__(self, each: int, clock: VirtualClock | None = None) -> None:
        self.each = each
        self.clock = clock or VirtualClock()
        self.writes: dict[tuple[str, int], int] = {}
        self.reasons: list[dict[str, Any]] = []

    def __call__(self, number: int, operation: str, request: Mapping[str, Any]) -> None:
        if operation != "PutItem" or request["Item"]["SK"]["S"].startswith("BUCKET"):
            return
        partition = request["Item"]["PK"]["S"], int(self.clock.now())
        if self.writes.get(partition, 0) >= self.each:
            raise ThroughputExceeded(throttling_reasons=self.reasons)
        self.writes[partition] = self.writes.get(partition, 0) + 1


def test_a_throttled_bucket_grows(target: Target) -> None:
    clock = VirtualClock(T0.timestamp())
    db = target.connect(shop(), clock=clock)
    readings = series(db, bucket="day", shards="adaptive")
    added = [reading(minutes, minutes) for minutes in range(100)]
    busy = Busy(10, clock)
    with_faults(db, before=busy)
    for each in added:
        readings.add(each)
    assert len({partition for partition, _ in busy.writes}) >= 4
    other = series(db, bucket="day", shards="adaptive")
    assert list(other.range("s1", newest_first=False, consistent=True)) == added
    # The next bucket starts with as many shards as this one has.
    bucket = db.run(other.directory.open("s1", "2096-11-15"))
    [grown] = readings.shards("s1", limit=5)[1:]
    assert bucket.shards == grown.shards >= 4


def test_a_bucket_grows_only_if_a_partition_is_throttled() -> None:
    db = connect(shop())
    readings = series(db, bucket="day", shards="adaptive")
    busy = Busy(0)
    busy.reasons = [{"reason": "TableWriteAccountLimitExceeded", "resource": "arn"}]
    with_faults(db, before=busy)
    with pytest.raises(ThroughputExceeded):
        readings.add(reading(1))
    fixed = series(db, bucket="day", shards=2, name="fixed")
    busy.reasons = [{"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn"}]
    with pytest.raises(ThroughputExceeded):
        fixed.add(reading(1))


def test_a_deadline_exceeded_by_throttling_counts_as_throttling() -> None:
    db = connect(shop())
    readings = series(db, bucket="day", shards="adaptive")
    left = {"failures": 2}

    def before(number: int, operation: str, request: Mapping[str, Any]) -> None:
        if operation == "PutItem" and left["failures"]:
            left["failures"] -= 1
            raise DeadlineExceeded("late") from (ThroughputExceeded() if left["failures"] else None)

    with_faults(db, before=before)
    with pytest.raises(DeadlineExceeded):
        readings.add(reading(1))  # the first was throttled; the second only exceeds the deadline
    readings.add(reading(1))
    assert db.run(readings.directory.open("s1", "2096-11-14")).spreads == (Spread(1), Spread(2))


def test_the_retries_of_the_client_end_at_the_deadline() -> None:
    """One partition refuses everything, over HTTP. Without a deadline the client retries longer."""
    engine = Engine.open()

    def answer(to: Connection) -> None:
        operation = to.head.partition("DynamoDB_20120810.")[2].split()[0]
        request = json.loads(to.body)
        if operation == "PutItem" and request["Item"]["PK"]["S"].endswith("2096-11-14#0"):
            reasons = [{"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn"}]
            refuse("ProvisionedThroughputExceededException", ThrottlingReasons=reasons)(to)
            return
        try:
            ok(engine.call(operation, request))(to)
        except ServiceError as error:
            to.send(error.status, json.dumps(error.wire()).encode())

    options: TransportOptions = {
        "access_key_id": "x",
        "secret_access_key": "x",
        "region": "us-east-1",
    }
    with scripted(answer) as server, connect(shop(), server.url, **options) as db:
        db.ensure()
        readings = series(db.within(0.2), bucket="day", shards="adaptive")
        moved = next(
            each for each in map(reading, range(100)) if readings.layout.shard(each, 2) == 1
        )
        readings.add(moved)
        assert readings.latest("s1") == [moved]
        assert db.run(readings.directory.open("s1", "2096-11-14")).spreads == (Spread(1), Spread(2))


def test_a_throttled_batch_grows_the_bucket() -> None:
    db = connect(shop())
    readings = series(db, bucket="day", shards="adaptive")
    left = {"failures": 3}

    def before(number: int, operation: str, request: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem" and left["failures"]:
            left["failures"] -= 1
            raise ThroughputExceeded

    with_faults(db, before=before)
    added = [reading(minutes, minutes) for minutes in range(60)]
    result = readings.add_many(added)
    assert result.ok and result.written == 60
    assert list(readings.range("s1", newest_first=False)) == added
    assert db.run(readings.directory.open("s1", "2096-11-14")).shards >= 2


# --- expiry, tables ---------------------------------------------------------------------------


def test_expired_readings_are_hidden(target: Target) -> None:
    clock = VirtualClock(T0.timestamp())
    readings = series(target.connect(shop(), clock=clock), keep=timedelta(minutes=30))
    added = [reading(minutes, minutes) for minutes in range(0, 60, 5)]
    readings.add_many(added)
    clock.advance(60 * 60)
    assert list(readings.range("s1", newest_first=False, consistent=True)) == added[7:]
    assert readings.count("s1", consistent=True) == 5
    assert all_pages(readings, "s1", 2, consistent=True) == added[:6:-1]
    seen = list(readings.range("s1", newest_first=False, consistent=True, include_expired=True))
    assert seen[-5:] == added[7:]


def test_keep_can_be_extended_later() -> None:
    db = connect(shop(), clock=VirtualClock(T0.timestamp()))
    series(db, keep=timedelta(minutes=30)).add(reading(1))
    key = {"PK": {"S": "SERIES#reading#s1"}, "SK": {"S": "BUCKET#2096-11-14T12"}}
    ttl = db.context.schema.place.ttl
    before = int(db.call("GetItem", {"TableName": "shop-stator", "Key": key})["Item"][ttl]["N"])
    series(db, keep=timedelta(hours=5)).add(reading(2))
    assert (
        int(db.call("GetItem", {"TableName": "shop-stator", "Key": key})["Item"][ttl]["N"])
        == before + 4.5 * 3600
    )
    series(db).add(reading(3))
    assert ttl not in db.call("GetItem", {"TableName": "shop-stator", "Key": key})["Item"]


def test_a_series_can_have_a_table_for_each_month(target: Target) -> None:
    db = target.connect(shop())
    readings = series(db, bucket="day", shards=2, table_per="month", keep=timedelta(days=9000))
    months = [datetime(2026, month, 3, tzinfo=UTC) for month in (9, 10, 11)]
    added = [reading(0, number) for number in range(9)]
    for number, each in enumerate(added):
        each.at = months[number // 3] + timedelta(hours=number)
    assert readings.add_many(added).ok
    head = f"{db.context.schema.place.table}-reading-2026"
    assert readings.tables() == [f"{head}-09", f"{head}-10", f"{head}-11"]
    assert list(readings.range("s1", newest_first=False)) == added
    assert all_pages(readings, "s1", 2) == added[::-1]
    described = db.call("DescribeTimeToLive", {"TableName": f"{head}-10"})["TimeToLiveDescription"]
    assert described["TimeToLiveStatus"] in ("ENABLED", "ENABLING")
    with pytest.raises(RequestRefused, match="2026-09"):
        readings.drop_before(date(2026, 11, 1))
    assert len(readings.tables()) == 3
    assert readings.drop_before(date(2026, 10, 31), confirm=True) == [f"{head}-09"]
    assert readings.drop_before(date(2026, 10, 31), confirm=True) == []
    assert list(readings.range("s1", newest_first=False)) == added[3:]
    assert readings.count("s1") == 6
    series(db, bucket="day", shards=2, table_per="month").add(
        added[0]
    )  # a late reading; its table is created again
    assert len(readings.tables()) == 3
    assert list(readings.range("s1", newest_first=False)) == [added[0], *added[3:]]


def test_a_table_that_another_process_dropped_is_created_again() -> None:
    db = connect(shop())
    one, other = (series(db, bucket="day", table_per="day") for _ in range(2))
    one.add(reading(1))
    other.drop_before(T0 + timedelta(days=2), confirm=True)
    assert one.latest("s1") == []
    one.add(reading(2))
    other.drop_before(T0 + timedelta(days=2), confirm=True)
    assert one.add_many([reading(3), reading(4)]).ok
    assert one.latest("s1", 5) == [reading(4), reading(3)]


def test_a_drop_survives_a_crash_at_any_call(form: Form) -> None:
    db = connect(shop())
    readings = series(db, bucket="day", shards=1, table_per="day")

    def fill() -> None:
        readings.drop_before(date(2097, 1, 1), confirm=True)
        assert readings.tables() == [] and readings.count("s1") == 0
        names = db.call("ListTables", {})["TableNames"]
        assert not [name for name in names if "-reading-" in name]
        for day in range(3):
            readings.add(reading(day * 1440))

    def drop(dying: Any) -> Any:
        mine = series(dying, bucket="day", shards=1, table_per="day")
        return mine.drop_before(date(2097, 1, 1), confirm=True)

    fill()
    assert crash_everywhere(db, drop, fill, form=form) >= 8


# --- crashes, invalid input -------------------------------------------------------------------


def test_an_addition_survives_a_crash_at_any_call(form: Form) -> None:
    db = connect(shop())
    number = 0

    def add(dying: Any) -> Any:
        return series(dying, shards="adaptive", name=f"n{number}").add(reading(number))

    def again() -> None:
        nonlocal number
        add(db)
        mine = series(db, shards="adaptive", name=f"n{number}")
        assert mine.latest("s1", 9) == [reading(number)] and mine.count("s1") == 1
        number += 1

    assert crash_everywhere(db, add, again, form=form) >= 6


def test_readings_that_cannot_be_written_are_raised_after_the_others(target: Target) -> None:
    readings = series(target.connect(shop()))
    with pytest.raises(BatchFailed) as caught:
        readings.add_many([reading(1), "no reading", reading(2)])  # type: ignore[list-item]
    assert caught.value.written == 2
    assert [failure.change for failure in caught.value.failures] == ["no reading"]
    assert readings.count("s1") == 2
    with pytest.raises(RequestRefused, match="on_error"):
        readings.add_many([reading(3)], on_error="ignore")  # type: ignore[arg-type]


def test_the_result_lists_readings_that_cannot_be_written(target: Target) -> None:
    readings = series(target.connect(shop()))
    good = [reading(minutes) for minutes in range(30)]
    large = reading(7.5, note="x" * 410_000)
    wrong = reading(8.5)
    wrong.value = "many"  # type: ignore[assignment]  # wrong on purpose
    naive = reading(9.5)
    naive.at = datetime(2026, 1, 1)
    mixed: list[Any] = [*good[:10], large, wrong, naive, "no reading", *good[10:]]
    result = readings.add_many(mixed, on_error="collect")
    assert result.written == 30
    assert {id(failure.change) for failure in result.failures} == {
        id(large),
        id(wrong),
        id(naive),
        id("no reading"),
    }
    assert list(readings.range("s1", newest_first=False)) == good
    with pytest.raises(ValidationFailed):
        readings.add(large)
    event: Any = Event(event_id="e", device="d", at=T0)
    with pytest.raises(RequestRefused, match="series of Reading"):
        readings.add(event)


class Versioned(Entity):
    sensor: str = ident()
    at: datetime = ident()
    rev: int = version()


@pytest.mark.parametrize(
    "options",
    [
        {"by": "nothing"},
        {"by": Reading.sensor_id, "at": Reading.value},
        {"bucket": "week"},
        {"shards": 0},
        {"shards": 1000},
        {"shards": "some"},
        {"keep": timedelta(0)},
        {"table_per": "hour"},
        {"table_per": "day", "bucket": "month"},
        {"table_per": "day", "bucket": "day", "name": "a b"},
        {"shard_by": "nothing"},
        {"rollups_from": "thin air"},
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        series(connect(shop()), **options)
    assert caught.value.hint


def test_invalid_arguments_are_refused() -> None:
    db = connect(shop())
    with pytest.raises(ConfigurationError, match="version"):
        Series(db, Versioned, by="sensor", at="at")
    readings = series(db)
    with pytest.raises(RequestRefused):
        list(readings.range("s1", T0, T0))
    with pytest.raises(ConfigurationError):
        list(readings.range("s1", datetime(2026, 1, 1), T0))
    with pytest.raises(RequestRefused):
        readings.page("s1", limit=0)
    with pytest.raises(RequestRefused):
        readings.drop_before(date(2026, 1, 1), confirm=True)
    assert readings.tables() == []


def test_explain_shows_the_cost() -> None:
    text = str(series(connect(shop()), shards=4, bucket="day").explain())
    assert (
        "SERIES#reading#<sensor_id>#<day>#<shard>" in text and "add: PutItem; 1 write unit" in text
    )


# --- against a dictionary ---------------------------------------------------------------------

_steps = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.integers(0, 300),
        st.integers(0, 9),
        st.sampled_from([1, 2, 5]),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(_steps, st.integers(0, 300), st.integers(1, 200), st.integers(1, 9), st.booleans())
def test_a_series_behaves_like_a_dictionary_ordered_by_time(
    steps: list[tuple[str, int, int, int]], start: int, width: int, limit: int, newest_first: bool
) -> None:
    db = connect(shop())
    model: dict[tuple[str, int], Reading] = {}
    for sensor, minute, value, shards in steps:
        series(db, shards=shards).add(reading(minute, value, sensor))
        model[sensor, minute] = reading(minute, value, sensor)
    readings = series(db)
    low, high = T0 + timedelta(minutes=start), T0 + timedelta(minutes=start + width)
    for sensor in ("a", "b"):
        mine = [
            model[key]
            for key in sorted(model)
            if key[0] == sensor and start <= key[1] < start + width
        ]
        expected = mine[::-1] if newest_first else mine
        assert list(readings.range(sensor, low, high, newest_first=newest_first)) == expected
        assert (
            all_pages(readings, sensor, limit, start=low, end=high, newest_first=newest_first)
            == expected
        )
        assert readings.count(sensor, low, high) == len(mine)
        assert (
            readings.latest(sensor, 2)
            == [model[key] for key in sorted(model, reverse=True) if key[0] == sensor][:2]
        )


def test_the_first_and_the_last_moments_are_stored_or_refused(target: Target) -> None:
    readings = Series(target.connect(shop()), Reading, by=Reading.sensor_id, at=Reading.at)
    last = datetime(9999, 12, 1, tzinfo=UTC) - timedelta(microseconds=1)
    readings.add(Reading(sensor_id="s", at=last, value=Decimal(1)))
    assert [each.at for each in readings.latest("s")] == [last]
    with pytest.raises(StatorError, match="up to November 9999"):
        readings.add(Reading(sensor_id="s", at=datetime.max.replace(tzinfo=UTC), value=Decimal(1)))
    before = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    with pytest.raises(StatorError, match="from year 1"):
        readings.add(Reading(sensor_id="s", at=before, value=Decimal(1)))
