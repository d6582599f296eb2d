"""The lineage of shards: which may be read now, and which leases to create and delete. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stator.pipeline.workers.options import RETENTION_SECONDS
from stator.pipeline.workers.shards.leases import (
    FIRST,
    OLDEST,
    SNAPSHOT,
    Beginning,
    ShardLease,
    WorkerGroup,
)


@dataclass(frozen=True, slots=True)
class ShardInfo:
    id: str
    parent: str | None
    is_open: bool


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A table's stream and its shards, as they were when last listed."""

    table: str
    arn: str
    shards: tuple[ShardInfo, ...]

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(shard.id for shard in self.shards)


def read_shards(pages: Sequence[Mapping[str, Any]]) -> tuple[ShardInfo, ...]:
    return tuple(
        ShardInfo(
            shard["ShardId"],
            shard.get("ParentShardId"),
            "EndingSequenceNumber" not in shard["SequenceNumberRange"],
        )
        for page in pages
        for shard in page["Shards"]
    )


def first_beginning(stream: StreamInfo, start: str, at: float) -> Beginning:
    """Return where a group of workers begins to read a stream.

    If ``start`` is "oldest", every shard is read whole. Otherwise open shards are read from the
    moment ``at`` on, and closed shards are never read.
    """
    if start == "oldest":
        return Beginning(stream.table, stream.arn, start, at)
    return Beginning(
        stream.table,
        stream.arn,
        start,
        at,
        frozenset(shard.id for shard in stream.shards if shard.is_open),
        frozenset(shard.id for shard in stream.shards if not shard.is_open),
        is_ready=start != "snapshot",
    )


def new_leases(stream: StreamInfo, beginning: Beginning, group: WorkerGroup) -> list[ShardLease]:
    made = []
    first = ShardLease(stream.table, SNAPSHOT, stream.arn, FIRST)
    if not beginning.is_ready and first.name not in group.leases:
        made.append(first)
    for shard in stream.shards:
        lease = ShardLease(
            stream.table, shard.id, stream.arn, _first_position(shard.id, beginning), shard.parent
        )
        if lease.name not in group.leases and shard.id not in beginning.skipped:
            made.append(lease)
    return made


def _first_position(shard: str, beginning: Beginning) -> str:
    return f"AT:{beginning.at!r}" if shard in beginning.opened else OLDEST


def is_ready(lease: ShardLease, group: WorkerGroup, streams: Mapping[str, StreamInfo]) -> bool:
    """Whether a lease's shard may be read now, because everything that comes before it is done.

    The shard's parent must have been read to its end, or be gone. The table's snapshot and the
    shards of an earlier stream of the table come first, too.
    """
    if lease.is_ended:
        return False
    beginning = group.beginnings.get(lease.table)
    if beginning is None:
        return False
    if lease.shard == SNAPSHOT or not beginning.is_ready:
        return lease.shard == SNAPSHOT
    if lease.stream == beginning.stream and _has_older_stream(lease, group):
        return False
    if lease.parent is None:
        return True
    parent = group.leases.get(f"{lease.table}#{lease.parent}")
    if parent is not None:
        return parent.is_ended
    # A parent has no lease if it was skipped, if its lease was deleted after its end, or if the
    # shard was trimmed before this group saw it. A parent that is listed and not skipped is about
    # to get its lease: wait for it.
    stream = streams.get(lease.table)
    listed = stream is not None and lease.parent in stream.ids
    return not listed or lease.parent in beginning.skipped


def _has_older_stream(lease: ShardLease, group: WorkerGroup) -> bool:
    """Whether an earlier stream of the lease's table still has shards to read."""
    return any(
        other.table == lease.table and other.stream != lease.stream and not other.is_ended
        for other in group.leases.values()
    )


def forgettable(
    group: WorkerGroup, streams: Mapping[str, StreamInfo], now: float
) -> list[ShardLease]:
    """Return the leases that can be deleted.

    A lease can be deleted if its shard is gone from the stream, and if the lease ended longer ago
    than a stream retains changes. Without the second condition, a shard that is newer than this
    worker's list of shards would count as gone. Its lease would be deleted and created again, and
    the shard would be read again from the start.
    """
    return [
        lease
        for lease in group.leases.values()
        if lease.is_ended
        and lease.ended_at + RETENTION_SECONDS < now
        and lease.shard != SNAPSHOT
        and lease.table in streams
        and lease.shard not in streams[lease.table].ids
    ]
