"""The time series: readings end, their sums stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from time_series import Reading, plant, readings_of

from stator import Engine, connect
from stator.clock import VirtualClock


def test_a_reading_is_hidden_after_thirty_days_then_deleted_and_its_sum_stays() -> None:
    clock = VirtualClock()
    with Engine.open(clock=clock) as engine, connect(plant, engine, clock=clock) as db:
        db.ensure()
        readings = readings_of(db)
        start = datetime.fromtimestamp(clock.now(), UTC).replace(minute=0, second=0, microsecond=0)
        for minute in range(4):
            at = start + timedelta(minutes=minute)
            readings.add(Reading(sensor_id="s", at=at, celsius=20.0 + minute))
        assert len(list(readings.range("s", start, start + timedelta(hours=1)))) == 4

        clock.advance(timedelta(days=29, hours=22).total_seconds())
        assert readings.count("s") == 4
        clock.advance(timedelta(hours=3).total_seconds())
        assert list(readings.range("s", start, start + timedelta(hours=1))) == []
        engine.sweep()
        hours = readings.rollup("hour", of=Reading.celsius)
        [summary] = hours.range("s", start, start + timedelta(hours=1))
        assert summary.count == 4
        assert [summary.min, summary.max, summary.mean] == [20, 23, Decimal("21.5")]


def test_a_reading_that_arrives_twice_counts_once() -> None:
    with connect(plant) as db:
        readings = readings_of(db)
        at = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        for _ in range(2):
            readings.add_many([Reading(sensor_id="s", at=at, celsius=20.0)])
        [summary] = readings.rollup("hour", of=Reading.celsius).range(
            "s", at, at + timedelta(hours=1)
        )
        assert (readings.count("s"), summary.count) == (1, 1)
