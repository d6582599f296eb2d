"""Roll-ups read, and made anew from the readings.

``rebuild`` may be called at any time, as often as one likes, while readings are added: for each roll-up item it notes the version, then reads the readings
strongly consistent, and stores what they add up to on condition that the version is still the same. A reading that is added in between changes the version,
because it counts itself in the same transaction; then the item is done again. Where the stream counts (``rollup_changes``), it is told up to which moment
changes may be counted already.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from stator.errors import ConditionFailed, RequestRefused, TransactionConflict
from stator.model.periods import check_moment, floor, following, periods_between
from stator.model.values import Item
from stator.model.wide_numbers import wide_attributes
from stator.patterns.rollups.rollup import RollupKey, RollupRule, RollupTally, Summary, number
from stator.patterns.rollups.writes import RollupBook
from stator.patterns.series.directory import BucketDirectory
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.reads import PARALLEL, SeriesPages, SeriesRange
from stator.tables.context import Context
from stator.tables.work import Call, Gather, Pause, Work, gathered
from stator.tables.writes.expressions import Expressions

_ATTEMPTS: Final = 25
_APPLIED_SECONDS: Final = 7 * 86_400.0


class RollupReader:
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
        """The periods of the range that hold something, the earliest first."""
        found = yield from self._stored(rule, by, start, end, consistent=False)
        periods: dict[str, RollupTally] = {}
        for key, item in found.items():
            if "_min" not in item:
                continue  # it has held readings, and holds none
            tally = RollupTally.read(item)
            periods[key.period] = periods[key.period] + tally if key.period in periods else tally
        return [periods[period].summary(period) for period in sorted(periods)]

    def _stored(
        self, rule: RollupRule, by: str, start: datetime, end: datetime, *, consistent: bool
    ) -> Work[dict[RollupKey, Item]]:
        shards = yield from self.book.shards(by)
        wanted = list(periods_between(rule.period, start, end))
        groups = list(dict.fromkeys(map(rule.group, wanted)))
        parts = [
            self._partition(rule, by, group, shard, (wanted[0], wanted[-1]), consistent)
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
        place = self.layout.place
        written = Expressions()
        partition, sort = written.name(place.partition), written.name(place.sort)
        whose = written.value({"S": rule.partition(by, group, shard)})
        low, high = (written.value({"S": text}) for text in bounds)
        request: dict[str, Any] = {
            "TableName": place.table,
            "KeyConditionExpression": f"{partition} = {whose} AND {sort} BETWEEN {low} AND {high}",
            "ConsistentRead": consistent,
        }
        written.into(request)
        found: dict[RollupKey, Item] = {}
        now = self.context.now()
        while True:
            reply = yield Call("Query", request, self._label)
            for item in reply["Items"]:
                if consistent or not self.layout.is_expired(item, now):
                    found[RollupKey(rule.number, by, item[place.sort]["S"], shard)] = item
            if "LastEvaluatedKey" not in reply:
                return found
            request = request | {"ExclusiveStartKey": reply["LastEvaluatedKey"]}

    # -- made anew

    def rebuild(self, rule: RollupRule, by: str, start: datetime, end: datetime) -> Work[int]:
        """Make the roll-ups of all periods that have a moment in the range; gives how many items were written."""
        start = floor(rule.period, start)
        last = floor(rule.period, end)
        end = end if last == end else following(rule.period, last)
        yield from self.check(start)
        written = 0
        for attempt in range(_ATTEMPTS):
            stored = yield from self._stored(rule, by, start, end, consistent=True)
            tallies = yield from self.counted(rule, by, start, end)
            wanted = [(key, stored.get(key), tallies.get(key)) for key in {*stored, *tallies}]
            wrong = [each for each in wanted if not _is_right(each[1], each[2])]
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
            f"{self._label}: readings are added all the time while they are rebuilt"
        )

    def check(self, start: datetime) -> Work[None]:
        """Refuse to rebuild what there are no readings of any more."""
        keep = self.layout.keep
        if keep is not None and (start + keep).timestamp() <= self.context.now():
            raise RequestRefused(
                f"readings from {start.isoformat()} have expired: what they added up to would be lost",
                hint="rebuild only what is within keep=",
            )
        dropped = yield from self.directory.dropped_before()
        if dropped is not None and start < dropped:
            raise RequestRefused(
                f"readings before {dropped.isoformat()} were dropped: what they added up to would be lost",
                hint="rebuild only what is still there",
            )

    def counted(
        self, rule: RollupRule, by: str, start: datetime, end: datetime
    ) -> Work[dict[RollupKey, RollupTally]]:
        tallies: dict[RollupKey, RollupTally] = {}
        largest = 0
        asked = SeriesRange(by, start, end, newest_first=False, consistent=True)
        pages: SeriesPages[Item] = SeriesPages(
            self.context, self.layout, self.directory, asked, lambda item: item
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
            "TableName": self.layout.place.table,
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
            f"there is nothing at or after {start} and before {end}", hint="start comes before end"
        )
