"""Roll-ups kept from the stream: each change to a reading is counted once.

    PK  SERIES#readings#s-17#ROLLUP#value#hour#2026-11#2    SK  2026-11-16T10
        _count 12  _sum 250.5  _min 19  _max 22.5  _last 21  _last_key ...  _version 12
        _applied {shardId-0001...: "000...42@1791489600"}  _stale true  _rebuilt 1791489605

A stream may deliver a change again, late, or to two workers at once. Each part of a roll-up handles
that in its own way:

*Count and sum.* A change adds the difference between its two images. ``_applied`` has, for each
shard of the stream, the last sequence number contained in the item (``coordination.position``).
Both are written by one PutItem, on condition that ``_version`` is as it was read. A repeated change
is not above the stored number, and is skipped.

*Minimum, maximum and last.* A new value can replace them, but a lost value cannot be subtracted.
When a value disappears that may be one of them, the same PutItem sets ``_stale``. The three are
then read from the readings with strong consistency and stored on condition that the version is
unchanged. That read may include readings whose changes arrive later. This does no harm: the minimum
of a set stays the same when one of its values is added again. A crash in between leaves ``_stale``
for the worker that receives the changes again.

*Rebuilds.* ``rebuild`` counts the readings that exist, but the stream may not yet have delivered
the changes that wrote some of them. It therefore records a moment, ``_rebuilt``. A change from
before that moment may already be in the count. It is not added but causes the item to be counted
again (``_recount``). In a period under constant writes, this repeats for as long as changes arrive
within seconds of a count, so rebuild only periods that are over.

*Changes of an unknown shard.* AWS Lambda does not say which shard a change is from, and may handle
several batches of a shard at once. So ``apply_each`` marks each change as applied by an item of its
own, in the transaction that adds it.

*Named batches.* ``Series.apply`` takes a batch with a name instead of sequence numbers. Each
transaction that applies a part of the batch also puts an item named after that part. A repeated
part finds its item and is skipped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from stator.coordination.named_changes import apply_named, parts_of
from stator.coordination.position import (
    APPLIED_SECONDS,
    ShardPositions,
    applied_marker,
    unapplied,
)
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
_REMEMBERED: Final = 20_000
_NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class RollupDifference:
    """The effect of changed readings on one roll-up: the values that it gains and loses.

    ``made`` is the time of the earliest change, in seconds since the epoch.
    """

    gained: RollupTally | None = None
    lost: RollupTally | None = None
    made: float = _NEVER

    def __add__(self, other: RollupDifference) -> RollupDifference:
        return RollupDifference(
            _combined(self.gained, other.gained),
            _combined(self.lost, other.lost),
            min(self.made, other.made),
        )

    @property
    def count(self) -> int:
        return (self.gained.count if self.gained else 0) - (self.lost.count if self.lost else 0)

    @property
    def sum(self) -> Decimal:
        gained, lost = ((each.sum if each else Decimal(0)) for each in (self.gained, self.lost))
        return EXACT.subtract(gained, lost)


def _combined(one: RollupTally | None, other: RollupTally | None) -> RollupTally | None:
    return one + other if one is not None and other is not None else one or other


RollupUpdates = dict[RollupKey, RollupDifference]


@dataclass(frozen=True, slots=True)
class NumberedDifference:
    """The effect of one change on a roll-up, with the change's sequence number as sortable text."""

    sequence: str
    difference: RollupDifference


@dataclass(frozen=True, slots=True)
class StoredRollup:
    """The content of a roll-up item in the table.

    ``tally`` is None if the item counts no reading; ``version`` is None if there is no item.
    ``is_stale`` and ``needs_recount`` mark values that must be computed again from the readings.
    """

    count: int = 0
    sum: Decimal = Decimal(0)
    tally: RollupTally | None = None
    version: str | None = None
    positions: ShardPositions = field(default_factory=ShardPositions)
    is_stale: bool = False
    needs_recount: bool = False
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
    def needs_recomputing(self) -> bool:
        """Whether the roll-up must be computed again from the readings, in part or as a whole."""
        return self.is_stale or self.needs_recount

    def plus(self, difference: RollupDifference) -> StoredRollup:
        count = self.count + difference.count
        # The change may be counted already, or the reading it removes never was.
        if difference.made <= self.rebuilt or count < 0:
            return replace(self, needs_recount=True)
        tally = _combined(self.tally, difference.gained)
        if count == 0:
            return replace(self, count=0, sum=Decimal(0), tally=None, is_stale=False)
        is_stale = self.is_stale or (tally is not None and _may_be_extreme(tally, difference.lost))
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
        for name, is_set in (("_stale", self.is_stale), ("_recount", self.needs_recount)):
            if is_set:
                item[name] = {"BOOL": True}
        if self.rebuilt:
            item["_rebuilt"] = {"N": repr(self.rebuilt)}
        return item


