"""Scan: a page of a whole table or index, or of one of its parallel segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine import keyspace
from stator.engine.items import capacity
from stator.engine.items.key_ranges import BAD_START, Range, check_scan_start, start_entry
from stator.engine.items.pages import find_index, make_view, read_page
from stator.engine.operation import Operation, RequestContext
from stator.engine.requests.expression_parameters import (
    Placeholders,
    check_mixing,
    check_placeholder_use,
    legacy_filter,
)
from stator.engine.requests.read_parameters import check_select, read_projection, read_start
from stator.engine.tables.table import Index, Table
from stator.errors import ValidationFailed
from stator.expr.tree import Condition, ProjectionExpression
from stator.model.values import Item

_EXPRESSIONS = ("ProjectionExpression", "FilterExpression")


@dataclass(slots=True)
class ScanRequest:
    options: dict[str, Any]
    filter: Condition | None
    projection: ProjectionExpression | None
    start: Item | None


def parse(request: dict[str, Any]) -> ScanRequest:
    check_mixing(request, ("AttributesToGet", "ScanFilter", "ConditionalOperator"), _EXPRESSIONS)
    check_placeholder_use(request, _EXPRESSIONS, ("FilterExpression",), current=False)
    filter = legacy_filter(request, "ScanFilter")
    start = read_start(request, named=True)
    check_select(request, enveloped=False)
    _check_segments(request.get("Segment"), request.get("TotalSegments"))
    placeholders = Placeholders(request, wrapped=True)
    by_expression = placeholders.condition(request.get("FilterExpression"), "FilterExpression")
    projection = read_projection(request, placeholders)
    placeholders.check_all_used()
    return ScanRequest(request, filter or by_expression, projection, start)


def _check_segments(segment: int | None, total: int | None) -> None:
    if segment is not None and total is None:
        raise ValidationFailed(
            "The TotalSegments parameter is required but was not present in the request when "
            "Segment parameter is present"
        )
    if total is not None and segment is None:
        raise ValidationFailed(
            "The Segment parameter is required but was not present in the request when "
            "parameter TotalSegments is present"
        )
    if segment is not None and total is not None and segment >= total:
        raise ValidationFailed(
            "The Segment parameter is zero-based and must be less than parameter "
            f"TotalSegments: Segment: {segment} is not less than TotalSegments: {total}"
        )


def run(context: RequestContext, request: ScanRequest) -> dict[str, Any]:
    options = request.options
    table = context.table(options["TableName"])
    consistent = bool(options.get("ConsistentRead"))
    index = find_index(table, options.get("IndexName"), consistent)
    view = make_view(
        table,
        index,
        request.filter,
        request.projection,
        options.get("Select"),
        consistent,
        is_query=False,
    )
    segment, total = options.get("Segment", 0), options.get("TotalSegments", 1)
    span = Range(
        *keyspace.segment_bounds(table.prefix if index is None else index.prefix, segment, total)
    )
    if request.start is not None:
        span.low = _after_start(table, index, request.start, segment, total)
    database = context.database
    page = read_page(database.reader(consistent), database.meter, view, span, options.get("Limit"))
    if database.meter.counts_units:
        returned = float(page.response["Count"])
        table.traffic.measure("ReturnedItemCount", ("Operation", "Scan"), returned)
    mode = options.get("ReturnConsumedCapacity")
    if mode is not None and mode != "NONE":
        page.response["ConsumedCapacity"] = capacity.report(table, table.name, page.consumed, mode)
    return page.response


def _after_start(table: Table, index: Index | None, start: Item, segment: int, total: int) -> bytes:
    check_scan_start(table, index, start)
    entry = start_entry(table, index, start)
    if keyspace.segment_of(entry, total) != segment:
        raise ValidationFailed(
            f"{BAD_START}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct "
            f"Segment. TotalSegments: {total} Segment: {segment}"
        )
    return entry + b"\0"


OPERATIONS = (Operation("Scan", parse, run, older_values=True),)
