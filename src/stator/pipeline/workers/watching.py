"""A group of workers from outside: who reads which shard, how far behind it is, and how long until its oldest unhandled change is gone.

The lag is not what a worker said last, which a dead one says for ever: the stream is asked for the first change after each position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.errors import ResourceNotFound, ServiceError, TrimmedDataAccess
from stator.pipeline.workers.leases import OLDEST, SNAPSHOT, Group, Lease, LeaseTable
from stator.pipeline.workers.lineage import is_ready
from stator.pipeline.workers.options import RETENTION_SECONDS, WorkerOptions
from stator.pipeline.workers.parking import Parking
from stator.tables.context import Context
from stator.tables.work import Call, Gather, Work, gathered

_LABEL = "stream"


@dataclass(frozen=True, slots=True)
class ShardState:
    """``owner`` is None when nobody reads it; ``waiting`` says that its parent is not read yet. ``lag_seconds`` is the age of the first change not handled."""

    table: str
    shard: str
    owner: str | None
    waiting: bool
    lag_seconds: float
    lost: bool

    @property
    def trim_seconds(self) -> float:
        return max(0.0, RETENTION_SECONDS - self.lag_seconds)


@dataclass(frozen=True, slots=True)
class GroupState:
    shards: tuple[ShardState, ...]
    parked_items: int
    parked_changes: int

    @property
    def workers(self) -> tuple[str, ...]:
        return tuple(sorted({shard.owner for shard in self.shards if shard.owner}))

    @property
    def lag_seconds(self) -> float:
        return max((shard.lag_seconds for shard in self.shards), default=0.0)


class Watching:
    def __init__(self, context: Context, group: str) -> None:
        usual = WorkerOptions()
        self._context = context
        self._leases = LeaseTable(context, group, usual.lease_seconds, usual.drift_seconds)
        self._parking = Parking(context, group, self._leases)
        self._drift_seconds = usual.drift_seconds

    def look(self) -> Work[GroupState]:
        group = yield from self._leases.load()
        parked = yield from self._parking.keys()
        leases = [lease for lease in group.leases.values() if not lease.is_ended or lease.lost]
        states = gathered((yield Gather([self._state(lease, group) for lease in leases])))
        in_order = sorted(states, key=lambda state: (state.table, state.shard))
        return GroupState(tuple(in_order), len(parked), sum(each.count for each in parked))

    def _state(self, lease: Lease, group: Group) -> Work[ShardState]:
        now = self._context.now()
        lag = 0.0 if lease.is_ended or lease.shard == SNAPSHOT else (yield from self._lag(lease, now))
        owner = None if lease.is_free(now, self._drift_seconds) else lease.owner
        waiting = not lease.is_ended and not is_ready(lease, group, {})
        return ShardState(lease.table, lease.shard, owner, waiting, lag, lease.lost)

    def _lag(self, lease: Lease, now: float) -> Work[float]:
        request: dict[str, Any] = {"StreamArn": lease.stream, "ShardId": lease.shard}
        if lease.position == OLDEST:
            request["ShardIteratorType"] = OLDEST
        elif lease.position.startswith("AT:"):
            request |= {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": int(float(lease.position[3:]))}
        else:
            request |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": lease.position}
        try:
            reply = yield Call("GetShardIterator", request, _LABEL)
            page = yield Call("GetRecords", {"ShardIterator": reply["ShardIterator"], "Limit": 1}, _LABEL)
        except (TrimmedDataAccess, ResourceNotFound):
            return RETENTION_SECONDS
        except ServiceError:  # a kind of iterator that is not known there, or throttling: what the worker said last
            return lease.lag_seconds
        records = page["Records"]
        return max(0.0, now - float(records[0]["dynamodb"]["ApproximateCreationDateTime"])) if records else 0.0
