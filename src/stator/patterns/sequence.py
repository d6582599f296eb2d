"""Sequences: increasing numbers, unique among any number of processes.

    PK  SEQUENCE#invoices    SK  NUMBER    n  4711        the last number handed out

Three ways, from the strictest to the fastest:

- ``create(make)`` writes an item together with its number, in one transaction. A number is used if
  and only if its item is written, so there are no gaps, no matter which process dies and when.
  ``make`` receives the number and returns the entity; it may be called more than once.
- ``next()`` returns the next number and leaves its use to the caller. It is a transaction with a
  token, on condition that the sequence has not moved since it was read; a repeat after a lost reply
  therefore returns the same number. A process that dies before it uses its number leaves a gap.
- ``Sequence(db, name, block=100)`` takes a hundred numbers with one UpdateItem, and ``next()``
  hands them out from memory. They are unique among all processes and increase within one. A process
  that ends with part of a block unused leaves a gap, and so does a lost reply.

One item takes a thousand writes per second, and a transaction counts twice. Numbers without gaps
therefore reach a few hundred per second at best, and writers that race for them must retry. Blocks
have no limit that matters in practice.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from stator.backoff import Backoff
from stator.errors import (
    ConditionFailed,
    ConfigurationError,
    OutcomeUnknown,
    RequestRefused,
    ServiceError,
    TransactionConflict,
    TransactionFailed,
)
from stator.model.values import Item
from stator.patterns.explanation import OperationCost, PatternExplanation, item_layout
from stator.tables.argument_rules import checks_arguments
from stator.tables.operation import D, OnDb, operation
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import forget_blobs, send_all
from stator.tables.writes.statements import LostRace, Statement
from stator.tables.writes.writes import WritePlanner

E = TypeVar("E")
_ATTEMPTS: Final = 200
_LOST_ANSWERS: Final = 5
# Every race has a winner, and the next round is short.
_RACE_BACKOFF: Final = Backoff(base_seconds=0.005, cap_seconds=0.04)
_WAIT_SECONDS: Final = 0.001


@checks_arguments("Sequence")
class Sequence(OnDb[D]):
    """Increasing, unique numbers: ``Sequence(db, "invoices").next()``.

    ``start`` is the first number. With ``block``, that many numbers are taken from the table at a
    time and handed out from memory.
    """

    def __init__(self, db: D, name: str, *, start: int = 1, block: int | None = None) -> None:
        super().__init__(db)
        if block is not None and block < 1:
            raise ConfigurationError(
                f"block={block} must be greater than 0",
                hint="use block=100, or leave it out for numbers without gaps",
            )
        self.name = name
        self.start = start
        self.block = block
        self._place = self.context.schema.place
        self._key = self._place.key(f"SEQUENCE#{name}", "NUMBER")
        self._label = f"sequence {name}"
        self._seen: int | None = None
        self._hand = _Hand()
        self._process = os.getpid()

    @operation
    def next(self) -> Work[int]:
        """Return the next number. If the caller does not use it, the sequence has a gap."""
        if self.block is not None:
            return (yield from self._from_block())
        return (yield from self._take(None))

    @operation
    def create(self, make: Callable[[int], E]) -> Work[E]:
        """Take the next number and write the entity that ``make`` returns for it, both or neither.

        Returns the entity. ``make`` may be called more than once.
        """
        if self.block is not None:
            raise RequestRefused(
                f"create() needs numbers without gaps,"
                f" but sequence {self.name!r} takes them in blocks",
                hint="create the Sequence without block= to use create()",
            )
        prepare = WritePlanner(self.context)
        made: dict[int, E] = {}

        def statements(number: int) -> Work[list[Statement]]:
            made[number] = make(number)
            return (yield from prepare.create(made[number]))

        number = yield from self._take(statements)
        return made[number]

    @operation
    def current(self) -> Work[int | None]:
        """Return the last number that was handed out, or None before the first.

        With ``block``, return the last number of the latest block, even if it is not handed out
        yet.
        """
        return (yield from self._current())

    # -- one by one

    def _take(self, prepare: Callable[[int], Work[list[Statement]]] | None) -> Work[int]:
        last = self._seen if self._seen is not None else (yield from self._current())
        for attempt in range(_ATTEMPTS):
            number = self.start if last is None else last + 1
            statements = [self._step(last, number)]
            if prepare is not None:
                statements += yield from prepare(number)
            try:
                yield from send_all(self.context, statements, self._label)
            except TransactionFailed as failed:
                yield from forget_blobs(self.context, statements, has_happened=False)
                last = _raced(failed, last)
                yield Pause(self.context.backoff(attempt, _RACE_BACKOFF))
            else:
                yield from forget_blobs(self.context, statements, has_happened=True)
                self._seen = number
                return number
        raise TransactionConflict(
            f"sequence {self.name!r}: in each of {_ATTEMPTS} attempts, another writer took the "
            f"next number first",
            hint="reserve several numbers at once with block=, or write with fewer processes",
        )

    def _step(self, last: int | None, number: int) -> Statement:
        written = Expressions()
        n = written.name("n")
        condition = (
            f"attribute_not_exists({n})"
            if last is None
            else f"{n} = {written.value(_number(last))}"
        )
        request = {
            "TableName": self._place.table,
            "Key": self._key,
            "UpdateExpression": f"SET {n} = {written.value(_number(number))}",
            "ConditionExpression": condition,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return Statement(
            "Update", written.into(request), f"take {number} of {self.name}", _moved_on
        )

    def _current(self) -> Work[int | None]:
        request = {"TableName": self._place.table, "Key": self._key, "ConsistentRead": True}
        reply = yield Call("GetItem", request, self._label)
        return _n(reply.get("Item"))

    # -- by blocks

    def _from_block(self) -> Work[int]:
        if self._process != os.getpid():  # a fork: the rest of the block is the parent's
            self._hand, self._process = _Hand(), os.getpid()
        while True:
            number, is_ours = self._hand.take()
            if number is not None:
                return number
            if is_ours:
                yield from self._refill()
            else:
                yield Pause(_WAIT_SECONDS)  # another thread or task is fetching a block

    def _refill(self) -> Work[None]:
        """Take the next block of numbers from the table.

        Only one thread or task of this process may do so at a time. Otherwise numbers would not be
        handed out in order.
        """
        block: range | None = None
        try:
            block = yield from self._take_block()
        finally:
            self._hand.refill(block)

    def _take_block(self) -> Work[range]:
        size = self.block or 1
        written = Expressions()
        n, before = written.name("n"), written.value(_number(self.start - 1))
        request = {
            "TableName": self._place.table,
            "Key": self._key,
            "UpdateExpression": f"SET {n} = if_not_exists({n}, {before})"
            f" + {written.value(_number(size))}",
            "ReturnValues": "UPDATED_NEW",
        }
        written.into(request)
        for attempt in range(_LOST_ANSWERS):
            try:
                reply = yield Call("UpdateItem", request, self._label, idempotent=False)
            except OutcomeUnknown:
                if attempt == _LOST_ANSWERS - 1:
                    raise
                # The lost reply may cost a block: a gap, which blocks allow.
                yield Pause(self.context.backoff(attempt))
            else:
                last = int(reply["Attributes"]["n"]["N"])
                return range(last - size + 1, last + 1)
        raise AssertionError("the last attempt returns or raises")

    def explain(self) -> PatternExplanation:
        """Return the key of the sequence's item, and the units and cost of each operation."""
        if self.block is None:
            costs: tuple[OperationCost, ...] = (
                OperationCost(
                    "next",
                    "TransactWriteItems of 1",
                    0,
                    2,
                    "repeated for each race lost to another writer",
                ),
                OperationCost(
                    "create", "TransactWriteItems of 2", 0, 4, "plus the guards of unique fields"
                ),
            )
            beware: tuple[str, ...] = (
                "takes a few hundred numbers per second in all; block= is faster but leaves gaps",
            )
        else:
            costs = (OperationCost(f"next, {self.block} times", "UpdateItem", 0, 1),)
            beware = ("a process that ends with part of its block unused leaves a gap",)
        layout = (item_layout(self._place, f"SEQUENCE#{self.name}", "NUMBER", "n"),)
        return PatternExplanation(
            f"sequence {self.name} in {self._place.table}", layout, costs, beware
        )


