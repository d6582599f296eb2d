"""DescribeStream and ListStreams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.streams.stream import Shard, Stream, check_stream_arn, sequence_text
from stator.errors import ValidationFailed
from stator.model.values import INVALID

_PAGE_SHARDS = 100
_PAGE_STREAMS = 100


@dataclass(frozen=True, slots=True)
class DescribeStreamRequest:
    arn: str
    limit: int
    after: str | None
    parent: str | None
    is_filtered: bool


def parse_describe(request: dict[str, Any]) -> DescribeStreamRequest:
    limit = request.get("Limit", _PAGE_SHARDS)
    if limit > _PAGE_SHARDS:
        raise ValidationFailed(f"{INVALID}Limit cannot be greater than the maximum: {_PAGE_SHARDS}")
    check_stream_arn(request["StreamArn"])
    shard_filter, after = request.get("ShardFilter"), request.get("ExclusiveStartShardId")
    if shard_filter is not None and after is not None:
        raise ValidationFailed(
            f"{INVALID}ShardFilter and ExclusiveStartShardId both should not be "
            "specified in the request."
        )
    if shard_filter is not None and shard_filter.get("Type") is None:
        raise ValidationFailed(
            "1 validation error detected: Value 'null' at 'shardFilter.type' failed to satisfy "
            "constraint: Member must be CHILD_SHARDS"
        )
    parent = None if shard_filter is None else shard_filter.get("ShardId")
    if shard_filter is not None and parent is None:
        raise ValidationFailed(
            "1 validation error detected: Value null at 'shardFilter.shardId' failed to satisfy "
            "constraint: Member must not be null"
        )
    return DescribeStreamRequest(
        request["StreamArn"], limit, after, parent, shard_filter is not None
    )


def describe_stream(context: RequestContext, request: DescribeStreamRequest) -> dict[str, Any]:
    """Describe a stream and a page of its shards, ordered by id, which is the order of opening."""
    stream = context.parts.streams.find(request.arn)
    shards = sorted(stream.shards, key=lambda shard: shard.id)
    if request.is_filtered:
        shards = [
            shard for shard in shards if shard.parent is not None and shard.parent == request.parent
        ]
    if request.after is not None:
        shards = [shard for shard in shards if shard.id > request.after]
    page = shards[: request.limit]
    description: dict[str, Any] = {
        "StreamArn": stream.arn,
        "StreamLabel": stream.label,
        "StreamStatus": _status(context, stream),
        "StreamViewType": stream.view_type,
        "CreationRequestDateTime": round(stream.created, 3),
        "TableName": stream.table_name,
        "KeySchema": stream.key_schema,
        "Shards": [_described(shard) for shard in page],
    }
    if len(shards) > request.limit:
        description["LastEvaluatedShardId"] = page[-1].id
    return {"StreamDescription": description}


def _status(context: RequestContext, stream: Stream) -> str:
    """Return the StreamStatus: ENABLED or DISABLED, or ENABLING or DISABLING in a transition.

    The transition lasts while the stream's table is CREATING or UPDATING.
    """
    table = context.database.catalog.find(context.scope, stream.table_name)
    if table is not None:
        context.parts.lifecycle.settle(table)
    settling = (
        table is not None
        and table.definition.number == stream.table_number
        and table.definition.stream_label == stream.label
        and table.definition.status in ("CREATING", "UPDATING")
    )
    if stream.disabled is None:
        return "ENABLING" if settling else "ENABLED"
    return "DISABLING" if settling else "DISABLED"


def _described(shard: Shard) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": sequence_text(shard.first)}
    if shard.last is not None:
        numbers["EndingSequenceNumber"] = sequence_text(shard.last)
    described: dict[str, Any] = {"ShardId": shard.id, "SequenceNumberRange": numbers}
    if shard.parent is not None:
        described["ParentShardId"] = shard.parent
    return described


@dataclass(frozen=True, slots=True)
class ListStreamsRequest:
    table_name: str | None
    after: str | None
    limit: int


def parse_list(request: dict[str, Any]) -> ListStreamsRequest:
    limit = request.get("Limit", _PAGE_STREAMS)
    if limit > _PAGE_STREAMS:
        raise ValidationFailed(
            f"{INVALID}Limit cannot be greater than the maximum allowed size: {_PAGE_STREAMS}"
        )
    after = request.get("ExclusiveStartStreamArn")
    if after is not None:
        check_stream_arn(after)
    return ListStreamsRequest(request.get("TableName"), after, limit)


def list_streams(context: RequestContext, request: ListStreamsRequest) -> dict[str, Any]:
    """List the streams of one table or of all, oldest first.

    The list includes streams that were disabled in the last day.
    """
    streams = context.parts.streams.of_scope(context.scope)
    if request.table_name is not None:
        name = request.table_name.rpartition("/")[2]
        streams = [stream for stream in streams if stream.table_name == name]
    places = [stream.arn for stream in streams]
    start = (
        places.index(request.after) + 1
        if request.after in places
        else len(places)
        if request.after
        else 0
    )
    page = streams[start : start + request.limit]
    response: dict[str, Any] = {
        "Streams": [
            {"StreamArn": stream.arn, "StreamLabel": stream.label, "TableName": stream.table_name}
            for stream in page
        ]
    }
    if start + request.limit < len(streams):
        response["LastEvaluatedStreamArn"] = page[-1].arn
    return response


OPERATIONS = (
    Operation("DescribeStream", parse_describe, describe_stream),
    Operation("ListStreams", parse_list, list_streams),
)
