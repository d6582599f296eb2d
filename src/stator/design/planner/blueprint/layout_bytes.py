"""Sizes of items and index entries with their keys, once the search has chosen all of them.

An item has the attributes of its fields, the table's key, one pair of key attributes for each index
it is in, and the discriminator. Native keys are fields that it has anyway. An index entry that
does not project everything has its own key, the table's key and the projected fields.

A sparse index adds its keys to some items only. The average item size includes only this share of
the keys. An entry of a sparse index has no keys of another sparse index whose condition excludes
the first one's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stator.design.entities.derived_parts import derived_part
from stator.design.entities.entity import Entity, info
from stator.design.plan.templates import Part, PlannedKeyAttribute, Template, shard_text
from stator.design.planner.assignment import EntityLayout
from stator.design.planner.blueprint.key_conditions import Slot, key_attributes
from stator.design.planner.cost_model import CostModel, LayoutBytes, Placement
from stator.design.planner.estimates import key_text_bytes


def layout_bytes(
    layouts: Mapping[type[Entity], EntityLayout],
    slots: Mapping[Placement, Slot],
    base_slots: Mapping[type[Entity], Slot],
    discriminator: str | None,
    costs: CostModel,
) -> LayoutBytes:
    """Return the sizes of the items and entries of one table."""
    items, entries, keys = {}, {}, dict[Placement, float]()
    for entity, layout in layouts.items():
        kind = _type_bytes(entity, discriminator)
        base = key_attributes(layout.base, base_slots[entity], costs.labels)
        own = {each: key_attributes(each, slots[each], costs.labels) for each in layout.opened}
        added = {each: _added_bytes(entity, found) for each, found in own.items()}
        shares = {each: costs.presence(each.path) for each in own}
        bare = costs.estimates.item_bytes(entity) + kind + _added_bytes(entity, base)
        items[entity] = bare + sum(added[each] * shares[each] for each in own)
        entries[layout.base] = items[entity]
        for each in own:
            others = (
                added[other] * costs.presence(other.path, each.path)
                for other in own
                if other != each
            )
            whole = bare + added[each] + sum(others)
            kept = kind if each.projection == "INCLUDE" else 0
            part = kept + _projected_bytes(each, (*base, *own[each]), costs)
            entries[each] = whole if each.projection == "ALL" else min(whole, part)
        keys |= {each: size for each, size in added.items() if size}
    return LayoutBytes(items, entries, keys)


def _type_bytes(entity: type[Entity], discriminator: str | None) -> int:
    return len(discriminator) + len(info(entity).name) if discriminator else 0


def _added_bytes(entity: type[Entity], attributes: Iterable[PlannedKeyAttribute]) -> int:
    """Return the bytes of the attributes that an item has for its keys alone."""
    return sum(
        len(each.name) + _text_bytes(entity, each.template)
        for each in attributes
        if not each.template.native
    )


def _projected_bytes(
    placement: Placement, attributes: Iterable[PlannedKeyAttribute], costs: CostModel
) -> int:
    """Return the bytes of the keys in an entry, and of the fields that its index projects."""
    entity, keys = placement.path.entity, list(attributes)
    native = [each.name for each in keys if each.template.native]
    fields = dict.fromkeys((*native, *placement.included))
    return _added_bytes(entity, keys) + costs.estimates.fields_bytes(entity, tuple(fields))


def _text_bytes(entity: type[Entity], template: Template) -> int:
    return sum(_part_bytes(entity, part) for part in template.parts)


def _part_bytes(entity: type[Entity], part: Part) -> int:
    if part.kind == "text":
        return len(part.value.encode())
    if part.kind == "shard":
        return len(shard_text(0, part.shards))
    size = key_text_bytes(info(entity).fields[part.value].shape)
    return min(size, derived.length) if (derived := derived_part(part.name)) else size
