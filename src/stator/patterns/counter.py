"""Sharded counters: more additions per second than one item takes, and an exact total.

One item takes 1,000 write units per second, so a busy counter is spread over several items, its
shards:

    PK  COUNTER#page-views#3      SK  SHARD      n  17        the additions in shard 3
    PK  COUNTER#page-views        SK  TOTAL      n  4210      the additions compacted so far

``add`` picks a shard at random. ``value`` reads the total and all shards in one transaction, so it
neither misses an addition nor counts it twice while compaction moves it. ``compact`` moves the
content of a shard to the total in one transaction, on condition that the shard has not changed. Any
number of processes may compact at once, and additions continue while they do.

An addition is exact even if its reply is lost: it is sent as a transaction with a token, and
DynamoDB executes each token only once, no matter how often it is sent. That costs twice the write
units. ``exact=False`` sends a plain update instead; if its reply is lost, ``add`` raises
OutcomeUnknown.

The number of shards can be raised and lowered at any time. With ``shards="adaptive"`` it follows
the traffic: it grows when a shard is throttled, or before that, when this process writes too fast
for the shards, and ``compact`` closes half of them when nobody needs them any more.
``counter_shards`` stores the number of shards, and explains why no reader misses a shard.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from stator.errors import (
    ConditionFailed,
    ConfigurationError,
    RequestRefused,
    ServiceError,
    SlowDown,
    TransactionFailed,
)
from stator.model.limits import TRANSACTION_ITEMS
from stator.model.values import Item
from stator.patterns.consistent_read import read_snapshot
from stator.patterns.counter_shards import CounterShards, open_shards
from stator.patterns.explanation import OperationCost, PatternExplanation, item_layout
from stator.tables.argument_rules import checks_arguments
from stator.tables.operation import D, OnDb, operation
from stator.tables.shards.adaptive_shards import Adaptive, AdaptiveShards, adaptive_shards
from stator.tables.shards.hot_key import asked_hot_key_reason, hot_key_reason
from stator.tables.unknown_outcome import several_writes
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import send_all
from stator.tables.writes.statements import Statement
from stator.throttle_reason import throttle_reasons

_ATTEMPTS: Final = 40
_CLOSE_ATTEMPTS: Final = 3
_SHORTEST_SECONDS: Final = 0.01


@checks_arguments("Counter")
class Counter(OnDb[D]):
    """An exact counter for many writers: ``Counter(db, "page-views", shards=10)``.

    ``shards`` is a number, "adaptive", or an AdaptiveShards with limits. ``exact=False`` halves the
    cost of ``add``, which then raises OutcomeUnknown if its reply is lost.
    """

    def __init__(
        self,
        db: D,
        name: str,
        *,
        shards: int | Adaptive | AdaptiveShards = 10,
        exact: bool = True,
    ) -> None:
        super().__init__(db)
        adaptive = adaptive_shards(shards, TRANSACTION_ITEMS - 1)
        least = _fixed_shards(shards) if adaptive is None else adaptive.least
        self.name = name
        self.exact = exact
        self._place = self.context.schema.place
        self._shards = CounterShards(
            self.context, name, least, adaptive, units=2.0 if exact else 1.0
        )

    @property
    def shards(self) -> int:
        """The number of shards that this process knows of.

        Until the process has read the stored number, this is the minimum in ``shards=``.
        """
        return max(self._shards.known, self._shards.least)

    @operation
    def add(self, amount: int = 1) -> Work[None]:
        """Add ``amount``, which may be negative, to a random shard.

        Raises OutcomeUnknown if the reply is lost and the counter is not ``exact``.
        """
        if type(amount) is not int:
            raise RequestRefused(
                f"counter {self.name}: add() takes an int, not {type(amount).__name__}",
                hint="count in the smallest unit, such as cents",
            )
        attempt = 0
        while True:
            shards = yield from self._shards.open(again=attempt > 0)
            shard = self.context.random.randrange(shards)
            try:
                return (yield from self._add(shard, shards, amount))
            except (SlowDown, ConditionFailed, TransactionFailed) as error:
                attempt += 1
                if attempt >= _ATTEMPTS or not (
                    yield from self._is_worth_retry(error, shard, shards)
                ):
                    raise

    def _add(self, shard: int, shards: int, amount: int) -> Work[None]:
        update = self._addition(self._shards.shard(shard), amount)
        label = f"counter {self.name}"
        may_grow = self._shards.may_grow(shards)
        if self.exact:
            yield from send_all(self.context, [update], label, raise_hot_key=may_grow)
        else:
            yield Call(
                "UpdateItem", update.request, label, idempotent=False, raise_hot_key=may_grow
            )

    def _is_worth_retry(self, error: ServiceError, shard: int, shards: int) -> Work[bool]:
        """Whether a failed addition should be tried again. May give the counter more shards first.

        A retry helps if the shard was closed, or if the shard was throttled and the counter grows.
        There must be no retry if the error leaves open whether the amount was added.
        """
        if error.sent:
            return False
        if _is_closed(error):
            self._shards.forget()
            return True
        if self._shards.adaptive is None or not throttle_reasons(error):
            return False
        settling = self._shards.settling_seconds(shards)
        if settling > 0:  # the last growth may be enough
            yield Pause(min(settling, self.context.backoff(2)) + _SHORTEST_SECONDS)
            return True
        reason = hot_key_reason(error)
        if reason is not None and reason.scope is None and isinstance(error, TransactionFailed):
            key = self._shards.shard(shard)
            reason = yield from asked_hot_key_reason(
                self._place.table, key, self._place.partition, f"counter {self.name}"
            )
            if reason is None:  # it was throttled for a moment
                yield Pause(self.context.backoff(2))
                return True
        return reason is not None and (yield from self._shards.grow(shards, reason.text))

    @operation
    def value(self) -> Work[int]:
        """Return the exact value of the counter at one moment."""
        known = self.shards
        while True:
            total, shards = yield from self._snapshot(known)
            stored = max(open_shards(total), self._shards.least)
            if stored <= known:
                return sum(_amount(item) for item in (total, *shards))
            known = stored  # the counter has more shards than this process knew

    @operation
    @several_writes("some shards are compacted; the value is right", "call compact() again")
    def compact(self) -> Work[int]:
        """Move the amounts in the shards to the total. Return the sum of the moved amounts.

        A shard is skipped if another process adds to it or moves its amount meanwhile. An adaptive
        counter that needed no more than half of its shards for a minute closes the other half.
        """
        moved = 0
        yield from self._shards.refresh()
        for number in range(self.shards):
            found = yield from self._read([self._shards.shard(number)])
            amount = _amount(found[0])
            if amount == 0:
                continue
            try:
                yield from send_all(
                    self.context,
                    [self._take(number, amount), self._give(amount)],
                    f"compact {self.name}",
                )
            except TransactionFailed:
                continue  # the shard was added to, or another process moved its content
            moved += amount
        if self._shards.adaptive is not None:
            moved += yield from self._narrow()
        return moved

    def _narrow(self) -> Work[int]:
        """Close shards that are no longer needed. Return the sum moved from them to the total."""
        moved = 0
        [total] = yield from self._read([self._shards.total])
        keep = self._shards.least_after_cooling(total)
        for number in reversed(range(keep, open_shards(total))):
            amount = yield from self._close(number + 1)
            if amount is None:
                break
            moved += amount
        return moved

    def _close(self, shards: int) -> Work[int | None]:
        """Close the last shard of a counter that has ``shards`` shards.

        Returns the amount moved from it to the total. Returns None if other writers changed the
        shard in every attempt, or if the number of shards is not ``shards``.
        """
        for _ in range(_CLOSE_ATTEMPTS):
            total, last = yield from self._read(
                [self._shards.total, self._shards.shard(shards - 1)]
            )
            if open_shards(total) != shards:
                return None
            if (yield from self._shards.close_last(shards, _amount(last))):
                return _amount(last)
        return None

    @operation
    @several_writes("a part of the counter is set to zero", "call reset() again")
    def reset(self) -> Work[None]:
        """Set the counter to zero. An addition made at the same time may remain."""
        yield from self._shards.refresh()
        keys = [self._shards.total, *map(self._shards.shard, range(self.shards))]
        for key in keys:
            written = Expressions()
            n = written.name("n")
            request = {
                "TableName": self._place.table,
                "Key": key,
                "UpdateExpression": f"SET {n} = {written.value({'N': '0'})}",
                "ConditionExpression": f"attribute_exists({n})",
            }
            with suppress(ConditionFailed):  # nothing was added yet
                yield Call("UpdateItem", written.into(request), f"reset {self.name}")

    # -- items

    def _snapshot(self, shards: int) -> Work[tuple[Item | None, list[Item | None]]]:
        """Return the total item and the first ``shards`` shard items, as of one moment."""
        keys = [self._shards.total, *map(self._shards.shard, range(shards))]
        total, *found = yield from self._read(keys)
        return total, found

    def _read(self, keys: list[Item]) -> Work[list[Item | None]]:
        found = yield from read_snapshot(
            self.context, [(self._place.table, key) for key in keys], f"counter {self.name}"
        )
        return list(found)

    def _addition(self, key: Item, amount: int) -> Statement:
        request = {
            "TableName": self._place.table,
            "Key": key,
            "UpdateExpression": "ADD n :n",
            "ConditionExpression": "attribute_not_exists(closed)",
            "ExpressionAttributeValues": {":n": {"N": str(amount)}},
        }
        return Statement("Update", request, f"add to {self.name}", _closed)

    def _take(self, number: int, amount: int) -> Statement:
        request = {
            "TableName": self._place.table,
            "Key": self._shards.shard(number),
            "UpdateExpression": "ADD n :n",
            "ConditionExpression": "n = :was",
            "ExpressionAttributeValues": {":n": {"N": str(-amount)}, ":was": {"N": str(amount)}},
        }
        return Statement("Update", request, f"compact {self.name}", _moved)

    def _give(self, amount: int) -> Statement:
        request = {
            "TableName": self._place.table,
            "Key": self._shards.total,
            "UpdateExpression": "ADD n :n",
            "ExpressionAttributeValues": {":n": {"N": str(amount)}},
        }
        return Statement("Update", request, f"gather {self.name}", _moved)

    def explain(self) -> PatternExplanation:
        """Return the keys of the counter's items, and the units and cost of each operation."""
        return PatternExplanation(
            f"counter {self.name}, {self.shards} shards in {self._place.table}",
            (
                item_layout(self._place, f"COUNTER#{self.name}#0..{self.shards - 1}", "SHARD", "n"),
                item_layout(self._place, f"COUNTER#{self.name}", "TOTAL", "n"),
            ),
            (
                OperationCost(
                    "add",
                    "TransactWriteItems of 1" if self.exact else "UpdateItem",
                    0,
                    2 if self.exact else 1,
                ),
                OperationCost(
                    "value", f"TransactGetItems of {self.shards + 1}", 2.0 * (self.shards + 1)
                ),
                OperationCost(
                    "compact",
                    f"{self.shards} TransactGetItems, up to {self.shards} TransactWriteItems of 2",
                    2.0 * self.shards,
                    4.0 * self.shards,
                ),
            ),
            (
                f"takes about {self.shards * (500 if self.exact else 1000):,} additions per second",
                *self._adaptive_notes(),
            ),
        )

    def _adaptive_notes(self) -> tuple[str, ...]:
        adaptive = self._shards.adaptive
        if adaptive is None:
            return ()
        most = f"grows up to {adaptive.most} shards where it is hot"
        return (f"{most}; each more costs value() 2 read units",)


def _moved(item: Item | None) -> ConditionFailed:
    return ConditionFailed("the shard has changed since it was read", item=item)


def _closed(item: Item | None) -> ConditionFailed:
    return ConditionFailed("the shard is closed", item=item)


def _is_closed(error: ServiceError) -> bool:
    """Whether an addition was refused because its shard is closed."""
    if isinstance(error, TransactionFailed):
        return any(isinstance(each, ConditionFailed) for _, _, each in error.failures)
    return isinstance(error, ConditionFailed)


def _amount(item: Item | None) -> int:
    return int(item["n"]["N"]) if item and "n" in item else 0


def _fixed_shards(shards: object) -> int:
    if not isinstance(shards, int) or not 1 <= shards < TRANSACTION_ITEMS:
        raise ConfigurationError(
            f"a counter has 1 to {TRANSACTION_ITEMS - 1} shards, not {shards}",
            hint='choose about one shard for every 500 additions per second, or "adaptive"',
        )
    return shards
