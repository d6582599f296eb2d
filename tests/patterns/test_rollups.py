"""Roll-ups are what the readings add up to, despite concurrent writers and crashes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import connect
from stator.clock import VirtualClock
from stator.design.table_settings import ProvisionedCapacity, TableSettings
from stator.engine import Engine
from stator.errors import (
    ConfigurationError,
    ItemExists,
    OutcomeUnknown,
    ReplyLost,
    RequestRefused,
    StatorError,
    ThroughputExceeded,
)
from stator.model.periods import floor
from stator.patterns.rollups.rollup import Rollup, Summary
from stator.patterns.series.series import Series
from stator.tables.db import Db
from tests.patterns.crashing import Form, crash_everywhere, finished
from tests.patterns.faults import with_faults
from tests.patterns.meters import T0, Reading, reading
from tests.tables.shop import shop
from tests.targets import Target

ROLLUPS = [Rollup("hour", of=Reading.value), Rollup("day", of=Reading.value)]
DAYS = timedelta(days=30)


def series(db: Db, **options: Any) -> Series[Db, Reading]:
    given: dict[str, Any] = {
        "by": Reading.sensor_id, "at": Reading.at, "bucket": "hour", "shards": 2, "rollups": ROLLUPS
    }  # fmt: skip
    return Series(db, Reading, **(given | options))


def expected(readings: Iterable[Reading], period: Any) -> list[Summary]:
    groups: dict[Any, list[Reading]] = {}
    for each in sorted(readings, key=lambda each: each.at):
        groups.setdefault(floor(period, each.at), []).append(each)
    return [
        Summary(
            start,
            len(group),
            sum((each.value for each in group), Decimal(0)),
            min(each.value for each in group),
            max(each.value for each in group),
            group[-1].value,
            group[-1].at,
        )
        for start, group in groups.items()
    ]


def check(of: Series[Db, Reading], readings: Iterable[Reading], sensor: str = "s1") -> None:
    mine = list(readings)
    for period in ("hour", "day"):
        found = of.rollup(period, of=Reading.value).range(sensor, T0 - DAYS, T0 + DAYS)
        assert found == expected(mine, period), period


def test_each_write_updates_the_roll_ups(target: Target) -> None:
    readings = series(target.connect(shop()))
    added = [reading(minutes, (minutes * 37) % 19 - 5) for minutes in range(0, 1500, 50)]
    for each in added[:10]:
        readings.add(each)
        readings.add(each)  # a repeat, counted once
    result = readings.add_many(added[5:])
    assert result.ok and result.written == 25
    check(readings, added)
    hours = readings.rollup("hour", of="value")
    [first, *_] = hours.range("s1", added[0].at, added[0].at + timedelta(minutes=1))
    assert first.mean == first.sum / first.count
    assert list(readings.range("s1", newest_first=False)) == added
    assert hours.rebuild("s1", T0, T0 + DAYS) == 0  # nothing to correct


def test_threads_that_keep_setting_records_are_counted_exactly(target: Target) -> None:
    """Every writer keeps setting records: expectations of minimum, maximum and last fail."""
    db = target.connect(shop())
    added = [
        [
            reading(minutes + writer / 10, (minutes - 20) * (writer + 1) * (-1) ** minutes)
            for minutes in range(12)
        ]
        for writer in range(3)
    ]
    mine = [series(db, shards=shards, bucket="day") for shards in (1, 1, 1)]

    def write(writer: int) -> None:
        for each in added[writer][:8]:
            mine[writer].add(each)
        assert mine[writer].add_many(added[writer]).ok

    def rebuild() -> None:
        for _ in range(3):
            mine[0].rollup("hour", of=Reading.value).rebuild("s1", T0, T0 + DAYS)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    threads.append(threading.Thread(target=rebuild))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(mine[0], [each for group in added for each in group])


def test_asyncio_tasks_are_counted_exactly(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(shop()) as db:
            readings = Series(
                db,
                Reading,
                by=Reading.sensor_id,
                at=Reading.at,
                bucket="day",
                shards=4,
                rollups=ROLLUPS,
            )
            added = [reading(minutes, minutes % 7) for minutes in range(20)]
            await asyncio.gather(*(readings.add(each) for each in added))
            found = await readings.rollup("day", of=Reading.value).range("s1", T0, T0 + DAYS)
            assert found == expected(added, "day")

    asyncio.run(main())


def test_a_reading_with_other_values_is_refused_and_can_be_replaced(target: Target) -> None:
    readings = series(target.connect(shop()))
    added = [reading(minutes, minutes) for minutes in range(5)]
    assert readings.add_many(added).ok
    with pytest.raises(ItemExists) as caught:
        readings.add(reading(4, 99))
    assert caught.value.entity == added[4] and "replace" in (caught.value.hint or "")
    result = readings.add_many(
        [reading(4, 99), reading(5, 5), reading(6, 6), reading(6, 7), reading(5, 5)],
        on_error="collect",
    )
    assert [failure.change for failure in result.failures] == [reading(6, 7), reading(4, 99)]
    assert result.written == 3
    readings.replace(reading(4, -1))
    readings.remove(reading(0))
    check(readings, [*added[1:4], reading(4, -1), reading(5, 5), reading(6, 6)])
    for minutes in range(1, 7):
        readings.remove(reading(minutes))
    check(readings, [])


def test_a_growing_bucket_counts_nothing_twice(target: Target) -> None:
    db = target.connect(shop())
    added = [reading(minutes, minutes) for minutes in range(30)]
    assert series(db, bucket="day", shards=1).add_many(added).ok
    wide = series(db, bucket="day", shards=6)
    assert wide.add_many([*added, reading(40, 40)]).ok
    for each in added[:5]:
        wide.add(each)
    check(wide, [*added, reading(40, 40)])
    assert wide.count("s1") == 31
    assert wide.rollup("day", of=Reading.value).rebuild("s1", T0, T0 + DAYS) == 0


def test_a_crash_at_any_call_counts_nothing_twice(form: Form) -> None:
    db = connect(shop())
    number = 0

    def add(dying: Any) -> Iterator[Any]:
        mine = series(dying, bucket="day", shards=2, name=f"n{number}")
        yield mine.add(reading(1, 5))
        yield mine.add_many([reading(2, 1), reading(3, 9)])

    def again() -> None:
        nonlocal number
        finished(add(db))
        check(
            series(db, bucket="day", name=f"n{number}"),
            [reading(1, 5), reading(2, 1), reading(3, 9)],
        )
        number += 1

    assert crash_everywhere(db, add, again, form=form) >= 8


def test_lost_replies_are_not_counted_twice() -> None:
    """Every other transaction loses its reply; the caller adds the reading again."""
    db = connect(shop())
    readings = series(db)

    def after(number: int, operation: str, request: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems" and number % 2:
            raise ReplyLost("no answer")

    with_faults(db, after=after)
    added = [reading(minutes, minutes) for minutes in range(20)]
    for each in added:
        for _ in range(6):
            try:
                readings.add(each)
            except OutcomeUnknown:
                continue
            break
    result = readings.add_many(added, on_error="collect")
    for failure in result.failures:
        assert isinstance(failure.error, OutcomeUnknown)
    check(readings, added)


def test_a_sum_of_too_many_digits_is_refused_with_its_reading(target: Target) -> None:
    readings = series(target.connect(shop()), shards=1)
    readings.add(reading(1, "1e30"))
    with pytest.raises(StatorError):
        readings.add(reading(2, "1e-20"))
    result = readings.add_many([reading(3, "1e-20"), reading(4, "1e30")], on_error="collect")
    assert [failure.change for failure in result.failures] == [reading(3, "1e-20")]
    check(readings, [reading(1, "1e30"), reading(4, "1e30")])
    assert readings.count("s1") == 2


def test_a_rebuild_survives_a_crash_at_any_call(form: Form) -> None:
    db = connect(shop())
    readings = series(db)
    added = [reading(minutes, minutes) for minutes in range(0, 300, 20)]
    readings.add_many(added)
    days = readings.rollup("day", of=Reading.value)

    def spoil() -> None:
        days.rebuild("s1", T0, T0 + DAYS)
        check(readings, added)
        scanned = db.call("Scan", {"TableName": "shop-stator"})["Items"]
        for item in scanned:
            if "ROLLUP#value#day" in item["PK"]["S"]:
                db.call(
                    "PutItem", {"TableName": "shop-stator", "Item": item | {"_count": {"N": "77"}}}
                )

    def rebuild(dying: Any) -> Any:
        return series(dying).rollup("day", of=Reading.value).rebuild("s1", T0, T0 + DAYS)

    spoil()
    assert crash_everywhere(db, rebuild, spoil, form=form) >= 4


def test_a_throttled_transaction_grows_the_bucket() -> None:
    db = connect(shop())
    readings = series(db, bucket="day", shards="adaptive")
    left = {"failures": 2}

    def before(number: int, operation: str, request: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems" and left["failures"]:
            left["failures"] -= 1
            raise ThroughputExceeded

    with_faults(db, before=before)
    added = [reading(minutes, minutes) for minutes in range(30)]
    readings.add(added[0])
    assert readings.add_many(added).ok
    # Twice, but not again right after it has grown.
    assert db.run(readings.directory.open("s1", "2096-11-14")).shards == 2
    check(readings, added)


def test_readings_of_many_sensors_at_once(target: Target) -> None:
    readings = series(target.connect(shop()), bucket="day", shards=3)
    added = [
        reading(minutes * 10, minutes, f"s{sensor}") for sensor in range(4) for minutes in range(60)
    ]
    result = readings.add_many(added)
    assert result.ok and result.written == 240 and result.requests < 30
    for sensor in range(4):
        check(readings, [each for each in added if each.sensor_id == f"s{sensor}"], f"s{sensor}")


def test_roll_ups_outlive_the_readings() -> None:
    clock = VirtualClock(T0.timestamp())
    rollups = [
        Rollup("hour", of=Reading.value, keep=timedelta(days=3)),
        Rollup("day", of=Reading.value),
    ]
    readings = series(connect(shop(), clock=clock), keep=timedelta(days=1), rollups=rollups)
    readings.add(reading(1, 5))
    clock.advance(2 * 86_400)
    assert readings.count("s1") == 0
    check(readings, [reading(1, 5)])
    with pytest.raises(RequestRefused, match="expired"):
        readings.rollup("day", of=Reading.value).rebuild("s1", T0, T0 + DAYS)
    clock.advance(2 * 86_400)
    assert readings.rollup("hour", of=Reading.value).range("s1", T0, T0 + DAYS) == []
    assert len(readings.rollup("day", of=Reading.value).range("s1", T0, T0 + DAYS)) == 1


@pytest.mark.parametrize("by", ["write", "stream"])
def test_an_expired_reading_is_not_counted_again(by: Literal["write", "stream"]) -> None:
    clock = VirtualClock(T0.timestamp())
    readings = series(connect(shop(), clock=clock), keep=timedelta(days=1), rollups_from=by)
    readings.add(reading(1, 5))
    clock.advance(86_400 + 60)
    with pytest.raises(RequestRefused, match="has expired already, by keep="):
        readings.add(reading(1, 5))
    result = readings.add_many([reading(1, 5), reading(2, 7)], on_error="collect")
    assert [failed.change for failed in result.failures] == [reading(1, 5)]
    assert result.written == 1
    plain = series(connect(shop(), clock=clock), keep=timedelta(days=1), rollups=[])
    plain.add(reading(1, 5))  # nothing counts it
    assert plain.count("s1") == 0


def test_roll_ups_stay_when_tables_are_dropped() -> None:
    readings = series(connect(shop()), bucket="day", table_per="month")
    added = [reading(minutes * 1440, minutes) for minutes in range(0, 60, 10)]
    assert readings.add_many(added).ok
    check_days = readings.rollup("day", of=Reading.value)
    assert len(check_days.range("s1", T0, T0 + 3 * DAYS)) == 6
    readings.drop_before(T0 + 3 * DAYS, confirm=True)
    assert readings.count("s1") == 0
    for refused in (
        lambda: check_days.rebuild("s1", T0, T0 + 3 * DAYS),
        lambda: readings.replace(added[0]),
        lambda: readings.remove(added[0]),
    ):
        with pytest.raises(RequestRefused, match="dropped"):
            refused()
    assert len(check_days.range("s1", T0, T0 + 3 * DAYS)) == 6 and readings.count("s1") == 0
    readings.add(reading(9999 * 60, 1))
    assert check_days.rebuild("s1", T0 + 13 * DAYS, T0 + 15 * DAYS) == 0


# --- from the stream --------------------------------------------------------------------------


def stored(of: Series[Db, Reading], each: Reading, shards: int = 2) -> Any:
    return of.layout.item(each, of.layout.bucket_of(each), shards)


def test_changes_are_folded_and_applied_once(target: Target) -> None:
    readings = series(target.connect(shop()), rollups_from="stream")
    added = [reading(minutes, minutes % 9) for minutes in range(0, 400, 8)]
    assert readings.add_many(added).ok
    check(readings, [])
    images = [(None, stored(readings, each)) for each in added]
    strangers = [(None, {"PK": {"S": "USER#1"}, "SK": {"S": "x"}}), (None, {"other": {"N": "1"}})]
    first, second = readings.fold([*images[:20], *strangers]), readings.fold(images[20:])
    for _ in range(3):
        readings.apply(first, batch="shard-1/1-20")
    readings.apply(second, batch="shard-1/21-50")
    check(readings, added)
    changed = reading(0, 77)
    readings.add(changed)
    readings.remove(added[1])
    updates = readings.fold(
        [
            (stored(readings, added[0]), stored(readings, changed)),
            (stored(readings, added[1]), None),
        ]
    )
    assert [each.count for each in updates.values()] == [
        -1,
        -1,
    ]  # one changed and one removed, in an hour and a day
    readings.apply(updates, batch="shard-1/51-52")
    check(readings, [changed, *added[2:]])


def test_fold_ignores_expired_and_unchanged_readings() -> None:
    clock = VirtualClock((T0 + timedelta(days=2)).timestamp())
    readings = series(connect(shop(), clock=clock), keep=timedelta(days=1), rollups_from="stream")
    old = stored(readings, reading(1, 5))
    assert readings.fold([(old, None)]) == readings.fold([])
    assert readings.fold([(old, old | {"note": {"S": "new"}})]) == readings.fold([])
    with pytest.raises(RequestRefused, match="with each write"):
        series(connect(shop())).apply(readings.fold([]), batch="b")


def test_apply_survives_a_crash_at_any_call(form: Form) -> None:
    db = connect(shop())
    number = 0
    added = [reading(minutes, minutes) for minutes in range(0, 200, 30)]

    def apply(dying: Any) -> Any:
        mine = series(dying, rollups_from="stream", name=f"n{number}")
        return mine.apply(mine.fold([(None, stored(mine, each)) for each in added]), batch="b")

    def again() -> None:
        nonlocal number
        apply(db)
        check(series(db, rollups_from="stream", name=f"n{number}"), added)
        number += 1

    assert crash_everywhere(db, apply, again, form=form) >= 4


def test_invalid_roll_ups_are_refused() -> None:
    db = connect(shop())
    for wrong in (
        Rollup("week", of=Reading.value),  # type: ignore[arg-type]  # wrong on purpose
        Rollup("hour", of=Reading.note),
        Rollup("hour", of="nothing"),
    ):
        with pytest.raises(ConfigurationError):
            series(db, rollups=[wrong])
    with pytest.raises(ConfigurationError, match="no roll-up"):
        series(db).rollup("minute", of=Reading.value)
    assert "TransactWriteItems of 3; 6 write units" in str(series(db).explain())


# --- against a list ---------------------------------------------------------------------------

_steps = st.lists(
    st.tuples(
        st.integers(0, 300),
        st.decimals(-100, 100, places=2),
        st.sampled_from([1, 2, 5]),
        st.booleans(),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(_steps)
def test_roll_ups_are_what_the_readings_add_up_to(
    steps: list[tuple[int, Decimal, int, bool]],
) -> None:
    db = connect(shop())
    model: dict[int, Reading] = {}
    for minute, value, shards, is_removed in steps:
        writer = series(db, shards=shards)
        if is_removed:
            writer.remove(reading(minute, value))
            model.pop(minute, None)
        elif minute in model:
            writer.replace(reading(minute, value))
            model[minute] = reading(minute, value)
        else:
            writer.add(reading(minute, value))
            model[minute] = reading(minute, value)
        check(writer, model.values())


# --- tables of their own ----------------------------------------------------------------------

OWN_TABLES = [
    Rollup(
        "hour",
        of=Reading.value,
        keep=timedelta(days=7),
        table="hours",
        settings=TableSettings(capacity=ProvisionedCapacity(5, 50)),
    ),
    Rollup("day", of=Reading.value, table="days", settings=TableSettings(tags={"cost": "sums"})),
]


def tables_of(db: Db) -> dict[str, int]:
    """The tables of roll-ups, by the last part of their names, and how many items each has."""
    found = {}
    for name in db.call("ListTables", {})["TableNames"]:
        if name.startswith(f"{db.context.schema.place.table}-"):
            count = db.call("Scan", {"TableName": name, "Select": "COUNT"})["Count"]
            found[name.removeprefix(f"{db.context.schema.place.table}-")] = count
    return found


def test_roll_ups_live_in_tables_of_their_own() -> None:
    clock = VirtualClock(T0.timestamp())
    engine = Engine.open(clock=clock)
    db = connect(shop(), engine, clock=clock)
    readings = series(db, rollups=OWN_TABLES)
    assert readings.rollup("hour", of="value").range("s1", T0, T0 + DAYS) == []
    assert tables_of(db) == {}  # reading creates nothing
    added = [reading(minutes, minutes % 13) for minutes in range(0, 600, 20)]
    readings.add_many(added)
    check(readings, added)
    check(series(db, rollups=OWN_TABLES), added)
    assert tables_of(db) == {"hours": 17, "days": 2}  # an hour has an item in each of its shards
    hours = engine.call("DescribeTable", {"TableName": f"{db.context.schema.place.table}-hours"})
    assert hours["Table"]["ProvisionedThroughput"]["WriteCapacityUnits"] == 50
    assert "ROLLUP#value#hour" in str(readings.explain())

    readings.replace(reading(0, 99))
    readings.remove(added[1])
    left = [reading(0, 99), *added[2:]]
    check(readings, left)
    assert readings.rollup("day", of="value").rebuild("s1", T0, T0 + DAYS) == 0
    clock.advance(timedelta(days=8).total_seconds())
    engine.sweep()
    assert tables_of(db) == {"hours": 0, "days": 2}
    assert readings.rollup("hour", of="value").range("s1", T0, T0 + DAYS) == []
    [day] = readings.rollup("day", of="value").range("s1", T0, T0 + timedelta(hours=1))
    assert day.count == len(left)


def test_ensure_tables_creates_and_adjusts_the_tables_of_roll_ups(target: Target) -> None:
    db = target.connect(shop())
    rollups = OWN_TABLES
    if target.kind == "dynamodb-local":  # it has no tags
        rollups = [replace(each, settings=TableSettings()) for each in OWN_TABLES]
    readings = series(db, rollups=rollups, name="ensured")
    created = readings.ensure_tables()
    assert [each.rpartition("-")[2] for each in created if each.startswith("created")] == [
        "hours",
        "days",
    ]
    assert not any(each.startswith("created") for each in readings.ensure_tables())
    readings.add(reading(0, 5))
    check(readings, [reading(0, 5)])


def test_the_stream_keeps_roll_ups_in_tables_of_their_own() -> None:
    db = connect(shop())
    readings = series(db, rollups=OWN_TABLES, rollups_from="stream")
    added = [reading(minutes, minutes % 7) for minutes in range(0, 300, 30)]
    readings.add_many(added)
    layout = readings.layout
    images = [(None, layout.item(each, layout.bucket_of(each), 2)) for each in added]
    updates = readings.fold(images)
    for _ in range(2):
        readings.apply(updates, batch="shard-1/1-10")
    check(readings, added)
    assert tables_of(db) == {"hours": 6, "days": 2}


def test_a_crash_while_the_tables_of_roll_ups_are_created_loses_nothing(form: Form) -> None:
    db = connect(shop())
    number = 0

    def own() -> list[Rollup]:
        return [Rollup("hour", of=Reading.value, table=f"hours{number}")]

    def add(dying: Any) -> Any:
        return series(dying, rollups=own(), name=f"n{number}").add(reading(number, 3))

    def again() -> None:
        nonlocal number
        add(db)
        hours = series(db, rollups=own(), name=f"n{number}").rollup("hour", of=Reading.value)
        assert hours.range("s1", T0 - DAYS, T0 + DAYS) == expected([reading(number, 3)], "hour")
        number += 1

    assert crash_everywhere(db, add, again, form=form) >= 6


def test_the_name_of_a_roll_ups_table_is_checked() -> None:
    with pytest.raises(ConfigurationError, match="table name"):
        series(connect(shop()), rollups=[Rollup("hour", of=Reading.value, table="a/b")])
