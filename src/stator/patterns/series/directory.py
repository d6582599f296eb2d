"""The directory of a series: which buckets exist, and how many shards each has.

    PK  SERIES#readings#s-17    SK  BUCKET#2026-11-16    _shards 4
                                                         _history [{shards 1, since ...}, ...]
                                                         _needed 4    _units 812345
                                                         _tables 2    _needed_tables 2
    PK  SERIES#readings#s-17    SK  ROLLUPS              _shards 4

A writer *opens* a bucket before it writes to it: it creates the bucket's entry, or learns from the
entry that the bucket has more shards than expected. It remembers the answer for
``REFRESH_SECONDS``, so opening costs about one write per bucket and process. A reader first reads
the entries with strong consistency. It then queries only buckets that exist, each with all shards
ever written to.

Invariants:

- No item is in a bucket without an entry, nor in a shard at or above the entry's ``_shards``, nor
  in a table at or above its ``_tables`` (1 if it has none): the entry is written first, and both
  numbers only grow.
- ``_history`` has every spread that the bucket has had, a number of shards and of tables, and since
  when. For each spread, the hash of an item gives one location, a shard in a table. The item may be
  in any of those locations.
- A table exists before an entry names it.
- An entry lives at least as long as the items of its bucket.

With adaptive shards, a writer raises ``_shards`` of a hot bucket. The first process wins; the
others find the number in the refusal. Where a limit of the whole table refuses writes, a writer
creates another table and raises ``_tables`` in the same way. ``_needed`` is the largest number that
the bucket has needed so far, and ``_units`` the write units of all processes, added when a process
refreshes what it remembers. Both are hints: they decide how many shards a bucket gets, and never
where a reader looks. A hot bucket is refreshed every ``HOT_REFRESH_SECONDS``. The next bucket
starts with as many shards as this one needed, but with no fewer than half of what it had.
``_needed_tables`` is the same for tables.

Failure and recovery: a process that dies between entry and item leaves the entry of an empty
bucket, which costs readers one request and nothing else.

``entries`` writes the entries, ``buckets`` reads them, and ``own_tables`` has the tables.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from stator.design.plan.key_text import decode
from stator.errors import ConditionFailed
from stator.model.periods import period_text
from stator.model.values import Item
from stator.patterns.series.buckets import (
    Bucket,
    BucketListing,
    grown_at,
    number_value,
    spreads_of,
    stored_count,
)
from stator.patterns.series.entries import BucketEntries, RaisedEntry
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.own_tables import SeriesTables
from stator.patterns.series.spread import Spread
from stator.tables.context import Context
from stator.tables.shards.adaptive_shards import AdaptiveShards
from stator.tables.shards.shard_change import ChangeCause, ShardChange
from stator.tables.shards.write_rate import WriteRate
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.expressions import Expressions

REFRESH_SECONDS: Final = 60.0
HOT_REFRESH_SECONDS: Final = 10.0
GROWTH_SECONDS: Final = 1.0
"""After a growth, throttling does not make a bucket grow again for this long."""
_EXCESS: Final = 4
"""Throttling alone gives a bucket at most this many times the shards that its rate needs."""
_HOT_UNITS: Final = 100.0
"""Write units a second of this process from which on a bucket is refreshed more often."""
_TABLE_SECONDS: Final = 1.0
"""How long a writer waits while another one of its process creates a table."""
MAX_SHARDS: Final = 256
MAX_TABLES: Final = 16
_REMEMBERED: Final = 20_000


class _KnownBucket:
    """A bucket as this process remembers it, until ``fresh_until``, and its rate of writes."""

    __slots__ = (
        "asked",
        "asked_tables",
        "bucket",
        "fresh_until",
        "grown_at",
        "needed",
        "rate",
        "shared",
        "total",
        "total_at",
    )

    def __init__(self, bucket: Bucket, fresh_until: float) -> None:
        self.bucket = bucket
        self.fresh_until = fresh_until
        self.rate = WriteRate()
        self.grown_at = 0.0
        """When the bucket last got more shards than it started with."""
        self.shared: float | None = None
        """The units a second of all processes, once this process has measured them."""
        self.asked = 0
        """The number of shards that this process is writing to the entry."""
        self.asked_tables = 0
        """The number of tables that this process is creating, before it raises the entry."""
        self.needed = 0
        """The largest ``_needed`` that this process has seen."""
        self.total = 0.0
        """The bucket's ``_units`` at ``total_at``."""
        self.total_at = 0.0


