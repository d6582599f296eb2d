"""PutItem.

The checks run in this order:

1. The request's shape (``requests.shapes``), then ``parse`` from top to bottom.
2. The table exists (``single_write.run``).
3. The key attributes, the item's size, the index attributes and the nested paths of the condition
   (``ItemPut.locate``).
4. No transaction in flight holds the item, and the condition holds (``actions.prepare``).
5. If the engine enforces limits: the size of the item collection, then the throughput
   (``RequestContext.commit``).

A failed condition is charged, too. If no throughput is left for it, the request is throttled
instead.
"""

from __future__ import annotations

from typing import Any

from stator.engine.items.actions import ItemPut
from stator.engine.operation import Operation
from stator.engine.operations.single_write import (
    SingleWrite,
    old_return_values,
    read_condition,
    returns_item_on_failure,
    run,
)
from stator.engine.requests.expression_parameters import check_mixing, check_placeholder_use
from stator.errors import ValidationFailed
from stator.model.values import normalise_item


def parse(request: dict[str, Any]) -> SingleWrite:
    is_plain = len(request) == 2  # only a table and an item: the common case
    if not is_plain:
        check_mixing(request, ("Expected", "ConditionalOperator"), ("ConditionExpression",))
        check_placeholder_use(request, ("ConditionExpression",), ("ConditionExpression",))
    item = request["Item"]
    if "" in item:
        raise ValidationFailed("Empty attribute name")
    size = normalise_item(item)
    if is_plain:
        return SingleWrite(ItemPut(request["TableName"], item, size, None), request, "NONE")
    returns = old_return_values(request)
    condition, nested = read_condition(request)
    put = ItemPut(
        request["TableName"], item, size, condition, returns_item_on_failure(request), nested
    )
    return SingleWrite(put, request, returns)


OPERATIONS = (Operation("PutItem", parse, run, enveloped=True),)
