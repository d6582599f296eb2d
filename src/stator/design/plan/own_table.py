"""The table beside those of a design, ``<design>-stator``: for items that are nobody's entity.

Guards of ``unique()`` values live there, tokens of transactions, and the items of pattern objects, which are made at run time and stand in no
design. The plan does not have it, because plans come and go under those items; what makes or compares tables takes it from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from stator.design.entities.entity import info
from stator.design.plan.plan import TablePlan

if TYPE_CHECKING:
    from stator.design.design import Design
    from stator.design.patterns.pattern import Change

OWN_TTL: Final = "_expires"
# A guard: its sort key, and its attributes.
GUARD: Final = "GUARD"
OWNER: Final = "owner"
FIELD: Final = "field"
ENTITY: Final = "entity"
GuardOperation = Literal["PutItem", "DeleteItem"]


def own_table(design: str, prefix: str = "") -> TablePlan:
    """By the design's name; ``prefix`` is what stands before the names of all its tables."""
    keys = (("PK", "S"), ("SK", "S"))
    return TablePlan(f"{prefix}{design}-stator", "PK", "SK", keys, (), (), ttl=OWN_TTL)


def needs_own_table(design: Design) -> bool:
    """Whether what the design declares is enough to need it."""
    return any(unique_fields(entity) for entity in design.entities)


def unique_fields(entity: type) -> tuple[str, ...]:
    return tuple(name for name, field in info(entity).fields.items() if field.role == "unique")


def guard_prefix(entity: str, field: str) -> str:
    """What the partition keys of a field's guards begin with; the value follows."""
    return f"UNIQUE#{entity}#{field}#"


@dataclass(frozen=True, slots=True)
class GuardWrites:
    """What a change does to the guards of each of these fields, in a transaction with its item, after it has read that."""

    fields: tuple[str, ...]
    operations: tuple[GuardOperation, ...]


def guard_writes(change: Change) -> GuardWrites | None:
    """None for a change that leaves guards alone. A guard expires with its item, so a new expiry writes all of them."""
    fields = unique_fields(change.entity)
    if change.kind == "update":
        known = info(change.entity).fields
        expires = any(known[name].role == "ttl" for name in change.fields)
        fields = fields if expires else tuple(name for name in fields if name in change.fields)
    if not fields:
        return None
    operations: dict[str, tuple[GuardOperation, ...]] = {
        "create": ("PutItem",),
        "update": ("PutItem", "DeleteItem"),
        "delete": ("DeleteItem",),
    }
    return GuardWrites(fields, operations[change.kind])
