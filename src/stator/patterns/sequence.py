"""Sequences: numbers in order, one after the other, for any number of processes.

    PK  SEQUENCE#invoices    SK  NUMBER    n  4711        the last number that was given

Three ways, from the strictest to the quickest:

- ``create(make)`` writes an item with the next number, in one transaction with the number: it is used if, and only if, the item is written. There are no gaps,
  whoever dies when. ``make`` is called with the number, perhaps more than once, and gives the entity.
- ``next()`` gives the next number and leaves it to the caller to use it. It is a transaction with a token on condition that the sequence is still where it was
  read, so that an answer that is lost and asked for again gives the same number. A process that dies with a number in its hand leaves a gap.
- ``Sequence(db, name, block=100)`` takes a hundred numbers at once with one UpdateItem, and ``next()`` hands them out from memory: unique among all processes,
  increasing within one, with gaps where a process ends with a block unused or an answer is lost.

One item takes a thousand writes a second, and a transaction counts twice: numbers without gaps come some hundreds a second at best, and writers who race for
them have to try again. Blocks have no such limit that matters.
"""

from __future__ import annotations

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
from stator.patterns.explanation import OperationCost, PatternExplanation
from stator.tables.operation import D, OnDb, operation
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import forget_blobs, send_all
from stator.tables.writes.statements import Statement
from stator.tables.writes.writes import LostRace, WritePlanner

E = TypeVar("E")
_ATTEMPTS: Final = 200
_LOST_ANSWERS: Final = 5
# Somebody wins every race, and the next round is short.
_RACE_BACKOFF: Final = Backoff(base_seconds=0.005, cap_seconds=0.04)
_WAIT_SECONDS: Final = 0.001


class Sequence(OnDb[D]):
    """``Sequence(db, "invoices").next()``. ``start`` is the first number ever; with ``block`` numbers are taken so many at once."""

    def __init__(self, db: D, name: str, *, start: int = 1, block: int | None = None) -> None:
        super().__init__(db)
        if block is not None and block < 1:
            raise ConfigurationError(
                f"a block of {block} holds no number",
                hint="take 100, or None for numbers without gaps",
            )
        self.name = name
        self.start = start
        self.block = block
        self._place = self.context.schema.place
        self._key = self._place.key(f"SEQUENCE#{name}", "NUMBER")
        self._label = f"sequence {name}"
        self._seen: int | None = None
        self._hand = _Hand()

    @operation
    def next(self) -> Work[int]:
        """The next number."""
        if self.block is not None:
            return (yield from self._from_block())
        return (yield from self._taken(None))

    @operation
    def create(self, make: Callable[[int], E]) -> Work[E]:
        """Write the entity that ``make`` gives for the next number; number and item come into being together, or not at all."""
        if self.block is not None:
            raise RequestRefused(
                "numbers of a block have gaps", hint="make the Sequence without block="
            )
        prepare = WritePlanner(self.context)
        made: dict[int, E] = {}

        def statements(number: int) -> Work[list[Statement]]:
            made[number] = make(number)
            return (yield from prepare.create(made[number]))

        number = yield from self._taken(statements)
        return made[number]

    @operation
    def current(self) -> Work[int | None]:
        """The last number that was given, to anybody; of blocks, the last that was taken. None before the first."""
        return (yield from self._current())

    # -- one by one

    def _taken(self, prepare: Callable[[int], Work[list[Statement]]] | None) -> Work[int]:
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
        raise TransactionConflict(f"the next number of {self.name} is taken by others all the time")

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
        while True:
            number, is_ours = self._hand.take()
            if number is not None:
                return number
            if is_ours:
                yield from self._refilled()
            else:
                yield Pause(_WAIT_SECONDS)  # another thread or task is at it

    def _refilled(self) -> Work[None]:
        """Only one at a time, so that numbers are handed out in order."""
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
            "UpdateExpression": f"SET {n} = if_not_exists({n}, {before}) + {written.value(_number(size))}",
            "ReturnValues": "UPDATED_NEW",
        }
        written.into(request)
        for attempt in range(_LOST_ANSWERS):
            try:
                reply = yield Call("UpdateItem", request, self._label, idempotent=False)
            except OutcomeUnknown:
                if attempt == _LOST_ANSWERS - 1:
                    raise
                yield Pause(
                    self.context.backoff(attempt)
                )  # a block may be lost: that is a gap, and allowed
            else:
                last = int(reply["Attributes"]["n"]["N"])
                return range(last - size + 1, last + 1)
        raise AssertionError("the last attempt returns or raises")

    def explain(self) -> PatternExplanation:
        if self.block is None:
            costs: tuple[OperationCost, ...] = (
                OperationCost(
                    "next",
                    "TransactWriteItems of 1",
                    0,
                    2,
                    "once more for each writer that was quicker",
                ),
                OperationCost(
                    "create", "TransactWriteItems of 2", 0, 4, "and what guards unique fields"
                ),
            )
            beware: tuple[str, ...] = (
                "takes some hundreds a second in all; numbers that may have gaps: see block=",
            )
        else:
            costs = (OperationCost(f"next, {self.block} times", "UpdateItem", 0, 1),)
            beware = ("a process that ends leaves a gap of what it had not handed out",)
        layout = (f"{self._place.partition} SEQUENCE#{self.name}  {self._place.sort} NUMBER  n",)
        return PatternExplanation(
            f"sequence {self.name} in {self._place.table}", layout, costs, beware
        )


class _Hand:
    """The numbers a process has taken and not given yet."""

    def __init__(self) -> None:
        self._numbers = iter(range(0))
        self._is_refilling = False
        self._lock = threading.Lock()

    def take(self) -> tuple[int | None, bool]:
        """A number; without one, whether it is for the caller to ``refill``."""
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
    """Where the sequence is, if that is why it failed; raises the other reasons."""
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
    return ConditionFailed("another was quicker", item=item)
