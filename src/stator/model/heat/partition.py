"""A partition: a range of keys that one storage node serves, with its limits and its history."""

from __future__ import annotations

from stator.model.heat.bucket import SecondMeter
from stator.model.heat.limits import (
    HOT_MINUTES,
    MINUTE_SECONDS,
    PARTITION_UNITS,
    READ,
    WRITE,
    WRITE_WEIGHT,
)
from stator.model.heat.sample import KeySample
from stator.model.heat.splits import PartitionEvent


class Partition:
    """One partition. It starts at the key ``low`` and ends where the next partition starts."""

    __slots__ = (
        "_hot_minutes",
        "_minute_ends",
        "_read_demand",
        "_write_demand",
        "due_at",
        "kept_because",
        "low",
        "planned",
        "read_meter",
        "read_refused",
        "read_served",
        "sample",
        "split_at",
        "write_meter",
        "write_refused",
        "write_served",
    )

    def __init__(self, low: bytes) -> None:
        self.low = low
        self.read_meter = SecondMeter(PARTITION_UNITS[READ])
        self.write_meter = SecondMeter(PARTITION_UNITS[WRITE])
        self.sample = KeySample()
        # When the second hot minute in a row ended: a split is due. None if the minutes are cool.
        self.due_at: float | None = None
        # A split that has begun, and when it takes effect.
        self.planned: PartitionEvent | None = None
        self.split_at: float | None = None
        # Why the partition was hot and not split, as the last record of it says.
        self.kept_because = ""
        # Units since the partition exists.
        self.read_served = 0.0
        self.write_served = 0.0
        self.read_refused = 0.0
        self.write_refused = 0.0
        # Units of the current minute, which begins with the first request after an idle minute.
        self._read_demand = 0.0
        self._write_demand = 0.0
        self._minute_ends = 0.0
        self._hot_minutes = 0

    def meter(self, kind: int) -> SecondMeter:
        return self.read_meter if kind == READ else self.write_meter

    def charge(self, kind: int, key: bytes, units: float, now: float) -> None:
        """Take the units of an admitted request from the partition's limit, and count them."""
        self.meter(kind).room(now)
        self.take(kind, key, units, now)

    def take(self, kind: int, key: bytes, units: float, now: float) -> None:
        """Do what ``charge`` does, for a caller that has just asked the meter for its room."""
        if kind == READ:
            self.read_meter.used += units
            self.read_served += units
        else:
            self.write_meter.used += units
            self.write_served += units
        self._demanded(kind, key, units, now)

    def refuse(self, kind: int, key: bytes, units: float, now: float) -> None:
        """Count a refused request as demand, because a split may let such requests pass."""
        if kind == READ:
            self.read_refused += units
        else:
            self.write_refused += units
        self._demanded(kind, key, units, now)

    def _demanded(self, kind: int, key: bytes, units: float, now: float) -> None:
        """Count a request, admitted or refused, as demand of the current minute.

        The sample of keys, which decides where to split, gets the request as well.
        """
        if now >= self._minute_ends:
            self._end_minute(now)
        if kind == READ:
            self._read_demand += units
            self.sample.add(key, units)
        else:
            self._write_demand += units
            self.sample.add(key, units * WRITE_WEIGHT)

    def refund(self, kind: int, units: float, now: float) -> None:
        """Take back the charge for a part of a request, because another part was refused."""
        self.meter(kind).take(-units, now)
        if kind == READ:
            self.read_served -= units
            self._read_demand -= units
        else:
            self.write_served -= units
            self._write_demand -= units

    def _end_minute(self, now: float) -> None:
        """End the current minute, and begin the one that contains ``now``."""
        ended = self._minute_ends
        if self._is_hot():
            self._hot_minutes += 1
            if self._hot_minutes >= HOT_MINUTES and self.split_at is None:
                self.due_at = ended
        else:
            self.cool_down()
        if now >= ended + MINUTE_SECONDS:  # a minute without any request lies between
            self.cool_down()
            self._minute_ends = now + MINUTE_SECONDS
        else:
            self._minute_ends = ended + MINUTE_SECONDS
        self._read_demand = 0.0
        self._write_demand = 0.0

    def _is_hot(self) -> bool:
        return (
            self._read_demand >= PARTITION_UNITS[READ] * MINUTE_SECONDS
            or self._write_demand >= PARTITION_UNITS[WRITE] * MINUTE_SECONDS
        )

    def cool_down(self) -> None:
        """Start over with no hot minutes, no split due and an empty sample."""
        self.due_at = None
        self._hot_minutes = 0
        self.sample.clear()
