"""A bucket of a series as the directory stores it, and the pages of a listing of buckets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from stator.model.values import Item
from stator.patterns.item_pages import range_query
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.spread import ShardLocation, Spread, locations
from stator.tables.work import Call, Work


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket of a series: the readings of one series key in one period.

    ``by`` is the series key, and ``text`` names the period, such as 2026-11-16. ``spreads`` lists
    every spread that the bucket has had. The last spread is the current one.
    """

    by: str
    text: str
    spreads: tuple[Spread, ...]

    @property
    def spread(self) -> Spread:
        return self.spreads[-1]

    @property
    def shards(self) -> int:
        return self.spread.shards

    @property
    def tables(self) -> int:
        return self.spread.tables

    def locations(self) -> list[ShardLocation]:
        """Return every location that may hold readings of the bucket."""
        return locations(self.spreads)


@dataclass(frozen=True, slots=True)
class BucketShards:
    """How many shards a bucket has, as ``Series.shards`` reports it.

    ``history`` has each number of shards and since when. ``needed`` is the largest number that
    traffic has needed so far, or None if it was never measured. ``tables`` is the number of tables
    that hold the shards.
    """

    bucket: str
    shards: int
    history: tuple[tuple[int, datetime], ...]
    needed: int | None = None
    tables: int = 1


class BucketListing:
    """The directory entries of the buckets in a range, page by page."""

    def __init__(
        self,
        layout: SeriesLayout,
        by: str,
        first: str,
        last: str,
        *,
        newest_first: bool,
        limit: int | None,
    ) -> None:
        place, partition = layout.place, layout.directory(by)
        request = range_query(place, partition, f"BUCKET#{first}", f"BUCKET#{last}")
        self._by = by
        self._sort = place.sort
        self._request = request | {"ScanIndexForward": not newest_first, "ConsistentRead": True}
        self._label = f"series {layout.name}"
        self._limit = limit
        self.is_done = False

    def more(self) -> Work[list[Bucket]]:
        return [self._bucket(item) for item in (yield from self.entries())]

    def shards(self) -> Work[list[BucketShards]]:
        return [_bucket_shards(self._bucket(item), item) for item in (yield from self.entries())]

    def _bucket(self, item: Item) -> Bucket:
        return Bucket(self._by, item[self._sort]["S"].removeprefix("BUCKET#"), spreads_of(item))

    def entries(self) -> Work[list[Item]]:
        """Return the next page of directory entries as stored items."""
        request = self._request if self._limit is None else self._request | {"Limit": self._limit}
        reply = yield Call("Query", request, self._label)
        if "LastEvaluatedKey" in reply:
            self._request = self._request | {"ExclusiveStartKey": reply["LastEvaluatedKey"]}
        else:
            self.is_done = True
        if self._limit is not None:
            self._limit *= 2
        items: list[Item] = reply["Items"]
        return items


def spreads_of(item: Item) -> tuple[Spread, ...]:
    found = {
        Spread(stored_count(each["M"], "shards", 1), stored_count(each["M"], "tables", 1))
        for each in item["_history"]["L"]
    }
    return tuple(sorted(found))


def stored_count(item: Item, name: str, default: int) -> int:
    return int(item[name]["N"]) if name in item else default


def _bucket_shards(bucket: Bucket, item: Item) -> BucketShards:
    history = [each["M"] for each in item["_history"]["L"]]
    return BucketShards(
        bucket.text,
        bucket.shards,
        tuple(
            (int(each["shards"]["N"]), datetime.fromtimestamp(float(each["since"]["N"]), UTC))
            for each in history
        ),
        int(item["_needed"]["N"]) if "_needed" in item else None,
        bucket.tables,
    )


def grown_at(item: Item) -> float:
    history = item["_history"]["L"]
    return float(history[-1]["M"]["since"]["N"]) if len(history) > 1 else 0.0


def number_value(value: int) -> dict[str, str]:
    return {"N": str(value)}
