"""Query: a page of one partition of a table or index.

``parse`` reads expressions and their older forms in AWS's order of checks. ``run`` checks them
against the table, turns the key condition into a range of storage keys and reads a page of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.items import capacity
from stator.engine.items.key_ranges import (
    Range,
    check_query_boundaries,
    check_query_start,
    query_range,
    start_entry,
)
from stator.engine.items.pages import find_index, make_view, read_page
from stator.engine.operation import Operation, RequestContext
from stator.engine.requests.expression_parameters import (
    Placeholders,
    check_mixing,
    check_placeholder_use,
    legacy_filter,
)
from stator.engine.requests.read_parameters import check_select, read_projection, read_start
from stator.errors import ValidationFailed
from stator.expr import key_condition, legacy
from stator.expr.key_condition import KeyTest
from stator.expr.tree import Condition, ProjectionExpression, attribute_names
from stator.model.values import Item

_EXPRESSIONS = ("ProjectionExpression", "FilterExpression", "KeyConditionExpression")


@dataclass(slots=True, init=False)
class QueryRequest:
    options: dict[str, Any]
    tests: dict[str, KeyTest]
    filter: Condition | None
    filter_parameter: str
    projection: ProjectionExpression | None
    start: Item | None

    def __init__(
        self,
        options: dict[str, Any],
        tests: dict[str, KeyTest],
        filter: Condition | None,
        filter_parameter: str,
        projection: ProjectionExpression | None,
        start: Item | None,
    ) -> None:
        self.options = options
        self.tests = tests
        self.filter = filter
        self.filter_parameter = filter_parameter
        self.projection = projection
        self.start = start


def parse(request: dict[str, Any]) -> QueryRequest:
    _check_mixing(request)
    check_placeholder_use(request, _EXPRESSIONS, ("FilterExpression", "KeyConditionExpression"))
    filter = legacy_filter(request, "QueryFilter")
    start = read_start(request, named=False)
    check_select(request, enveloped=True)
    key_text, old_keys = request.get("KeyConditionExpression"), request.get("KeyConditions")
    if key_text is None and old_keys is None:
        raise ValidationFailed(
            "Either the KeyConditions or KeyConditionExpression parameter must be "
            "specified in the request."
        )
    placeholders = Placeholders(request)
    condition = placeholders.condition(key_text, "KeyConditionExpression")
    by_expression = placeholders.condition(request.get("FilterExpression"), "FilterExpression")
    projection = read_projection(request, placeholders)
    placeholders.check_all_used()
    if condition is not None:
        tests = key_condition.key_tests(condition)
    else:
        tests = legacy.key_tests(old_keys or {})
        if not tests:
            raise ValidationFailed("Conditions can be of length 1 or 2 only")
    parameter = "QueryFilter" if filter is not None else "Filter Expression"
    return QueryRequest(request, tests, filter or by_expression, parameter, projection, start)


def _check_mixing(request: dict[str, Any]) -> None:
    """Refuse requests that mix expressions with the older parameters.

    Only KeyConditions may be combined with a filter or projection expression.
    """
    old = ["AttributesToGet", "QueryFilter", "ConditionalOperator"]
    if request.get("KeyConditionExpression") is not None:
        old.append("KeyConditions")
    check_mixing(request, old, _EXPRESSIONS)


def run(context: RequestContext, request: QueryRequest) -> dict[str, Any]:
    options = request.options
    table = context.table(options["TableName"])
    consistent = bool(options.get("ConsistentRead"))
    index = find_index(table, options.get("IndexName"), consistent)
    schema, prefix = (table.schema, table.prefix) if index is None else (index.schema, index.prefix)
    start = request.start
    if start is not None:
        check_query_start(table, index, start)
    span = query_range(schema, prefix, request.tests)
    if request.filter is not None:
        _check_filter(request, schema.names)
    view = make_view(
        table,
        index,
        request.filter,
        request.projection,
        options.get("Select"),
        consistent,
        is_query=True,
    )
    forward = bool(options.get("ScanIndexForward", True))
    if start is not None:
        check_query_boundaries(schema, start, request.tests)
        entry = start_entry(table, index, start)
        span = (
            Range(max(span.low, entry + b"\0"), span.high)
            if forward
            else Range(span.low, min(span.high, entry))
        )
    database = context.database
    page = read_page(
        database.reader(consistent),
        database.meter,
        view,
        span,
        options.get("Limit"),
        forward=forward,
    )
    if database.meter.counts_units:
        returned = float(page.response["Count"])
        table.traffic.measure("ReturnedItemCount", ("Operation", "Query"), returned)
    mode = options.get("ReturnConsumedCapacity")
    if mode is not None and mode != "NONE":
        page.response["ConsumedCapacity"] = capacity.report(table, table.name, page.consumed, mode)
    return page.response


def _check_filter(request: QueryRequest, key_names: tuple[str, ...]) -> None:
    assert request.filter is not None
    for name in key_names:
        if name in attribute_names(request.filter):
            raise ValidationFailed(
                f"{request.filter_parameter} can only contain non-primary key "
                f"attributes: Primary key attribute: {name}"
            )


OPERATIONS = (Operation("Query", parse, run),)
