"""Parameters that Query and Scan share: Select, filters, projections, the starting key."""

from __future__ import annotations

from typing import Any

from stator.engine.requests.expression_parameters import Placeholders, attributes_to_get
from stator.errors import ValidationFailed
from stator.expr.tree import ProjectionExpression
from stator.model.values import Item, normalise_item


def check_select(request: dict[str, Any], *, enveloped: bool) -> None:
    """Check that Select fits the other parameters that choose attributes.

    With ``enveloped``, the error starts with "1 validation error detected: ". Since 2026, Query's
    errors do, and Scan's do not.
    """
    problem = _select_problem(request)
    if problem is not None:
        raise ValidationFailed(f"1 validation error detected: {problem}" if enveloped else problem)


def _select_problem(request: dict[str, Any]) -> str | None:
    select = request.get("Select")
    named = next(
        (p for p in ("ProjectionExpression", "AttributesToGet") if request.get(p) is not None), None
    )
    if select is None:
        return None
    if named is not None and select != "SPECIFIC_ATTRIBUTES":
        shown = "only the Count" if select == "COUNT" else select
        return f"Cannot specify the {named} when choosing to get {shown}"
    if named is None and select == "SPECIFIC_ATTRIBUTES":
        return (
            "Must specify the AttributesToGet or ProjectionExpression when choosing to "
            "get SPECIFIC_ATTRIBUTES"
        )
    if select == "ALL_PROJECTED_ATTRIBUTES" and request.get("IndexName") is None:
        return "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
    return None


def read_projection(
    request: dict[str, Any], placeholders: Placeholders
) -> ProjectionExpression | None:
    old_style = attributes_to_get(request.get("AttributesToGet"))
    return old_style or placeholders.projection(request.get("ProjectionExpression"))


def read_start(request: dict[str, Any], *, named: bool) -> Item | None:
    """Return the ExclusiveStartKey, or None if the request has none.

    With ``named``, the error for a bad value says that it is in the starting key. Scan does this,
    Query does not.
    """
    start: Item | None = request.get("ExclusiveStartKey")
    if start is None:
        return None
    try:
        normalise_item(start)
    except ValidationFailed as error:
        if not named:
            raise
        raise ValidationFailed(f"The provided starting key is invalid: {error.message}") from None
    return start
