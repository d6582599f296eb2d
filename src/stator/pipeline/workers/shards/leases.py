"""Leases on shards, as items: taken, renewed, moved on, handed over, ended. Every write is conditional on the fence, so that of two who believe to have a
lease only one can be right.

``position`` is where to read on: ``TRIM_HORIZON``, ``AT:<seconds>``, the sequence number of the last change that is done, or ``END``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stator.errors import ConditionFailed
from stator.model.values import Item
from stator.patterns.item_pages import prefix_query, query_all
from stator.tables.context import Context
from stator.tables.schema import Place
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions

OLDEST: Final = "TRIM_HORIZON"
END: Final = "END"
# The lease on a snapshot stands among those on shards (see snapshot.py).
SNAPSHOT: Final = "SNAPSHOT"
FIRST: Final = "FIRST"
_LABEL: Final = "stream lease"
_WORK: Final = "WORK#"


@dataclass(frozen=True, slots=True)
class Lease:
    """``table`` and ``shard`` name it; ``wanted`` is a worker that asked for it, since ``wanted_at``. ``lost`` is set where changes were gone before they were read."""

    table: str
    shard: str
    stream: str
    position: str
    parent: str | None = None
    owner: str | None = None
    fence: int = 0
    until: float = 0.0
    wanted: str | None = None
    wanted_at: float = 0.0
    lag_seconds: float = 0.0
    ended_at: float = 0.0
    lost: bool = False

    @property
    def name(self) -> str:
        return f"{self.table}#{self.shard}"

    @property
    def is_ended(self) -> bool:
        return self.position == END

    def is_free(self, now: float, drift_seconds: float) -> bool:
        return self.owner is None or self.until + drift_seconds < now


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a group began to read a table's stream, written once: the shards that were open then are read from ``at`` on, those ``skipped`` never, any other whole."""

    table: str
    stream: str
    start: str
    at: float
    opened: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    is_ready: bool = True


@dataclass(slots=True)
class Group:
    """All there is of a group at one moment."""

    leases: dict[str, Lease] = field(default_factory=dict)
    beginnings: dict[str, Beginning] = field(default_factory=dict)


