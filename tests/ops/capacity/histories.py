"""Histories for tests: units for each minute, with nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from stator.ops.capacity.use_series import KINDS, Dimension, TableHistory, UseSeries

READS, WRITES = Dimension(None, "read"), Dimension(None, "write")
MONDAY = int(datetime(2026, 11, 2, tzinfo=UTC).timestamp())


def history(
    writes: Sequence[float] = (),
    reads: Sequence[float] = (),
    *,
    indexes: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    provisioned: float = 0.0,
    throttles: Sequence[float] = (),
    start: int = MONDAY,
    table: str = "orders",
    size_bytes: float = 0.0,
) -> TableHistory:
    """A table's history. ``indexes`` has pairs of (reads, writes); ``throttles`` are of writes."""
    places: dict[str | None, tuple[Sequence[float], Sequence[float]]] = {None: (reads, writes)}
    places.update(indexes or {})
    minutes = max(len(each) for pair in places.values() for each in pair)
    series = tuple(
        UseSeries(
            Dimension(index, kind),
            _filled(pair[kind == "write"], minutes),
            _filled(throttles if (index, kind) == (None, "write") else (), minutes),
            [provisioned] * minutes,
        )
        for index, pair in places.items()
        for kind in KINDS
    )
    return TableHistory(table, start, series, sizes={None: size_bytes})


def _filled(values: Sequence[float], minutes: int) -> list[float]:
    return [*map(float, values), *[0.0] * (minutes - len(values))]
