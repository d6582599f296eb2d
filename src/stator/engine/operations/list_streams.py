"""ListStreams: of one table or of all, the oldest first, a hundred to a page; those that were switched off for a day, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.streams.arn import check_stream_arn
from stator.errors import ValidationFailed
from stator.model.values import INVALID

_MOST = 100


@dataclass(frozen=True, slots=True)
class Request:
    table_name: str | None
    after: str | None
    limit: int


def parse(request: dict[str, Any]) -> Request:
    limit = request.get("Limit", _MOST)
    if limit > _MOST:
        raise ValidationFailed(
            f"{INVALID}Limit cannot be greater than the maximum allowed size: {_MOST}"
        )
    after = request.get("ExclusiveStartStreamArn")
    if after is not None:
        check_stream_arn(after)
    return Request(request.get("TableName"), after, limit)


def run(context: RequestContext, request: Request) -> dict[str, Any]:
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


OPERATION = Operation("ListStreams", parse, run)
