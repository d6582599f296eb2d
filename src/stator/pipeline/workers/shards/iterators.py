"""Requests that precede reading a stream: they list its shards and get an iterator at a checkpoint.

Only this module knows how positions (``leases``) translate to shard iterators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.errors import ResourceNotFound, ServiceError, SlowDown
from stator.pipeline.workers.shards.leases import OLDEST
from stator.pipeline.workers.shards.lineage import ShardInfo, read_shards
from stator.tables.work import Call, Work

_AT = "AT:"


@dataclass(frozen=True, slots=True)
class ShardCursor:
    """A shard iterator, and the time ``skip_before``: the reader skips earlier records."""

    text: str
    skip_before: float = 0.0


def list_shards(stream: str, label: str) -> Work[tuple[ShardInfo, ...]]:
    pages: list[dict[str, Any]] = []
    request: dict[str, Any] = {"StreamArn": stream}
    while True:
        reply = yield Call("DescribeStream", request, label)
        pages.append(reply["StreamDescription"])
        last = pages[-1].get("LastEvaluatedShardId")
        if last is None:
            return read_shards(pages)
        request = {"StreamArn": stream, "ExclusiveStartShardId": last}


def iterator_at(stream: str, shard: str, position: str, label: str) -> Work[ShardCursor]:
    """Return an iterator that reads a shard from a position on.

    ``stream`` is the stream's ARN. ``position`` has the form of ``ShardLease.position``, such as a
    sequence number. ``label`` names the calls for metrics. Raises TrimmedDataAccess if the stream
    has trimmed the next records, and ResourceNotFound if the shard is gone.
    """
    shown: dict[str, Any] = {"StreamArn": stream, "ShardId": shard}
    oldest = {**shown, "ShardIteratorType": OLDEST}
    if position == OLDEST:
        return (yield from _asked(oldest, label))
    if not position.startswith(_AT):
        after = {**shown, "ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": position}
        return (yield from _asked(after, label))
    second = int(float(position.removeprefix(_AT)))
    try:
        return (
            yield from _asked(
                {**shown, "ShardIteratorType": "AT_TIMESTAMP", "Timestamp": second}, label
            )
        )
    except ServiceError as refused:
        if isinstance(refused, (SlowDown, ResourceNotFound)):
            raise
    # DynamoDB Local does not know AT_TIMESTAMP: read from the oldest record and skip.
    found = yield from _asked(oldest, label)
    return ShardCursor(found.text, float(second))


def _asked(request: dict[str, Any], label: str) -> Work[ShardCursor]:
    reply = yield Call("GetShardIterator", request, label)
    return ShardCursor(str(reply["ShardIterator"]))
