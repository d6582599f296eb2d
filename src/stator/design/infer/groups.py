"""Kinds of items in a table, distinguished by a type attribute or by the form of their keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stator.design.infer.key_text import KeyShape, shapes_of

Item = dict[str, dict[str, Any]]

_TYPE_NAMES: Final = (
    "_type",
    "type",
    "entity",
    "entitytype",
    "entity_type",
    "__edb_e__",
    "_et",
    "__typename",
    "kind",
)
_MOST_KINDS: Final = 60


@dataclass(frozen=True, slots=True)
class ItemKind:
    """The items that are taken for one entity.

    ``shapes`` has the shape of each key attribute that has the same shape in all of these items.
    """

    label: str | None
    items: tuple[Item, ...]
    shapes: Mapping[str, KeyShape]


def type_attribute(items: Sequence[Item]) -> str | None:
    """Return the attribute that names the type of each item, or None if there is no such attribute.

    It is an attribute of every item, with a common name such as ``type``, and with few distinct
    values.
    """
    for name in sorted(set().union(*items) if items else set()):
        if name.lower() not in _TYPE_NAMES:
            continue
        values = [item.get(name, {}).get("S") for item in items]
        if None not in values and len(set(values)) <= min(_MOST_KINDS, max(1, len(items) // 2)):
            return name
    return None


def kinds_of(
    items: Sequence[Item], keys: Sequence[str], indexed: Sequence[str], type_name: str | None
) -> list[ItemKind]:
    """Return the kinds of items, largest first.

    ``keys`` are the key attributes of the table, ``indexed`` are those of its indexes, and
    ``type_name`` is the type attribute.
    """
    shapes: dict[str, dict[str, KeyShape]] = {}
    for name in (*keys, *indexed):
        texts = [item[name]["S"] for item in items if "S" in item.get(name, {})]
        shapes[name] = shapes_of(texts) if texts else {}

    def shape(item: Item, name: str) -> KeyShape | None:
        text = item.get(name, {}).get("S")
        return None if text is None else shapes[name][text]

    grouped: dict[tuple[Any, ...], list[Item]] = defaultdict(list)
    for item in items:
        label = item[type_name]["S"] if type_name else None
        form = tuple(_signature(shape(item, name)) for name in keys) if label is None else ()
        grouped[(label, *form)].append(item)
    found = []
    for signature, members in sorted(
        grouped.items(), key=lambda each: (-len(each[1]), repr(each[0]))
    ):
        common: dict[str, KeyShape] = {}
        for name in (*keys, *indexed):
            seen = {one for item in members if (one := shape(item, name)) is not None}
            if len(seen) == 1:
                common[name] = seen.pop()
        found.append(ItemKind(signature[0], tuple(members), common))
    return found


def _signature(shape: KeyShape | None) -> Any:
    """Return a value that is equal for keys with the same words in the same positions."""
    return None if shape is None else (shape.parts, shape.separator)
