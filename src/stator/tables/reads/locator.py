"""Finds an item's key in the table from its identity.

Usually the key consists of the identity alone. If the planner chose otherwise (for example, orders
under their user, by time), the key contains other fields, too. The caller passes their values;
otherwise an index keyed by the identity is queried first.

An index entry always contains the item's key in the table. The projection decides what else it
contains. If the entry lacks the identity, the identity is read from the key (``key_identity``). If
the key lacks the identity, too, or might belong to another entity, the whole item is read.
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
from stator.tables.schema.entity_map import EntityMap
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions


def locate(of: EntityMap, values: Mapping[str, Any]) -> Work[Item | None]:
    """Return the table key of the item that ``values`` identify.

    If ``values`` have all fields of the key, nothing is read, so the item need not exist. Otherwise
    an index is queried, and the result is None if it has no such item.
    """
    if of.has_base(values):
        return of.key_from(values)
    missing_identity = [name for name in of.identity if name not in values]
    if missing_identity:
        raise DesignError(
            f"{of.name} is identified by {of.info.listed(of.identity)}; "
            f"{of.info.listed(missing_identity)} is missing",
            hint=f"pass {of.info.listed(of.base_fields)}",
        )
    found = _index(of)
    if found is None:
        missing = [name for name in of.base_fields if name not in values]
        raise DesignError(
            f"the key of {of.name} is made of {of.info.listed(of.base_fields)}; "
            f"{of.info.listed(missing)} is missing",
            hint=f"pass it, or declare a pattern that finds {of.name} by "
            f"{of.info.listed(of.identity)}, which creates an index for it",
        )
    index, keys = found
    start: Item | None = None
    while True:
        reply = yield Call("Query", _request(of, index, keys, values, start), f"locate {of.name}")
        for entry in reply["Items"]:
            key = of.stored_key(entry)
            is_it = _is_it(of, entry, values)
            if is_it is None:
                request = {"TableName": of.table.name, "Key": key}
                item = (yield Call("GetItem", request, f"locate {of.name}")).get("Item")
                is_it = item is not None and _is_it(of, item, values)
            if is_it:
                return key
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
        if any(part.adaptive for key in partition for part in key.template.parts):
            continue  # the identity does not tell the shard
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


def _is_it(of: EntityMap, item: Item, values: Mapping[str, Any]) -> bool | None:
    """Whether an item or an index entry belongs to the entity and has the identity in ``values``.

    An index query may also find other entities, and other items of the same partition. Returns None
    if the entry has too few attributes to tell.
    """
    discriminator = of.plan.discriminator
    if discriminator is not None and discriminator in item:
        if item[discriminator] != {"S": of.name}:
            return False
    elif not of.is_key_certain:
        return None
    if all(name in item for name in of.identity):
        decode = of.codec.decode_field
        return all(decode[name](item[name]) == values[name] for name in of.identity)
    if not of.key_identity.is_derivable:
        return None
    found = of.key_identity.read(of.stored_key(item))
    return found is not None and all(found[name] == values[name] for name in of.identity)
