"""A fenced lease: the right to work on something, for a limited time, kept in an item.

The idea. Several processes want to work on the same thing: a job, a shard of a stream, a parked
key. They agree through one item. Whoever writes its own name into the item, on condition that
nobody else's is there, holds the lease. A holder may die without a word, so the lease has an end:
after that moment anybody may take it. A holder that was only asleep wakes up and still believes in
its lease, so every lease also has a *fencing token*, and every later write of the holder names it.
Once another has taken the lease the token differs, and the write is refused.

The item. A lease is a few attributes of an item that may hold anything else. Their names are
``LeaseAttributes``, because the items that carry leases are older than this module:

    PK  LOCK#nightly-report    SK  LEASE       owner  "3f2a..."   fence  17   until  1763251200.25

``owner`` is the holder, absent while the lease is free. ``until`` is the end, in seconds since the
epoch. ``fence`` counts the holders and never goes down: a released lease keeps it. Where an item
has no ``fence``, each holder must have a random name of its own, and that name is the fencing
token. An item without ``until`` carries a claim that never expires.

The operations, each one conditional write:

    take        free, or over, or as it was seen    -> owner, until, fence + 1
    renew       held                                -> until
    hand over   held                                -> another's name, until, fence + 1
    release     held                                -> owner and until removed
    check       held, as part of a transaction      -> nothing; the transaction fails if it is lost

Invariants.
- At any moment at most one holder can write: *held* compares owner and fence in the same request
  that writes.
- A lease is taken only if it is free, if its end plus the drift of the clocks has passed, or if
  nobody has written it since the taker read it (*as seen*): a holder that renews in time is safe
  from the first two, and a taker that lost a race learns it from the condition.
- The fence grows with every new holder. What the lease protects can refuse a lower one.

Clocks. Times are the callers' own; no server's clock is asked. A taker adds ``drift_seconds`` to
the end before it believes that the lease is over. A holder must stop at ``until`` by its own
clock, even if no renewal was ever refused.

What fails, and how it recovers.
- The holder dies: nothing happens until the end of the lease, then another takes it.
- The holder sleeps past the end: its next conditional write is refused, and the lease is lost.
- The answer to ``take`` is lost, and the retry is refused by our own first write: the refusal shows
  the item, our name is in it, and so the lease is ours (``Taken.is_mine``).
- The answer to ``release`` is lost: the retry is refused, which is as good as done.
- A renewal fails because the network is away: the holder goes on until the end, then stops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stator.errors import ConditionFailed
from stator.model.values import Item, Value
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions

Condition = Callable[[Expressions], str]


@dataclass(frozen=True, slots=True)
class LeaseHold:
    """A lease as it is held, or as it was read. ``owner`` and ``fence`` are the fencing token."""

    owner: str | None
    fence: int = 0
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Taken:
    """The outcome of a take: ``item`` is what is stored now, and empty if it is not known."""

    is_mine: bool
    item: Item


@dataclass(frozen=True, slots=True)
class LeaseAttributes:
    """The names under which an item keeps its lease, and the conditions about it."""

    owner: str = "owner"
    until: str | None = "until"
    fence: str | None = "fence"

    def read(self, item: Item) -> LeaseHold:
        return LeaseHold(
            item[self.owner]["S"] if self.owner in item else None,
            int(item[self.fence]["N"]) if self.fence is not None and self.fence in item else 0,
            float(item[self.until]["N"]) if self.until is not None and self.until in item else 0.0,
        )

    def free(self, before: float = 0.0) -> Condition:
        """Nobody holds it, or its end is earlier than ``before``."""

        def write(written: Expressions) -> str:
            if self.until is None:
                return f"attribute_not_exists({written.name(self.owner)})"
            end = written.name(self.until)
            over = f"{end} < {written.value(seconds(before))}"
            return f"(attribute_not_exists({end}) OR {over})"

        return write

    def held(self, hold: LeaseHold) -> Condition:
        """It is still this holder's, or, of a lease that was free, still free."""

        def write(written: Expressions) -> str:
            owner = written.name(self.owner)
            if hold.owner is None:
                term = f"attribute_not_exists({owner})"
            else:
                term = f"{owner} = {written.value({'S': hold.owner})}"
            if self.fence is None:
                return term
            fence = written.value({"N": str(hold.fence)})
            return f"{term} AND {written.name(self.fence)} = {fence}"

        return write

    def as_seen(self, hold: LeaseHold) -> Condition:
        """Nobody has taken, renewed or released it since it was read."""

        def write(written: Expressions) -> str:
            term = self.held(hold)(written)
            if hold.owner is None or self.until is None:
                return term
            end = written.value(seconds(hold.until))
            return f"{term} AND {written.name(self.until)} = {end}"

        return write


def both(one: Condition, other: Condition) -> Condition:
    """A condition that holds if two do."""
    return lambda written: f"{one(written)} AND {other(written)}"


