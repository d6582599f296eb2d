"""The directory of a series: which buckets exist, and how many shards each has.

    PK  SERIES#readings#s-17    SK  BUCKET#2026-11-16    _shards 4
                                                         _history [{shards 1, since ...}, ...]
    PK  SERIES#readings#s-17    SK  ROLLUPS              _shards 4
    PK  SERIES#readings         SK  TABLE#2026-11
    PK  SERIES#readings         SK  DROPPED              _before 2026-10-01T00:00:00.000000Z

A writer *opens* a bucket before it writes to it: it creates the bucket's entry, or learns from the
entry that the bucket has more shards than expected. It remembers the answer for
``REFRESH_SECONDS``, so opening costs about one write per bucket and process. A reader first reads
the entries with strong consistency. It then queries only buckets that exist, each with all shards
ever written to.

Invariants:

- No item is in a bucket without an entry, nor in a shard at or above the entry's ``_shards``: the
  entry is written first, and ``_shards`` only grows.
- ``_history`` has every number of shards that the bucket has had, and since when. For each of these
  numbers, the hash of an item gives one shard. The item may be in any of those shards.
- An entry lives at least as long as the items of its bucket.

Failure and recovery: a process that dies between entry and item leaves the entry of an empty
bucket, which costs readers one request and nothing else. Tables work the same way: the TABLE# entry
is written before the table is created and removed after the table is deleted, so that no table is
ever forgotten.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from stator.design.plan.key_text import encode
from stator.design.table_settings import TableSettings
from stator.errors import ConditionFailed, ResourceNotFound
from stator.model.periods import following, period_start, period_text
from stator.model.values import Item
from stator.patterns.item_pages import prefix_query, query_all, range_query
from stator.patterns.series.layout import SeriesLayout
from stator.tables.context import Context
from stator.tables.lifecycle import TableSetup
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions

REFRESH_SECONDS: Final = 60.0
MAX_SHARDS: Final = 256
_REMEMBERED: Final = 20_000


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket of a series.

    ``counts`` lists the numbers of shards it has had; the last, which is the largest, is current.
    """

    by: str
    text: str
    counts: tuple[int, ...]

    @property
    def shards(self) -> int:
        return self.counts[-1]


