"""A group of workers seen from outside: who reads which shard, and how far behind it is.

The lag is computed from the first change in the stream after each checkpoint. The lag that a worker
last reported would be misleading, because a dead worker reports nothing new.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from stator.errors import ConnectionTrouble, ResourceNotFound, ServiceError, TrimmedDataAccess
from stator.pipeline.workers.handlers.parking import Parking
from stator.pipeline.workers.options import RETENTION_SECONDS, WorkerOptions
from stator.pipeline.workers.shards.iterators import ShardCursor, iterator_at
from stator.pipeline.workers.shards.leases import (
    SNAPSHOT,
    LeaseTable,
    ShardLease,
    WorkerGroup,
    is_bookkeeping,
)
from stator.pipeline.workers.shards.lineage import is_ready
from stator.tables.context import Context
from stator.tables.work import Call, Gather, Work, gathered

log = logging.getLogger("stator.workers")

_LABEL = "stream"
_MANY = 1000


@dataclass(frozen=True, slots=True)
class ShardState:
    """The state of one shard. ``owner`` is the worker that reads it, or None.

    ``waiting`` says that the shard cannot be read yet, for example because its parent has not been
    read to the end. ``lag_seconds`` is the age of the first change after the checkpoint, 0 if there
    is none, or None if it is unknown. ``lost`` says that the shard was gone before it was read.
    """

    table: str
    shard: str
    owner: str | None
    waiting: bool
    lag_seconds: float | None
    lost: bool

    @property
    def trim_seconds(self) -> float | None:
        if self.lag_seconds is None:
            return None
        return max(0.0, RETENTION_SECONDS - self.lag_seconds)


@dataclass(frozen=True, slots=True)
class GroupState:
    """The shards of a group of workers, and how many items are set aside or parked.

    Workers retry items that are set aside; parked items wait for an operator. ``parked_changes``
    counts the stored changes of the parked items. ``oldest_set_aside`` is the time of the oldest
    change that is set aside, in seconds since the epoch.
    """

    shards: tuple[ShardState, ...]
    parked_items: int
    parked_changes: int
    set_aside_items: int = 0
    oldest_set_aside: float | None = None

    @property
    def workers(self) -> tuple[str, ...]:
        return tuple(sorted({shard.owner for shard in self.shards if shard.owner}))

    @property
    def lag_seconds(self) -> float | None:
        """The lag of the slowest shard, or None if the lag of any shard is unknown."""
        known = [shard.lag_seconds for shard in self.shards if shard.lag_seconds is not None]
        return max(known) if known and len(known) == len(self.shards) else None


class GroupWatch:
    """Reads the state of a group of workers from outside of the group."""

    def __init__(self, context: Context, group: str) -> None:
        defaults = WorkerOptions()
        self._context = context
        self._leases = LeaseTable(context, group, defaults.lease_seconds, defaults.drift_seconds)
        self._parking = Parking(context, group, self._leases)
        self._drift_seconds = defaults.drift_seconds

    def look(self) -> Work[GroupState]:
        group = yield from self._leases.load()
        heads = yield from self._parking.keys()
        parked = [head for head in heads if not head.is_set_aside]
        set_aside = [head for head in heads if head.is_set_aside]
        leases = [lease for lease in group.leases.values() if not lease.is_ended or lease.lost]
        states = gathered((yield Gather([self._state(lease, group) for lease in leases])))
        in_order = sorted(states, key=lambda state: (state.table, state.shard))
        return GroupState(
            tuple(in_order),
            len(parked),
            sum(head.count for head in parked),
            len(set_aside),
            min((head.at for head in set_aside), default=None),
        )

    def _state(self, lease: ShardLease, group: WorkerGroup) -> Work[ShardState]:
        now = self._context.now()
        lag = 0.0 if lease.is_ended else (yield from self._lag(lease, now))
        owner = None if lease.is_free(now, self._drift_seconds) else lease.owner
        waiting = not lease.is_ended and not is_ready(lease, group, {})
        return ShardState(lease.table, lease.shard, owner, waiting, lag, lease.lost)

    def _lag(self, lease: ShardLease, now: float) -> Work[float | None]:
        if lease.shard == SNAPSHOT:
            return None
        try:
            found = yield from iterator_at(lease.stream, lease.shard, lease.position, _LABEL)
            first = yield from self._first(found, lease)
        except (TrimmedDataAccess, ResourceNotFound):
            return RETENTION_SECONDS
        except (ServiceError, ConnectionTrouble) as error:
            log.warning("the lag of %s is unknown: %s", lease.name, error)
            return None
        return 0.0 if first is None else max(0.0, now - first)

    def _first(self, iterator: ShardCursor, lease: ShardLease) -> Work[float | None]:
        """Return the time of the first change in the stream after a lease's checkpoint, or None."""
        place = self._context.schema.place
        is_own = lease.table == place.table
        following: str | None = iterator.text
        while following is not None:
            # This is usually the first record. If some are skipped, read on.
            limit = _MANY if iterator.skip_before or is_own else 1
            page = yield Call("GetRecords", {"ShardIterator": following, "Limit": limit}, _LABEL)
            bodies = [record["dynamodb"] for record in page["Records"]]
            for body in bodies:
                at = float(body["ApproximateCreationDateTime"])
                if at >= iterator.skip_before and not (
                    is_own and is_bookkeeping(body["Keys"], place)
                ):
                    return at
            if not bodies:
                return None
            following = page.get("NextShardIterator")
        return None
