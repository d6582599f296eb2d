"""BatchGetItem: up to a hundred items from several tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from stator.engine.items import capacity, records
from stator.engine.items.capacity import Consumed
from stator.engine.items.records import shown
from stator.engine.operation import Operation, RequestContext
from stator.engine.partitions.throttle_errors import of_whole_batch
from stator.engine.requests.expression_parameters import (
    Placeholders,
    attributes_to_get,
    check_mixing,
    check_placeholder_use,
)
from stator.engine.tables.item_keys import check_key, check_key_paths
from stator.engine.tables.table import Table
from stator.errors import SlowDown, ValidationFailed
from stator.expr.tree import ProjectionExpression
from stator.model.limits import BATCH_GET_BYTES, BATCH_GET_KEYS
from stator.model.values import Item, normalise_item


@dataclass(slots=True)
class TableRequest:
    name: str
    options: dict[str, Any]
    projection: ProjectionExpression | None


@dataclass(slots=True)
class BatchGetItemRequest:
    tables: list[TableRequest]
    mode: str


def parse(request: dict[str, Any]) -> BatchGetItemRequest:
    _check_mixing_across(request["RequestItems"])
    tables = [_parse_table(name, options) for name, options in request["RequestItems"].items()]
    if sum(len(table.options["Keys"]) for table in tables) > BATCH_GET_KEYS:
        raise ValidationFailed("Too many items requested for the BatchGetItem call")
    return BatchGetItemRequest(tables, request.get("ReturnConsumedCapacity", "NONE"))


def _check_mixing_across(tables: dict[str, dict[str, Any]]) -> None:
    merged = {
        name: True
        for options in tables.values()
        for name, value in options.items()
        if value is not None
    }
    check_mixing(merged, ("AttributesToGet",), ("ProjectionExpression",))


def _parse_table(name: str, options: dict[str, Any]) -> TableRequest:
    check_placeholder_use(options, ("ProjectionExpression",), ())
    keys: list[Item] = options["Keys"]
    for key in keys:
        normalise_item(key)
    # Equal keys have equal JSON once their members are sorted.
    seen = {orjson.dumps(key, option=orjson.OPT_SORT_KEYS) for key in keys}
    if len(seen) != len(keys):
        raise ValidationFailed("Provided list of item keys contains duplicates")
    projection = attributes_to_get(options.get("AttributesToGet"))
    text = options.get("ProjectionExpression")
    if text is not None:
        placeholders = Placeholders(options)
        projection = placeholders.projection(text)
        placeholders.check_all_used()
    return TableRequest(name, options, projection)


def run(context: RequestContext, request: BatchGetItemRequest) -> dict[str, Any]:
    tables = [context.table(part.name) for part in request.tables]
    keys = [_storage_keys(table, part) for table, part in zip(tables, request.tables)]
    responses: dict[str, Any] = {}
    unprocessed: dict[str, Any] = {}
    reports = []
    room = BATCH_GET_BYTES
    meter = context.database.meter
    errors: list[SlowDown] = []
    for table, part, encoded in zip(tables, request.tables, keys):
        consistent = bool(part.options.get("ConsistentRead"))
        metered = meter.charges_keys or table.traffic.keys is not None
        if consistent or not context.database.lag.seconds:
            found = context.database.storage.get_many(encoded)
        else:
            reader = context.database.reader(consistent)
            found = [reader.get(key) for key in encoded]
        taken, room = _within(found, room)
        left = part.options["Keys"][taken:]
        if metered:
            admitted, refused = _charged(context, table, part, encoded[:taken], found)
            errors += refused.values()
            left = [part.options["Keys"][at] for at in refused] + left
            found, taken = admitted, len(admitted)
        if left:
            unprocessed[part.name] = {**part.options, "Keys": left}
        if taken or (len(found) == 0 and not left):
            responses[part.name] = _items(found[:taken], part.projection)
            used = _consumed(found[:taken], consistent)
            reports.append((table, part.name, used))
            if meter.counts_units and not metered:
                meter.count_read(table, None, used.table)
    if errors and len(errors) == sum(map(len, keys)):
        raise of_whole_batch(errors[0])
    response: dict[str, Any] = {"Responses": responses, "UnprocessedKeys": unprocessed}
    if request.mode != "NONE":
        response["ConsumedCapacity"] = [
            capacity.report(table, table.name, used, request.mode) for table, _, used in reports
        ]
    return response


def _charged(
    context: RequestContext,
    table: Table,
    part: TableRequest,
    keys: list[bytes],
    found: list[bytes | None],
) -> tuple[list[bytes | None], dict[int, SlowDown]]:
    """Charge each read separately. Return the records of the admitted reads, and the refusals.

    A refusal is the error for a read that a throughput limit refuses. Refusals are keyed by the
    position of the read's key in ``keys``.
    """
    consistent = bool(part.options.get("ConsistentRead"))
    admitted: list[bytes | None] = []
    refused: dict[int, SlowDown] = {}
    for at, key in enumerate(keys):
        record = found[at]
        units = capacity.read_units(0 if record is None else records.size_of(record), consistent)
        error = context.database.meter.try_read([(table, None, key, units)])
        if error is None:
            admitted.append(record)
        else:
            refused[at] = error
    return admitted, refused


def _storage_keys(table: Table, part: TableRequest) -> list[bytes]:
    if part.projection is not None:
        check_key_paths(table.schema, list(part.projection.paths))
    encode, schema = table.encode_key, table.schema
    encoded = []
    for key in part.options["Keys"]:
        check_key(schema, key)
        encoded.append(encode(key))
    return encoded


def _within(found: list[bytes | None], room: int) -> tuple[int, int]:
    """Return how many of the records fit into ``room`` bytes, and how much room is left.

    No room is left once a record does not fit.
    """
    for count, record in enumerate(found):
        if record is not None:
            room -= records.size_of(record)
            if room < 0:
                return count, 0
    return len(found), room


def _items(found: list[bytes | None], projection: ProjectionExpression | None) -> Any:
    if projection is None:
        header = records.HEADER_BYTES
        return orjson.Fragment(
            b"[" + b",".join([r[header:] for r in found if r is not None]) + b"]"
        )
    return [shown(record, projection) for record in found if record is not None]


def _consumed(found: list[bytes | None], consistent: bool) -> Consumed:
    sizes = [0 if record is None else records.size_of(record) for record in found]
    return Consumed(sum(capacity.read_units(size, consistent) for size in sizes))


OPERATIONS = (Operation("BatchGetItem", parse, run),)