class _Hand:
    """The block of numbers that this process has taken from the table and not yet handed out."""

    def __init__(self) -> None:
        self._numbers = iter(range(0))
        self._is_refilling = False
        self._lock = threading.Lock()

    def take(self) -> tuple[int | None, bool]:
        """Return the next number, and whether the caller must fetch a new block.

        The number is None if the block is used up. The first caller to get None fetches a block
        and passes it to ``refill``. Other callers wait and try again.
        """
        with self._lock:
            number = next(self._numbers, None)
            is_ours = number is None and not self._is_refilling
            self._is_refilling = self._is_refilling or is_ours
            return number, is_ours

    def refill(self, block: range | None) -> None:
        with self._lock:
            self._is_refilling = False
            if block is not None:
                self._numbers = iter(block)


def _raced(failed: TransactionFailed, last: int | None) -> int | None:
    """Return the sequence's current number after a transaction lost a race to another writer.

    Returns ``last``, the number that was read before, if the error does not show the current one.
    If the transaction failed for another reason, raises that reason.
    """
    at, _, error = failed.failures[0]
    if at == 0 and isinstance(error, ConditionFailed):
        return _n(error.item)
    others: list[ServiceError] = [each for _, _, each in failed.failures]
    if all(isinstance(each, (LostRace, TransactionConflict)) for each in others):
        return last
    raise next(
        each for each in others if not isinstance(each, (LostRace, TransactionConflict))
    ) from None


def _n(item: Any) -> int | None:
    return int(item["n"]["N"]) if item and "n" in item else None


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def _moved_on(item: Item | None) -> ConditionFailed:
    return ConditionFailed("another writer took the number", item=item)
