"""UpdateItem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stator.engine.item_writes import UpdateItem, prepare, returned_values
from stator.engine.operation import Call, Operation
from stator.engine.parameters import Placeholders, check_mixing, check_placeholder_use, expected
from stator.engine.write_report import write_report
from stator.engine.writes import Writer
from stator.expr.legacy import attribute_updates
from stator.expr.tree import Path
from stator.model.values import normalise_item

# Clauses cost at most a few dozen bytes per character of a 4 KB expression, beside the values they hold.
_CHARGED_FROM_BYTES = 200_000
_EXPRESSIONS = ("UpdateExpression", "ConditionExpression")


@dataclass(slots=True)
class Request:
    update: UpdateItem
    options: dict[str, Any]
    returns: str


def parse(request: dict[str, Any]) -> Request:
    check_mixing(request, ("AttributeUpdates", "Expected", "ConditionalOperator"), _EXPRESSIONS)
    check_placeholder_use(request, _EXPRESSIONS, _EXPRESSIONS)
    key = request["Key"]
    normalise_item(key)
    old_style = request.get("AttributeUpdates")
    update = attribute_updates(old_style) if old_style else None
    condition = expected(request)
    nested: Sequence[Path] = ()
    charged = bool(old_style)
    if request.get("UpdateExpression") is not None or request.get("ConditionExpression") is not None:
        placeholders = Placeholders(request)
        update = placeholders.update(request.get("UpdateExpression"))
        condition = placeholders.condition(request.get("ConditionExpression"))
        placeholders.check_all_used()
        nested = placeholders.nested
        charged = placeholders.values_bytes > _CHARGED_FROM_BYTES
    on_failure = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    action = UpdateItem(
        request["TableName"], key, update, condition, on_failure, nested, is_legacy=bool(old_style), charged=charged
    )
    return Request(action, request, request.get("ReturnValues", "NONE"))


def run(call: Call, request: Request) -> dict[str, Any]:
    action = request.update
    table = call.table(action.table_name)
    mutation, old = prepare(call, table, action, needs_old=request.returns in ("ALL_OLD", "UPDATED_OLD"))
    writer = Writer()
    consumed = writer.add(mutation)
    call.engine.commit(call, writer)
    response: dict[str, Any] = {}
    values = returned_values(request.returns, old, mutation.new_item, action.touched())
    if values:
        response["Attributes"] = values
    return write_report(call, table, request.options, action.key, consumed, response)


OPERATION = Operation("UpdateItem", parse, run, enveloped=True)
