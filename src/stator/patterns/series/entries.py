"""The entries of buckets in the directory: created, raised and kept, each by one conditional write.

    PK  SERIES#readings#s-17    SK  BUCKET#2026-11-16    _shards 4
                                                         _history [{shards 1, since ...}, ...]
                                                         _needed 4    _units 812345
                                                         _tables 2    _needed_tables 2

``directory`` decides how many shards a bucket gets; this module stores it, so that the numbers only
grow and the first writer wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.errors import ConditionFailed
from stator.model.periods import following, period_start
from stator.model.values import Item
from stator.patterns.series.buckets import Bucket, grown_at, number_value, spreads_of
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.own_tables import SeriesTables
from stator.patterns.series.spread import Spread
from stator.tables.context import Context
from stator.tables.shards.shard_change import ChangeCause
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions


@dataclass(frozen=True, slots=True)
class RaisedEntry:
    """A bucket, and whether this process has just written its entry (``is_new``).

    ``grown_at`` is when the bucket last got more shards than it started with, or 0.0.
    """

    bucket: Bucket
    is_new: bool
    grown_at: float


class BucketEntries:
    """Writes the entries of a series' buckets."""

    def __init__(self, context: Context, layout: SeriesLayout, tables: SeriesTables) -> None:
        self.context = context
        self.layout = layout
        self.tables = tables
        self._label = f"series {layout.name}"

    def raise_to(
        self, by: str, text: str, wanted: Spread, *, needed: ChangeCause | None = None
    ) -> Work[RaisedEntry]:
        """Create a bucket's entry, or raise its numbers of shards and tables if they are lower.

        ``needed`` says why traffic needs this spread, and records that it does. The tables are
        created first.
        """
        expires = self.expiry(text)
        while True:
            yield from self.tables.open_all(text, wanted.tables)
            is_new = True
            try:
                request = self._entry(by, text, wanted, expires, needed)
                reply = yield Call("UpdateItem", request, self._label)
                item: Item = reply["Attributes"]
            except ConditionFailed as failed:
                item, is_new = failed.item, False
                stored = spreads_of(item)[-1]
                if stored.with_at_least(wanted) != stored:  # one number is lower, the other higher
                    wanted = stored.with_at_least(wanted)
                    continue
                yield from self.keep_longer(by, text, item, expires)
            return RaisedEntry(Bucket(by, text, spreads_of(item)), is_new, grown_at(item))

    def expiry(self, text: str) -> Item:
        return self.layout.bucket_expiry(following(self.layout.bucket, period_start(text)))

    def _entry(
        self, by: str, text: str, wanted: Spread, expires: Item, needed: ChangeCause | None
    ) -> dict[str, Any]:
        written = Expressions()
        number, history = written.name("_shards"), written.name("_history")
        tables = written.name("_tables")
        is_in_several = wanted.tables > 1
        since = {"shards": number_value(wanted.shards), "since": {"N": f"{self.context.now():.6f}"}}
        if is_in_several:
            since["tables"] = number_value(wanted.tables)
        earlier = f"if_not_exists({history}, {written.value({'L': []})})"
        count = written.value(number_value(wanted.shards))
        sets = [
            f"{number} = {count}",
            f"{history} = list_append({earlier}, {written.value({'L': [{'M': since}]})})",
            *(f"{written.name(name)} = {written.value(value)}" for name, value in expires.items()),
        ]
        if needed in ("throttled", "rate"):
            sets.append(f"{written.name('_needed')} = {count}")
        if is_in_several:
            table_count = written.value(number_value(wanted.tables))
            sets.append(f"{tables} = {table_count}")
            if needed == "table throttled":
                sets.append(f"{written.name('_needed_tables')} = {table_count}")
            in_fewer = f"attribute_not_exists({tables}) OR {tables} < {table_count}"
            with_fewer = f"{tables} = {table_count} AND {number} < {count}"
            is_higher = f"({number} <= {count} AND ({in_fewer} OR ({with_fewer})))"
        else:
            is_higher = f"({number} < {count} AND attribute_not_exists({tables}))"
        request = {
            "TableName": self.layout.place.table,
            "Key": self.key(by, text),
            "UpdateExpression": f"SET {', '.join(sets)}",
            "ConditionExpression": f"attribute_not_exists({number}) OR {is_higher}",
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return written.into(request)

    def keep_longer(self, by: str, text: str, item: Item, expires: Item) -> Work[None]:
        """Extend the life of a bucket's entry.

        This is needed if the entry was written when the series had a shorter ``keep``.
        """
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
            "Key": self.key(by, text),
            "UpdateExpression": change,
        }
        yield Call("UpdateItem", written.into(request), self._label)

    def key(self, by: str, text: str) -> Item:
        return self.layout.place.key(self.layout.directory(by), f"BUCKET#{text}")