class LeaseItem:
    """One item that carries a lease, and the writes that change hands."""

    def __init__(
        self,
        table: str,
        key: Item,
        label: str,
        attributes: LeaseAttributes = LeaseAttributes(),  # noqa: B008 - frozen
    ) -> None:
        self.table = table
        self.key = key
        self.label = label
        self.attributes = attributes

    # -- taking

    def take(
        self,
        owner: str,
        until: float,
        condition: Condition,
        *,
        sets: Mapping[str, Value] | None = None,
        removes: tuple[str, ...] = (),
    ) -> Work[Taken]:
        """Become the holder if ``condition`` holds: one of ``attributes``, perhaps with more."""
        request = self._update(
            condition, {**self._holder(owner, until), **(sets or {})}, removes, counts=True
        )
        return (yield from self._taken(Call("UpdateItem", request, self.label), owner))

    def replace(self, item: Item, condition: Condition) -> Work[Taken]:
        """Become the holder by writing the whole item, which names its owner."""
        written = Expressions()
        request = {
            "TableName": self.table,
            "Item": {**self.key, **item},
            "ConditionExpression": condition(written),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        call = Call("PutItem", written.into(request), self.label)
        return (yield from self._taken(call, item[self.attributes.owner]["S"], item))

    def _taken(self, call: Call, owner: str, item: Item | None = None) -> Work[Taken]:
        try:
            reply = yield call
        except ConditionFailed as refused:
            stored: Item = refused.item or {}
            # Our first attempt may have succeeded and its answer been lost.
            is_mine = refused.after_unknown and stored.get(self.attributes.owner) == {"S": owner}
            return Taken(is_mine, stored)
        return Taken(True, reply["Attributes"] if item is None else item)

    # -- holding

    def renew(
        self, hold: LeaseHold, until: float, sets: Mapping[str, Value] | None = None
    ) -> Work[Item | None]:
        """Move the end. The item as it is then, or None if the lease is lost."""
        assert self.attributes.until is not None
        end = {self.attributes.until: seconds(until)}
        return (yield from self.change(hold, {**end, **(sets or {})}))

    def change(
        self, hold: LeaseHold, sets: Mapping[str, Value], removes: tuple[str, ...] = ()
    ) -> Work[Item | None]:
        """Write other attributes of the item under the lease; None if it is lost."""
        return (yield from self._changed(self._update(self.attributes.held(hold), sets, removes)))

    def hand_over(
        self, hold: LeaseHold, to: str, until: float, removes: tuple[str, ...] = ()
    ) -> Work[Item | None]:
        """Make another the holder, with a fence of its own; None if the lease is lost."""
        condition = self.attributes.held(hold)
        request = self._update(condition, self._holder(to, until), removes, counts=True)
        return (yield from self._changed(request))

    def release(
        self,
        hold: LeaseHold,
        sets: Mapping[str, Value] | None = None,
        removes: tuple[str, ...] = (),
    ) -> Work[bool]:
        """Give the lease up; its fence stays. False if it was another's already."""
        attributes = self.attributes
        names = (attributes.owner, *(() if attributes.until is None else (attributes.until,)))
        request = self._update(attributes.held(hold), sets or {}, (*names, *removes))
        try:
            yield Call("UpdateItem", request, self.label)
        except ConditionFailed as refused:
            return refused.after_unknown
        return True

    def delete(self, hold: LeaseHold) -> Work[bool]:
        """Delete the item with the lease. False if it was another's already."""
        try:
            yield Call("DeleteItem", self._conditional(self.attributes.held(hold)), self.label)
        except ConditionFailed as refused:
            return refused.after_unknown
        return True

    def check(self, hold: LeaseHold) -> dict[str, Any]:
        """An action for a transaction that must fail once the lease is lost."""
        return {"ConditionCheck": self._conditional(self.attributes.held(hold))}

    # -- requests

    def _holder(self, owner: str, until: float) -> dict[str, Value]:
        attributes = self.attributes
        end = {} if attributes.until is None else {attributes.until: seconds(until)}
        return {attributes.owner: {"S": owner}, **end}

    def _conditional(self, condition: Condition) -> dict[str, Any]:
        written = Expressions()
        request = {
            "TableName": self.table,
            "Key": self.key,
            "ConditionExpression": condition(written),
        }
        return written.into(request)

    def _update(
        self,
        condition: Condition,
        sets: Mapping[str, Value],
        removes: tuple[str, ...] = (),
        *,
        counts: bool = False,
    ) -> dict[str, Any]:
        """An UpdateItem; ``counts`` gives the lease its next fence."""
        written = Expressions()
        terms = [f"{written.name(name)} = {written.value(value)}" for name, value in sets.items()]
        if counts and self.attributes.fence is not None:
            fence = written.name(self.attributes.fence)
            zero, one = written.value({"N": "0"}), written.value({"N": "1"})
            terms.append(f"{fence} = if_not_exists({fence}, {zero}) + {one}")
        parts = [f"SET {', '.join(terms)}"] if terms else []
        if removes:
            parts.append(f"REMOVE {', '.join(map(written.name, removes))}")
        request = {
            "TableName": self.table,
            "Key": self.key,
            "UpdateExpression": " ".join(parts),
            "ConditionExpression": condition(written),
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return written.into(request)

    def _changed(self, request: dict[str, Any]) -> Work[Item | None]:
        try:
            reply = yield Call("UpdateItem", request, self.label)
        except ConditionFailed:
            return None
        item: Item = reply["Attributes"]
        return item


def seconds(moment: float) -> Value:
    """A moment as it is stored: repr keeps every digit, so that equal moments compare equal."""
    return {"N": repr(moment)}
