"""Which buckets a series has, and over how many shards each is spread.

    PK  SERIES#readings#s-17    SK  BUCKET#2026-11-16    _shards  4    _history  [{shards 1, since ...}, {shards 4, since ...}]
    PK  SERIES#readings#s-17    SK  ROLLUPS              _shards  4
    PK  SERIES#readings         SK  TABLE#2026-11
    PK  SERIES#readings         SK  DROPPED              _before  2026-10-01T00:00:00.000000Z

A writer *opens* a bucket before it writes into it: it puts the entry there, or learns from it that the bucket has more shards than it thought. It
remembers that for ``REFRESH_SECONDS``, so opening costs one write for each bucket and process. A reader asks for the entries first, strongly
consistent, and so reads only buckets that are there, each with all the shards that anybody may have written to.

Invariants:

- No item is in a bucket without an entry, nor in a shard at or above the entry's ``_shards``: the entry is written first, and ``_shards`` only grows.
- ``_history`` has every number of shards that the bucket had, with the time since when: an item may be where any of them puts it.
- An entry lives at least as long as what is in its bucket.

A process that dies between the entry and the item leaves an entry of an empty bucket, which costs readers one request and nothing else. The same holds
of tables: TABLE# is written before the table is made, and removed after it is deleted, so that no table is ever forgotten.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from stator.design.plan.key_text import encode
from stator.errors import ConditionFailed, ResourceNotFound
from stator.model.periods import following, period_start, period_text
from stator.model.values import Item
from stator.patterns.series.layout import SeriesLayout
from stator.tables.context import Context
from stator.tables.lifecycle import TableSettings, TableSetup
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions

REFRESH_SECONDS: Final = 60.0
MAX_SHARDS: Final = 256
_REMEMBERED: Final = 20_000


@dataclass(frozen=True, slots=True)
class Bucket:
    """``counts`` are the numbers of shards it had, the last and largest being in force."""

    by: str
    text: str
    counts: tuple[int, ...]

    @property
    def shards(self) -> int:
        return self.counts[-1]


class BucketDirectory:
    """``shards`` is the least number for new buckets; ``adaptive`` ones begin with as many as the bucket before them has."""

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
        """The bucket, ready to be written into."""
        known = self._open.get((by, text))
        if known is not None and known[1] > self.context.now():
            return known[0]
        if self.layout.table_per is not None:
            yield from self._open_table(period_text(self.layout.table_per, period_start(text)))
        shards = (yield from self._shards_before(by, text)) if self.adaptive else self.shards
        return (yield from self._at_least(by, text, shards))

    def grow(self, bucket: Bucket) -> Work[Bucket]:
        """Twice the shards, unless somebody else was quicker."""
        self.forget(bucket)
        return (
            yield from self._at_least(bucket.by, bucket.text, min(bucket.shards * 2, MAX_SHARDS))
        )

    def forget(self, bucket: Bucket) -> None:
        """Open it anew next time: what is known of it turned out to be old."""
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
        made = Bucket(by, text, _counts(item))
        if len(self._open) >= _REMEMBERED:
            self._open.clear()
        self._open[by, text] = (made, self.context.now() + REFRESH_SECONDS)
        return made

    def _entry(self, by: str, text: str, shards: int, expires: Item) -> dict[str, Any]:
        written = Expressions()
        number, history = written.name("_shards"), written.name("_history")
        since = {"M": {"shards": _number(shards), "since": {"N": f"{self.context.now():.6f}"}}}
        sets = [
            f"{number} = {(wanted := written.value(_number(shards)))}",
            f"{history} = list_append(if_not_exists({history}, {written.value({'L': []})}), {written.value({'L': [since]})})",
            *(f"{written.name(name)} = {written.value(value)}" for name, value in expires.items()),
        ]
        request = {
            "TableName": self.layout.place.table,
            "Key": self._key(by, text),
            "UpdateExpression": f"SET {', '.join(sets)}",
            "ConditionExpression": f"attribute_not_exists({number}) OR {number} < {wanted}",
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return written.into(request)

    def _keep_longer(self, by: str, text: str, item: Item, expires: Item) -> Work[None]:
        """An entry from when the series was kept for a shorter time lives as long as what is written now."""
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
        """The buckets that are there, of those with a moment at or after ``start`` and before ``end``; ``limit`` of them at once."""
        last_moment = end - timedelta(microseconds=1)
        first, last = (period_text(self.layout.bucket, moment) for moment in (start, last_moment))
        return BucketListing(self, by, first, last, newest_first=newest_first, limit=limit)

    def _key(self, by: str, text: str) -> Item:
        return self.layout.place.key(self.layout.directory(by), f"BUCKET#{text}")

    def listing_request(
        self, by: str, first: str, last: str, *, newest_first: bool
    ) -> dict[str, Any]:
        place = self.layout.place
        written = Expressions()
        partition, sort = written.name(place.partition), written.name(place.sort)
        low, high = (written.value({"S": f"BUCKET#{text}"}) for text in (first, last))
        whose = written.value({"S": self.layout.directory(by)})
        return written.into(
            {
                "TableName": place.table,
                "KeyConditionExpression": f"{partition} = {whose} AND {sort} BETWEEN {low} AND {high}",
                "ScanIndexForward": not newest_first,
                "ConsistentRead": True,
            }
        )

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
        """The periods that have tables, the earliest first."""
        place = self.layout.place
        written = Expressions()
        partition, sort = written.name(place.partition), written.name(place.sort)
        whose, prefix = (
            written.value({"S": self.layout.tables_partition}),
            written.value({"S": "TABLE#"}),
        )
        request: dict[str, Any] = written.into(
            {
                "TableName": place.table,
                "KeyConditionExpression": f"{partition} = {whose} AND begins_with({sort}, {prefix})",
                "ConsistentRead": True,
            }
        )
        found: list[str] = []
        while True:
            reply = yield Call("Query", request, self._label)
            found += [item[place.sort]["S"].removeprefix("TABLE#") for item in reply["Items"]]
            if "LastEvaluatedKey" not in reply:
                return found
            request = request | {"ExclusiveStartKey": reply["LastEvaluatedKey"]}

    def dropping_before(self, moment: datetime) -> Work[None]:
        """Remember, before any table is deleted, that readings before a moment are gone."""
        written = Expressions()
        before, value = written.name("_before"), written.value({"S": encode("datetime", moment)})
        request = {
            "TableName": self.layout.place.table,
            "Key": self._dropped_key(),
            "UpdateExpression": f"SET {before} = {value}",
            "ConditionExpression": f"attribute_not_exists({before}) OR {before} < {value}",
        }
        with suppress(ConditionFailed):  # more was dropped before
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
        """Delete the table of a period with all that is in it; once more after a crash, if need be."""
        table = self.layout.period_table(period)
        with suppress(ResourceNotFound):  # it was deleted before, or never made
            yield Call("DeleteTable", {"TableName": table}, self._label)
        listed = self.layout.place.key(self.layout.tables_partition, f"TABLE#{period}")
        yield Call("DeleteItem", {"TableName": self.layout.place.table, "Key": listed}, self._label)
        self._tables.discard(table)
        self._open = {
            key: known for key, known in self._open.items() if self.layout.table(key[1]) != table
        }


class BucketListing:
    """The entries of some buckets, page by page."""

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
