"""A fenced lease: the right to work on something, for a limited time, kept in an item.

The idea. Several processes want to work on the same thing: a job, a shard of a stream, a parked
key. They agree through one item. The process that writes its own name into the item, on condition
that no other name is there, holds the lease. A holder may die silently, so the lease has an end:
after that moment any process may take it. A holder that was only suspended wakes up and still
believes it holds the lease. So every lease also has a *fencing token*, and every later write of the
holder names it. Once another process has taken the lease, the token differs, and the write is
refused.

The item. A lease is a few attributes of an item that may hold anything else. ``LeaseAttributes``
holds their names, which differ because the items that carry leases are older than this module:

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
- A lease is taken only in one of three cases. It is free, its end plus the drift of the clocks has
  passed, or nobody has written it since the taker read it (*as seen*). A holder that renews in time
  is safe from the first two. A taker that lost a race learns so from the failed condition.
- The fence grows with every new holder. The resource that the lease protects can refuse a lower
  fence.

Clocks. Times come from the callers' own clocks, not from a server. A taker adds ``drift_seconds``
to the end before it believes that the lease is over. A holder must stop at ``until`` by its own
clock, even if no renewal was ever refused.

What fails, and how it recovers.
- The holder dies: nothing happens until the end of the lease, then another process takes it.
- The holder sleeps past the end: its next conditional write is refused, and the lease is lost.
- The reply to ``take`` is lost, and the retry is refused because of our own first write: the
  refusal shows the item with our name in it, so the lease is ours (``Taken.is_mine``).
- The reply to ``release`` is lost: the retry is refused, and the lease is released all the same.
- A renewal fails because the network is down: the holder continues until the end, then stops.
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
    """The state of a lease, as its holder knows it or as it was read from the item.

    ``owner`` and ``fence`` together are the fencing token. ``owner`` is None if the lease is free.
    ``until`` is the end of the lease, in seconds since the epoch.
    """

    owner: str | None
    fence: int = 0
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Taken:
    """The outcome of an attempt to take a lease.

    ``is_mine`` says whether the caller now holds the lease. ``item`` is the item as it is stored
    after the attempt, or empty if that is not known.
    """

    is_mine: bool
    item: Item


@dataclass(frozen=True, slots=True)
class LeaseAttributes:
    """The names of the attributes that hold the lease in an item.

    ``fence`` or ``until`` is None if the item has no such attribute. The methods return conditions
    on these attributes, for the writes of ``LeaseItem``.
    """

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
        """Return the condition that the lease has no holder, or that it ended before ``before``.

        ``before`` is in seconds since the epoch. With 0, only a lease without a holder is free.
        """

        def write(written: Expressions) -> str:
            free = f"attribute_not_exists({written.name(self.owner)})"
            if self.until is None:
                return free
            # A claim without an end is never over: a comparison with an absent attribute fails.
            over = f"{written.name(self.until)} < {written.value(seconds(before))}"
            return f"({free} OR {over})"

        return write

    def held(self, hold: LeaseHold) -> Condition:
        """Return the condition that the stored lease still has the owner and the fence of ``hold``.

        If ``hold`` has no owner, the condition is that the lease still has none either.
        """

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
        """Return the condition that the lease is unchanged since ``hold`` was read from the item.

        It fails if any process has taken, renewed or released the lease since.
        """

        def write(written: Expressions) -> str:
            term = self.held(hold)(written)
            if hold.owner is None or self.until is None:
                return term
            end = written.value(seconds(hold.until))
            return f"{term} AND {written.name(self.until)} = {end}"

        return write


def both(one: Condition, other: Condition) -> Condition:
    """Return a condition that holds if both given conditions hold."""
    return lambda written: f"{one(written)} AND {other(written)}"


class LeaseItem:
    """An item in which a lease is stored, and the writes that take, renew and release the lease."""

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
        """Make ``owner`` the holder until ``until``, and increment the fence, if a condition holds.

        Build ``condition`` with ``self.attributes`` (``free``, ``held`` or ``as_seen``), and add to
        it with ``both``. ``sets`` and ``removes`` change further attributes in the same write.
        """
        request = self._update(
            condition, {**self._holder(owner, until), **(sets or {})}, removes, counts=True
        )
        return (yield from self._taken(Call("UpdateItem", request, self.label), owner))

    def replace(self, item: Item, condition: Condition) -> Work[Taken]:
        """Take the lease by writing the whole item, if ``condition`` holds.

        ``item`` must contain the new owner. Its other lease attributes are stored as they are.
        """
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
        """Set ``until`` as the new end of the lease, on condition that ``hold`` is still current.

        ``sets`` are attributes to set in the same write. Returns the updated item, or None if the
        lease is lost.
        """
        assert self.attributes.until is not None
        end = {self.attributes.until: seconds(until)}
        return (yield from self.change(hold, {**end, **(sets or {})}))

    def change(
        self, hold: LeaseHold, sets: Mapping[str, Value], removes: tuple[str, ...] = ()
    ) -> Work[Item | None]:
        """Write attributes besides the lease's own, on condition that the lease is still held.

        Returns the updated item, or None if the lease is lost.
        """
        return (yield from self._changed(self._update(self.attributes.held(hold), sets, removes)))

    def hand_over(
        self, hold: LeaseHold, to: str, until: float, removes: tuple[str, ...] = ()
    ) -> Work[Item | None]:
        """Make the process ``to`` the holder until ``until``, and increment the fence.

        ``removes`` names attributes to remove in the same write. Returns the updated item, or None
        if the lease is lost.
        """
        condition = self.attributes.held(hold)
        request = self._update(condition, self._holder(to, until), removes, counts=True)
        taken = yield from self._taken(Call("UpdateItem", request, self.label), to)
        return taken.item if taken.is_mine else None

    def release(
        self,
        hold: LeaseHold,
        sets: Mapping[str, Value] | None = None,
        removes: tuple[str, ...] = (),
    ) -> Work[bool]:
        """Remove the owner and the end of the lease, and keep its fence.

        ``sets`` and ``removes`` change further attributes in the same write. Returns False if the
        lease was already lost.
        """
        attributes = self.attributes
        names = (attributes.owner, *(() if attributes.until is None else (attributes.until,)))
        request = self._update(attributes.held(hold), sets or {}, (*names, *removes))
        try:
            yield Call("UpdateItem", request, self.label)
        except ConditionFailed as refused:
            return refused.after_unknown
        return True

    def delete(self, hold: LeaseHold, condition: Condition | None = None) -> Work[bool]:
        """Delete the item that carries the lease, if ``condition`` holds as well.

        Returns False if the lease was already lost, or the condition does not hold.
        """
        held = self.attributes.held(hold)
        request = self._conditional(held if condition is None else both(held, condition))
        try:
            yield Call("DeleteItem", request, self.label)
        except ConditionFailed as refused:
            return refused.after_unknown
        return True

    def check(self, hold: LeaseHold) -> dict[str, Any]:
        """Return a ConditionCheck that makes a transaction fail if the lease is lost."""
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
        """Return an UpdateItem request. With ``counts``, the request also adds 1 to the fence."""
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
    """Return a time as a DynamoDB number with every digit, so that equal times compare equal."""
    return {"N": repr(moment)}
