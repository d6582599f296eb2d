"""The options of adaptive shards, and how many shards a rate of writes needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from stator.errors import ConfigurationError
from stator.model.heat.limits import PARTITION_UNITS, SHARD_FILL, WRITE
from stator.tables.shards.shard_change import ShardChange

Adaptive = Literal["adaptive"]


@dataclass(frozen=True, slots=True)
class AdaptiveShards:
    """Shards that follow the traffic: ``Series(..., shards=AdaptiveShards(most=32))``.

    A key starts with ``least`` shards and never gets more than ``most``. It gets more when one of
    its partitions is throttled. It also gets more when this process alone writes more than the
    share ``target`` of what its partitions take.

    With ``tables`` above 1, the shards of a key are divided among up to so many tables, when a
    limit of a whole table refuses its writes: provisioned units, an on-demand maximum, or the
    account's quota for a table. Only a Series can use several tables.

    ``on_change`` is called with every ShardChange that this process makes; it must not raise.
    ``shards="adaptive"`` is short for ``AdaptiveShards()``.
    """

    least: int = 1
    most: int = 64
    target: float = SHARD_FILL
    on_change: Callable[[ShardChange], None] | None = None
    tables: int = 1

    def checked(self, limit: int, most_tables: int = 1) -> AdaptiveShards:
        """Check the options for a pattern that can have up to ``limit`` shards, and return them.

        ``most_tables`` is the number of tables that the pattern can use. Raises ConfigurationError
        if a number is out of range.
        """
        if not 1 <= self.least <= self.most <= limit:
            raise ConfigurationError(
                f"AdaptiveShards(least={self.least}, most={self.most}) is out of range",
                hint=f"choose numbers from 1 to {limit}, and least no larger than most",
            )
        if not 0 < self.target <= 1:
            raise ConfigurationError(
                f"AdaptiveShards: target={self.target} is not a share of a partition's throughput",
                hint="choose a number above 0 and up to 1, such as 0.7",
            )
        if not 1 <= self.tables <= min(most_tables, self.most):
            raise ConfigurationError(
                f"AdaptiveShards: tables={self.tables} is out of range",
                hint=f"choose a number from 1 to {most_tables}, and no larger than most"
                if most_tables > 1
                else "leave out tables=; only a Series can spread a key over several tables",
            )
        return self

    def needed(self, units_per_second: float) -> int:
        """Return the number of shards that a rate of writes needs.

        This is a power of two, limited to the range from ``least`` to ``most``.
        """
        wanted = units_per_second / (PARTITION_UNITS[WRITE] * self.target)
        return self.within(2 ** math.ceil(math.log2(max(wanted, 1.0))))

    def within(self, shards: int) -> int:
        """Return ``shards``, limited to the range from ``least`` to ``most``."""
        return max(self.least, min(self.most, shards))

    def changed(self, change: ShardChange) -> None:
        """Log a change of the number of shards, and pass it to ``on_change``."""
        change.log()
        if self.on_change is not None:
            self.on_change(change)


def adaptive_shards(shards: object, limit: int, most_tables: int = 1) -> AdaptiveShards | None:
    """Return the options that a ``shards`` argument stands for, or None for a fixed number."""
    if shards == "adaptive":
        return AdaptiveShards(most=min(AdaptiveShards().most, limit))
    return shards.checked(limit, most_tables) if isinstance(shards, AdaptiveShards) else None
