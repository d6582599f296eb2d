"""Reads of roll-ups, and their rebuild from the readings.

``rebuild`` may run at any time and any number of times while readings are added. For each roll-up
item it notes the version, reads the readings with strong consistency, and stores their sums on
condition that the version is unchanged. A reading added in between changes the version, because it
is counted in the same transaction; that item is then rebuilt again. If the stream does the counting
(``stream_changes``), the item also records a moment: changes from before it may already be counted.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from stator.errors import (
    ConditionFailed,
    RequestRefused,
    ResourceNotFound,
    TransactionConflict,
)
from stator.model.periods import check_moment, floor, following, periods_between
from stator.model.values import Item
from stator.model.wide_numbers import wide_attributes
from stator.patterns.item_pages import query_all, range_query
from stator.patterns.rollups.rollup import RollupKey, RollupRule, RollupTally, Summary, number
from stator.patterns.rollups.writes import RollupBook
from stator.patterns.series.directory import BucketDirectory
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.reads import PARALLEL, SeriesPages, SeriesRange
from stator.tables.context import Context
from stator.tables.work import Call, Gather, Pause, Work, gathered
from stator.tables.writes.expressions import Expressions

_ATTEMPTS: Final = 25


class RollupReader:
    """Reads the roll-ups of one series, and rebuilds them from its readings.

    In its methods, ``rule`` is a declared roll-up, and ``by`` is the series key, such as ``s-17``,
    as key text.
    """

    def __init__(
        self, context: Context, layout: SeriesLayout, directory: BucketDirectory, book: RollupBook
    ) -> None:
        self.context = context
        self.layout = layout
        self.directory = directory
        self.book = book
        self._label = f"roll-ups of {layout.name}"

    # -- ranges

    def range(
        self, rule: RollupRule, by: str, start: datetime, end: datetime
    ) -> Work[list[Summary]]:
        """Return a summary of each period in the range that has readings, the earliest first."""
        found = yield from self._stored(rule, by, start, end, consistent=False)
        periods: dict[str, RollupTally] = {}
        for key, item in found.items():
            if "_min" not in item:
                continue  # all its readings were removed
            tally = RollupTally.read(item)
            periods[key.period] = periods[key.period] + tally if key.period in periods else tally
        return [periods[period].summary(period) for period in sorted(periods)]

    def _stored(
        self, rule: RollupRule, by: str, start: datetime, end: datetime, *, consistent: bool
    ) -> Work[dict[RollupKey, Item]]:
        shards = yield from self.book.shards(by)
        periods = list(periods_between(rule.period, start, end))
        groups = list(dict.fromkeys(map(rule.group, periods)))
        parts = [
            self._partition(rule, by, group, shard, (periods[0], periods[-1]), consistent)
            for group in groups
            for shard in range(shards)
        ]
        found: dict[RollupKey, Item] = {}
        for at in range(0, len(parts), PARALLEL):
            for part in gathered((yield Gather(parts[at : at + PARALLEL]))):
                found |= part
        return found

    def _partition(
        self,
        rule: RollupRule,
        by: str,
        group: str,
        shard: int,
        bounds: tuple[str, str],
        consistent: bool,
    ) -> Work[dict[RollupKey, Item]]:
        request = range_query(rule.place, rule.partition(by, group, shard), *bounds)
        now = self.context.now()
        try:
            items = yield from query_all(request | {"ConsistentRead": consistent}, self._label)
        except ResourceNotFound:
            if not rule.has_own_table:
                raise
            return {}  # nothing was rolled up yet
        return {
            RollupKey(rule.number, by, self.layout.sort_of(item), shard): item
            for item in items
            if consistent or not self.layout.is_expired(item, now)
        }

    # -- rebuilds

    def rebuild(self, rule: RollupRule, by: str, start: datetime, end: datetime) -> Work[int]:
        """Rebuild the roll-ups of all periods that overlap the range from the stored readings.

        Returns the number of roll-up items written. Raises TransactionConflict if readings were
        added during every attempt.
        """
        start = floor(rule.period, start)
        last = floor(rule.period, end)
        end = end if last == end else following(rule.period, last)
        yield from self.check(start)
        yield from self.book.open_tables()
        written = 0
        for attempt in range(_ATTEMPTS):
            stored = yield from self._stored(rule, by, start, end, consistent=True)
            tallies = yield from self.counted(rule, by, start, end)
            pairs = [(key, stored.get(key), tallies.get(key)) for key in {*stored, *tallies}]
            wrong = [pair for pair in pairs if not _is_right(pair[1], pair[2])]
            raced = 0
            for at in range(0, len(wrong), PARALLEL):
                for error in (
                    yield Gather([self._store(rule, *each) for each in wrong[at : at + PARALLEL]])
                ):
                    if isinstance(error, ConditionFailed):
                        raced += 1
                    elif isinstance(error, BaseException):
                        raise error
                    else:
                        written += 1
            if not raced:
                return written
            yield Pause(self.context.backoff(attempt))
        raise TransactionConflict(
            f"{self._label}: readings were added during each of {_ATTEMPTS} rebuilds",
            hint="rebuild a period that is over, or pause its writers",
        )

    def check(self, start: datetime) -> Work[None]:
        """Raise RequestRefused if readings from ``start`` on have expired or were dropped."""
        keep = self.layout.keep
        if keep is not None and (start + keep).timestamp() <= self.context.now():
            raise RequestRefused(
                f"readings of {start.isoformat()} have expired:"
                " a rebuild would lose what they added up to",
                hint=f"rebuild only periods of the last {keep}, the keep= of the series",
            )
        dropped = yield from self.directory.tables.dropped_before()
        if dropped is not None and start < dropped:
            raise RequestRefused(
                f"readings before {dropped.isoformat()} were dropped:"
                " a rebuild would lose what they added up to",
                hint=f"rebuild only periods after {dropped.isoformat()}",
            )

    def counted(
        self, rule: RollupRule, by: str, start: datetime, end: datetime
    ) -> Work[dict[RollupKey, RollupTally]]:
        """Compute the roll-ups of a range from the stored readings, and return them unwritten.

        Also stores the number of shards that the readings are in, so that readers of the roll-ups
        look in as many shards.
        """
        tallies: dict[RollupKey, RollupTally] = {}
        largest = 0
        whole = SeriesRange(by, start, end, newest_first=False, consistent=True)
        pages: SeriesPages[Item] = SeriesPages(
            self.context, self.layout, self.directory, whole, lambda item: item
        )
        while not pages.is_done:
            for item in (yield from pages.page()):
                _, _, shard = self.where(item)
                largest = max(largest, shard + 1)
                entity = self.layout.decode(item)
                value = rule.value(entity)
                if value is not None:
                    key = rule.key_of(entity, shard)
                    tally = RollupTally.of(value, self.layout.sort_of(item))
                    tallies[key] = tallies[key] + tally if key in tallies else tally
        if largest:
            yield from self.book.open_shards(by, largest)
        return tallies

    def where(self, item: Item) -> tuple[str, str, int]:
        """Return the series key, the bucket and the shard in which a reading's item is stored."""
        by, bucket, shard = item[self.layout.place.partition]["S"].split("#")[2:]
        return by, bucket, int(shard)

    def _store(
        self, rule: RollupRule, key: RollupKey, stored: Item | None, tally: RollupTally | None
    ) -> Work[bool]:
        written = Expressions()
        version = written.name("_version")
        if stored is None:
            condition = f"attribute_not_exists({version})"
        else:
            condition = f"{version} = {written.value(stored['_version'])}"
        request: dict[str, Any] = {
            "TableName": rule.place.table,
            "ConditionExpression": condition,
        }
        if tally is None and not self.book.from_stream:
            yield Call(
                "DeleteItem", written.into(request | {"Key": rule.stored_key(key)}), self._label
            )
            return True
        after = (
            self.book.next_version(None)
            if stored is None
            else number(int(stored["_version"]["N"]) + 1)
        )
        content: Item = (
            {"_count": number(0), "_sum": number(0)} if tally is None else tally.attributes()
        )
        if tally is not None and self.book.from_stream:
            content |= wide_attributes("_sum", tally.sum)
        item = rule.stored_key(key) | content | rule.expiry(key.period) | {"_version": after}
        if self.book.from_stream:
            item["_rebuilt"] = {"N": repr(self.book.rebuilt_at())}
            if stored is not None and "_applied" in stored:
                item["_applied"] = stored["_applied"]
        yield Call("PutItem", written.into(request | {"Item": item}), self._label)
        return True


def _is_right(stored: Item | None, tally: RollupTally | None) -> bool:
    if stored is None or "_min" not in stored:
        return tally is None
    return tally is not None and RollupTally.read(stored) == tally


def check_range(start: datetime, end: datetime) -> None:
    check_moment(start, "start")
    check_moment(end, "end")
    if start >= end:
        raise RequestRefused(
            f"the range from {start} to {end} is empty",
            hint="pass a start that is before end; end itself is excluded",
        )
