"""UpdateItem.

The order of checks is the same as for PutItem. The update itself is applied after the condition
(``ItemUpdate.apply``), and the size and index keys of the new item are checked last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stator.engine.items.item_update import ItemUpdate
from stator.engine.operation import Operation
from stator.engine.operations.single_write import SingleWrite, returns_item_on_failure, run
from stator.engine.requests.expression_parameters import (
    Placeholders,
    check_mixing,
    check_placeholder_use,
    expected,
)
from stator.expr.legacy import attribute_updates
from stator.expr.tree import Path
from stator.model.values import normalise_item

# Clauses cost at most a few dozen bytes per character of a 4 KB expression, besides their values.
_CHARGED_FROM_BYTES = 200_000
_EXPRESSIONS = ("UpdateExpression", "ConditionExpression")


def parse(request: dict[str, Any]) -> SingleWrite:
    check_mixing(request, ("AttributeUpdates", "Expected", "ConditionalOperator"), _EXPRESSIONS)
    check_placeholder_use(request, _EXPRESSIONS, _EXPRESSIONS)
    key = request["Key"]
    normalise_item(key)
    old_style = request.get("AttributeUpdates")
    update = attribute_updates(old_style) if old_style else None
    condition = expected(request)
    nested: Sequence[Path] = ()
    # Only an expression's clauses are charged for. AttributeUpdates count by the finished item
    # alone (captured from AWS by the paritysuite conformance suite).
    charged = False
    if (
        request.get("UpdateExpression") is not None
        or request.get("ConditionExpression") is not None
    ):
        placeholders = Placeholders(request)
        update = placeholders.update(request.get("UpdateExpression"))
        condition = placeholders.condition(request.get("ConditionExpression"))
        placeholders.check_all_used()
        nested = placeholders.nested
        charged = placeholders.values_bytes > _CHARGED_FROM_BYTES
    on_failure = returns_item_on_failure(request)
    action = ItemUpdate(
        request["TableName"],
        key,
        update,
        condition,
        on_failure,
        nested,
        is_legacy=bool(old_style),
        charged=charged,
    )
    return SingleWrite(action, request, request.get("ReturnValues", "NONE"))


OPERATIONS = (Operation("UpdateItem", parse, run, enveloped=True),)
