"""Ranges of a series: buckets and shards read in parallel and merged in the order of time.

Buckets follow one another, and the shards of a bucket are merged by sort key. One round of requests
reads all shards of the first bucket and the start of the buckets after it, up to ``PARALLEL``
requests. A read with a small limit starts with one bucket. Whenever the buckets read so far hold
too few items, it doubles the number of buckets that it reads at once.

The sort key of an item is the same in every shard. The end of a page is therefore one sort key,
valid no matter how many shards the bucket has by the time of the next page. A reading that was
written again after its bucket had grown may be in two locations. The merge then sees it twice in a
row, and keeps the copy that belongs to the latest spread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

from stator.design.plan.key_text import SEPARATOR
from stator.errors import ResourceNotFound
from stator.model.values import Item
from stator.patterns.series.buckets import Bucket
from stator.patterns.series.directory import BucketDirectory
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.spread import ShardLocation
from stator.tables.context import Context
from stator.tables.work import Call, Gather, Work
from stator.tables.writes.expressions import Expressions

T = TypeVar("T")
PARALLEL: Final = 16
_FIRST_BUCKETS: Final = 4


@dataclass(frozen=True, slots=True)
class SeriesRange:
    """The range of a series to read, and how to read it.

    ``by`` is the series key as key text. ``after`` is the sort key of the last item that earlier
    pages returned. With ``keys_only``, the fields of the readings are not read.
    """

    by: str
    start: datetime
    end: datetime
    newest_first: bool = True
    limit: int | None = None
    after: str | None = None
    consistent: bool = False
    include_expired: bool = False
    keys_only: bool = False


class SeriesShard:
    """One shard's partition, read forwards or backwards into a buffer."""

    def __init__(
        self, layout: SeriesLayout, span: SeriesRange, bucket: Bucket, location: ShardLocation
    ) -> None:
        self.location = location
        self._layout = layout
        self._request = _request(layout, span, bucket, location)
        self._after = span.after
        self._label = f"series {layout.name}"
        self._buffer: deque[Item] = deque()
        self._left = True
        self.was_read = False

    @property
    def is_dry(self) -> bool:
        """Whether the buffer is empty although the shard may have more items to read."""
        return self._left and not self._buffer

    @property
    def is_done(self) -> bool:
        return not self._left and not self._buffer

    def head(self) -> str:
        return self._layout.sort_of(self._buffer[0])

    def take(self) -> Item:
        return self._buffer.popleft()

    def read(self, want: int | None) -> Work[None]:
        request = self._request if want is None else self._request | {"Limit": want}
        self.was_read = True
        try:
            reply = yield Call("Query", request, self._label)
        except ResourceNotFound:  # the table of the period was dropped
            self._left = False
            return
        # The bounds of a query are inclusive.
        self._buffer.extend(
            item for item in reply["Items"] if self._layout.sort_of(item) != self._after
        )
        self._left = "LastEvaluatedKey" in reply
        if self._left:
            self._request = self._request | {"ExclusiveStartKey": reply["LastEvaluatedKey"]}


def _request(
    layout: SeriesLayout, span: SeriesRange, bucket: Bucket, location: ShardLocation
) -> dict[str, Any]:
    low, high = layout.bounds(span.start, span.end)
    if span.after is not None:
        low, high = (low, span.after) if span.newest_first else (span.after, high)
    place = layout.place
    written = Expressions()
    partition, sort = written.name(place.partition), written.name(place.sort)
    whose = written.value({"S": layout.partition(bucket.by, bucket.text, location.shard)})
    between = f"BETWEEN {written.value({'S': low})} AND {written.value({'S': high})}"
    request: dict[str, Any] = {
        "TableName": layout.table(bucket.text, location.table),
        "KeyConditionExpression": f"{partition} = {whose} AND {sort} {between}",
        "ScanIndexForward": not span.newest_first,
    }
    if span.consistent:
        request["ConsistentRead"] = True
    if span.keys_only:
        request["ProjectionExpression"] = f"{partition}, {sort}, {written.name(place.ttl)}"
    return written.into(request)


