"""The leases on shards, as items, and where a group began to read.

    PK  WORK#billing   SK  STREAM#shop                      start, at, opened, skipped, ready
    PK  WORK#billing   SK  RUNNER                           runner
    PK  WORK#billing   SK  LEASE#shop#shardId-0001...-0a3f  owner, fence, until, position, wanted

Each lease is a fenced lease (``coordination.lease``) with a checkpoint in it. ``position`` is where
to read on: ``TRIM_HORIZON``, ``AT:<seconds>``, the sequence number of the last handled change, or
``END``. All these items carry ``_format``.

An app that counts changes (views, roll-ups) runs either in workers or on AWS Lambda, because each
of them has its own way to recognise a repeated change. ``runner`` says which: "workers" or
"lambda". The first to start stores it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from stator.coordination.lease import LeaseHold, LeaseItem, seconds
from stator.coordination.stored_format import StoredFormat
from stator.errors import ConditionFailed
from stator.model.values import Item
from stator.patterns.item_pages import prefix_query, query_all
from stator.tables.context import Context
from stator.tables.schema.place import Place
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions

OLDEST: Final = "TRIM_HORIZON"
END: Final = "END"
Runner = Literal["workers", "lambda"]
# The lease on a snapshot stands among those on shards (see snapshot.py).
SNAPSHOT: Final = "SNAPSHOT"
FIRST: Final = "FIRST"
_LABEL: Final = "stream lease"
_WORK: Final = "WORK#"
_REQUEST: Final = ("wanted", "wanted_at")
_FORMAT: Final = StoredFormat("worker group")


@dataclass(frozen=True, slots=True)
class ShardLease:
    """The right to read one shard, and how far it has been read.

    ``wanted`` is a worker that asked for the lease at ``wanted_at``. ``lost`` says that the shard
    was gone from the stream before it was read.
    """

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
    def hold(self) -> LeaseHold:
        return LeaseHold(self.owner, self.fence, self.until)

    @property
    def is_ended(self) -> bool:
        return self.position == END

    def is_free(self, now: float, drift_seconds: float) -> bool:
        return self.owner is None or self.until + drift_seconds < now


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a group of workers began to read a table's stream. The first worker stores it.

    Shards in ``opened`` are read from the moment ``at`` on, shards in ``skipped`` are never read,
    and all others are read whole. ``is_ready`` is False until the snapshot of the table has been
    handled.
    """

    table: str
    stream: str
    start: str
    at: float
    opened: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    is_ready: bool = True


@dataclass(slots=True)
class WorkerGroup:
    """All leases and beginnings of a group of workers, as read at one moment.

    ``leases`` has the leases by their names. ``runner`` is "workers" or "lambda", or empty text if
    nothing is stored.
    """

    leases: dict[str, ShardLease] = field(default_factory=dict)
    beginnings: dict[str, Beginning] = field(default_factory=dict)
    runner: str = ""


