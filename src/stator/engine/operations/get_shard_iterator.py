"""GetShardIterator: a position in a shard to read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.streams.shard_iterator import HORIZON, ShardIterator
from stator.engine.streams.stream import SEQUENCE_BASE, Shard, Stream, check_stream_arn
from stator.errors import ResourceNotFound, TrimmedDataAccess, ValidationFailed
from stator.model.values import INVALID

_NUMBERED = ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")


@dataclass(frozen=True, slots=True)
class GetShardIteratorRequest:
    arn: str
    shard_id: str
    kind: str
    sequence: int
    timestamp: float


def parse(request: dict[str, Any]) -> GetShardIteratorRequest:
    kind = request["ShardIteratorType"]
    sequence_number, timestamp = request.get("SequenceNumber"), request.get("Timestamp")
    if kind not in _NUMBERED and sequence_number is not None:
        raise ValidationFailed(
            f"{INVALID}SequenceNumber should not be passed for this iterator type"
        )
    if kind in _NUMBERED and (sequence_number is None or not sequence_number.isdecimal()):
        raise ValidationFailed(f"{INVALID}Invalid SequenceNumber")
    if kind == "AT_TIMESTAMP" and timestamp is None:
        raise ValidationFailed(f"{INVALID}Timestamp is required for this iterator type")
    if kind != "AT_TIMESTAMP" and timestamp is not None:
        raise ValidationFailed(f"{INVALID}Timestamp should not be passed for this iterator type")
    check_stream_arn(request["StreamArn"])
    sequence = 0 if sequence_number is None else int(sequence_number) - SEQUENCE_BASE
    return GetShardIteratorRequest(
        request["StreamArn"], request["ShardId"], kind, sequence, float(timestamp or 0)
    )


def run(context: RequestContext, request: GetShardIteratorRequest) -> dict[str, Any]:
    now = context.database.clock.now()
    if request.timestamp > now:
        raise ValidationFailed(f"{INVALID}Timestamp should not be in the future")
    stream = context.parts.streams.find(request.arn)
    shard = stream.shard(request.shard_id)
    if shard is None:
        raise ResourceNotFound(
            f"Requested resource not found: Shard does not exist: {request.shard_id}"
        )
    place = _place(context, stream, shard, request)
    return {"ShardIterator": ShardIterator(stream.arn, shard.number, place, now).encode()}


def _place(
    context: RequestContext, stream: Stream, shard: Shard, request: GetShardIteratorRequest
) -> int:
    """Return the sequence number of the first record to read."""
    if request.kind == "TRIM_HORIZON":
        return HORIZON
    end = stream.next_sequence if shard.last is None else shard.last + 1
    if request.kind == "LATEST":
        return end
    if request.kind == "AT_TIMESTAMP":
        return context.parts.streams.first_at(stream, shard, request.timestamp)
    if not shard.first <= request.sequence < end:
        raise ValidationFailed(f"{INVALID}Invalid SequenceNumber")
    if request.sequence < shard.horizon:
        raise TrimmedDataAccess
    return request.sequence if request.kind == "AT_SEQUENCE_NUMBER" else request.sequence + 1


OPERATIONS = (Operation("GetShardIterator", parse, run),)
