"""The table ``<design>-stator``, an additional table for items that belong to no entity.

It holds the guards of ``unique()`` values and of identities (one item reserves each value), the
tokens of transactions, and the items of pattern objects (counters, locks, outboxes and so on).
Pattern objects are created at run time and are not part of any design. No plan contains this table,
because its items outlive plans. Code that creates or compares tables gets it from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from stator.design.entities.entity import info
from stator.design.plan.plan import Plan, TablePlan

OWN_TTL: Final = "_expires"
# Attributes of a guard. ``guard_text`` has its key.
FIELD: Final = "field"
ENTITY: Final = "entity"
# Stands for the whole identity where guards name a field; no field can have this name.
IDENTITY: Final = "ident()"
GuardOperation = Literal["PutItem", "DeleteItem"]


def own_table(design: str, prefix: str = "") -> TablePlan:
    """Return the additional table of a design.

    ``prefix`` precedes all table names of the deployment.
    """
    keys = (("PK", "S"), ("SK", "S"))
    return TablePlan(f"{prefix}{design}-stator", "PK", "SK", keys, (), (), ttl=OWN_TTL)


def needs_own_table(entities: Iterable[type], plan: Plan) -> bool:
    """Whether any of these entities has guards, which are stored in the table.

    Programs that use pattern objects always need the table.
    """
    return any(guarded_fields(entity, plan) for entity in entities)


def unique_fields(entity: type) -> tuple[str, ...]:
    return tuple(name for name, field in info(entity).fields.items() if field.role == "unique")


def guarded_fields(entity: type, plan: Plan) -> tuple[str, ...]:
    """Return the fields of an entity whose values have guards: its ``unique()`` fields.

    The result includes IDENTITY if the table's key has fields besides the identity. Without a
    guard, the table could then hold two items with the same identity under different keys.
    """
    return (*unique_fields(entity), *((IDENTITY,) if plan.entity(entity).is_guarded else ()))


@dataclass(frozen=True, slots=True)
class GuardWrites:
    """The operations that one write performs on the guard of each of ``fields``.

    The operations run in the same transaction as the write of the item, after the item was read.
    """

    fields: tuple[str, ...]
    operations: tuple[GuardOperation, ...]


def guard_writes(
    entity: type,
    plan: Plan,
    kind: Literal["create", "update", "delete"],
    changed: Iterable[str],
) -> GuardWrites | None:
    """Return the guard writes that one write needs, or None if it changes no guard.

    A guard expires with its item, so an update to the ``ttl()`` field rewrites all guards.
    """
    fields = guarded_fields(entity, plan)
    if kind == "update":
        known, names = info(entity).fields, tuple(changed)
        expires = any(known[name].role == "ttl" for name in names)
        fields = fields if expires else tuple(name for name in fields if name in names)
    if not fields:
        return None
    operations: dict[str, tuple[GuardOperation, ...]] = {
        "create": ("PutItem",),
        "update": ("PutItem", "DeleteItem"),
        "delete": ("DeleteItem",),
    }
    return GuardWrites(fields, operations[kind])
