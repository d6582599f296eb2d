"""Ranges of a series: buckets and shards read side by side, put together in the order of time.

Buckets follow one another; the shards of one are merged by their sort keys. What is next in line is read from all shards of the first bucket at once,
together with the beginning of the buckets after it: as many as may be wanted, up to ``PARALLEL`` requests. A read that wants only a few items begins
with one bucket, and takes more at once with every bucket that held too little.

Sort keys are the same wherever an item lies, so the place where a page ended is one sort key, however many shards there are by the time that the next
page is asked for. An item that was written again after its bucket had grown may lie in two shards: the merge sees it twice in a row, and keeps the one
that the larger number of shards put there.
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
from stator.patterns.series.directory import Bucket, BucketDirectory
from stator.patterns.series.layout import SeriesLayout
from stator.tables.context import Context
from stator.tables.work import Call, Gather, Work
from stator.tables.writes.expressions import Expressions

T = TypeVar("T")
PARALLEL: Final = 16
_FIRST_BUCKETS: Final = 4


@dataclass(frozen=True, slots=True)
class SeriesRange:
    """What is asked for. ``after`` is the sort key of the last item that was seen; ``keys_only`` leaves the fields where they are."""

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
    """One partition, read from one end."""

    def __init__(
        self, layout: SeriesLayout, asked: SeriesRange, bucket: Bucket, number: int
    ) -> None:
        self.number = number
        self._layout = layout
        self._request = _request(layout, asked, bucket, number)
        self._after = asked.after
        self._label = f"series {layout.name}"
        self._buffer: deque[Item] = deque()
        self._left = True
        self.was_read = False

    @property
    def is_dry(self) -> bool:
        """Whether it has to be read before anything can be said about it."""
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
        except ResourceNotFound:  # the table of that period was dropped
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
    layout: SeriesLayout, asked: SeriesRange, bucket: Bucket, number: int
) -> dict[str, Any]:
    low, high = layout.bounds(asked.start, asked.end)
    if asked.after is not None:
        low, high = (low, asked.after) if asked.newest_first else (asked.after, high)
    place = layout.place
    written = Expressions()
    partition, sort = written.name(place.partition), written.name(place.sort)
    whose = written.value({"S": layout.partition(bucket.by, bucket.text, number)})
    between = f"BETWEEN {written.value({'S': low})} AND {written.value({'S': high})}"
    request: dict[str, Any] = {
        "TableName": layout.table(bucket.text),
        "KeyConditionExpression": f"{partition} = {whose} AND {sort} {between}",
        "ScanIndexForward": not asked.newest_first,
    }
    if asked.consistent:
        request["ConsistentRead"] = True
    if asked.keys_only:
        request["ProjectionExpression"] = f"{partition}, {sort}, {written.name(place.ttl)}"
    return written.into(request)


class OpenBucket:
    """The shards of one bucket, merged."""

    def __init__(self, layout: SeriesLayout, asked: SeriesRange, bucket: Bucket) -> None:
        self.bucket = bucket
        self.shards = [
            SeriesShard(layout, asked, bucket, number) for number in range(bucket.shards)
        ]
        self._layout = layout
        self._first = max if asked.newest_first else min
        self._keys_only = asked.keys_only

    def next(self) -> Item | None:
        """The item that comes next; None when a shard has to be read first, or at the end."""
        if any(shard.is_dry for shard in self.shards):
            return None
        live = [shard for shard in self.shards if not shard.is_done]
        if not live:
            return None
        first = self._first(shard.head() for shard in live)
        copies = [(shard.number, shard.take()) for shard in live if shard.head() == first]
        return copies[0][1] if len(copies) == 1 else self._latest(copies)

    def _latest(self, copies: list[tuple[int, Item]]) -> Item:
        """Of copies in several shards, the one that was put there when the bucket had the most."""
        by_shard = dict(copies)
        if not self._keys_only:
            entity = self._layout.decode(copies[0][1])
            for count in reversed(self.bucket.counts):
                found = by_shard.get(self._layout.shard(entity, count))
                if found is not None:
                    return found
        return copies[-1][1]

    @property
    def is_done(self) -> bool:
        return all(shard.is_done for shard in self.shards)


class SeriesPages(Generic[T]):
    """The items of a range, one handful after the other."""

    def __init__(
        self,
        context: Context,
        layout: SeriesLayout,
        directory: BucketDirectory,
        asked: SeriesRange,
        read: Callable[[Item], T],
    ) -> None:
        self.context = context
        self.layout = layout
        self.directory = directory
        self.asked = asked
        self._read = read
        start, end = _still_wanted(asked)
        at_once = None if asked.limit is None else _FIRST_BUCKETS
        self._listing = directory.listing(
            asked.by, start, end, newest_first=asked.newest_first, limit=at_once
        )
        self._waiting: deque[Bucket] = deque()
        self._open: deque[OpenBucket] = deque()
        self._left = asked.limit
        self._width = 1 if asked.limit is not None else PARALLEL
        self.last: str | None = asked.after

    @property
    def is_done(self) -> bool:
        return self._left == 0 or (self._listing.is_done and not self._waiting and not self._open)

    def page(self) -> Work[list[T]]:
        """What can be had with one more round of requests; empty only at the end."""
        found: list[T] = []
        while not found and not self.is_done:
            if len(self._waiting) < self._width and not self._listing.is_done:
                self._waiting.extend((yield from self._listing.more()))
            self._open_more()
            if self._open:
                yield from self._fetch()
                found = self._taken()
        return found

    def everything(self) -> Work[list[T]]:
        found: list[T] = []
        while not self.is_done:
            found += yield from self.page()
        return found

    def _open_more(self) -> None:
        requests = sum(len(bucket.shards) for bucket in self._open)
        while self._waiting and (
            not self._open or requests + self._waiting[0].shards <= self._width
        ):
            bucket = OpenBucket(self.layout, self.asked, self._waiting.popleft())
            requests += len(bucket.shards)
            self._open.append(bucket)

    def _fetch(self) -> Work[None]:
        """Read the shards that the first bucket waits for, and the beginning of those after it."""
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
        """Items lie evenly among shards: about as many from each as make what is wanted, and a few more."""
        if self._left is None:
            return None
        return self._left + 1 if shards == 1 else self._left * 3 // (2 * shards) + 8

    def _taken(self) -> list[T]:
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
            if self.asked.include_expired or not self.layout.is_expired(item, now):
                found.append(self._read(item))
                if self._left is not None:
                    self._left -= 1
        return found

    def may_have_more(self) -> bool:
        """False when there is surely nothing after what was taken."""
        return (
            not self._listing.is_done
            or bool(self._waiting)
            or any(not bucket.is_done for bucket in self._open)
        )


def _still_wanted(asked: SeriesRange) -> tuple[datetime, datetime]:
    """The part of the range that pages before this one have not been through."""
    if asked.after is None:
        return asked.start, asked.end
    at = datetime.fromisoformat(asked.after.partition(SEPARATOR)[0])
    return (asked.start, at + timedelta(microseconds=1)) if asked.newest_first else (at, asked.end)