class LeaseTable:
    def __init__(
        self, context: Context, group: str, lease_seconds: float, drift_seconds: float
    ) -> None:
        self._context = context
        self._place = context.schema.place
        self._group = group
        self._partition = f"{_WORK}{group}"
        self.lease_seconds = lease_seconds
        self.drift_seconds = drift_seconds

    # -- reading

    def load(self) -> Work[WorkerGroup]:
        items = yield from query_all(prefix_query(self._place, self._partition, ""), _LABEL)
        group = WorkerGroup()
        for item in items:
            _FORMAT.check(item, self._group)
            sort = item[self._place.sort]["S"]
            if sort.startswith("LEASE#"):
                lease = _read_lease(item)
                group.leases[lease.name] = lease
            elif sort.startswith("STREAM#"):
                beginning = _read_beginning(item)
                group.beginnings[beginning.table] = beginning
            elif sort == "RUNNER":
                group.runner = item["runner"]["S"]
        return group

    def claim(self, runner: Runner) -> Work[str]:
        """Store what runs an app that counts changes. Return what is stored.

        A group that has read a stream without storing it was run by workers.
        """
        group = yield from self.load()
        if not group.runner and group.beginnings and runner != "workers":
            return "workers"
        if not group.runner:
            item: Item = {
                **self._place.key(self._partition, "RUNNER"),
                "runner": {"S": runner},
                **_FORMAT.attributes(),
            }
            if (yield from self._put_new(item)):
                return runner
            group = yield from self.load()
        return group.runner

    # -- making

    def begin(self, beginning: Beginning) -> Work[bool]:
        """Store where the group begins to read a stream.

        Returns False if another worker has already stored a beginning.
        """
        item: Item = {
            **self._place.key(self._partition, f"STREAM#{beginning.table}"),
            "table": {"S": beginning.table},
            "stream": {"S": beginning.stream},
            "start": {"S": beginning.start},
            "at": {"N": repr(beginning.at)},
            "ready": {"BOOL": beginning.is_ready},
            **_FORMAT.attributes(),
        }
        for name, shards in (("opened", beginning.opened), ("skipped", beginning.skipped)):
            if shards:
                item[name] = {"SS": sorted(shards)}
        return (yield from self._put_new(item))

    def follow_new_stream(self, beginning: Beginning) -> Work[None]:
        """Record that a table has a new stream, which the group reads from its beginning.

        A table gets a new stream when its stream is disabled and enabled again.
        """
        written = Expressions()
        stream = written.value({"S": beginning.stream})
        request = {
            "TableName": self._place.table,
            "Key": self._place.key(self._partition, f"STREAM#{beginning.table}"),
            "UpdateExpression": f"SET {written.name('stream')} = {stream} "
            f"REMOVE {written.name('opened')}, {written.name('skipped')}",
        }
        yield Call("UpdateItem", written.into(request), _LABEL)

    def mark_ready(self, table: str) -> Work[None]:
        """Record that a table's snapshot has been handled, so that its stream may be read."""
        written = Expressions()
        request = {
            "TableName": self._place.table,
            "Key": self._place.key(self._partition, f"STREAM#{table}"),
            "UpdateExpression": f"SET {written.name('ready')} = {written.value({'BOOL': True})}",
        }
        yield Call("UpdateItem", written.into(request), _LABEL)

    def create(self, lease: ShardLease) -> Work[bool]:
        item: Item = {
            **self._key(lease),
            "table": {"S": lease.table},
            "shard": {"S": lease.shard},
            "stream": {"S": lease.stream},
            "position": {"S": lease.position},
            "fence": {"N": "0"},
            **_FORMAT.attributes(),
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

    def delete(self, lease: ShardLease) -> Work[None]:
        """Delete a lease whose shard has been read to the end. Does nothing for any other lease."""
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

    def take(self, lease: ShardLease, me: str) -> Work[ShardLease | None]:
        """Make worker ``me`` the owner of a lease, and return the lease.

        Returns None if the lease has changed since it was read.
        """
        item = self._item(lease)
        taken = yield from item.take(
            me, self._end(), item.attributes.as_seen(lease.hold), removes=_REQUEST
        )
        return _read_lease(taken.item) if taken.is_mine else None

    def ask(self, lease: ShardLease, me: str) -> Work[None]:
        """Record in a lease that worker ``me`` wants it, so that its owner hands it over."""
        wanted: Item = {"wanted": {"S": me}, "wanted_at": seconds(self._context.now())}
        yield from self._item(lease).change(lease.hold, wanted)

    def renew(self, lease: ShardLease) -> Work[ShardLease | None]:
        """Extend a lease by ``lease_seconds`` from now, and return it.

        Returns None if another worker has taken it.
        """
        return _read((yield from self._item(lease).renew(lease.hold, self._end())))

    def move(self, lease: ShardLease, position: str, lag_seconds: float) -> Work[ShardLease | None]:
        """Write a checkpoint, renew the lease, and return it, or None if another worker has it.

        Everything up to ``position`` has been handled.
        """
        checkpoint: Item = {
            "position": {"S": position},
            "lag": {"N": repr(round(lag_seconds, 3))},
        }
        return _read((yield from self._item(lease).renew(lease.hold, self._end(), checkpoint)))

    def end(self, lease: ShardLease, *, lost: bool = False) -> Work[None]:
        """Record in the lease that its shard has been read to the end, and release the lease.

        With ``lost``, record that the shard was gone before it was read.
        """
        ended: Item = {
            "position": {"S": END},
            "ended": seconds(self._context.now()),
            "lag": {"N": "0"},
        }
        if lost:
            ended["lost"] = {"BOOL": True}
        yield from self._item(lease).release(lease.hold, ended, _REQUEST)

    def give(self, lease: ShardLease) -> Work[None]:
        """Release a lease, or hand it to the worker that asked for it."""
        item = self._item(lease)
        if lease.wanted is None:
            yield from item.release(lease.hold)
        else:
            yield from item.hand_over(lease.hold, lease.wanted, self._end(), _REQUEST)

    def check(self, lease: ShardLease) -> dict[str, Any]:
        """Return a transaction action that fails unless the lease is still held."""
        return self._item(lease).check(lease.hold)

    def _end(self) -> float:
        return self._context.now() + self.lease_seconds

    def _item(self, lease: ShardLease) -> LeaseItem:
        return LeaseItem(self._place.table, self._key(lease), _LABEL)

    def _key(self, lease: ShardLease) -> Item:
        return self._place.key(self._partition, f"LEASE#{lease.name}")


def is_bookkeeping(keys: Item, place: Place) -> bool:
    """Whether workers keep the item for themselves: a lease, a beginning, or a parked change."""
    return str(keys.get(place.partition, {}).get("S", "")).startswith(_WORK)


def _read(item: Item | None) -> ShardLease | None:
    return None if item is None else _read_lease(item)


def _read_lease(item: Item) -> ShardLease:
    def number(name: str) -> float:
        return float(item[name]["N"]) if name in item else 0.0

    def text(name: str) -> str | None:
        return item[name]["S"] if name in item else None

    return ShardLease(
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
