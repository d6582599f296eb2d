"""GetItem.

The checks, in order: the request's shape, the values of the key, mixed and unused parameters, and
the projection. Then the table, the key against the table's schema, and paths into key attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.items import capacity, records
from stator.engine.items.records import shown
from stator.engine.operation import Operation, RequestContext
from stator.engine.requests.expression_parameters import (
    Placeholders,
    attributes_to_get,
    check_mixing,
    check_placeholder_use,
)
from stator.engine.tables.item_keys import check_key, check_key_paths
from stator.expr.tree import ProjectionExpression
from stator.model.limits import READ_UNIT_BYTES
from stator.model.values import normalise_item


@dataclass(slots=True, init=False)
class GetItemRequest:
    options: dict[str, Any]
    projection: ProjectionExpression | None

    def __init__(self, options: dict[str, Any], projection: ProjectionExpression | None) -> None:
        self.options = options
        self.projection = projection


def parse(request: dict[str, Any]) -> GetItemRequest:
    normalise_item(request["Key"])
    if len(request) == 2:  # only a table and a key: the common case
        return GetItemRequest(request, None)
    check_mixing(request, ("AttributesToGet",), ("ProjectionExpression",))
    check_placeholder_use(request, ("ProjectionExpression",), ())
    projection = attributes_to_get(request.get("AttributesToGet"))
    text = request.get("ProjectionExpression")
    if text is not None:
        placeholders = Placeholders(request)
        projection = placeholders.projection(text)
        placeholders.check_all_used()
    return GetItemRequest(request, projection)


def run(context: RequestContext, request: GetItemRequest) -> dict[str, Any]:
    options = request.options
    table = context.table(options["TableName"])
    key = options["Key"]
    check_key(table.schema, key)
    if request.projection is not None:
        check_key_paths(table.schema, list(request.projection.paths))
    location = table.encode_key(key)
    consistent = bool(options.get("ConsistentRead"))
    record = context.database.reader(consistent).get(location)
    meter = context.database.meter
    if meter.is_needed:
        if record is None or len(record) <= READ_UNIT_BYTES:  # an item's JSON is larger than it
            units = 1.0 if consistent else 0.5
        else:
            units = capacity.read_units(records.size_of(record), consistent)
        if meter.charges_keys or table.traffic.keys is not None:
            meter.read(table, None, location, units)
        else:
            table.traffic.reads.append(units)
    response: dict[str, Any] = {} if record is None else {"Item": shown(record, request.projection)}
    mode = options.get("ReturnConsumedCapacity")
    if mode is not None and mode != "NONE":
        size = 0 if record is None else records.size_of(record)
        units = capacity.read_units(size, consistent)
        response["ConsumedCapacity"] = capacity.report(
            table, table.name, capacity.Consumed(units), mode
        )
    return response


OPERATIONS = (Operation("GetItem", parse, run),)
