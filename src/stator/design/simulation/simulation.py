"""The result of a simulation: patterns, tables and indexes, heat over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from stator.design.simulation.call_shapes import CallKind

COLUMNS: Final = 60
"""The number of columns of a heat map, at most."""


@dataclass(frozen=True, slots=True)
class KeyHeat:
    """The hottest partition key of a pattern, with the units a second of all patterns on it.

    ``units`` are those of the busiest second, and ``limit`` is what one partition serves.
    """

    table: str
    index: str | None
    kind: Literal["read", "write"]
    key: str
    units: float
    limit: float


@dataclass(frozen=True, slots=True)
class ShardCure:
    """The number of shards per key value that ends the refusals of a pattern.

    ``index`` is None if the table's own key needs the shards. ``is_verified`` means that another
    run with this number refused no calls of the pattern at the end.
    """

    entity: str
    table: str
    index: str | None
    shards: int
    is_verified: bool


@dataclass(frozen=True, slots=True)
class PatternHeat:
    """What becomes of the calls of one pattern.

    ``reasons`` maps DynamoDB's throttling reasons to the shares of all calls that they refused.
    ``healthy_after_minutes`` is the time from the start of the run until no call is refused any
    more. It is 0.0 if no call was refused, and None if calls are still refused at the end.
    ``steady_refused`` is the share of refused calls in the last minute in which the pattern was
    called.
    """

    name: str
    kind: CallKind
    calls_per_second: float
    peak_per_second: float
    calls: float
    refused: float
    reasons: dict[str, float]
    steady_refused: float
    first_refused_minute: float | None
    healthy_after_minutes: float | None
    hottest: KeyHeat | None
    cure: ShardCure | None
    advice: str

    @property
    def refused_share(self) -> float:
        """Refused calls as a share of all calls of the run."""
        return self.refused / self.calls if self.calls else 0.0


@dataclass(frozen=True, slots=True)
class SplitRecord:
    """A split of a partition, or the decision not to split one.

    ``minute`` is when the split or the decision took effect. ``why`` is the reason for a split:
    ``heat``, ``hot item``, ``size`` or ``capacity``. If ``is_split`` is False, it is the reason
    against one: ``one key``, ``sequential`` or ``local index``. ``partitions`` is the number of
    partitions afterwards.
    """

    minute: float
    why: str
    is_split: bool
    partitions: int


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A partition at the end of the run: its heat in each column, as a share of its limit.

    A heat above 1.0 means that calls asked the partition for more than it serves. ``refused`` is
    the share of units that it refused in each column.
    """

    heat: tuple[float, ...]
    refused: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class HeatedPlace:
    """The result for a table or a global index: its partitions, their splits and their heat."""

    table: str
    index: str | None
    capacity: str
    partitions_before: int
    partitions_after: int
    splits: tuple[SplitRecord, ...]
    rows: tuple[HeatRow, ...]

    @property
    def name(self) -> str:
        """The table, or the table and the index: ``shop``, ``shop/GSI1``."""
        return self.table if self.index is None else f"{self.table}/{self.index}"


@dataclass(frozen=True, slots=True)
class LoadTime:
    """How long a bulk load took, and how long it would take if nothing were refused."""

    entity: str
    items: float
    done: float
    seconds: float | None
    least_seconds: float


@dataclass(frozen=True, slots=True)
class Simulation:
    """The result of ``simulate``. Equal designs, traffic and seeds give equal results."""

    design: str
    minutes: float
    column_seconds: int
    seed: int
    patterns: tuple[PatternHeat, ...]
    places: tuple[HeatedPlace, ...]
    loads: tuple[LoadTime, ...] = ()
    charges: int = 0
    """How many times a partition was charged: the work of the simulation."""
    notes: tuple[str, ...] = ()
    """What the design declares and the simulation leaves out."""

    @property
    def ok(self) -> bool:
        """Whether every pattern was called, and none is refused calls at the end."""
        served = all(each.healthy_after_minutes is not None for each in self.patterns)
        return served and not self.never_called

    @property
    def never_called(self) -> tuple[str, ...]:
        """The patterns that the run never called: their windows lie outside it."""
        return tuple(each.name for each in self.patterns if each.calls == 0)

    def pattern(self, name: str) -> PatternHeat:
        """Return the result of the pattern with this name. Raises KeyError if it did not run."""
        for each in self.patterns:
            if each.name == name:
                return each
        raise KeyError(name)

    def place(self, table: str, index: str | None = None) -> HeatedPlace:
        """Return the result of a table, or of one of its indexes. Raises KeyError if unused."""
        for each in self.places:
            if (each.table, each.index) == (table, index):
                return each
        raise KeyError(table if index is None else f"{table}/{index}")

    def to_data(self) -> dict[str, Any]:
        """Return the result as JSON data, as ``stator simulate --json`` prints it."""
        return {
            "design": self.design,
            "minutes": self.minutes,
            "seed": self.seed,
            "ok": self.ok,
            "never_called": list(self.never_called),
            "notes": list(self.notes),
            "patterns": [_pattern_data(each) for each in self.patterns],
            "loads": [_load_data(each) for each in self.loads],
            "places": [_place_data(each) for each in self.places],
            "column_seconds": self.column_seconds,
        }


def _pattern_data(each: PatternHeat) -> dict[str, Any]:
    return {
        "name": each.name,
        "kind": each.kind,
        "calls_per_second": _rounded(each.calls_per_second),
        "peak_per_second": _rounded(each.peak_per_second),
        "served_share": _rounded(1 - each.refused_share),
        "refused_share": _rounded(each.refused_share),
        "reasons": {name: _rounded(share) for name, share in each.reasons.items()},
        "steady_refused_share": _rounded(each.steady_refused),
        "first_refused_minute": each.first_refused_minute,
        "healthy_after_minutes": each.healthy_after_minutes,
        "hottest_key": None if each.hottest is None else _key_data(each.hottest),
        "cure": None if each.cure is None else _cure_data(each.cure),
        "advice": each.advice,
    }


def _key_data(key: KeyHeat) -> dict[str, Any]:
    return {
        "table": key.table,
        "index": key.index,
        "kind": key.kind,
        "key": key.key,
        "units_per_second": _rounded(key.units),
        "limit": key.limit,
    }


def _cure_data(cure: ShardCure) -> dict[str, Any]:
    return {
        "entity": cure.entity,
        "table": cure.table,
        "index": cure.index,
        "shards": cure.shards,
        "verified": cure.is_verified,
    }


def _load_data(load: LoadTime) -> dict[str, Any]:
    return {
        "entity": load.entity,
        "items": load.items,
        "done": _rounded(load.done),
        "seconds": load.seconds,
        "least_seconds": _rounded(load.least_seconds),
    }


def _place_data(place: HeatedPlace) -> dict[str, Any]:
    return {
        "table": place.table,
        "index": place.index,
        "capacity": place.capacity,
        "partitions_before": place.partitions_before,
        "partitions_after": place.partitions_after,
        "splits": [
            {
                "minute": each.minute,
                "why": each.why,
                "is_split": each.is_split,
                "partitions": each.partitions,
            }
            for each in place.splits
        ],
        "heat": [[_rounded(each) for each in row.heat] for row in place.rows],
        "refused": [[_rounded(each) for each in row.refused] for row in place.rows],
    }


def _rounded(value: float) -> float:
    return round(value, 4)
