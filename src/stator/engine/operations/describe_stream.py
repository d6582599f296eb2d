"""DescribeStream: the stream and a page of its shards, in the order of their ids, which is that of their opening."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.streams.arn import check_stream_arn
from stator.engine.streams.stream import Shard, Stream, sequence_text
from stator.errors import ValidationFailed
from stator.model.values import INVALID

_MOST = 100


@dataclass(frozen=True, slots=True)
class Request:
    arn: str
    limit: int
    after: str | None
    parent: str | None
    is_filtered: bool


def parse(request: dict[str, Any]) -> Request:
    limit = request.get("Limit", _MOST)
    if limit > _MOST:
        raise ValidationFailed(f"{INVALID}Limit cannot be greater than the maximum: {_MOST}")
    check_stream_arn(request["StreamArn"])
    given, after = request.get("ShardFilter"), request.get("ExclusiveStartShardId")
    if given is not None and after is not None:
        raise ValidationFailed(
            f"{INVALID}ShardFilter and ExclusiveStartShardId both should not be specified in the request."
        )
    if given is not None and given.get("Type") is None:
        raise ValidationFailed(
            "1 validation error detected: Value 'null' at 'shardFilter.type' failed to satisfy constraint: "
            "Member must be CHILD_SHARDS"
        )
    parent = None if given is None else given.get("ShardId")
    return Request(request["StreamArn"], limit, after, parent, given is not None)


def run(context: RequestContext, request: Request) -> dict[str, Any]:
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
    """A stream is on its way as long as its table is."""
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


OPERATION = Operation("DescribeStream", parse, run)
