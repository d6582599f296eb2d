"""Sharded counters: more additions per second than one item takes, and an exact total.

One item takes 1,000 write units per second, so a busy counter is spread over several items, its
shards:

    PK  COUNTER#page-views#3      SK  SHARD      n  17        the additions in shard 3
    PK  COUNTER#page-views        SK  TOTAL      n  4210      the additions compacted so far

``add`` picks a shard at random. ``value`` reads the total and all shards in one transaction, so it
neither misses an addition nor counts one twice while compaction moves it. ``compact`` moves the
content of a shard to the total in one transaction, on condition that the shard has not changed. Any
number of processes may compact at once, and additions continue while they do.

An addition is exact even if its reply is lost: it is sent as a transaction with a token, and
DynamoDB executes each token only once, no matter how often it is sent. That costs twice the write
units.
``exact=False`` sends a plain update instead; if its reply is lost, ``add`` raises OutcomeUnknown.

The number of shards can be raised at any time. It can be lowered after a compaction, because the
total remembers the highest number of shards ever used.
"""

from __future__ import annotations

from typing import Any

from stator.errors import (
    ConditionFailed,
    ConfigurationError,
    RequestRefused,
    TransactionFailed,
)
from stator.model.limits import TRANSACTION_ITEMS
from stator.model.values import Item
from stator.patterns.consistent_read import read_snapshot
from stator.patterns.explanation import OperationCost, PatternExplanation, item_layout
from stator.tables.operation import D, OnDb, operation
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import send_all
from stator.tables.writes.statements import Statement


class Counter(OnDb[D]):
    """An exact counter for many writers: ``Counter(db, "page-views", shards=10)``.

    ``exact=False`` halves the cost of ``add``, which may then raise OutcomeUnknown.
    """

    def __init__(self, db: D, name: str, *, shards: int = 10, exact: bool = True) -> None:
        super().__init__(db)
        if not 1 <= shards < TRANSACTION_ITEMS:
            raise ConfigurationError(
                f"a counter has 1 to {TRANSACTION_ITEMS - 1} shards, not {shards}",
                hint="choose about one shard for every 500 additions per second",
            )
        self.name = name
        self.shards = shards
        self.exact = exact
        self._place = self.context.schema.place

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
        shard = self.context.random.randrange(self.shards)
        update = self._addition(self._shard(shard), amount)
        label = f"counter {self.name}"
        if self.exact:
            yield from send_all(self.context, [update], label)
        else:
            yield Call("UpdateItem", update.request, label, idempotent=False)

    @operation
    def value(self) -> Work[int]:
        """Return the exact value at one moment."""
        keys = [self._total(), *(self._shard(number) for number in range(self.shards))]
        found = yield from self._read(keys)
        known = max(
            [self.shards, *(int(item["shards"]["N"]) for item in found if "shards" in item)]
        )
        if known > self.shards:  # the counter once had more shards
            found = yield from self._read(
                [self._total(), *(self._shard(number) for number in range(known))]
            )
        return sum(int(item["n"]["N"]) for item in found if "n" in item)

    @operation
    def compact(self) -> Work[int]:
        """Move the content of the shards to the total. Return the amount moved.

        A shard that changes during the move is skipped, and so is a shard that another process
        moves.
        """
        moved = 0
        total = (yield from self._read([self._total()])) or [{}]
        known = max(self.shards, int(total[0].get("shards", {"N": "0"})["N"]))
        for number in range(known):
            found = yield from self._read([self._shard(number)])
            amount = int(found[0]["n"]["N"]) if found and "n" in found[0] else 0
            if amount == 0:
                continue
            try:
                yield from send_all(
                    self.context,
                    [self._take(number, amount), self._give(amount, known)],
                    f"compact {self.name}",
                )
            except TransactionFailed:
                continue  # the shard was added to, or another process moved its content
            moved += amount
        return moved

    @operation
    def reset(self) -> Work[None]:
        """Set the counter to zero. An addition that is made meanwhile may survive."""
        total = (yield from self._read([self._total()])) or [{}]
        known = max(self.shards, int(total[0].get("shards", {"N": "0"})["N"]))
        for key in (self._total(), *(self._shard(number) for number in range(known))):
            yield Call(
                "DeleteItem", {"TableName": self._place.table, "Key": key}, f"reset {self.name}"
            )

    # -- items

    def _shard(self, number: int) -> Item:
        return self._place.key(f"COUNTER#{self.name}#{number}", "SHARD")

    def _total(self) -> Item:
        return self._place.key(f"COUNTER#{self.name}", "TOTAL")

    def _read(self, keys: list[Item]) -> Work[list[Item]]:
        found = yield from read_snapshot(
            self.context, [(self._place.table, key) for key in keys], f"counter {self.name}"
        )
        return [item for item in found if item is not None]

    def _addition(self, key: Item, amount: int, **more: Any) -> Statement:
        return Statement(
            "Update", self._add_request(key, amount) | more, f"add to {self.name}", _moved
        )

    def _add_request(self, key: Item, amount: int) -> dict[str, Any]:
        return {
            "TableName": self._place.table,
            "Key": key,
            "UpdateExpression": "ADD n :n",
            "ExpressionAttributeValues": {":n": {"N": str(amount)}},
        }

    def _take(self, number: int, amount: int) -> Statement:
        condition = {
            "ConditionExpression": "n = :was",
            "ExpressionAttributeValues": {":n": {"N": str(-amount)}, ":was": {"N": str(amount)}},
        }
        return self._addition(self._shard(number), -amount, **condition)

    def _give(self, amount: int, known: int) -> Statement:
        written = Expressions()
        n, shards = written.name("n"), written.name("shards")
        request = {
            "TableName": self._place.table,
            "Key": self._total(),
            # A process configured with fewer shards must not lower the stored number.
            "ConditionExpression": f"attribute_not_exists({shards})"
            f" OR {shards} <= {written.value({'N': str(known)})}",
            "UpdateExpression": f"SET {shards} = {written.value({'N': str(known)})}"
            f" ADD {n} {written.value({'N': str(amount)})}",
        }
        return Statement("Update", written.into(request), f"gather {self.name}", _moved)

    def explain(self) -> PatternExplanation:
        """Return the items behind it, and what each operation consumes and costs."""
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
            (f"takes about {self.shards * (500 if self.exact else 1000):,} additions per second",),
        )


def _moved(item: Item | None) -> ConditionFailed:
    return ConditionFailed("the shard has changed since it was read", item=item)