class LeaseTable:
    def __init__(
        self, context: Context, group: str, lease_seconds: float, drift_seconds: float
    ) -> None:
        self._context = context
        self._place = context.schema.place
        self._partition = f"{_WORK}{group}"
        self.lease_seconds = lease_seconds
        self.drift_seconds = drift_seconds

    # -- reading

    def load(self) -> Work[Group]:
        items = yield from query_all(prefix_query(self._place, self._partition, ""), _LABEL)
        group = Group()
        for item in items:
            sort = item[self._place.sort]["S"]
            if sort.startswith("LEASE#"):
                lease = _read_lease(item)
                group.leases[lease.name] = lease
            elif sort.startswith("STREAM#"):
                beginning = _read_beginning(item)
                group.beginnings[beginning.table] = beginning
        return group

    # -- making

    def begin(self, beginning: Beginning) -> Work[bool]:
        """Write down where the group begins; False if somebody has."""
        item: Item = {
            **self._place.key(self._partition, f"STREAM#{beginning.table}"),
            "table": {"S": beginning.table},
            "stream": {"S": beginning.stream},
            "start": {"S": beginning.start},
            "at": {"N": repr(beginning.at)},
            "ready": {"BOOL": beginning.is_ready},
        }
        for name, shards in (("opened", beginning.opened), ("skipped", beginning.skipped)):
            if shards:
                item[name] = {"SS": sorted(shards)}
        return (yield from self._put_new(item))

    def follow_new_stream(self, beginning: Beginning) -> Work[None]:
        """A table's stream was switched off and on again: from now on its new one is read, all of it."""
        written = Expressions()
        request = {
            "TableName": self._place.table,
            "Key": self._place.key(self._partition, f"STREAM#{beginning.table}"),
            "UpdateExpression": f"SET {written.name('stream')} = {written.value({'S': beginning.stream})} "
            f"REMOVE {written.name('opened')}, {written.name('skipped')}",
        }
        yield Call("UpdateItem", written.into(request), _LABEL)

    def mark_ready(self, table: str) -> Work[None]:
        """The items of a snapshot have been handled; the stream may be read."""
        written = Expressions()
        request = {
            "TableName": self._place.table,
            "Key": self._place.key(self._partition, f"STREAM#{table}"),
            "UpdateExpression": f"SET {written.name('ready')} = {written.value({'BOOL': True})}",
        }
        yield Call("UpdateItem", written.into(request), _LABEL)

    def create(self, lease: Lease) -> Work[bool]:
        item: Item = {
            **self._key(lease),
            "table": {"S": lease.table},
            "shard": {"S": lease.shard},
            "stream": {"S": lease.stream},
            "position": {"S": lease.position},
            "fence": {"N": "0"},
        }
        if lease.parent is not None:
            item["parent"] = {"S": lease.parent}
        return (yield from self._put_new(item))

    def _put_new(self, item: Item) -> Work[bool]:
        written = Expressions()
        request = {
            "TableName": self._place.table,
            "Item": item,
            "ConditionExpression": f"attribute_not_exists({written.name(self._place.partition)})",
        }
        try:
            yield Call("PutItem", written.into(request), _LABEL)
        except ConditionFailed:
            return False
        return True

    def delete(self, lease: Lease) -> Work[None]:
        """Forget a lease that has ended and whose shard is gone."""
        written = Expressions()
        request = {
            "TableName": self._place.table,
            "Key": self._key(lease),
            "ConditionExpression": f"{written.name('position')} = {written.value({'S': END})}",
        }
        try:
            yield Call("DeleteItem", written.into(request), _LABEL)
        except ConditionFailed:
            return

    # -- taking and giving

    def take(self, lease: Lease, me: str) -> Work[Lease | None]:
        """Make a lease mine, as it was seen; None if somebody was quicker, or its owner has renewed it since."""
        until = self._context.now() + self.lease_seconds
        changes = {
            "owner": {"S": me},
            "until": {"N": repr(until)},
            "fence": {"N": str(lease.fence + 1)},
        }
        return (
            yield from self._change(lease, changes, ("wanted", "wanted_at"), as_seen=True, mine=me)
        )

    def ask(self, lease: Lease, me: str) -> Work[None]:
        """Ask the owner to hand a lease over."""
        changes: Item = {"wanted": {"S": me}, "wanted_at": {"N": repr(self._context.now())}}
        yield from self._change(lease, changes, ())

    def renew(self, lease: Lease) -> Work[Lease | None]:
        """Put the end off; None if the lease is another's by now."""
        until = self._context.now() + self.lease_seconds
        return (yield from self._change(lease, {"until": {"N": repr(until)}}, ()))

    def move(self, lease: Lease, position: str, lag_seconds: float) -> Work[Lease | None]:
        """Everything up to ``position`` is done. It puts the end off, too."""
        until = self._context.now() + self.lease_seconds
        changes: Item = {
            "until": {"N": repr(until)},
            "position": {"S": position},
            "lag": {"N": repr(round(lag_seconds, 3))},
        }
        return (yield from self._change(lease, changes, ()))

    def end(self, lease: Lease, *, lost: bool = False) -> Work[Lease | None]:
        changes: Item = {
            "position": {"S": END},
            "ended": {"N": repr(self._context.now())},
            "lag": {"N": "0"},
        }
        if lost:
            changes["lost"] = {"BOOL": True}
        return (yield from self._change(lease, changes, ("owner", "until", "wanted", "wanted_at")))

    def give(self, lease: Lease) -> Work[None]:
        """Give a lease back, or to the worker that wants it."""
        if lease.wanted is None:
            yield from self._change(lease, {}, ("owner", "until"))
            return
        until = self._context.now() + self.lease_seconds
        changes = {
            "owner": {"S": lease.wanted},
            "until": {"N": repr(until)},
            "fence": {"N": str(lease.fence + 1)},
        }
        yield from self._change(lease, changes, ("wanted", "wanted_at"))

    def check(self, lease: Lease) -> dict[str, Any]:
        """For a transaction: that the lease is still held."""
        written = Expressions()
        condition = f"{written.name('fence')} = {written.value({'N': str(lease.fence)})}"
        request = {
            "TableName": self._place.table,
            "Key": self._key(lease),
            "ConditionExpression": condition,
        }
        return {"ConditionCheck": written.into(request)}

    def _change(
        self,
        lease: Lease,
        changes: Mapping[str, Any],
        removed: tuple[str, ...],
        *,
        as_seen: bool = False,
        mine: str | None = None,
    ) -> Work[Lease | None]:
        """One conditional update: of a lease whose fence and owner are the same, and ``as_seen`` its end, too."""
        written = Expressions()
        parts = []
        if changes:
            parts.append(
                "SET "
                + ", ".join(
                    f"{written.name(name)} = {written.value(value)}"
                    for name, value in changes.items()
                )
            )
        if removed:
            parts.append("REMOVE " + ", ".join(map(written.name, removed)))
        condition = f"{written.name('fence')} = {written.value({'N': str(lease.fence)})}"
        if lease.owner is None:
            condition += f" AND attribute_not_exists({written.name('owner')})"
        else:
            condition += f" AND {written.name('owner')} = {written.value({'S': lease.owner})}"
            if as_seen:
                condition += (
                    f" AND {written.name('until')} = {written.value({'N': repr(lease.until)})}"
                )
        request = {
            "TableName": self._place.table,
            "Key": self._key(lease),
            "UpdateExpression": " ".join(parts),
            "ConditionExpression": condition,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            reply = yield Call("UpdateItem", written.into(request), _LABEL)
        except ConditionFailed as refused:
            found = None if not refused.item else _read_lease(refused.item)
            if (
                found is not None
                and mine is not None
                and refused.after_unknown
                and found.owner == mine
            ):
                return found  # the first attempt was carried out, and its answer lost
            return None
        return _read_lease(reply["Attributes"])

    def _key(self, lease: Lease) -> Item:
        return self._place.key(self._partition, f"LEASE#{lease.name}")


def is_bookkeeping(keys: Item, place: Place) -> bool:
    """Whether an item of the design's own table is one that workers write for themselves, all the time: a lease, or something parked."""
    return str(keys.get(place.partition, {}).get("S", "")).startswith(_WORK)


def _read_lease(item: Item) -> Lease:
    def number(name: str) -> float:
        return float(item[name]["N"]) if name in item else 0.0

    def text(name: str) -> str | None:
        return item[name]["S"] if name in item else None

    return Lease(
        item["table"]["S"],
        item["shard"]["S"],
        item["stream"]["S"],
        item["position"]["S"],
        text("parent"),
        text("owner"),
        int(item["fence"]["N"]),
        number("until"),
        text("wanted"),
        number("wanted_at"),
        number("lag"),
        number("ended"),
        item.get("lost", {}).get("BOOL", False),
    )


def _read_beginning(item: Item) -> Beginning:
    return Beginning(
        item["table"]["S"],
        item["stream"]["S"],
        item["start"]["S"],
        float(item["at"]["N"]),
        frozenset(item.get("opened", {}).get("SS", ())),
        frozenset(item.get("skipped", {}).get("SS", ())),
        item["ready"]["BOOL"],
    )
