"""Roll-ups kept from the stream: each change of a reading counted once, whatever comes again, late or from two workers at once.

    PK  SERIES#readings#s-17#ROLLUP#value#hour#2026-11#2    SK  2026-11-16T10
        _count  12   _sum  250.5   _min  19   _max  22.5   _last  21   _last_key  …   _version  12
        _applied  {shardId-0001…: "000…1000…42@1791489600"}   _stale  true   _rebuilt  1791489605

*Count and sum* are added to and subtracted from: a change makes the difference of its two images. ``_applied`` has, for each shard of the stream, the last sequence
number that is in the item. It is written in the same PutItem, on condition that ``_version`` is as it was read; a change that comes again is not above it, and is left
out. A shard is remembered for two days, longer than a stream is.

*Least, greatest and last* cannot be subtracted from. What is added takes their place where it is beyond them. When a value goes away that is one of them, the same
PutItem sets ``_stale``; then they are read anew from the readings, strongly consistent, and stored on condition of the version. That may see readings whose changes are
still to come: it does no harm, for the least of a set stays the same when one of it is added again. A crash in between leaves ``_stale`` for
whoever gets the changes again.

*Made anew.* ``rebuild`` counts the readings that are there, and the changes of some may be still to come. So it leaves ``_rebuilt``, a moment: a change from before
it may be counted already, and is not added, but has the item counted anew (``_recount``). In a period that is written to all the time this goes on
for as long as changes come within seconds of a count: rebuild periods that are over.

A batch of changes that has a name, and no shard, is applied in a transaction with an item of that name.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from stator.coordination.position import ShardPositions, applied_marker, unapplied
from stator.errors import ConditionFailed, RequestRefused, TransactionConflict, TransactionFailed
from stator.model.limits import TRANSACTION_ITEMS
from stator.model.periods import following, period_start
from stator.model.values import Item
from stator.model.wide_numbers import EXACT, wide_attributes, wide_number
from stator.patterns.rollups.reads import RollupReader
from stator.patterns.rollups.rollup import RollupKey, RollupRule, RollupTally, number
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import send_all
from stator.tables.writes.statements import Statement

log = logging.getLogger("stator.series")

Images = tuple[Item | None, Item | None]
_ATTEMPTS: Final = 25
_APPLIED_SECONDS: Final = 7 * 86_400.0
_REMEMBERED: Final = 20_000
_NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class RollupDifference:
    """What changes of readings mean for one roll-up: the values that came, those that went, and when the first of the changes was made."""

    gained: RollupTally | None = None
    lost: RollupTally | None = None
    made: float = _NEVER

    def __add__(self, other: RollupDifference) -> RollupDifference:
        return RollupDifference(
            _both(self.gained, other.gained), _both(self.lost, other.lost), min(self.made, other.made)
        )  # fmt: skip

    @property
    def count(self) -> int:
        return (self.gained.count if self.gained else 0) - (self.lost.count if self.lost else 0)

    @property
    def sum(self) -> Decimal:
        gained, lost = ((each.sum if each else Decimal(0)) for each in (self.gained, self.lost))
        return EXACT.subtract(gained, lost)


def _both(one: RollupTally | None, other: RollupTally | None) -> RollupTally | None:
    return one + other if one is not None and other is not None else one or other


RollupUpdates = dict[RollupKey, RollupDifference]


@dataclass(frozen=True, slots=True)
class NumberedDifference:
    """The difference of one change, and its sequence number, as text that sorts as numbers do."""

    sequence: str
    difference: RollupDifference


@dataclass(frozen=True, slots=True)
class StoredRollup:
    """A roll-up as it is stored. ``tally`` is None when there are no values, ``version`` when there is no item."""

    count: int = 0
    sum: Decimal = Decimal(0)
    tally: RollupTally | None = None
    version: str | None = None
    positions: ShardPositions = field(default_factory=ShardPositions)
    is_stale: bool = False
    is_recounted: bool = False
    rebuilt: float = 0.0

    @classmethod
    def read(cls, item: Item | None) -> StoredRollup:
        if not item:
            return cls()
        tally = RollupTally.read(item) if "_min" in item else None
        return cls(
            int(item["_count"]["N"]),
            wide_number(item, "_sum"),
            tally,
            item["_version"]["N"],
            ShardPositions.read(item, "_applied"),
            "_stale" in item,
            "_recount" in item,
            float(item.get("_rebuilt", {"N": "0"})["N"]),
        )

    @property
    def is_due(self) -> bool:
        """Whether something has to be read anew from the readings."""
        return self.is_stale or self.is_recounted

    def plus(self, difference: RollupDifference) -> StoredRollup:
        count = self.count + difference.count
        if difference.made <= self.rebuilt or count < 0:  # counted already, perhaps; or never was
            return replace(self, is_recounted=True)
        tally = _both(self.tally, difference.gained)
        if count == 0:
            return replace(self, count=0, sum=Decimal(0), tally=None, is_stale=False)
        is_stale = self.is_stale or (tally is not None and _may_be_of(tally, difference.lost))
        return replace(
            self,
            count=count,
            sum=EXACT.add(self.sum, difference.sum),
            tally=tally,
            is_stale=is_stale,
        )

    def item(self) -> Item:
        item: Item = {"_count": number(self.count), **wide_attributes("_sum", self.sum)}
        if self.tally is not None:
            item |= self.tally.extremes()
        item |= self.positions.attributes("_applied")
        for name, is_set in (("_stale", self.is_stale), ("_recount", self.is_recounted)):
            if is_set:
                item[name] = {"BOOL": True}
        if self.rebuilt:
            item["_rebuilt"] = {"N": repr(self.rebuilt)}
        return item


def _may_be_of(tally: RollupTally, lost: RollupTally | None) -> bool:
    """Whether a value that went away may be the least, the greatest or the last of what is stored."""
    return lost is not None and (
        lost.min <= tally.min or lost.max >= tally.max or lost.last_key >= tally.last_key
    )  # fmt: skip


class RollupChanges:
    def __init__(self, reader: RollupReader) -> None:
        self._reader = reader
        self._context = reader.context
        self._layout = reader.layout
        self._book = reader.book
        self._label = f"roll-ups of {reader.layout.name}"
        self._known: dict[RollupKey, StoredRollup] = {}

    # -- what changes mean

    def fold(self, images: Iterable[Images], now: float) -> RollupUpdates:
        found: RollupUpdates = {}
        for each in images:
            for key, difference in self.differences(each, now, _NEVER).items():
                found[key] = found.get(key, RollupDifference()) + difference
        return found

    def differences(self, images: Images, now: float, made: float) -> RollupUpdates:
        """Of one change: nothing for what is no reading, or expired, or did not change its value."""
        old, new = images
        item = new or old
        if not self.is_reading(item) or (new is None and old and self._layout.is_expired(old, now)):
            return {}
        assert item is not None
        shard = self._reader.where(item)[2]
        before, after = (None if image is None else self._layout.decode(image) for image in images)
        found: RollupUpdates = {}
        for rule in self._book.rules:
            lost, gained = (
                None if entity is None else rule.value(entity) for entity in (before, after)
            )
            if lost != gained:
                sort = self._layout.sort_of(item)
                found[rule.key_of(after or before, shard)] = RollupDifference(
                    None if gained is None else RollupTally.of(gained, sort), None if lost is None else RollupTally.of(lost, sort), made
                )  # fmt: skip
        return found

    def is_reading(self, item: Item | None) -> bool:
        """Whether it is one of this series': its table holds other things, too."""
        if not item or "S" not in item.get(self._layout.place.partition, {}):
            return False
        parts = item[self._layout.place.partition]["S"].split("#")
        return len(parts) == 5 and "#".join(parts[:2]) == self._layout.tables_partition

    # -- changes with numbers, from a shard

    def add(self, key: RollupKey, changes: Sequence[NumberedDifference], shard: str) -> Work[None]:
        """Count them in one roll-up, those that are not in it yet. Done again, it does nothing."""
        yield from self._book.open_shards(key.by, key.shard + 1)
        attempt = 0
        while True:
            stored = yield from self._stored(key)
            left = unapplied(changes, stored.positions.of(shard))
            if not left:
                break
            difference = sum((each.difference for each in left), RollupDifference())
            positions = stored.positions.moved(shard, left[-1].sequence, self._context.now())
            wanted = replace(stored.plus(difference), positions=positions)
            if (yield from self._write(key, stored, wanted)):
                break
            attempt += 1
            yield Pause(self._context.backoff(attempt))
        yield from self.settle(key)

    # -- changes with a name

    def apply(self, updates: RollupUpdates, batch: str) -> Work[None]:
        shards: dict[str, int] = {}
        for key in updates:
            shards[key.by] = max(shards.get(key.by, 0), key.shard + 1)
        for by, count in shards.items():
            yield from self._book.open_shards(by, count)
        for part, keys in enumerate(_parts(updates)):
            yield from self._apply_part(updates, keys, f"{batch}#{part}")
        for key in updates:
            yield from self.settle(key)

    def _apply_part(self, updates: RollupUpdates, keys: list[RollupKey], name: str) -> Work[None]:
        for attempt in range(_ATTEMPTS):
            wanted: list[StoredRollup] = []
            statements = [self._marker(name)]
            for key in keys:
                stored = yield from self._stored(key)
                wanted.append(self._next(stored.plus(updates[key]), stored))
                request = self._request(key, stored, wanted[-1])
                statements.append(
                    Statement(
                        "Put",
                        request,
                        f"roll up {key.period}",
                        lambda item: ConditionFailed(item=item),
                    )
                )
            try:
                yield from send_all(self._context, statements, self._label)
            except TransactionFailed as failed:
                if failed.failures[0][0] == 0 and isinstance(
                    failed.failures[0][2], ConditionFailed
                ):
                    return  # it was applied before
                for at, _, error in failed.failures:
                    if not isinstance(error, ConditionFailed):
                        raise
                    self._remember(keys[at - 1], StoredRollup.read(error.item))
                yield Pause(self._context.backoff(attempt))
            else:
                for key, rolled in zip(keys, wanted):
                    self._remember(key, rolled)
                return
        raise TransactionConflict(f"{self._label} are changed by others all the time")

    def _marker(self, name: str) -> Statement:
        return applied_marker(
            self._layout.place,
            f"{self._layout.tables_partition}#{name}",
            self._context.now() + _APPLIED_SECONDS,
        )

    # -- what has to be read anew

    def settle(self, key: RollupKey) -> Work[None]:
        """Make least, greatest and last of a roll-up anew where one of them went away, and all of it where it has to be counted again."""
        rule = self._book.rules[key.rollup]
        start = period_start(key.period)
        for attempt in range(_ATTEMPTS):
            stored = yield from self._stored(key)
            if not stored.is_due:
                return
            stored = yield from self._stored(key, again=True)
            wanted = yield from self._anew(rule, key, stored, start)
            if (yield from self._write(key, stored, wanted)):
                return
            yield Pause(self._context.backoff(attempt))
        raise TransactionConflict(
            f"{self._label}: {key.period} is changed all the time while it is read anew"
        )

    def _anew(
        self, rule: RollupRule, key: RollupKey, stored: StoredRollup, start: Any
    ) -> Work[StoredRollup]:
        settled = replace(stored, is_stale=False, is_recounted=False)
        try:
            yield from self._reader.check(start)
        except RequestRefused as refused:
            log.warning(
                "%s: %s stays as it is, though a reading of it went away: %s",
                self._label,
                key.period,
                refused,
            )
            return settled
        tallies = yield from self._reader.counted(
            rule, key.by, start, following(rule.period, start)
        )
        tally = tallies.get(key)
        if not stored.is_recounted:
            return replace(settled, tally=tally)
        count, total = (0, Decimal(0)) if tally is None else (tally.count, tally.sum)
        return replace(
            settled, count=count, sum=total, tally=tally, rebuilt=self._book.rebuilt_at()
        )

    # -- items

    def _stored(self, key: RollupKey, *, again: bool = False) -> Work[StoredRollup]:
        known = None if again else self._known.get(key)
        if known is not None:
            return known
        request = {
            "TableName": self._layout.place.table,
            "Key": self._book.rules[key.rollup].stored_key(key),
            "ConsistentRead": True,
        }
        reply = yield Call("GetItem", request, self._label)
        return self._remember(key, StoredRollup.read(reply.get("Item")))

    def _write(self, key: RollupKey, stored: StoredRollup, wanted: StoredRollup) -> Work[bool]:
        """False if somebody else was there first: what is stored is known then."""
        wanted = self._next(wanted, stored)
        try:
            yield Call("PutItem", self._request(key, stored, wanted), self._label)
        except ConditionFailed as refused:
            self._remember(key, StoredRollup.read(refused.item))
            return False
        self._remember(key, wanted)
        return True

    def _next(self, wanted: StoredRollup, stored: StoredRollup) -> StoredRollup:
        if stored.version is None:
            return replace(wanted, version=self._book.next_version(None)["N"])
        return replace(wanted, version=str(int(stored.version) + 1))

    def _request(
        self, key: RollupKey, stored: StoredRollup, wanted: StoredRollup
    ) -> dict[str, Any]:
        rule = self._book.rules[key.rollup]
        assert wanted.version is not None
        item = (
            rule.stored_key(key)
            | wanted.item()
            | rule.expiry(key.period)
            | {"_version": {"N": wanted.version}}
        )
        written = Expressions()
        version = written.name("_version")
        if stored.version is None:
            condition = f"attribute_not_exists({version})"
        else:
            condition = f"{version} = {written.value({'N': stored.version})}"
        return written.into(
            {
                "TableName": self._layout.place.table,
                "Item": item,
                "ConditionExpression": condition,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        )

    def _remember(self, key: RollupKey, rolled: StoredRollup) -> StoredRollup:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[key] = rolled
        return rolled


def _parts(updates: RollupUpdates) -> Iterator[list[RollupKey]]:
    """The same parts for the same updates."""
    keys = sorted(updates, key=lambda key: (key.rollup, key.by, key.period, key.shard))
    for at in range(0, len(keys), TRANSACTION_ITEMS - 1):
        yield keys[at : at + TRANSACTION_ITEMS - 1]
