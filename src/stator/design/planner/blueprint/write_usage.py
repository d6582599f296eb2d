"""The units that one declared write takes in the table, in indexes and for guards.

The data layer (``stator.tables.writes``) does more than put one item. This module counts it:

- A create, delete or change of a ``unique()`` value also writes the value's guard, in one
  transaction with the item. A transaction doubles the units of the items and guards it writes, not
  those of indexes. A changed value frees one guard and takes another.
- A write that changes or frees a guard reads the item first, strongly consistent.
- A delete of an entity with a ``soft_delete()`` field is an update that marks the item. It reads
  the item first, too.
- A change of the ``ttl()`` field writes every guard again, because guards expire with their item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from stator.design.capacity_units import read_units, write_units
from stator.design.entities.entity import Entity, EntityInfo, info
from stator.design.entities.shapes import Maybe
from stator.design.patterns.write_pattern import DeclaredWrite
from stator.design.plan.own_table import unique_fields
from stator.design.plan.plan import EntityPlan
from stator.design.planner.cost_model import GUARD_BYTES, CostModel, Placement
from stator.design.planner.needs.write_rates import item_write

Opened = tuple[tuple[Placement, str], ...]
"""The placements of an entity in indexes, each with the name of its index."""
_GUARD_UNITS = write_units(GUARD_BYTES, transactional=True)


@dataclass(frozen=True, slots=True)
class WrittenUnits:
    """The units of one write in one place. ``index`` is None for the table itself."""

    kind: Literal["read", "write"]
    table: str
    index: str | None
    units: float


@dataclass(frozen=True, slots=True)
class WriteUsage:
    """The units of one write to one item, by place, and the number of guards it writes."""

    places: tuple[WrittenUnits, ...]
    guards: float

    def units(self, kind: Literal["read", "write"]) -> float:
        return sum(each.units for each in self.places if each.kind == kind)

    def in_index(self, index: str) -> float:
        return sum(each.units for each in self.places if each.index == index)


def usage_of(
    change: DeclaredWrite,
    plan: EntityPlan,
    opened: Opened,
    costs: CostModel,
    own_table: str,
    *,
    is_transaction: bool,
) -> WriteUsage:
    """Return the units that one write of a pattern takes, and the number of its guard writes.

    ``opened`` has the entity's placements in indexes. ``own_table`` is the table of guards.
    """
    entity, fields = change.entity, _changed(change)
    guards, doubled = _guards(change, fields, plan, costs)
    size = costs.item_bytes(entity)
    table = write_units(costs.written_bytes(entity, item_write(change, 1.0))) * (
        2.0 if is_transaction else 1.0 + doubled
    )
    places = [WrittenUnits("write", plan.table, None, table)]
    if guards:
        places.append(WrittenUnits("write", own_table, None, guards * _GUARD_UNITS))
    if change.kind != "create" and (guards or _is_soft(change)):
        places.append(WrittenUnits("read", plan.table, None, read_units(size, consistent=True)))
    for placement, index in opened:
        units = costs.write_units(placement, item_write(change, 1.0))
        places.append(WrittenUnits("write", plan.table, index, units))
    return WriteUsage(tuple(places), guards)


def guarded_shares(entity: type[Entity], plan: EntityPlan, costs: CostModel) -> dict[str, float]:
    """Return the guarded fields of an entity, each with the share of items that have a value.

    If the identity has a guard, because the table's key has further fields, its name is empty.
    """
    known = info(entity)
    found = {
        name: costs.estimates.present(entity, name) if _is_optional(known, name) else 1.0
        for name in unique_fields(entity)
    }
    return found | ({"": 1.0} if plan.is_guarded else {})


def _changed(change: DeclaredWrite) -> frozenset[str] | None:
    """Return the fields that a write changes in an existing item.

    A soft delete changes fields, too. Returns None for a create, and for a delete that removes the
    item.
    """
    known = info(change.entity)
    always = {name for name, each in known.fields.items() if each.role in ("version", "updated")}
    if change.kind == "update":
        return frozenset(change.fields) | always
    if _is_soft(change):
        return frozenset(_marks(known)) | always
    return None


def _is_soft(change: DeclaredWrite) -> bool:
    fields = info(change.entity).fields.values()
    return change.kind == "delete" and any(each.role == "soft_delete" for each in fields)


def _marks(known: EntityInfo) -> list[str]:
    """Return the fields that a soft delete sets: its mark, and the expiry time if there is one."""
    marked = [each for each in known.fields.values() if each.role == "soft_delete"]
    expires = any(each.marker is not None and each.marker.after is not None for each in marked)
    roles = ("soft_delete", "ttl") if expires else ("soft_delete",)
    return [each.name for each in known.fields.values() if each.role in roles]


def _guards(
    change: DeclaredWrite, fields: frozenset[str] | None, plan: EntityPlan, costs: CostModel
) -> tuple[float, float]:
    """Return how many guards a write puts or deletes on average, and the chance that it is not 0.

    ``fields`` has the fields that the write changes in an existing item, or None.
    """
    known = info(change.entity)
    shares = guarded_shares(change.entity, plan, costs)
    if fields is None or _is_soft(change):
        touched = dict.fromkeys(shares, 1)
    elif any(known.fields[name].role == "ttl" for name in fields):
        touched = {name: 2 if name in fields else 1 for name in shares}
    else:
        touched = {name: 2 for name in shares if name in fields}
    guards = sum(shares[name] * times for name, times in touched.items())
    return guards, 1.0 - math.prod(1.0 - shares[name] for name in touched)


def _is_optional(known: EntityInfo, name: str) -> bool:
    return isinstance(known.fields[name].shape, Maybe)
