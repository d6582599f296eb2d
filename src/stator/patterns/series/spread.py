"""The spread of a bucket: the numbers of shards and tables over which its readings are divided.

A reading's hash gives its shard, and the shard's number gives its table: shard 5 of a bucket in 2
tables is in table 1, the second one. So a number of shards and a number of tables together say
where a reading is. When either number rises, some shards get readings in another table than before.
Readers therefore look into the locations of every spread that the bucket has had.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ShardLocation:
    """A place of readings: a shard in a table. Tables count from 0, the series' first table."""

    shard: int
    table: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Spread:
    """A number of shards, and the number of tables that they are divided among."""

    shards: int
    tables: int = 1

    def location(self, shard: int) -> ShardLocation:
        return ShardLocation(shard, shard % self.tables)

    def with_at_least(self, other: Spread) -> Spread:
        """Return the larger number of shards and the larger number of tables of the two."""
        return Spread(max(self.shards, other.shards), max(self.tables, other.tables))


def locations(spreads: Iterable[Spread]) -> list[ShardLocation]:
    """Return every location that any of the spreads gives to a reading, in order."""
    return sorted({each.location(shard) for each in spreads for shard in range(each.shards)})
