"""Where a reading goes: its bucket opened, its shard chosen; and what is done when there is no room for it there.

When a shard of an adaptive series is throttled, its bucket gets twice the shards, and the write goes to where it belongs then. The client tries a throttled
call again by itself first; on a Db with a deadline, ``db.within(0.5)``, growth comes as soon as that is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.errors import DeadlineExceeded, RequestRefused, ResourceNotFound, SlowDown, StatorError
from stator.model.values import Item
from stator.patterns.rollups.writes import RollupBook
from stator.patterns.series.directory import MAX_SHARDS, Bucket, BucketDirectory
from stator.patterns.series.layout import SeriesLayout
from stator.tables.context import Context
from stator.tables.work import Work


@dataclass(frozen=True, slots=True)
class PlacedReading:
    """A reading and where it goes."""

    entity: Any
    bucket: Bucket
    shard: int
    item: Item


class SeriesPlacement:
    """``book`` has the roll-ups that are kept with each write, if there are any."""

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

    def place(self, entity: Any) -> Work[PlacedReading]:
        """Open the bucket of a reading, and say where in it the reading belongs."""
        self.check(entity)
        bucket = yield from self.directory.open(
            self.layout.by.of(entity), self.layout.bucket_of(entity)
        )
        if self.book is not None:
            yield from self.book.open_shards(bucket.by, bucket.shards)
        shard = self.layout.shard(entity, bucket.shards)
        return PlacedReading(
            entity, bucket, shard, self.layout.item(entity, bucket.text, bucket.shards)
        )

    def check(self, entity: Any) -> None:
        wanted = (self.layout.info.cls, getattr(self.layout.info, "model", self.layout.info.cls))
        if not isinstance(entity, wanted):
            raise RequestRefused(
                f"{self.layout.name} is a series of {self.layout.info.name}, not of {type(entity).__name__}",
                hint=f"add objects of {self.layout.info.name}",
            )

    def make_room(self, bucket: Bucket, error: StatorError) -> Work[bool]:
        """Whether it is worth trying again, now that the bucket is larger or its table is there."""
        if isinstance(error, ResourceNotFound):
            self.directory.forget(bucket)  # its table was dropped, and is made again
            return self.layout.table_per is not None
        if (
            not (self.directory.adaptive and is_partition_busy(error))
            or bucket.shards >= MAX_SHARDS
        ):
            return False
        yield from self.directory.grow(bucket)
        return True


def is_partition_busy(error: BaseException | None) -> bool:
    """Whether more partitions would help: not when it is the table or the account that has reached its limit, and the service says so.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-diagnosing.html has the reasons; those about one partition
    end with KeyRangeThroughputExceeded.
    """
    if isinstance(error, DeadlineExceeded):
        error = error.__cause__
    if not isinstance(error, SlowDown):
        return False
    reasons = [str(reason.get("reason", "")) for reason in error.throttling_reasons]
    return not reasons or any("KeyRange" in reason for reason in reasons)
