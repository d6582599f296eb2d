"""Roll-ups read, and made anew from the readings.

``rebuild`` may be called at any time, as often as one likes, while readings are added: for each roll-up item it notes the version, then reads the readings
strongly consistent, and stores what they add up to on condition that the version is still the same. A reading that is added in between changes the version,
because it counts itself in the same transaction; then the item is done again.

``fold`` is for a consumer of the table's stream, when the series has ``rollups_from="stream"``: a pure function from what changed (old and new images) to
what that adds to each roll-up. A new reading adds; one that was changed or removed means that its period has to be rebuilt; one that expired, nothing.
``apply`` carries it out once for each name that a batch of changes is given, however often the stream delivers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from stator.errors import ConditionFailed, RequestRefused, TransactionConflict, TransactionFailed
from stator.model.limits import TRANSACTION_ITEMS
from stator.model.values import Item
from stator.patterns.periods import check_moment, floor, following, period_start, periods_between
from stator.patterns.rollup import RollupKey, RollupRule, Summary, Tally, number
from stator.patterns.rollup_writes import RollupBook
from stator.patterns.series_directory import Directory
from stator.patterns.series_layout import SeriesLayout, seconds
from stator.patterns.series_reads import PARALLEL, Range, SeriesPages
from stator.tables.context import Context
from stator.tables.expressions import Expressions
from stator.tables.sending import send_all
from stator.tables.statements import Statement
from stator.tables.work import Call, Gather, Pause, Work, gathered

_ATTEMPTS: Final = 25
_APPLIED_SECONDS: Final = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class RollupUpdates:
    """What a batch of changes means: ``additions`` to roll-ups, and periods to ``rebuild``, as rule, ``by`` and period."""

    additions: dict[RollupKey, Tally] = field(default_factory=dict)
    rebuild: frozenset[tuple[int, str, str]] = frozenset()


class RollupReader:
    def __init__(self, context: Context, layout: SeriesLayout, directory: Directory, book: RollupBook) -> None:
        self.context = context
        self.layout = layout
        self.directory = directory
        self.book = book
        self._label = f"roll-ups of {layout.name}"

    # -- ranges

    def range(self, rule: RollupRule, by: str, start: datetime, end: datetime) -> Work[list[Summary]]:
        """The periods of the range that hold something, the earliest first."""
        found = yield from self._stored(rule, by, start, end, consistent=False)
        periods: dict[str, Tally] = {}
        for key, item in found.items():
            tally = Tally.read(item)
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
        self, rule: RollupRule, by: str, group: str, shard: int, bounds: tuple[str, str], consistent: bool
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
            tallies = yield from self._counted(rule, by, start, end)
            wanted = [(key, stored.get(key), tallies.get(key)) for key in {*stored, *tallies}]
            wrong = [each for each in wanted if not _is_right(each[1], each[2])]
            raced = 0
            for at in range(0, len(wrong), PARALLEL):
                for error in (yield Gather([self._store(rule, *each) for each in wrong[at : at + PARALLEL]])):
                    if isinstance(error, ConditionFailed):
                        raced += 1
                    elif isinstance(error, BaseException):
                        raise error
                    else:
                        written += 1
            if not raced:
                return written
            yield Pause(self.context.backoff(attempt))
        raise TransactionConflict(f"{self._label}: readings are added all the time while they are rebuilt")

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

    def _counted(self, rule: RollupRule, by: str, start: datetime, end: datetime) -> Work[dict[RollupKey, Tally]]:
        tallies: dict[RollupKey, Tally] = {}
        largest = 0
        asked = Range(by, start, end, newest_first=False, consistent=True)
        pages: SeriesPages[Item] = SeriesPages(self.context, self.layout, self.directory, asked, lambda item: item)
        while not pages.is_done:
            for item in (yield from pages.page()):
                _, _, shard = self._where(item)
                largest = max(largest, shard + 1)
                entity = self.layout.decode(item)
                value = rule.value(entity)
                if value is not None:
                    key = rule.key_of(entity, shard)
                    tally = Tally.of(value, self.layout.sort_of(item))
                    tallies[key] = tallies[key] + tally if key in tallies else tally
        if largest:
            yield from self.book.open_shards(by, largest)
        return tallies

    def _where(self, item: Item) -> tuple[str, str, int]:
        by, bucket, shard = item[self.layout.place.partition]["S"].split("#")[2:]
        return by, bucket, int(shard)

    def _store(self, rule: RollupRule, key: RollupKey, stored: Item | None, tally: Tally | None) -> Work[bool]:
        written = Expressions()
        version = written.name("_version")
        if stored is None:
            condition = f"attribute_not_exists({version})"
        else:
            condition = f"{version} = {written.value(stored['_version'])}"
        request: dict[str, Any] = {"TableName": self.layout.place.table, "ConditionExpression": condition}
        if tally is None:
            yield Call("DeleteItem", written.into(request | {"Key": rule.stored_key(key)}), self._label)
            return True
        after = self.book.next_version(None) if stored is None else number(int(stored["_version"]["N"]) + 1)
        item = rule.stored_key(key) | tally.attributes() | rule.expiry(key.period) | {"_version": after}
        yield Call("PutItem", written.into(request | {"Item": item}), self._label)
        return True

    # -- from the stream

    def fold(self, images: Iterable[tuple[Item | None, Item | None]], now: float) -> RollupUpdates:
        additions: dict[RollupKey, Tally] = {}
        rebuild: set[tuple[int, str, str]] = set()
        for old, new in images:
            if not self._is_reading(old or new) or (new is None and old and self.layout.is_expired(old, now)):
                continue
            for rule in self.book.rules:
                self._fold_one(rule, old, new, additions, rebuild)
        kept = {key: tally for key, tally in additions.items() if (key.rollup, key.by, key.period) not in rebuild}
        return RollupUpdates(kept, frozenset(rebuild))

    def _fold_one(
        self,
        rule: RollupRule,
        old: Item | None,
        new: Item | None,
        additions: dict[RollupKey, Tally],
        rebuild: set[tuple[int, str, str]],
    ) -> None:
        item = new or old
        assert item is not None
        entity = self.layout.decode(item)
        key = rule.key_of(entity, self._where(item)[2])
        value = rule.value(entity) if new else None
        before = rule.value(self.layout.decode(old)) if old else None
        if old is not None:
            if value != before:
                rebuild.add((rule.number, key.by, key.period))
        elif value is not None:
            tally = Tally.of(value, self.layout.sort_of(item))
            additions[key] = additions[key] + tally if key in additions else tally

    def _is_reading(self, item: Item | None) -> bool:
        """Whether it is one of this series': its table holds other things, too."""
        if not item or "S" not in item.get(self.layout.place.partition, {}):
            return False
        parts = item[self.layout.place.partition]["S"].split("#")
        return len(parts) == 5 and "#".join(parts[:2]) == self.layout.tables_partition

    def apply(self, updates: RollupUpdates, batch: str) -> Work[None]:
        shards: dict[str, int] = {}
        for key in updates.additions:
            shards[key.by] = max(shards.get(key.by, 0), key.shard + 1)
        for by, count in shards.items():
            yield from self.book.open_shards(by, count)
        for part, keys in enumerate(_parts(updates.additions)):
            yield from self._apply_part(updates, keys, f"{batch}#{part}")
        for rule, by, period in sorted(updates.rebuild):
            start = period_start(period)
            yield from self.rebuild(self.book.rules[rule], by, start, following(self.book.rules[rule].period, start))

    def _apply_part(self, updates: RollupUpdates, keys: list[RollupKey], name: str) -> Work[None]:
        for attempt in range(_ATTEMPTS):
            statements = [self._applied(name), *(self.book.addition(key, updates.additions[key]) for key in keys)]
            try:
                yield from send_all(self.context, statements, self._label)
            except TransactionFailed as failed:
                if failed.failures[0][0] == 0 and isinstance(failed.failures[0][2], ConditionFailed):
                    return  # it was applied before
                for at, _, error in failed.failures:
                    if not isinstance(error, ConditionFailed):
                        raise
                    self.book.is_stored(keys[at - 1], error.item)
                yield Pause(self.context.backoff(attempt))
            else:
                for key in keys:
                    self.book.was_added(key, updates.additions[key])
                return
        raise TransactionConflict(f"{self._label} are changed by others all the time")

    def _applied(self, name: str) -> Statement:
        place = self.layout.place
        written = Expressions()
        expires = {place.ttl: seconds(self.context.now() + _APPLIED_SECONDS)}
        request = {
            "TableName": place.table,
            "Item": place.key(f"APPLIED#{self.layout.tables_partition}#{name}", "APPLIED") | expires,
            "ConditionExpression": f"attribute_not_exists({written.name(place.partition)})",
        }
        return Statement("Put", written.into(request), f"apply {name}", lambda item: ConditionFailed(item=item))


def _is_right(stored: Item | None, tally: Tally | None) -> bool:
    return stored is not None and tally is not None and Tally.read(stored) == tally


def _parts(additions: dict[RollupKey, Tally]) -> Iterator[list[RollupKey]]:
    """The same parts for the same additions."""
    keys = sorted(additions, key=lambda key: (key.rollup, key.by, key.period, key.shard))
    for at in range(0, len(keys), TRANSACTION_ITEMS - 1):
        yield keys[at : at + TRANSACTION_ITEMS - 1]


def check_range(start: datetime, end: datetime) -> None:
    check_moment(start, "start")
    check_moment(end, "end")
    if start >= end:
        raise RequestRefused(f"there is nothing at or after {start} and before {end}", hint="start comes before end")
