"""GetRecords: up to 1,000 records or 1 MB of a shard, and the iterator for the next records.

A closed shard that is read to its end has no next iterator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from stator.engine.operation import Operation, RequestContext
from stator.engine.streams import events
from stator.engine.streams.shard_iterator import HORIZON, LIFETIME_SECONDS, ShardIterator
from stator.engine.streams.stream import Shard, Stream, check_stream_arn
from stator.errors import ExpiredIterator, TrimmedDataAccess, ValidationFailed
from stator.model.scope import Scope
from stator.model.values import INVALID

_MOST_RECORDS = 1000
_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class GetRecordsRequest:
    iterator: ShardIterator
    limit: int


def parse(request: dict[str, Any]) -> GetRecordsRequest:
    limit = request.get("Limit", _MOST_RECORDS)
    if limit > _MOST_RECORDS:
        raise ValidationFailed(f"{INVALID}Limit should be less than or equal to {_MOST_RECORDS}")
    iterator = ShardIterator.decode(request["ShardIterator"])
    check_stream_arn(iterator.arn)
    return GetRecordsRequest(iterator, limit)


def run(context: RequestContext, request: GetRecordsRequest) -> dict[str, Any]:
    iterator = request.iterator
    now = context.database.clock.now()
    if now - iterator.issued > LIFETIME_SECONDS:
        raise ExpiredIterator
    stream = context.parts.streams.find(iterator.arn)
    shard = stream.shard_by_number(iterator.shard_number)
    if shard is None:
        raise TrimmedDataAccess  # the whole shard was trimmed, a day after it closed
    start = max(
        iterator.sequence, shard.first, shard.horizon if iterator.sequence == HORIZON else 0
    )
    if start < shard.horizon:
        raise TrimmedDataAccess
    page, place, is_end, size = _read(context, stream, shard, start, request.limit)
    _note(context, stream, len(page), size)
    # Nothing can take back the effects of a record that was read here: its change must be durable
    # first.
    context.commit_number = context.database.last_commit
    response: dict[str, Any] = {"Records": page}
    if not is_end:
        response["NextShardIterator"] = ShardIterator(stream.arn, shard.number, place, now).encode()
    return response


def _read(
    context: RequestContext, stream: Stream, shard: Shard, start: int, limit: int
) -> tuple[list[orjson.Fragment], int, bool, int]:
    """Return records from ``start`` on, the position after them, if the shard is done, the bytes.

    A shard is done if it is closed and no records are left after these.
    """
    end = stream.next_sequence if shard.last is None else shard.last + 1
    page: list[orjson.Fragment] = []
    place, size = start, 0
    if start < end:
        for key, record in context.database.storage.scan(
            stream.record_key(shard, start), stream.record_key(shard, end)
        ):
            added = events.size_of(record)
            if len(page) == limit or (page and size + added > _MOST_BYTES):
                return page, place, False, size
            size += added
            page.append(events.fragment(record))
            place = int.from_bytes(key[-8:], "big") + 1
    return page, max(place, start), shard.last is not None, size


def _note(context: RequestContext, stream: Stream, records: int, size_bytes: int) -> None:
    """Note what was returned, for the metrics of the stream's table, if there still is one."""
    if context.database.traffic is None:
        return
    scope = Scope(stream.account, stream.region)
    table = context.database.catalog.find(scope, stream.table_name)
    if table is not None:
        context.named_table = table
        dimensions = ("Operation", "GetRecords", "StreamLabel", stream.label)
        table.traffic.measure("ReturnedRecordsCount", dimensions, float(records))
        table.traffic.measure("ReturnedBytes", dimensions, float(size_bytes))


OPERATIONS = (Operation("GetRecords", parse, run),)
