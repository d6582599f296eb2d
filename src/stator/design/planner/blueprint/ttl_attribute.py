"""The attribute that the items of a table expire by."""

from __future__ import annotations

from collections.abc import Iterable

from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import Choice, Maybe, Scalar, Shape
from stator.errors import DesignError


def ttl_attribute(table: str, entities: Iterable[type[Entity]]) -> str | None:
    """The table's time-to-live attribute; None if no entity has a ``ttl()`` field.

    DynamoDB has one for each table. All entities must give their ``ttl()`` field the same name,
    and no other number may have it.
    """
    members = list(entities)
    marked = [
        (info(entity).name, name)
        for entity in members
        for name, field in info(entity).fields.items()
        if field.role == "ttl"
    ]
    names = sorted({name for _, name in marked})
    if len(names) > 1:
        shown = " and ".join(f"{entity}.{name}" for entity, name in marked)
        raise DesignError(
            f"{shown} are in table {table}, which can expire items by one attribute only",
            hint="give the fields one name, or the entities tables of their own: "
            'layout="table-per-entity"',
        )
    for entity in members if names else ():
        field = info(entity).fields.get(names[0])
        if field is not None and field.role != "ttl" and _is_number(field.shape):
            raise DesignError(
                f"DynamoDB would expire items of table {table} by the number "
                f"{info(entity).name}.{field.name}, because {marked[0][0]}.{names[0]} is the "
                f"table's time to live",
                hint="rename one of the two fields, or mark "
                f"{info(entity).name}.{field.name} with ttl() as well",
            )
    return names[0] if names else None


def _is_number(shape: Shape) -> bool:
    inner = shape.inner if isinstance(shape, Maybe) else shape
    return isinstance(inner, (Scalar, Choice)) and inner.kind == "N"
