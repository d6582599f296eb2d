"""Values of fields whose attributes are missing in a stored item.

An item may lack the attribute of a field: an earlier deployment wrote it, before the field was
added; the field is None; or only the item's key holds it. Reads of entities supply the value: from
the key, or the field's default. What reads attributes without decoding the whole item (views,
links, comparisons of two images) uses the same values, by the functions of this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stator.design.entities.shapes import CLASS_TAG, Maybe
from stator.design.entities.wire import REQUIRED, absent_value
from stator.errors import ItemMismatch
from stator.model.values import Item, Value
from stator.tables.schema.entity_map import EntityMap


def missing_value(of: EntityMap, name: str, item: Item) -> Any:
    """Return the value that a field has in an item without its attribute.

    Raises ItemMismatch if the field is required.
    """
    found = _variant(of, item)
    default = found.info.default_maker(name) or absent_value(found.fields[name].shape)
    if default is REQUIRED:
        raise ItemMismatch(of.name, name, "the attribute is missing", None)
    return default()


def missing_attribute(of: EntityMap, name: str, item: Item) -> Value | None:
    """Return the attribute that stands for a missing one: the field's default, as stored.

    None stands for a field without a default, and for a default that is not stored, such as None.
    """
    found = _variant(of, item)
    if name not in found.fields:  # a field of another variant
        return None
    default = found.info.default_maker(name)
    value = None if default is None else default()
    return None if value is None else found.codec.attribute(name, value)


def with_defaults(of: EntityMap, item: Item, names: Iterable[str]) -> Item:
    """Return an item with the attributes ``names``, as far as its key or a default has them.

    The item must have the current shape. It is not changed.
    """
    item = of.with_key_fields(item)
    made = {name: missing_attribute(of, name, item) for name in names if name not in item}
    return item | {name: value for name, value in made.items() if value is not None}


def may_have_default(of: EntityMap, name: str) -> bool:
    """Whether a missing attribute can stand for anything but None."""
    shape = of.fields[name].shape
    return not isinstance(shape, Maybe) or shape.kept or of.is_in_written_key(name)


def _variant(of: EntityMap, item: Item) -> EntityMap:
    """Return the map of the item's variant, which may have defaults of its own."""
    return of.variants.get(item.get(CLASS_TAG, {}).get("S", ""), of) if of.variants else of
