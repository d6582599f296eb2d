"""The heat of shards: a partition takes 1,000 write units a second, and a hotter shard is split.

Each shard's units are counted by the minute. A shard is hot if, in each of two consecutive minutes,
it took more units than a partition can. A single hot key stays in one half after a split, so its
shards would be split without end. AWS stops at some point. Here, the two shards that a split makes
are not split in the ten minutes after it. Other shards of the stream are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stator.engine.items import records
from stator.engine.items.capacity import write_units
from stator.engine.items.write_path import ItemChange

_MINUTE_SECONDS: Final = 60.0
_HOT_UNITS: Final = 1000 * 60
_HOT_MINUTES: Final = 2
_REST_SECONDS: Final = 600.0


class Heat:
    __slots__ = ("_hot_minutes", "_minute_ends", "_resting", "_units")

    def __init__(self) -> None:
        self._units: dict[int, int] = {}
        self._hot_minutes: dict[int, int] = {}
        self._minute_ends = 0.0
        # By the number of a shard that a split made: until when it is not split.
        self._resting: dict[int, float] = {}

    def add(self, shard_number: int, change: ItemChange) -> None:
        size = max(
            0 if record is None else records.size_of(record) for record in (change.old, change.new)
        )
        self._units[shard_number] = self._units.get(shard_number, 0) + write_units(size)

    def is_due(self, now: float) -> bool:
        return now >= self._minute_ends

    def hot_shards(self, now: float) -> list[int]:
        """Return the numbers of the shards to split.

        Only the first call after the end of a minute can return shards. It begins a new minute.
        """
        if now < self._minute_ends:
            return []
        late = (
            now >= self._minute_ends + _MINUTE_SECONDS
        )  # no writes for a minute: no shard was hot twice in a row
        self._minute_ends = now + _MINUTE_SECONDS
        before = {} if late else self._hot_minutes
        self._hot_minutes = {
            number: before.get(number, 0) + 1
            for number, units in self._units.items()
            if units > _HOT_UNITS
        }
        self._units = {}
        self._resting = {number: end for number, end in self._resting.items() if now < end}
        return [
            number
            for number, minutes in self._hot_minutes.items()
            if minutes >= _HOT_MINUTES and number not in self._resting
        ]

    def rest(self, children: Iterable[int], now: float) -> None:
        """Do not split these shards for a while: a split has just made them."""
        self._resting.update(dict.fromkeys(children, now + _REST_SECONDS))