class BucketDirectory:
    """Creates, grows and lists the buckets of a series.

    ``shards`` is the minimum number of shards of a new bucket. With ``adaptive``, a new bucket
    starts with as many shards as the bucket before it.
    """

    def __init__(
        self, context: Context, layout: SeriesLayout, shards: int, *, adaptive: bool
    ) -> None:
        self.context = context
        self.layout = layout
        self.shards = shards
        self.adaptive = adaptive
        self._open: dict[tuple[str, str], tuple[Bucket, float]] = {}
        self._tables: set[str] = set()
        self._label = f"series {layout.name}"

    # -- for writers

    def open(self, by: str, text: str) -> Work[Bucket]:
        """Return a bucket that is ready for writes.

        ``by`` is the series key, and ``text`` names the bucket, such as 2026-11-16. Creates its
        entry and, with ``table_per``, its table, unless this process has done so lately.
        """
        known = self._open.get((by, text))
        if known is not None and known[1] > self.context.now():
            return known[0]
        if self.layout.table_per is not None:
            yield from self._open_table(period_text(self.layout.table_per, period_start(text)))
        shards = (yield from self._shards_before(by, text)) if self.adaptive else self.shards
        return (yield from self._at_least(by, text, shards))

    def grow(self, bucket: Bucket) -> Work[Bucket]:
        """Double the shards, unless another process has already done so."""
        self.forget(bucket)
        return (
            yield from self._at_least(bucket.by, bucket.text, min(bucket.shards * 2, MAX_SHARDS))
        )

    def forget(self, bucket: Bucket) -> None:
        """Discard the cached entry of a bucket, so that the next write opens the bucket again."""
        self._open.pop((bucket.by, bucket.text), None)
        self._tables.discard(self.layout.table(bucket.text))

    def _at_least(self, by: str, text: str, shards: int) -> Work[Bucket]:
        expires = self.layout.bucket_expiry(following(self.layout.bucket, period_start(text)))
        try:
            reply = yield Call("UpdateItem", self._entry(by, text, shards, expires), self._label)
            item: Item = reply["Attributes"]
        except ConditionFailed as failed:
            item = failed.item
            yield from self._keep_longer(by, text, item, expires)
        bucket = Bucket(by, text, _counts(item))
        if len(self._open) >= _REMEMBERED:
            self._open.clear()
        self._open[by, text] = (bucket, self.context.now() + REFRESH_SECONDS)
        return bucket

    def _entry(self, by: str, text: str, shards: int, expires: Item) -> dict[str, Any]:
        written = Expressions()
        number, history = written.name("_shards"), written.name("_history")
        since = {"M": {"shards": _number(shards), "since": {"N": f"{self.context.now():.6f}"}}}
        earlier = f"if_not_exists({history}, {written.value({'L': []})})"
        sets = [
            f"{number} = {(count := written.value(_number(shards)))}",
            f"{history} = list_append({earlier}, {written.value({'L': [since]})})",
            *(f"{written.name(name)} = {written.value(value)}" for name, value in expires.items()),
        ]
        request = {
            "TableName": self.layout.place.table,
            "Key": self._key(by, text),
            "UpdateExpression": f"SET {', '.join(sets)}",
            "ConditionExpression": f"attribute_not_exists({number}) OR {number} < {count}",
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return written.into(request)

    def _keep_longer(self, by: str, text: str, item: Item, expires: Item) -> Work[None]:
        """Extend the life of an entry that was written when ``keep`` was shorter."""
        ttl = self.layout.place.ttl
        if ttl not in item or (
            ttl in expires and float(item[ttl]["N"]) >= float(expires[ttl]["N"])
        ):
            return
        written = Expressions()
        name = written.name(ttl)
        change = (
            f"SET {name} = {written.value(expires[ttl])}" if ttl in expires else f"REMOVE {name}"
        )
        request = {
            "TableName": self.layout.place.table,
            "Key": self._key(by, text),
            "UpdateExpression": change,
        }
        yield Call("UpdateItem", written.into(request), self._label)

    def _shards_before(self, by: str, text: str) -> Work[int]:
        listing = BucketListing(self, by, "", text, newest_first=True, limit=1)
        found = yield from listing.more()
        return max([self.shards, *(bucket.shards for bucket in found)])

    # -- for readers

    def listing(
        self,
        by: str,
        start: datetime,
        end: datetime,
        *,
        newest_first: bool,
        limit: int | None = None,
    ) -> BucketListing:
        """Return the existing buckets that overlap the time from ``start`` to ``end``.

        ``limit`` is the size of the first page; every further page is twice as large.
        """
        last_moment = end - timedelta(microseconds=1)
        first, last = (period_text(self.layout.bucket, moment) for moment in (start, last_moment))
        return BucketListing(self, by, first, last, newest_first=newest_first, limit=limit)

    def _key(self, by: str, text: str) -> Item:
        return self.layout.place.key(self.layout.directory(by), f"BUCKET#{text}")

    def listing_request(
        self, by: str, first: str, last: str, *, newest_first: bool
    ) -> dict[str, Any]:
        partition = self.layout.directory(by)
        request = range_query(self.layout.place, partition, f"BUCKET#{first}", f"BUCKET#{last}")
        return request | {"ScanIndexForward": not newest_first, "ConsistentRead": True}

    # -- tables of a period

    def _open_table(self, period: str) -> Work[None]:
        place = self.layout.period_place(period)
        if place.table in self._tables:
            return
        listed = self.layout.place.key(self.layout.tables_partition, f"TABLE#{period}")
        yield Call("PutItem", {"TableName": self.layout.place.table, "Item": listed}, self._label)
        yield from TableSetup(self.context, TableSettings()).place(place)
        self._tables.add(place.table)

    def table_periods(self) -> Work[list[str]]:
        """Return the periods that have tables, the earliest first."""
        request = prefix_query(self.layout.place, self.layout.tables_partition, "TABLE#")
        items = yield from query_all(request, self._label)
        return [self.layout.sort_of(item).removeprefix("TABLE#") for item in items]

    def record_drop(self, moment: datetime) -> Work[None]:
        """Record that readings before ``moment`` are gone. Call it before a table is deleted."""
        written = Expressions()
        before, value = written.name("_before"), written.value({"S": encode("datetime", moment)})
        request = {
            "TableName": self.layout.place.table,
            "Key": self._dropped_key(),
            "UpdateExpression": f"SET {before} = {value}",
            "ConditionExpression": f"attribute_not_exists({before}) OR {before} < {value}",
        }
        with suppress(ConditionFailed):  # an earlier drop went further
            yield Call("UpdateItem", written.into(request), self._label)

    def dropped_before(self) -> Work[datetime | None]:
        if self.layout.table_per is None:
            return None
        request = {
            "TableName": self.layout.place.table,
            "Key": self._dropped_key(),
            "ConsistentRead": True,
        }
        reply = yield Call("GetItem", request, self._label)
        return datetime.fromisoformat(reply["Item"]["_before"]["S"]) if reply.get("Item") else None

    def _dropped_key(self) -> Item:
        return self.layout.place.key(self.layout.tables_partition, "DROPPED")

    def drop_table(self, period: str) -> Work[None]:
        """Delete the table of a period with its readings. After a crash, call it again."""
        table = self.layout.period_table(period)
        with suppress(ResourceNotFound):  # deleted by an earlier attempt, or never created
            yield Call("DeleteTable", {"TableName": table}, self._label)
        listed = self.layout.place.key(self.layout.tables_partition, f"TABLE#{period}")
        yield Call("DeleteItem", {"TableName": self.layout.place.table, "Key": listed}, self._label)
        self._tables.discard(table)
        self._open = {
            key: known for key, known in self._open.items() if self.layout.table(key[1]) != table
        }


class BucketListing:
    """The directory entries of a range of buckets, page by page."""

    def __init__(
        self,
        directory: BucketDirectory,
        by: str,
        first: str,
        last: str,
        *,
        newest_first: bool,
        limit: int | None,
    ) -> None:
        self._by = by
        self._sort = directory.layout.place.sort
        self._request = directory.listing_request(by, first, last, newest_first=newest_first)
        self._label = f"series {directory.layout.name}"
        self._limit = limit
        self.is_done = False

    def more(self) -> Work[list[Bucket]]:
        request = self._request if self._limit is None else self._request | {"Limit": self._limit}
        reply = yield Call("Query", request, self._label)
        if "LastEvaluatedKey" in reply:
            self._request = self._request | {"ExclusiveStartKey": reply["LastEvaluatedKey"]}
        else:
            self.is_done = True
        if self._limit is not None:
            self._limit *= 2
        texts = [(item[self._sort]["S"].removeprefix("BUCKET#"), item) for item in reply["Items"]]
        return [Bucket(self._by, text, _counts(item)) for text, item in texts]


def _counts(item: Item) -> tuple[int, ...]:
    counts = {int(each["M"]["shards"]["N"]) for each in item["_history"]["L"]}
    return tuple(sorted(counts))


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}
