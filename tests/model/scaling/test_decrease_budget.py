"""Decreases of provisioned units: four at any time, then one an hour, 27 in a UTC day."""

from __future__ import annotations

from datetime import UTC, datetime

from stator.model.scaling.decrease_budget import DecreaseRecord

MIDNIGHT = datetime(2026, 11, 2, tzinfo=UTC).timestamp()
HOUR = 3600.0


def test_four_decreases_come_at_once_and_the_fifth_an_hour_later() -> None:
    record = DecreaseRecord()
    for second in range(4):
        assert record.allows(MIDNIGHT + second)
        record = record.after(MIDNIGHT + second)
    assert record == DecreaseRecord(4, MIDNIGHT + 3)
    assert not record.allows(MIDNIGHT + 10)
    assert record.next_at(MIDNIGHT + 10) == MIDNIGHT + 3 + HOUR
    assert record.allows(MIDNIGHT + 3 + HOUR)


def test_a_day_that_asks_every_minute_gets_27() -> None:
    record, granted = DecreaseRecord(), 0
    for minute in range(1440):
        now = MIDNIGHT + minute * 60
        if record.allows(now):
            record, granted = record.after(now), granted + 1
    assert granted == 27


def test_a_new_utc_day_begins_with_four() -> None:
    late = DecreaseRecord(9, MIDNIGHT - 60)
    assert late.today(MIDNIGHT - 1) == 9
    assert late.next_at(MIDNIGHT - 30) == MIDNIGHT
    assert (late.today(MIDNIGHT), late.allows(MIDNIGHT)) == (0, True)
    assert late.after(MIDNIGHT) == DecreaseRecord(1, MIDNIGHT)