class OpenBucket:
    """The shards of one bucket, merged into one sequence in time order."""

    def __init__(self, layout: SeriesLayout, span: SeriesRange, bucket: Bucket) -> None:
        self.bucket = bucket
        self.shards = [SeriesShard(layout, span, bucket, each) for each in bucket.locations()]
        self._layout = layout
        self._first = max if span.newest_first else min
        self._keys_only = span.keys_only

    def next(self) -> Item | None:
        """Return the next item in time order.

        Returns None if the bucket has no more items, or if a shard's buffer is empty and must be
        filled by ``read`` first.
        """
        if any(shard.is_dry for shard in self.shards):
            return None
        live = [shard for shard in self.shards if not shard.is_done]
        if not live:
            return None
        first = self._first(shard.head() for shard in live)
        copies = [(shard.location, shard.take()) for shard in live if shard.head() == first]
        return copies[0][1] if len(copies) == 1 else self._latest(copies)

    def _latest(self, copies: list[tuple[ShardLocation, Item]]) -> Item:
        """Return the newest of several copies of one reading, each given with its location.

        A reading that is written again after its bucket has grown lands in another location. The
        newest copy is in the location that the latest spread gives.
        """
        by_location = dict(copies)
        if not self._keys_only:
            entity = self._layout.decode(copies[0][1])
            for spread in reversed(self.bucket.spreads):
                found = by_location.get(self._layout.location(entity, spread))
                if found is not None:
                    return found
        return copies[-1][1]

    @property
    def is_done(self) -> bool:
        return all(shard.is_done for shard in self.shards)


class SeriesPages(Generic[T]):
    """The readings of a range of a series, page by page; ``read`` converts each item."""

    def __init__(
        self,
        context: Context,
        layout: SeriesLayout,
        directory: BucketDirectory,
        span: SeriesRange,
        read: Callable[[Item], T],
    ) -> None:
        self.context = context
        self.layout = layout
        self.directory = directory
        self.span = span
        self._read = read
        start, end = _remaining(span)
        at_once = None if span.limit is None else _FIRST_BUCKETS
        self._listing = directory.listing(
            span.by, start, end, newest_first=span.newest_first, limit=at_once
        )
        self._waiting: deque[Bucket] = deque()
        self._open: deque[OpenBucket] = deque()
        self._left = span.limit
        self._width = 1 if span.limit is not None else PARALLEL
        self.last: str | None = span.after

    @property
    def is_done(self) -> bool:
        return self._left == 0 or (self._listing.is_done and not self._waiting and not self._open)

    def page(self) -> Work[list[T]]:
        """Return the next readings, as many as one round of requests finds. [] means the end."""
        found: list[T] = []
        while not found and not self.is_done:
            if len(self._waiting) < self._width and not self._listing.is_done:
                self._waiting.extend((yield from self._listing.more()))
            self._open_more()
            if self._open:
                yield from self._fetch()
                found = self._merge()
        return found

    def everything(self) -> Work[list[T]]:
        found: list[T] = []
        while not self.is_done:
            found += yield from self.page()
        return found

    def _open_more(self) -> None:
        requests = sum(len(bucket.shards) for bucket in self._open)
        while self._waiting and (
            not self._open or requests + len(self._waiting[0].locations()) <= self._width
        ):
            bucket = OpenBucket(self.layout, self.span, self._waiting.popleft())
            requests += len(bucket.shards)
            self._open.append(bucket)

    def _fetch(self) -> Work[None]:
        """Read the shards that the first bucket needs, and the start of the buckets after it."""
        first, *others = self._open
        dry = [(shard, len(first.shards)) for shard in first.shards if shard.is_dry]
        if not dry:
            return
        dry += [
            (shard, len(each.shards))
            for each in others
            for shard in each.shards
            if not shard.was_read
        ]
        for error in (yield Gather([shard.read(self._want(among)) for shard, among in dry])):
            if isinstance(error, BaseException):
                raise error

    def _want(self, shards: int) -> int | None:
        """Return the Limit of a Query of one of ``shards`` shards; None if the read has no limit.

        With several shards, this is 1.5 times an even share of the items still wanted, plus a few.
        """
        if self._left is None:
            return None
        return self._left + 1 if shards == 1 else self._left * 3 // (2 * shards) + 8

    def _merge(self) -> list[T]:
        found: list[T] = []
        now = self.context.now()
        while self._open and self._left != 0:
            item = self._open[0].next()
            if item is None:
                if not self._open[0].is_done:
                    break
                self._open.popleft()
                self._width = min(self._width * 2, PARALLEL)
                continue
            self.last = self.layout.sort_of(item)
            if self.span.include_expired or not self.layout.is_expired(item, now):
                found.append(self._read(item))
                if self._left is not None:
                    self._left -= 1
        return found

    def may_have_more(self) -> bool:
        """Whether there may be more items than were returned. False means that there are none."""
        return (
            not self._listing.is_done
            or bool(self._waiting)
            or any(not bucket.is_done for bucket in self._open)
        )


def _remaining(span: SeriesRange) -> tuple[datetime, datetime]:
    """Return the start and end of the part of the range that earlier pages have not covered."""
    if span.after is None:
        return span.start, span.end
    at = datetime.fromisoformat(span.after.partition(SEPARATOR)[0])
    return (span.start, at + timedelta(microseconds=1)) if span.newest_first else (at, span.end)
