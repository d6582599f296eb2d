"""Kinds of items in a table, distinguished by a type attribute or by the form of their keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stator.design.infer.key_text import VALUE, KeyShape, shapes_of
from stator.design.infer.table_keys import Item, TableKeys, is_generic
from stator.design.plan import key_text as written

_TYPE_NAMES: Final = (
    "_type",
    "type",
    "entity",
    "entitytype",
    "entity_type",
    "entityname",
    "__edb_e__",
    "_et",
    "__typename",
    "kind",
    "itemtype",
    "item_type",
    "recordtype",
)
_MOST_KINDS: Final = 60


@dataclass(frozen=True, slots=True)
class ItemKind:
    """The items that are taken for one entity.

    ``label`` is the value of the type attribute, or None. ``shapes`` has the shape of each key
    attribute that these items have. The shape is VALUE, one value without key words, if the
    attribute is not text or its texts have several forms.
    """

    label: str | None
    items: tuple[Item, ...]
    shapes: Mapping[str, KeyShape]

    def form(self, names: Sequence[str]) -> tuple[KeyShape, ...]:
        return tuple(self.shapes.get(name, VALUE) for name in names)


def type_attribute(items: Sequence[Item]) -> str | None:
    """Return the attribute that names the type of each item, or None if there is no such attribute.

    Such an attribute is in every item, has a common name such as ``type``, and has few distinct
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
    items: Sequence[Item], keys: TableKeys, type_name: str | None, *, whole: bool = False
) -> list[ItemKind]:
    """Return the kinds of items, largest first.

    ``type_name`` is the type attribute. It tells kinds apart only if their keys have different
    forms. With ``whole``, all items are of one kind, and each key attribute is one value.
    """
    if whole:
        return [ItemKind(None, tuple(items), {})]
    shapes = {name: _shapes(items, name, keys) for name in keys.names}
    if type_name is not None:
        grouped: dict[Any, list[Item]] = defaultdict(list)
        for item in items:
            grouped[item[type_name]["S"]].append(item)
        found = [
            _kind(label, members, keys, shapes, type_name) for label, members in grouped.items()
        ]
        if len({each.form(keys.own) for each in found}) == len(found) > 1:
            return sorted(found, key=_rank)
    by_form: dict[Any, list[Item]] = defaultdict(list)
    for item in items:
        by_form[tuple(_shape(item, name, shapes) for name in keys.own)].append(item)
    if len(by_form) > min(_MOST_KINDS, max(8, len(items) // 3)):
        return [ItemKind(None, tuple(items), {})]
    return sorted(
        (_kind(None, members, keys, shapes, None) for members in by_form.values()), key=_rank
    )


def _rank(kind: ItemKind) -> tuple[Any, ...]:
    return (-len(kind.items), repr(sorted(kind.shapes.items(), key=repr)), kind.label or "")


def _kind(
    label: str | None,
    items: list[Item],
    keys: TableKeys,
    shapes: Mapping[str, Mapping[str, KeyShape]],
    type_name: str | None,
) -> ItemKind:
    found: dict[str, KeyShape] = {}
    for name in keys.names:
        seen = {_shape(item, name, shapes) for item in items if name in item}
        if name == type_name and label is not None:
            found[name] = KeyShape((label,), "")
        elif seen:
            found[name] = seen.pop() if len(seen) == 1 else VALUE
    own = [found.get(name, VALUE) for name in keys.own]
    if all(None not in shape.parts for shape in own):
        # All items have the same key text, so only a field of the key can identify an item.
        found[keys.own[-1]] = VALUE
    return ItemKind(label, tuple(items), found)


def _shapes(items: Sequence[Item], name: str, keys: TableKeys) -> dict[str, KeyShape]:
    texts = [item[name]["S"] for item in items if "S" in item.get(name, {})]
    if not texts or name in keys.whole:
        return {}
    found = shapes_of(texts, generic=is_generic(name))
    refused = {shape for text, shape in found.items() if not _can_write(shape, text)}
    return {text: VALUE if shape in refused else shape for text, shape in found.items()}


def _can_write(shape: KeyShape, text: str) -> bool:
    """Whether Stator would produce exactly this text if it wrote a key of this shape."""
    return shape.is_value or (shape.is_writable and all(map(is_key_text, shape.values(text))))


def is_key_text(text: str) -> bool:
    """Whether Stator could have written this text into a key.

    Stator escapes some characters, such as spaces, so ``a b`` is never in a key that it wrote.
    """
    try:
        return bool(text) and written.escape(written.unescape(text)) == text
    except ValueError:
        return False


def _shape(item: Item, name: str, shapes: Mapping[str, Mapping[str, KeyShape]]) -> KeyShape:
    return shapes[name].get(item.get(name, {}).get("S", ""), VALUE)
