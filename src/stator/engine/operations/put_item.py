"""PutItem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stator.engine.item_writes import Put, prepare
from stator.engine.operation import Call, Operation
from stator.engine.parameters import Placeholders, check_mixing, check_placeholder_use, expected
from stator.engine.write_report import write_report
from stator.engine.writes import Writer
from stator.errors import ValidationFailed
from stator.expr.tree import Path
from stator.model.values import normalise_item


@dataclass(slots=True)
class Request:
    put: Put
    options: dict[str, Any]
    returns_old: bool


def parse(request: dict[str, Any]) -> Request:
    check_mixing(request, ("Expected", "ConditionalOperator"), ("ConditionExpression",))
    check_placeholder_use(request, ("ConditionExpression",), ("ConditionExpression",))
    item = request["Item"]
    if "" in item:
        raise ValidationFailed("Empty attribute name")
    size = normalise_item(item)
    returns = request.get("ReturnValues", "NONE")
    if returns not in ("NONE", "ALL_OLD"):
        raise ValidationFailed("ReturnValues can only be ALL_OLD or NONE")
    condition = expected(request)
    nested: Sequence[Path] = ()
    text = request.get("ConditionExpression")
    if text is not None:
        placeholders = Placeholders(request)
        condition = placeholders.condition(text)
        placeholders.check_all_used()
        nested = placeholders.nested
    on_failure = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    return Request(Put(request["TableName"], item, size, condition, on_failure, nested), request, returns == "ALL_OLD")


def run(call: Call, request: Request) -> dict[str, Any]:
    put = request.put
    table = call.table(put.table_name)
    mutation, old = prepare(call, table, put, needs_old=request.returns_old)
    writer = Writer()
    consumed = writer.add(mutation)
    call.engine.commit(call, writer)
    response: dict[str, Any] = {}
    if request.returns_old and old is not None:
        response["Attributes"] = old
    return write_report(call, table, request.options, put.item, consumed, response)


OPERATION = Operation("PutItem", parse, run, enveloped=True)
