"""The place of a reading: opens its bucket, chooses its shard, and makes room after throttling.

An adaptive series counts what it writes to each bucket, and gives a bucket more shards before its
partitions reach their limit. If a shard is throttled all the same, because other processes write to
it as well, its bucket gets at least twice the shards, and the reading is written to its new shard.
The client raises such throttling at once (``raise_hot_key``) as long as the bucket may grow. If the
series has several tables, a bucket that a limit of the whole table refuses is divided among twice
as many (``raise_table_limit``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from stator.errors import DeadlineExceeded, RequestRefused, ResourceNotFound, SlowDown, StatorError
from stator.model.limits import WRITE_UNIT_BYTES
from stator.model.values import Item, item_size
from stator.patterns.rollups.writes import RollupBook
from stator.patterns.series.buckets import Bucket
from stator.patterns.series.directory import BucketDirectory
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.spread import ShardLocation
from stator.tables.context import Context
from stator.tables.shards.hot_key import asked_refusal, hot_key_reason, table_limit_reason
from stator.tables.work import Pause, Work

# How often a bucket may grow for one write, and the errors that call for it.
END: Final = datetime(9999, 12, 1, tzinfo=UTC)
"""Where a series ends. Python knows no times of the periods after the last one."""
GROWTHS: Final = 40
_SHORTEST_SECONDS: Final = 0.01
NO_ROOM: Final = (SlowDown, DeadlineExceeded, ResourceNotFound)


@dataclass(frozen=True, slots=True)
class PlacedReading:
    """A reading, and where it is stored: its bucket, its table, its shard and its item."""

    entity: Any
    bucket: Bucket
    location: ShardLocation
    table: str
    item: Item

    @property
    def shard(self) -> int:
        return self.location.shard


class SeriesPlacement:
    """Decides where readings of a series are stored.

    ``book`` has the roll-ups that are updated with each write, if there are any.
    """

    def __init__(
        self,
        context: Context,
        layout: SeriesLayout,
        directory: BucketDirectory,
        book: RollupBook | None,
    ) -> None:
        self.context = context
        self.layout = layout
        self.directory = directory
        self.book = book
        self.label = f"series {layout.name}"

    def place(self, entity: Any, *, again: bool = False) -> Work[PlacedReading]:
        """Open the bucket of a reading, choose its shard, and return the reading with its place.

        An adaptive series counts the reading toward the write rate of its bucket. ``again`` marks a
        reading that was placed before, which is not counted a second time.
        """
        self.check(entity)
        bucket = yield from self.directory.open(
            self.layout.by.of(entity), self.layout.bucket_of(entity)
        )
        item = self.layout.item(entity, bucket.text, bucket.shards)
        if self.directory.adaptive is not None and not again:
            counted = yield from self.directory.count(bucket, self._units(item))
            if counted.shards != bucket.shards:
                bucket = counted
                item = self.layout.item(entity, bucket.text, bucket.shards)
        if self.book is not None:
            yield from self.book.open_shards(bucket.by, bucket.shards)
        location = self.layout.location(entity, bucket.spread)
        table = self.layout.table(bucket.text, location.table)
        return PlacedReading(entity, bucket, location, table, item)

    def _units(self, item: Item) -> float:
        """Return the write units of storing an item: twice as many in a roll-up's transaction."""
        units = -(-item_size(item) // WRITE_UNIT_BYTES)
        return float(units if self.book is None else 2 * units)

    def may_grow(self, bucket: Bucket) -> bool:
        """Whether the bucket gets more shards if one of its partitions is throttled."""
        return self.directory.may_grow(bucket)

    def may_widen(self, bucket: Bucket) -> bool:
        """Whether the bucket gets more tables if a limit of its table is reached."""
        return self.directory.may_widen(bucket)

    def check(self, entity: Any) -> None:
        info = self.layout.info
        if not isinstance(entity, (info.cls, getattr(info, "model", info.cls))):
            raise RequestRefused(
                f"{self.layout.name!r} is a series of {info.name}, not of {type(entity).__name__}",
                hint=f"pass objects of {info.name}",
            )
        moment = getattr(entity, self.layout.at.name)
        if isinstance(moment, datetime) and moment.tzinfo is not None and not _is_known(moment):
            raise RequestRefused(
                f"{info.name}.{self.layout.at.name} is {moment}, and a series has readings from "
                "year 1 up to November 9999, in UTC",
                hint="use a time in between",
            )

    def make_room(self, bucket: Bucket, error: StatorError) -> Work[bool]:
        """Prepare the retry of a write that failed with ``error``. Return False if none will help.

        A throttled bucket gets more shards, or more tables. A bucket whose table was dropped is
        opened again by the retry, which creates the table.
        """
        if isinstance(error, ResourceNotFound):
            self.directory.forget(bucket)  # its table was dropped; the retry creates it again
            return self.layout.table_per is not None or bucket.tables > 1
        reason, limit = hot_key_reason(error), table_limit_reason(error)
        if reason is None and (limit is None or not self.directory.has_more_tables(bucket)):
            return False
        settling = self.directory.settling_seconds(bucket)
        if settling > 0:  # its last growth may be enough
            yield Pause(min(settling, self.context.backoff(2)) + _SHORTEST_SECONDS)
            return True
        if reason is not None:
            return (yield from self.directory.grow(bucket, reason.text))
        assert limit is not None
        return (yield from self.directory.widen(bucket, limit.text))

    def make_room_if_hot(self, bucket: Bucket, table: str, key: Item) -> Work[bool]:
        """Give a bucket more shards if the partition of ``key`` is throttled now.

        If its whole table is, the bucket gets more tables. This sends a write that changes nothing
        to find out. Use it after a refusal that did not name the limit that was reached. Returns
        whether the bucket has grown.
        """
        refusal = yield from asked_refusal(
            table,
            key,
            self.layout.place.partition,
            self.label,
            raise_table_limit=self.may_widen(bucket),
        )
        reason, limit = hot_key_reason(refusal), table_limit_reason(refusal)
        if reason is not None:
            return (yield from self.directory.grow(bucket, reason.text))
        return limit is not None and (yield from self.directory.widen(bucket, limit.text))


def _is_known(moment: datetime) -> bool:
    try:
        return moment.astimezone(UTC) < END
    except OverflowError:
        return False
