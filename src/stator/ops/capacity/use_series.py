"""The use of tables, minute by minute: units consumed, requests throttled, units provisioned.

A ``Dimension`` is what has capacity of its own: the reads or the writes of a table or of a global
index. A ``TableHistory`` has one ``UseSeries`` for each dimension of a table, all over the same
minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Kind = Literal["read", "write"]
KINDS: Final[tuple[Kind, ...]] = ("read", "write")

MINUTE: Final = 60
DAY_MINUTES: Final = 1440


@dataclass(frozen=True, slots=True, order=True)
class Dimension:
    """The reads or the writes of a table, or of one of its global indexes."""

    index: str | None
    kind: Kind

    @property
    def is_front(self) -> bool:
        """Whether programs ask for its units.

        The writes of an index are the exception: they follow the table's writes. If an index has
        too few write units, the write to the table is refused.
        """
        return self.index is None or self.kind == "read"

    def __str__(self) -> str:
        return f"{self.kind}s" if self.index is None else f"{self.index} {self.kind}s"


@dataclass(frozen=True, slots=True)
class UseSeries:
    """One dimension's use, a number for each minute.

    ``throttles`` counts throttle events. ``provisioned`` has the units a second that were in
    force, 0 while the table was on-demand. ``units_per_request`` turns events into units.
    """

    dimension: Dimension
    consumed: Sequence[float]
    throttles: Sequence[float]
    provisioned: Sequence[float]
    units_per_request: float = 1.0

    def demand(self) -> list[float]:
        """Return what was asked for in each minute, in units.

        Consumed units are not demand: a throttled request consumed nothing. Each throttle event
        adds the units of an average request. A program that backed off asked less than it wanted,
        so the true demand may be higher.
        """
        each = self.units_per_request
        if not any(self.throttles):
            return list(self.consumed)
        return [used + events * each for used, events in zip(self.consumed, self.throttles)]

    @property
    def hidden_units(self) -> float:
        """The units that throttle events hide from the consumed units."""
        return sum(self.throttles) * self.units_per_request


@dataclass(frozen=True, slots=True)
class TableHistory:
    """The use of one table and its global indexes.

    ``start`` is the beginning of the first minute, in seconds since the epoch. ``source_seconds``
    is the period of the measurements: 300 if each was spread over five minutes. ``sizes`` has the
    bytes of the table (None) and of each index.
    """

    table: str
    start: int
    series: tuple[UseSeries, ...]
    source_seconds: int = MINUTE
    sizes: dict[str | None, float] = field(default_factory=dict)

    @property
    def minutes(self) -> int:
        """How many minutes the history covers."""
        return len(self.series[0].consumed) if self.series else 0

    @property
    def days(self) -> float:
        """The length of the history in units of 24 hours."""
        return self.minutes / DAY_MINUTES

    @property
    def end(self) -> int:
        """When the last minute is over, in seconds since the epoch."""
        return self.start + self.minutes * MINUTE

    @property
    def indexes(self) -> tuple[str, ...]:
        """The names of the global indexes with a series, sorted."""
        names = {each.dimension.index for each in self.series}
        return tuple(sorted(name for name in names if name is not None))

    @property
    def size_bytes(self) -> float:
        """The storage of the table together with its indexes."""
        return sum(self.sizes.values())

    @property
    def was_provisioned(self) -> bool:
        """Whether the table had provisioned units in the last minute."""
        return any(each.provisioned and each.provisioned[-1] > 0 for each in self.series)

    def of(self, dimension: Dimension) -> UseSeries:
        """Return the series of one dimension."""
        return next(each for each in self.series if each.dimension == dimension)
