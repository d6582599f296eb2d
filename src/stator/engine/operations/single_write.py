"""The common part of PutItem, UpdateItem and DeleteItem, once their action is parsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stator.engine.items.actions import ItemDelete, ItemPut, returned_values
from stator.engine.items.item_update import ItemUpdate
from stator.engine.items.write_report import write_report
from stator.engine.operation import RequestContext
from stator.engine.requests.expression_parameters import Placeholders, expected
from stator.errors import ValidationFailed
from stator.expr.tree import Condition, Path


@dataclass(slots=True, init=False)
class SingleWrite:
    action: ItemPut | ItemDelete | ItemUpdate
    options: dict[str, Any]
    returns: str

    def __init__(
        self, action: ItemPut | ItemDelete | ItemUpdate, options: dict[str, Any], returns: str
    ) -> None:
        self.action = action
        self.options = options
        self.returns = returns


def returns_item_on_failure(request: dict[str, Any]) -> bool:
    return request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"


def old_return_values(request: dict[str, Any]) -> str:
    """Return the request's ReturnValues. Raises ValidationFailed unless it is ALL_OLD or NONE."""
    returns: str = request.get("ReturnValues", "NONE")
    if returns not in ("NONE", "ALL_OLD"):
        raise ValidationFailed("ReturnValues can only be ALL_OLD or NONE")
    return returns


def read_condition(request: dict[str, Any]) -> tuple[Condition | None, Sequence[Path]]:
    """Return the condition of a write, or None, and its paths into nested attributes.

    The condition is a ConditionExpression or the legacy Expected, which has no nested paths.
    """
    condition = expected(request)
    text = request.get("ConditionExpression")
    if text is None:
        return condition, ()
    placeholders = Placeholders(request)
    condition = placeholders.condition(text)
    placeholders.check_all_used()
    return condition, placeholders.nested


def run(context: RequestContext, request: SingleWrite) -> dict[str, Any]:
    action, returns = request.action, request.returns
    table = context.table(action.table_name)
    mutation, old = context.prepare(table, action, needs_old=returns in ("ALL_OLD", "UPDATED_OLD"))
    writer = context.writer()
    consumed = writer.add(mutation)
    context.commit(writer)
    response: dict[str, Any] = {}
    if returns != "NONE":
        values = returned_values(returns, old, mutation.new_item, action.touched())
        if values:
            response["Attributes"] = values
    return write_report(
        context.database.storage, table, request.options, action.keyed, consumed, response
    )
