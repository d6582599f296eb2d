"""The write units of one write, from the item before and after it.

The numbers follow the rules of ``design.capacity_units``. The stored item is known, so its size is
exact, and so is its presence in each index.
"""

from __future__ import annotations

from stator.design.capacity_units import index_write_units, write_units
from stator.design.plan.plan import IndexPlan
from stator.model.values import Item, item_size
from stator.tables.schema.entity_map import EntityMap
from stator.tables.schema.place import Place
from stator.tables.writes.unique_guards import guards


def units_of_write(
    of: EntityMap,
    before: Item,
    after: Item | None,
    *,
    place: Place,
    now: float,
    computed: frozenset[str] = frozenset(),
) -> int:
    """Return the write units of a write that turns ``before`` into ``after``.

    ``after`` is None for a delete. ``computed`` names the attributes that DynamoDB computes. These
    attributes count as changed, although ``after`` has their old values. Guards of unique values
    are written in a transaction with the item, which doubles the units of both.
    """
    written = guards(place, of, before, after, of.stored_key(before), now)
    size = max(item_size(before), 0 if after is None else item_size(after))
    total = write_units(size, transactional=bool(written))
    for guard in written:
        kept = guard.request.get("Item") or guard.request["Key"]
        total += write_units(item_size(kept), transactional=True)
    for index in of.table.indexes:
        if of.name in index.entities:
            total += _index_units(of, index, before, after, computed)
    return total


def _index_units(
    of: EntityMap, index: IndexPlan, before: Item, after: Item | None, computed: frozenset[str]
) -> int:
    old = index_entry(of, index, before)
    new = None if after is None else index_entry(of, index, after)
    keys = (*index.partition, *index.sort)
    return index_write_units(
        None if old is None else item_size(old),
        None if new is None else item_size(new),
        key_changes=old is not None
        and new is not None
        and any(old[name] != new[name] for name in keys),
        changes=old != new or bool(computed & (old or {}).keys()),
    )


def index_entry(of: EntityMap, index: IndexPlan, item: Item) -> Item | None:
    """Return the entry of an item in an index, or None if the item lacks one of its keys."""
    keys = (*index.partition, *index.sort)
    if not all(name in item for name in keys):
        return None
    if index.projection == "ALL":
        return item
    projected = {*keys, *of.key_names, *index.included}
    return {name: value for name, value in item.items() if name in projected}
