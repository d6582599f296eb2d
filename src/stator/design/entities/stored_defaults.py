"""Defaults of fields as stored: the values that count where an item lacks an attribute."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from stator.design.entities.conditions import Comparison, FieldRef
from stator.design.entities.entity import EntityInfo, info
from stator.design.entities.written_keys import IndexKey, written_sides
from stator.model.values import Value

_PLACEHOLDER = re.compile(r"\{(\w+)")


@dataclass(frozen=True, slots=True)
class StoredDefault:
    """The default of a field as an attribute.

    ``variants`` has the tags of the variants that have this default. If it is empty, every item of
    the entity has it.
    """

    value: Value
    variants: tuple[str, ...] = ()


def compared_fields(test: Comparison) -> set[str]:
    """Return the names of the fields that a comparison is about."""
    return {test.field.name, *(each.name for each in test.values if isinstance(each, FieldRef))}


def stored_defaults(known: EntityInfo, name: str) -> tuple[StoredDefault, ...]:
    """Return the default of a field, or the defaults that its variants have.

    Defaults that are stored as no attribute, such as None, are left out. So are defaults that
    differ with every call, such as a new UUID or the time, and fields that a key holds: items may
    lack their attributes, and yet have another value.
    """
    if name in known.identity or name in _in_written_keys(known):
        return ()
    if name in known.own_fields or not known.variants:
        value = _stored(known, name)
        return () if value is None else (StoredDefault(value),)
    found: list[StoredDefault] = []
    for tag, cls in known.variants.items():
        value = _stored(info(cls), name)
        if value is None:
            continue
        same = next((at for at, each in enumerate(found) if each.value == value), None)
        if same is None:
            found.append(StoredDefault(value, (tag,)))
        else:
            found[same] = StoredDefault(value, (*found[same].variants, tag))
    return tuple(found)


def _stored(known: EntityInfo, name: str) -> Value | None:
    make = known.default_maker(name) if name in known.fields else None
    value = None if make is None else make()  # None: as of ttl(), which a write sets
    if make is None or value is None or _differs(make, value):
        return None
    return known.codec.attribute(name, value)


def _differs(make: Callable[[], Any], first: Any) -> bool:
    try:
        return bool(make() != first)
    except Exception:  # a comparison of the user's own
        return True


def _in_written_keys(known: EntityInfo) -> set[str]:
    """Return the fields that handwritten keys name."""
    return {known.stored_names.get(name, name) for name in _named(known)}


def _named(known: EntityInfo) -> Iterator[str]:
    by_hand = known.overrides
    keys = [("key", by_hand.key)] if by_hand.key is not None else []
    keys += [
        (name, each.key if isinstance(each, IndexKey) else each) for name, each in by_hand.indexes
    ]
    for where, key in keys:
        for side in written_sides(where, key):
            for _, written in side:
                yield from _PLACEHOLDER.findall(written)


def value_at(value: Value, steps: tuple[str | int, ...]) -> Value | None:
    """Return the value inside a map or list at these steps, or None if there is none."""
    found: Any = value
    for step in steps:
        if isinstance(step, int):
            inner = found.get("L", ())
            found = inner[step] if 0 <= step < len(inner) else None
        else:
            found = found.get("M", {}).get(step)
        if found is None:
            return None
    result: Value = found
    return result
