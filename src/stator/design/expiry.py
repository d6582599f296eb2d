"""Which attribute the items of a table expire by."""

from __future__ import annotations

from collections.abc import Iterable

from stator.design.entity import Entity, info
from stator.errors import DesignError


def ttl_attribute(table: str, entities: Iterable[type[Entity]]) -> str | None:
    """DynamoDB has one time to live for a table, so all entities in it must have the same name for theirs."""
    marked = [
        (info(entity).name, name)
        for entity in entities
        for name, field in info(entity).fields.items()
        if field.role == "ttl"
    ]
    names = sorted({name for _, name in marked})
    if len(names) > 1:
        shown = " and ".join(f"{entity}.{name}" for entity, name in marked)
        raise DesignError(
            f"{shown} are in table {table}, which can expire items by one attribute only",
            hint='give the fields one name, or the entities tables of their own: layout="table-per-entity"',
        )
    return names[0] if names else None
