"""DeleteItem. The order of checks is the same as for PutItem."""

from __future__ import annotations

from typing import Any

from stator.engine.items.actions import ItemDelete
from stator.engine.operation import Operation
from stator.engine.operations.single_write import (
    SingleWrite,
    old_return_values,
    read_condition,
    returns_item_on_failure,
    run,
)
from stator.engine.requests.expression_parameters import check_mixing, check_placeholder_use
from stator.model.values import normalise_item


def parse(request: dict[str, Any]) -> SingleWrite:
    key = request["Key"]
    if len(request) == 2:  # only a table and a key: the common case
        normalise_item(key)
        return SingleWrite(ItemDelete(request["TableName"], key, None), request, "NONE")
    check_mixing(request, ("Expected", "ConditionalOperator"), ("ConditionExpression",))
    check_placeholder_use(request, ("ConditionExpression",), ("ConditionExpression",))
    normalise_item(key)
    returns = old_return_values(request)
    condition, nested = read_condition(request)
    delete = ItemDelete(
        request["TableName"], key, condition, returns_item_on_failure(request), nested
    )
    return SingleWrite(delete, request, returns)


OPERATIONS = (Operation("DeleteItem", parse, run, enveloped=True),)
