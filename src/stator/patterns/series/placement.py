"""The place of a reading: opens its bucket, chooses its shard, and makes room after throttling.

When a shard of an adaptive series is throttled, its bucket gets twice the shards, and the reading
is written to its new shard. The client first retries a throttled call by itself; on a Db with
a deadline, ``db.within(0.5)``, growth starts as soon as the deadline has passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from stator.errors import DeadlineExceeded, RequestRefused, ResourceNotFound, SlowDown, StatorError
from stator.model.values import Item
from stator.patterns.rollups.writes import RollupBook
from stator.patterns.series.directory import MAX_SHARDS, Bucket, BucketDirectory
from stator.patterns.series.layout import SeriesLayout
from stator.tables.context import Context
from stator.tables.work import Work

# How often a bucket may grow for one write, and the errors that call for it.
GROWTHS: Final = 8
NO_ROOM: Final = (SlowDown, DeadlineExceeded, ResourceNotFound)


@dataclass(frozen=True, slots=True)
class PlacedReading:
    """A reading with its bucket, shard and item."""

    entity: Any
    bucket: Bucket
    shard: int
    item: Item


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

    def place(self, entity: Any) -> Work[PlacedReading]:
        """Open the bucket of a reading, and choose its shard."""
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
        info = self.layout.info
        if not isinstance(entity, (info.cls, getattr(info, "model", info.cls))):
            raise RequestRefused(
                f"{self.layout.name!r} is a series of {info.name}, not of {type(entity).__name__}",
                hint=f"pass objects of {info.name}",
            )

    def make_room(self, bucket: Bucket, error: StatorError) -> Work[bool]:
        """Grow the bucket, or open its table again. Return whether a retry is worthwhile."""
        if isinstance(error, ResourceNotFound):
            self.directory.forget(bucket)  # its table was dropped; the retry creates it again
            return self.layout.table_per is not None
        if (
            not (self.directory.adaptive and is_partition_busy(error))
            or bucket.shards >= MAX_SHARDS
        ):
            return False
        yield from self.directory.grow(bucket)
        return True


def is_partition_busy(error: BaseException | None) -> bool:
    """Whether an error means that one partition is throttled, so that more partitions would help.

    They do not help if the service says that the table or the account has reached its limit. The
    reasons that concern one partition contain KeyRangeThroughputExceeded:
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-diagnosing.html
    """
    if isinstance(error, DeadlineExceeded):
        error = error.__cause__
    if not isinstance(error, SlowDown):
        return False
    reasons = [str(reason.get("reason", "")) for reason in error.throttling_reasons]
    return not reasons or any("KeyRange" in reason for reason in reasons)
