"""Which attribute the items of a table expire by."""

from __future__ import annotations

from collections.abc import Iterable

from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import Choice, Maybe, Scalar, Shape
from stator.errors import DesignError


def ttl_attribute(table: str, entities: Iterable[type[Entity]]) -> str | None:
    """DynamoDB has one time to live for a table: all entities in it must have the same name for theirs, and no other number that name."""
    everybody = list(entities)
    marked = [
        (info(entity).name, name)
        for entity in everybody
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
    for entity in everybody if names else ():
        field = info(entity).fields.get(names[0])
        if field is not None and field.role != "ttl" and _is_number(field.shape):
            raise DesignError(
                f"{info(entity).name}.{field.name} is a number by which DynamoDB would expire items of table {table}, because "
                f"{marked[0][0]}.{names[0]} is its time to live",
                hint=f"give one of the two fields another name, or mark {info(entity).name}.{field.name} with ttl(), too",
            )
    return names[0] if names else None


def _is_number(shape: Shape) -> bool:
    inner = shape.inner if isinstance(shape, Maybe) else shape
    return isinstance(inner, (Scalar, Choice)) and inner.kind == "N"
