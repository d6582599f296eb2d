"""Computed updates: one conditional write that stores the outcome of an update computed here.

Two updates cannot be sent as they are:

- An update with ``or_create`` of an item that has expired or is marked as deleted. It must behave
  as if there were no item, but DynamoDB would keep the old attributes.
- An update of an item that was stored in an earlier shape. It would mix two shapes.

Such an update was planned against a *base*: no item, or the item upcast to the current shape. This
module applies it to the base, and writes the difference to the stored item in one UpdateItem. The
write requires that the stored item is as it was read. So the item either changes as a whole, or
stays as it was: nothing is written beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from stator.errors import ConditionFailed, ValidationFailed
from stator.expr.bind import bind_condition, bind_update
from stator.expr.condition import evaluate
from stator.expr.lexer import ExpressionError
from stator.expr.parser import parse_condition, parse_update
from stator.expr.update import PlannedUpdate
from stator.model.values import Item, Value, normalise_item
from stator.tables.schema.entity_map import EntityMap
from stator.tables.writes.statements import LostRace, Statement, Terms


def computed_update(
    of: EntityMap,
    planned: Statement,
    stored: Item,
    base: Item | None,
    unchanged: Mapping[str, Value | None],
) -> Statement:
    """Return a statement that turns ``stored`` into the outcome of the update ``planned``.

    ``base`` is the item that the update applies to, or None if there is to be no item. The stored
    item must still have the attribute values ``unchanged``; None stands for a missing attribute. If
    the condition of ``planned`` is false for ``base``, the statement fails as ``planned`` would.
    """
    terms = Terms(of)
    terms.stored(unchanged)
    holds = _holds(planned.request, base)
    if not holds:
        terms.add(f"attribute_not_exists({terms.expressions.name(of.table.partition)})")
    new = _outcome(planned, base) if holds else stored
    changed = {name: value for name, value in new.items() if stored.get(name) != value}
    written = terms.expressions
    removals = [written.name(name) for name in stored if name not in new]
    if not (changed or removals):  # UpdateItem needs an action, even if the item stays the same
        changed = {name: value for name, value in stored.items() if name not in of.key_names}
    sets = [f"{written.name(name)} = {written.value(value)}" for name, value in changed.items()]
    clauses = {"SET": sets, "REMOVE": removals}
    text = " ".join(f"{clause} {', '.join(each)}" for clause, each in clauses.items() if each)
    request = {
        "TableName": of.table.name,
        "Key": planned.request["Key"],
        "UpdateExpression": text,
    }

    def means(item: Item | None) -> ConditionFailed:
        as_read = item is not None and all(item.get(name) == unchanged[name] for name in unchanged)
        return planned.meaning(base) if as_read and not holds else LostRace(item=item)

    return replace(planned, request=terms.into(request), meaning=means, relative=False)


def _holds(request: Mapping[str, Any], base: Item | None) -> bool:
    text = request.get("ConditionExpression")
    if text is None:
        return True
    names, values = _placeholders(request)
    return evaluate(bind_condition(parse_condition(text), names, values), _normal(base or {}))


def _outcome(planned: Statement, base: Item | None) -> Item:
    """Return the item after the update.

    An update that cannot be applied raises the error that it would get from DynamoDB.
    """
    request = planned.request
    names, values = _placeholders(request)
    new = _normal(request["Key"] if base is None else base)
    try:
        update = bind_update(parse_update(request["UpdateExpression"]), names, values)
        PlannedUpdate(update, new).carry_out(new)
    except ExpressionError as error:
        refused = ValidationFailed(error.message)
        raise (refused if planned.explain is None else planned.explain(refused)) from None
    return new


def _placeholders(request: Mapping[str, Any]) -> tuple[dict[str, str] | None, Item]:
    """Return the names and values of a request. There are no names if the request has none."""
    names = request.get("ExpressionAttributeNames")
    return names, _normal(request.get("ExpressionAttributeValues") or {})


def _normal(values: Item) -> Item:
    copied = deepcopy(values)
    normalise_item(copied)
    return copied
