"""Roll-ups of a series: count, sum, minimum, maximum and last value of a field, for each period.

    PK  SERIES#readings#s-17#ROLLUP#value#hour#2026-11#2    SK  2026-11-16T10
        _count 12  _sum 250.5  _min 19  _max 22.5  _last 21  _last_key 2026-11-16T10:59:...
        _version 12

A period is a minute, hour, day, month or year. Roll-ups are sharded like the series: the readings
in shard 2 of a bucket are summed in shard 2 of its roll-ups, and a reader adds the shards together.
A roll-up therefore takes as many writes per second as the series does.

This module has values and keys; ``writes``, ``stream_changes`` and ``reads`` talk to DynamoDB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Context as Arithmetic
from decimal import Decimal
from typing import Any, Final

from stator.design.entities.conditions import FieldRef
from stator.design.entities.entity import EntityInfo
from stator.design.entities.shapes import Maybe, Scalar
from stator.design.plan.key_text import SEPARATOR, escape
from stator.design.table_settings import TableSettings
from stator.errors import ConfigurationError
from stator.model.limits import NUMBER_DIGITS
from stator.model.periods import Period, check_period, following, period_start, period_text
from stator.model.values import Item
from stator.model.wide_numbers import EXACT, wide_number
from stator.patterns.series.layout import SeriesLayout, seconds

_GROUPS: Final[dict[Period, Period | None]] = {
    "minute": "day",
    "hour": "month",
    "day": "year",
    "month": None,
    "year": None,
}
_DIVISION: Final = Arithmetic(prec=NUMBER_DIGITS)


@dataclass(frozen=True)
class Rollup:
    """One roll-up that a Series declares in ``rollups=``: ``Rollup("hour", of=Reading.value)``.

    ``keep`` is how long a roll-up item lives after its period; without it, the item lives forever.
    ``table="hours"`` stores the roll-up in a table of its own, such as ``plant-stator-hours`` in
    the design ``plant``. Several roll-ups may share such a table. The first write creates it, or
    ``Series.ensure_tables``, with ``settings``: its capacity, recovery, tags and so on.
    """

    period: Period
    of: Any
    keep: timedelta | None = None
    table: str | None = None
    settings: TableSettings = field(default_factory=TableSettings)


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of one period's readings.

    ``last`` is the value of the latest reading, and ``last_at`` is its time.
    """

    start: datetime
    count: int
    sum: Decimal
    min: Decimal
    max: Decimal
    last: Decimal
    last_at: datetime

    @property
    def mean(self) -> Decimal:
        """The sum divided by the count."""
        return _DIVISION.divide(self.sum, Decimal(self.count))


@dataclass(frozen=True, slots=True)
class RollupTally:
    """The count, sum, minimum, maximum and last value of some readings, which can be added up.

    ``last_key`` is the sort key of the latest reading.
    """

    count: int
    sum: Decimal
    min: Decimal
    max: Decimal
    last: Decimal
    last_key: str

    @classmethod
    def of(cls, value: Decimal, key: str) -> RollupTally:
        return cls(1, value, value, value, value, key)

    def __add__(self, other: RollupTally) -> RollupTally:
        latest = self if self.last_key > other.last_key else other
        return RollupTally(
            self.count + other.count,
            EXACT.add(self.sum, other.sum),
            min(self.min, other.min),
            max(self.max, other.max),
            latest.last,
            latest.last_key,
        )

    def attributes(self) -> Item:
        return {"_count": number(self.count), "_sum": number(self.sum), **self.extremes()}

    def extremes(self) -> Item:
        return {
            "_min": number(self.min),
            "_max": number(self.max),
            "_last": number(self.last),
            "_last_key": {"S": self.last_key},
        }

    @classmethod
    def read(cls, item: Item) -> RollupTally:
        least, greatest, last = (Decimal(item[name]["N"]) for name in ("_min", "_max", "_last"))
        total = wide_number(item, "_sum")
        return cls(int(item["_count"]["N"]), total, least, greatest, last, item["_last_key"]["S"])

    def summary(self, period: str) -> Summary:
        at = datetime.fromisoformat(self.last_key.partition(SEPARATOR)[0])
        return Summary(
            period_start(period), self.count, self.sum, self.min, self.max, self.last, at
        )