def _may_be_extreme(tally: RollupTally, lost: RollupTally | None) -> bool:
    """Whether a removed reading may have been the minimum, the maximum or the last value.

    ``tally`` is the stored roll-up, and ``lost`` sums up the removed readings.
    """
    if lost is None:
        return False
    return lost.min <= tally.min or lost.max >= tally.max or lost.last_key >= tally.last_key


class RollupChanges:
    """Updates the roll-ups of one series when its readings change."""

    def __init__(self, reader: RollupReader) -> None:
        self._reader = reader
        self._context = reader.context
        self._layout = reader.layout
        self._book = reader.book
        self._label = f"roll-ups of {reader.layout.name}"
        self._known: dict[RollupKey, StoredRollup] = {}

    # -- the effect of changes

    def fold(self, images: Iterable[Images], now: float) -> RollupUpdates:
        found: RollupUpdates = {}
        for each in images:
            for key, difference in self.differences(each, now, _NEVER).items():
                found[key] = found.get(key, RollupDifference()) + difference
        return found

    def differences(self, images: Images, now: float, made: float) -> RollupUpdates:
        """Return the effect of one change on the roll-ups; ``made`` is the time of the change.

        The result is empty if the item is not a reading, was deleted after it had expired, or has
        the same values as before.
        """
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
                    None if gained is None else RollupTally.of(gained, sort),
                    None if lost is None else RollupTally.of(lost, sort),
                    made,
                )
        return found

    def is_reading(self, item: Item | None) -> bool:
        """Whether an item is a reading of this series. The table also holds other items."""
        if not item or "S" not in item.get(self._layout.place.partition, {}):
            return False
        parts = item[self._layout.place.partition]["S"].split("#")
        return len(parts) == 5 and "#".join(parts[:2]) == self._layout.tables_partition

    # -- changes with sequence numbers

    def add(self, key: RollupKey, changes: Sequence[NumberedDifference], shard: str) -> Work[None]:
        """Add changes from one shard of the stream to a roll-up. Repeated changes are skipped.

        If a stored minimum, maximum or last value was lost, compute it again from the readings.
        """
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
                    return  # the batch was applied before
                for at, _, error in failed.failures:
                    if not isinstance(error, ConditionFailed):
                        raise
                    self._remember(keys[at - 1], StoredRollup.read(error.item))
                yield Pause(self._context.backoff(attempt))
            else:
                for key, rollup in zip(keys, wanted):
                    self._remember(key, rollup)
                return
        raise TransactionConflict(
            f"{self._label}: other writers changed the items in each of {_ATTEMPTS} attempts",
            hint="try again later",
        )

    def _marker(self, name: str) -> Statement:
        return applied_marker(
            self._layout.place,
            f"{self._layout.tables_partition}#{name}",
            self._context.now() + APPLIED_SECONDS,
        )

    # -- changes of an unknown shard

    def apply_each(
        self, changes: Mapping[str, RollupUpdates], check: Callable[[], Any]
    ) -> Work[None]:
        """Apply changes by their names, each once. An applied change is skipped.

        ``changes`` has the effect of each change by its name.
        """
        keys = list(dict.fromkeys(key for updates in changes.values() for key in updates))
        shards: dict[str, int] = {}
        for key in keys:
            shards[key.by] = max(shards.get(key.by, 0), key.shard + 1)
        for by, count in shards.items():
            yield from self._book.open_shards(by, count)
        for part in parts_of(changes, lambda updates: updates):
            if len(part) == 1 and len(next(iter(part.values()))) >= TRANSACTION_ITEMS:
                [(name, updates)] = part.items()
                yield from self.apply(updates, name)
            else:
                named = {f"{self._layout.tables_partition}#{name}": part[name] for name in part}
                effects = _NamedEffects(self)
                yield from apply_named(
                    self._context, self._layout.place, named, effects, check, self._label
                )
        for key in keys:
            yield from self.settle(key)

    def folded_puts(
        self, changes: Sequence[RollupUpdates]
    ) -> Work[tuple[list[RollupKey], list[StoredRollup], list[dict[str, Any]]]]:
        """Return the roll-ups that changes affect, their new contents, and the puts to send."""
        folded: RollupUpdates = {}
        for updates in changes:
            for key, difference in updates.items():
                folded[key] = folded.get(key, RollupDifference()) + difference
        wanted, puts = [], []
        for key, difference in folded.items():
            stored = yield from self._stored(key)
            wanted.append(self._next(stored.plus(difference), stored))
            puts.append({"Put": self._request(key, stored, wanted[-1])})
        return list(folded), wanted, puts

    def remember(self, key: RollupKey, rollup: StoredRollup) -> None:
        self._remember(key, rollup)

    # -- values computed again from the readings

    def settle(self, key: RollupKey) -> Work[None]:
        """Compute the minimum, maximum and last value again if the roll-up is marked stale.

        The count and the sum are computed again as well if the roll-up is marked for a recount: a
        change that was made before its last rebuild has arrived since.
        """
        rule = self._book.rules[key.rollup]
        start = period_start(key.period)
        for attempt in range(_ATTEMPTS):
            stored = yield from self._stored(key)
            if not stored.needs_recomputing:
                return
            stored = yield from self._stored(key, again=True)
            wanted = yield from self._recompute(rule, key, stored, start)
            if (yield from self._write(key, stored, wanted)):
                return
            yield Pause(self._context.backoff(attempt))
        raise TransactionConflict(
            f"{self._label}: {key.period} changed during each of {_ATTEMPTS} attempts to sum it up",
            hint="try again later",
        )

    def _recompute(
        self, rule: RollupRule, key: RollupKey, stored: StoredRollup, start: Any
    ) -> Work[StoredRollup]:
        settled = replace(stored, is_stale=False, needs_recount=False)
        try:
            yield from self._reader.check(start)
        except RequestRefused as refused:
            log.warning(
                "%s: %s keeps its value although one of its readings was removed: %s",
                self._label,
                key.period,
                refused,
            )
            return settled
        tallies = yield from self._reader.counted(
            rule, key.by, start, following(rule.period, start)
        )
        tally = tallies.get(key)
        if not stored.needs_recount:
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
        yield from self._book.open_tables()
        rule = self._book.rules[key.rollup]
        request = {
            "TableName": rule.place.table,
            "Key": rule.stored_key(key),
            "ConsistentRead": True,
        }
        reply = yield Call("GetItem", request, self._label)
        return self._remember(key, StoredRollup.read(reply.get("Item")))

    def _write(self, key: RollupKey, stored: StoredRollup, wanted: StoredRollup) -> Work[bool]:
        """Replace the item ``stored`` by ``wanted``, unless another writer has changed it.

        Returns False if another writer has. The item that the table then has is cached.
        """
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
                "TableName": rule.place.table,
                "Item": item,
                "ConditionExpression": condition,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        )

    def _remember(self, key: RollupKey, rollup: StoredRollup) -> StoredRollup:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[key] = rollup
        return rollup


class _NamedEffects:
    """Writes the roll-ups that named changes affect, as part of a transaction."""

    def __init__(self, changes: RollupChanges) -> None:
        self._changes = changes
        self._keys: list[RollupKey] = []
        self._wanted: list[StoredRollup] = []

    def actions(self, changes: Sequence[RollupUpdates]) -> Work[list[dict[str, Any]]]:
        self._keys, self._wanted, puts = yield from self._changes.folded_puts(changes)
        return puts

    def applied(self) -> None:
        for key, rollup in zip(self._keys, self._wanted):
            self._changes.remember(key, rollup)

    def refused(self, at: int, item: Item | None) -> None:
        self._changes.remember(self._keys[at], StoredRollup.read(item))

    def invalid(self) -> bool:
        return False


def _parts(updates: RollupUpdates) -> Iterator[list[RollupKey]]:
    """Split the keys of the updates into parts that each fit into one transaction.

    Equal updates are always split in the same way, so a repeated batch has the same parts.
    """
    keys = sorted(updates, key=lambda key: (key.rollup, key.by, key.period, key.shard))
    for at in range(0, len(keys), TRANSACTION_ITEMS - 1):
        yield keys[at : at + TRANSACTION_ITEMS - 1]