class BucketDirectory:
    """Creates, grows and lists the buckets of a series.

    ``shards`` is the minimum number of shards of a new bucket. With ``adaptive``, the number
    follows the traffic.
    """

    def __init__(
        self,
        context: Context,
        layout: SeriesLayout,
        shards: int,
        *,
        adaptive: AdaptiveShards | None = None,
    ) -> None:
        self.context = context
        self.layout = layout
        self.shards = shards
        self.adaptive = adaptive
        self._open: dict[tuple[str, str], _KnownBucket] = {}
        self.tables = SeriesTables(context, layout, 1 if adaptive is None else adaptive.tables)
        self.entries = BucketEntries(context, layout, self.tables)
        self._label = f"series {layout.name}"

    def open(self, by: str, text: str) -> Work[Bucket]:
        """Return a bucket that is ready for writes.

        ``by`` is the series key, and ``text`` names the bucket, such as 2026-11-16. If the bucket
        is new, its entry in the directory is created and, with ``table_per``, its table. If this
        process has opened the bucket lately, the cached bucket is returned.
        """
        known = self._open.get((by, text))
        if known is not None and known.fresh_until > self.context.now():
            return known.bucket
        if self.layout.table_per is not None:
            yield from self.tables.open(self.layout.period(text))
        if self.adaptive is None:
            bucket = (yield from self._at_least(by, text, Spread(self.shards))).bucket
        elif known is None:
            bucket = yield from self._open_adaptive(by, text, self.adaptive)
        else:
            bucket = yield from self._refresh(known, self.adaptive)
        yield from self.tables.open_all(bucket.text, bucket.tables)  # others may have raised it
        return bucket

    def count(self, bucket: Bucket, units: float) -> Work[Bucket]:
        """Count write units that are about to be sent to a bucket. Return the current bucket.

        If this process alone writes more than the bucket's shards should take, the bucket gets more
        shards first. Without adaptive shards, nothing is counted.
        """
        known = self._open.get((bucket.by, bucket.text))
        if self.adaptive is None or known is None:
            return bucket
        now = self.context.now()
        rate = known.rate.add(units, now)
        if rate > _HOT_UNITS:
            known.fresh_until = min(known.fresh_until, now + HOT_REFRESH_SECONDS)
        needed = self.adaptive.needed(rate)
        if needed <= max(known.bucket.shards, known.asked):
            return known.bucket
        wanted = Spread(needed, known.bucket.tables)
        return (yield from self._raise(known, wanted, "rate", "", self.adaptive))

    def grow(self, bucket: Bucket, reason: str) -> Work[bool]:
        """Give a throttled bucket at least twice the shards that it had when it was throttled.

        Returns False if it may not grow (``may_grow``).
        """
        known = self._open.get((bucket.by, bucket.text))
        if known is not None and known.bucket.shards > bucket.shards:
            return True  # it has grown since the refused request was sent
        if self.adaptive is None or not self.may_grow(bucket):
            return False
        if known is None:
            known = _KnownBucket(bucket, 0.0)
        rate = known.rate.per_second(self.context.now())
        wanted = max(self.adaptive.within(bucket.shards * 2), self.adaptive.needed(rate))
        spread = Spread(wanted, known.bucket.tables)
        yield from self._raise(known, spread, "throttled", reason, self.adaptive)
        return True

    def reserve(self, by: str, text: str, units_per_second: float, reason: str) -> Work[bool]:
        """Give a bucket the shards that a rate of writes needs, as another process has measured it.

        Returns whether this call has raised the number. A bucket without an entry gets none.
        """
        listing = BucketListing(self.layout, by, text, text, newest_first=True, limit=1)
        entry = next(iter((yield from listing.more())), None)
        if self.adaptive is None or entry is None:
            return False
        known = _KnownBucket(entry, 0.0)
        needed = self.adaptive.needed(units_per_second)
        if needed <= entry.shards:
            return False
        wanted = Spread(needed, entry.tables)
        raised = yield from self._raise(known, wanted, "rate", reason, self.adaptive)
        return raised.shards == needed

    def widen(self, bucket: Bucket, reason: str) -> Work[bool]:
        """Divide a bucket among twice the tables, because a limit of a table refused a write.

        It gets at least one shard for each table. Returns False if it may not (``may_widen``).
        """
        known = self._open.get((bucket.by, bucket.text))
        if known is not None and known.bucket.tables > bucket.tables:
            return True  # it was widened since the refused request was sent
        if known is not None and known.asked_tables > bucket.tables:
            yield Pause(_TABLE_SECONDS)  # another writer of this process creates the table
            return True
        if self.adaptive is None or not self.may_widen(bucket):
            return False
        if known is None:
            known = _KnownBucket(bucket, 0.0)
        tables = min(bucket.tables * 2, self.adaptive.tables)
        spread = Spread(max(tables, known.bucket.shards), tables)
        yield from self._raise(known, spread, "table throttled", reason, self.adaptive)
        return True

    def has_more_tables(self, bucket: Bucket) -> bool:
        """Whether a bucket may be in more tables than it is, now or later."""
        return self.adaptive is not None and bucket.tables < self.adaptive.tables

    def may_widen(self, bucket: Bucket) -> bool:
        """Whether a bucket may get more tables if a limit of its table refuses a write now.

        It may not if it has the maximum, or if it has just grown.
        """
        known = self._open.get((bucket.by, bucket.text))
        is_asked = known is not None and known.asked_tables > bucket.tables
        return self.has_more_tables(bucket) and not is_asked and self.settling_seconds(bucket) == 0

    def may_grow(self, bucket: Bucket) -> bool:
        """Whether a bucket may get more shards if it is throttled now.

        A bucket does not grow beyond the maximum, nor within seconds of its last growth. It does
        not grow either if its measured rate needs far fewer shards: a new table may throttle until
        its partitions have split, however many shards there are.
        """
        adaptive, known = self.adaptive, self._open.get((bucket.by, bucket.text))
        if adaptive is None or bucket.shards >= adaptive.most:
            return False
        if known is None:
            return True
        if self.settling_seconds(bucket) > 0:
            return False
        if known.shared is None:
            return True
        rate = max(known.shared, known.rate.per_second(self.context.now()))
        return bucket.shards < _EXCESS * adaptive.needed(rate)

    def settling_seconds(self, bucket: Bucket) -> float:
        """Return the seconds until a bucket that has just grown may grow again; 0.0 if it may."""
        known = self._open.get((bucket.by, bucket.text))
        if self.adaptive is None or known is None or known.bucket.spread > bucket.spread:
            return 0.0
        if bucket.shards >= self.adaptive.most and bucket.tables >= self.adaptive.tables:
            return 0.0
        return max(0.0, known.grown_at + GROWTH_SECONDS - self.context.now())

    def forget(self, bucket: Bucket) -> None:
        """Discard the cached entry of a bucket, so that the next write opens the bucket again."""
        self._open.pop((bucket.by, bucket.text), None)
        for number in range(bucket.tables):
            self.tables.forget(self.layout.table(bucket.text, number))

    def _open_adaptive(self, by: str, text: str, adaptive: AdaptiveShards) -> Work[Bucket]:
        """Open a bucket that this process does not know yet.

        A new bucket starts with the shards and tables that the latest earlier bucket needed.
        """
        listing = BucketListing(self.layout, by, "", text, newest_first=True, limit=1)
        before = next(iter((yield from listing.entries())), None)
        if before is None:
            return (yield from self._at_least(by, text, Spread(adaptive.least))).bucket
        had = spreads_of(before)[-1]
        tables = min(
            adaptive.tables, max(stored_count(before, "_needed_tables", 1), had.tables // 2)
        )
        shards = adaptive.within(max(stored_count(before, "_needed", 0), had.shards // 2, tables))
        start = Spread(shards, tables)
        opened = yield from self._at_least(by, text, start)
        is_next = self.layout.sort_of(before) != self.layout.sort_of(self.entries.key(by, text))
        if opened.is_new and is_next and start != had and had.with_at_least(start) == had:
            adaptive.changed(self._change(by, text, had, start, "cool"))
        return opened.bucket

    def _refresh(self, known: _KnownBucket, adaptive: AdaptiveShards) -> Work[Bucket]:
        """Add this process's units since the last refresh to a bucket's entry, and read it."""
        by, text, now = known.bucket.by, known.bucket.text, self.context.now()
        known.fresh_until = now + HOT_REFRESH_SECONDS  # others need not refresh it as well
        peak = known.rate.peak
        written = Expressions()
        needed, shards = written.name("_needed"), written.name("_shards")
        known.needed = max(known.needed, adaptive.needed(peak))
        count = written.value(number_value(known.needed))
        sent = round(known.rate.total)
        units = written.value(number_value(sent))
        request = {
            "TableName": self.layout.place.table,
            "Key": self.entries.key(by, text),
            "UpdateExpression": f"SET {needed} = {count} ADD {written.name('_units')} {units}",
            "ConditionExpression": f"attribute_exists({shards})"
            f" AND (attribute_not_exists({needed}) OR {needed} <= {count})",
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            reply = yield Call("UpdateItem", written.into(request), self._label)
            item: Item | None = reply["Attributes"]
            known.rate.reported(sent)
        except ConditionFailed as failed:
            item = failed.item
        if not item or "_shards" not in item:  # the entry has expired or was deleted
            self.forget(known.bucket)
            return (yield from self._at_least(by, text, known.bucket.spread)).bucket
        yield from self.entries.keep_longer(by, text, item, self.entries.expiry(text))
        known.needed = max(known.needed, stored_count(item, "_needed", 0))
        shared = self._shared_rate(known, item, now)
        known.bucket = Bucket(by, text, spreads_of(item))
        known.grown_at = grown_at(item)
        is_hot = _is_spread(known.bucket, adaptive) or max(shared, peak) > _HOT_UNITS
        known.fresh_until = now + (HOT_REFRESH_SECONDS if is_hot else REFRESH_SECONDS)
        wanted = adaptive.needed(max(shared, peak))
        if wanted <= max(known.bucket.shards, known.asked):
            return known.bucket
        spread = Spread(wanted, known.bucket.tables)
        return (yield from self._raise(known, spread, "rate", "", adaptive))

    def _shared_rate(self, known: _KnownBucket, item: Item, now: float) -> float:
        """Return the write units a second of all processes, measured since the last refresh."""
        total = float(item.get("_units", {"N": "0"})["N"])
        before, since = known.total, known.total_at
        known.total, known.total_at = total, now
        if not since or now - since < 1.0:
            return known.shared or 0.0
        known.shared = max(0.0, total - before) / (now - since)
        return known.shared

    def _raise(
        self,
        known: _KnownBucket,
        wanted: Spread,
        cause: ChangeCause,
        reason: str,
        adaptive: AdaptiveShards,
    ) -> Work[Bucket]:
        before = known.bucket
        known.asked, known.asked_tables = wanted.shards, wanted.tables
        try:
            opened = yield from self._at_least(before.by, before.text, wanted, needed=cause)
        finally:
            known.asked = known.asked_tables = 0
        if opened.is_new:
            after = opened.bucket.spread
            change = self._change(before.by, before.text, before.spread, after, cause)
            rate = known.rate.per_second(self.context.now())
            adaptive.changed(replace(change, reason=reason, units_per_second=rate))
        return opened.bucket

    def _change(
        self, by: str, text: str, before: Spread, after: Spread, cause: ChangeCause
    ) -> ShardChange:
        return ShardChange(
            self._label,
            str(decode(self.layout.by.encoding, by)),
            text,
            before.shards,
            after.shards,
            cause,
            tables_before=before.tables,
            tables_after=after.tables,
        )

    def _at_least(
        self, by: str, text: str, wanted: Spread, *, needed: ChangeCause | None = None
    ) -> Work[RaisedEntry]:
        """Create a bucket's entry, or raise its numbers if they are lower, and remember it."""
        raised = yield from self.entries.raise_to(by, text, wanted, needed=needed)
        self._remember(raised.bucket, raised.grown_at)
        return raised

    def _remember(self, bucket: Bucket, grown_at: float) -> None:
        known = self._open.get((bucket.by, bucket.text))
        fresh_until = self.context.now() + REFRESH_SECONDS
        if self.adaptive is not None and _is_spread(bucket, self.adaptive):
            fresh_until = self.context.now() + HOT_REFRESH_SECONDS
        if known is None:
            if len(self._open) >= _REMEMBERED:
                self._open.clear()
            known = self._open[bucket.by, bucket.text] = _KnownBucket(bucket, fresh_until)
        else:
            known.bucket, known.fresh_until = bucket, fresh_until
        known.grown_at = grown_at

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
        return BucketListing(self.layout, by, first, last, newest_first=newest_first, limit=limit)

    def drop_table(self, period: str) -> Work[None]:
        """Delete the tables of a period, with their readings, and forget its buckets."""
        yield from self.tables.drop(period)
        self._open = {
            key: known for key, known in self._open.items() if self.layout.period(key[1]) != period
        }


def _is_spread(bucket: Bucket, adaptive: AdaptiveShards) -> bool:
    """Whether a bucket has more shards or tables than a bucket with little traffic."""
    return bucket.shards > adaptive.least or bucket.tables > 1