def number(value: int | Decimal) -> dict[str, str]:
    return {"N": str(value)}


@dataclass(frozen=True, slots=True)
class RollupKey:
    """The key of one roll-up item: its roll-up, series key, period and shard.

    ``rollup`` is the index of the roll-up in the series' ``rollups``.
    """

    rollup: int
    by: str
    period: str
    shard: int


class RollupRule:
    """A declared roll-up of a series: its field, its period, and the keys of its items."""

    def __init__(self, layout: SeriesLayout, number: int, given: Rollup) -> None:
        check_period(given.period, "the period of a roll-up")
        self.layout = layout
        self.number = number
        self.period: Period = given.period
        self.field = numeric_field(layout.info, given.of)
        self.keep = given.keep
        self.settings = given.settings
        self.place = layout.place
        """The table of the roll-up's items: the design's own, or one of its own."""
        if given.table is not None:
            _check_table(given.table)
            self.place = replace(layout.place, table=f"{layout.place.table}-{given.table}")

    @property
    def has_own_table(self) -> bool:
        return self.place is not self.layout.place

    def value(self, entity: Any) -> Decimal | None:
        value = getattr(entity, self.field)
        return (
            None
            if value is None
            else Decimal(self.layout.info.codec.encode_field[self.field](value)["N"])
        )

    def period_of(self, entity: Any) -> str:
        return period_text(self.period, getattr(entity, self.layout.at.name))

    def key_of(self, entity: Any, shard: int) -> RollupKey:
        return RollupKey(self.number, self.layout.by.of(entity), self.period_of(entity), shard)

    def group(self, period: str) -> str:
        """Return the part of the partition key that groups periods, so that partitions stay small.

        Minutes are grouped by day, hours by month and days by year: the hour ``2026-11-16T10`` is
        in the group ``2026-11``. Months and years are few and share the group ``ALL``.
        """
        longer = _GROUPS[self.period]
        return "ALL" if longer is None else period_text(longer, period_start(period))

    def partition(self, by: str, group: str, shard: int) -> str:
        name = SEPARATOR.join((escape(self.field), self.period, group, str(shard)))
        return SEPARATOR.join((self.layout.directory(by), "ROLLUP", name))

    def stored_key(self, key: RollupKey) -> Item:
        return self.layout.place.key(
            self.partition(key.by, self.group(key.period), key.shard), key.period
        )

    def expiry(self, period: str) -> Item:
        if self.keep is None:
            return {}
        end = following(self.period, period_start(period))
        return {self.layout.place.ttl: seconds((end + self.keep).timestamp())}

    def is_of(self, period: str, of: Any) -> bool:
        return (self.period, self.field) == (period, _name_of(of))


def shown_field(of: Any) -> str:
    """Return the field of a roll-up as a caller has named it, for messages."""
    return f"{of!r:.60}" if isinstance(of, (str, FieldRef)) else f"a {type(of).__name__}"


def _check_table(name: str) -> None:
    if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,100}", name):
        raise ConfigurationError(
            f"{name!r} cannot be part of a table name",
            hint="use letters, digits, _ . - in the table of a roll-up",
        )


def numeric_field(entity: EntityInfo, given: Any) -> str:
    name = _name_of(given)
    field = entity.fields.get(name)
    shape = field.shape if field is not None else None
    if isinstance(shape, Maybe):
        shape = shape.inner
    if (
        not isinstance(shape, Scalar)
        or shape.kind != "N"
        or shape.python not in (int, float, Decimal)
    ):
        raise ConfigurationError(
            f"{given!r} cannot be rolled up: it is not a numeric field of {entity.name}",
            hint=f"use a field of {entity.name} with type int, float or Decimal",
        )
    return name


def _name_of(given: Any) -> str:
    if isinstance(given, FieldRef) and len(given.path) == 1:
        return given.name
    return given if isinstance(given, str) else repr(given)
