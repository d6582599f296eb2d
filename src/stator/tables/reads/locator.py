"""Finds the table's key from an identity.

Usually the key consists of the identity alone. If the planner chose otherwise (for example, orders
under their user, by time), the key needs other fields. The caller passes them, or an index keyed by
the identity is queried first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stator.design.plan.plan import (
    IndexPlan,
)
from stator.design.plan.templates import PlannedKeyAttribute
from stator.errors import DesignError
from stator.model.values import Item
from stator.tables.codegen.key_writer import base_keys, fields_of
from stator.tables.schema import EntityMap
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions


def locate(of: EntityMap, values: Mapping[str, Any]) -> Work[Item | None]:
    """Find the key of the item with these values.

    Returns None if a queried index has no such item.
    """
    if of.has_base(values):
        return of.key_from(values)
    missing_identity = [name for name in of.identity if name not in values]
    if missing_identity:
        raise DesignError(
            f"{of.name} is identified by {', '.join(of.identity)}; "
            f"{', '.join(missing_identity)} is missing",
            hint=f"pass {', '.join(of.base_fields)}",
        )
    found = _index(of)
    if found is None:
        missing = [name for name in of.base_fields if name not in values]
        raise DesignError(
            f"the key of {of.name} is made of {', '.join(of.base_fields)}; "
            f"{', '.join(missing)} is missing",
            hint=f"pass it, or declare a pattern that finds {of.name} by {', '.join(of.identity)}, "
            "which creates an index for it",
        )
    index, keys = found
    is_whole = set().union(*map(fields_of, keys)) == set(of.identity)
    start: Item | None = None
    while True:
        reply = yield Call("Query", _request(of, index, keys, values, start), f"locate {of.name}")
        for item in reply["Items"]:
            if _is_it(of, item, values, is_whole):
                return of.stored_key(item)
        start = reply.get("LastEvaluatedKey")
        if start is None:
            return None


def _index(of: EntityMap) -> tuple[IndexPlan, list[PlannedKeyAttribute]] | None:
    """Return an index whose partition key consists of identity fields, and that key's attributes.

    An index whose partition key holds the whole identity is preferred. Returns None if there is no
    such index.
    """
    best: tuple[IndexPlan, list[PlannedKeyAttribute]] | None = None
    for index in of.table.indexes:
        if of.name not in index.entities:
            continue
        by_name = {key.name: key for key in of.plan.keys if key.index == index.name}
        partition = [by_name[name] for name in index.partition if name in by_name]
        fields = {
            part.value for key in partition for part in key.template.parts if part.kind == "field"
        }
        is_whole = len(partition) == len(index.partition) and not any(
            key.when for key in by_name.values()
        )
        if is_whole and fields and fields <= set(of.identity):
            best = best or (index, partition)
            if fields == set(of.identity):
                return index, partition
    return best


def _request(
    of: EntityMap,
    index: IndexPlan,
    keys: list[PlannedKeyAttribute],
    values: Mapping[str, Any],
    start: Item | None,
) -> dict[str, Any]:
    written = Expressions()
    terms = []
    for key in keys:
        value = of.key_value(key, values)
        assert value is not None
        terms.append(f"{written.name(key.name)} = {written.value(value)}")
    request: dict[str, Any] = {
        "TableName": of.table.name,
        "IndexName": index.name,
        "KeyConditionExpression": " AND ".join(terms),
    }
    if start is not None:
        request["ExclusiveStartKey"] = start
    return written.into(request)


def _looks_like(of: EntityMap, item: Item) -> bool:
    """Whether an item's own key begins like the entity's keys."""
    for key in base_keys(of.plan):
        first = key.template.parts[0]
        if first.kind == "text" and not str(item[key.name].get("S", "")).startswith(first.value):
            return False
    return True


def _is_it(of: EntityMap, item: Item, values: Mapping[str, Any], is_whole: bool) -> bool:
    """Whether an item found in the index is the one with these values.

    An index may hold other entities, and other items of the same partition. If the index does not
    project the identity, only the keys can decide. They can do so only if ``is_whole``: the
    partition key holds the whole identity.
    """
    discriminator = of.plan.discriminator
    if (
        discriminator is not None
        and discriminator in item
        and item[discriminator] != {"S": of.name}
    ):
        return False
    if not all(name in item for name in of.identity):
        return is_whole and _looks_like(of, item)
    return all(of.codec.decode_field[name](item[name]) == values[name] for name in of.identity)
