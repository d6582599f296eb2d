"""From an item's key back to its entity and identity, without the rest of the item.

A KEYS_ONLY stream shows nothing but the table's key. The plan's key templates are read backwards
here: ``USER#u1`` against ``USER#{user_id}`` gives user_id = "u1". This is possible because no value
in a key contains the separator (``design.plan.key_text``).

There are two exceptions. If an entity's key does not hold its whole identity, the identity cannot
be read. If two entities of a table have keys of the same form, a key does not tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stator.design.entities.derived_parts import derived_part
from stator.design.entities.wire import WrongValue
from stator.design.plan import key_text as keys
from stator.design.plan.templates import Part, PlannedKeyAttribute, wire_value
from stator.errors import DesignError
from stator.model.values import Item, Value
from stator.tables.codegen.key_writer import base_keys

if TYPE_CHECKING:
    from stator.tables.schema.entity_map import EntityMap

_PLACEHOLDER = "\0"


class KeyIdentity:
    """Reads the identity of one entity from keys."""

    def __init__(self, of: EntityMap) -> None:
        self.of = of
        self._attributes = [KeyAttributeReader(of, key) for key in base_keys(of.plan)]
        held = {name for each in self._attributes for name in each.fields}
        self._parts = [name for each in self._attributes for name in each.parts]
        self.is_derivable = set(of.identity) <= held
        self.literals = sum(each.literals for each in self._attributes)
        """The number of literal characters in the key."""

    def read(self, key: Item) -> dict[str, Any] | None:
        """Return the field values in a key, or None if the key does not belong to the entity.

        A key may hold a field and also a part of it, such as its month. If the two contradict each
        other, the key does not belong to the entity.
        """
        found: dict[str, Any] = {}
        for attribute in self._attributes:
            values = attribute.read(key.get(attribute.name))
            if values is None:
                return None
            found |= values
        for name in self._parts:
            part, text = derived_part(name), found.pop(name)
            if part is not None and part.field in found and text != part.of(found[part.field]):
                return None
        return found

    def overlaps(self, other: KeyIdentity) -> bool:
        """Whether the same key could belong to an item of this entity and to one of ``other``."""
        theirs = {each.name: each for each in other._attributes}
        return all(
            each.name not in theirs or each.overlaps(theirs[each.name]) for each in self._attributes
        )


class KeyAttributeReader:
    """Reads field values back from one key attribute."""

    def __init__(self, of: EntityMap, key: PlannedKeyAttribute) -> None:
        self.name = key.name
        self._of = of
        self._template = key.template
        self._parts = [part for part in key.template.parts if part.kind == "field"]
        self.fields = [part.value for part in self._parts if not keys.is_part(part.encoding)]
        self.parts = [part.name for part in self._parts if keys.is_part(part.encoding)]
        """Derived parts such as ``month_of(at)``, from which the field cannot be read back."""
        shown = "".join(
            part.value if part.kind == "text" else _PLACEHOLDER for part in key.template.parts
        )
        self._segments = shown.split(keys.SEPARATOR)
        self.literals = len(shown.replace(_PLACEHOLDER, ""))
        self._pattern = re.compile("".join(map(_pattern, key.template.parts)), re.DOTALL)

    def read(self, value: Value | None) -> dict[str, Any] | None:
        if value is None:
            return None
        try:
            if self._template.native:
                return self._read_native(value)
            found = self._pattern.fullmatch(value.get("S", ""))
            if found is None:
                return None
            texts = zip(self._parts, found.groups())
            return {part.name: self._typed(part, text) for part, text in texts}
        except (DesignError, WrongValue, ValueError, ArithmeticError, LookupError):
            return None  # the text is not a value of the field's type

    def _read_native(self, value: Value) -> dict[str, Any] | None:
        [part] = self._template.parts
        if part.kind == "text":
            return {} if list(value.values()) == [part.value] else None
        return {part.value: self._of.codec.decode_field[part.value](value)}

    def _typed(self, part: Part, text: str) -> Any:
        plain = keys.decode(part.encoding, text, inverted=part.inverted)
        if keys.is_part(part.encoding):
            return plain
        if keys.encode(part.encoding, plain, inverted=part.inverted) != text:
            raise ValueError(text)
        return self._of.codec.decode_field[part.value](wire_value(part.encoding, plain, part.value))

    def overlaps(self, other: KeyAttributeReader) -> bool:
        if self._template.native or other._template.native:
            return True
        return len(self._segments) == len(other._segments) and all(
            mine == theirs or _PLACEHOLDER in mine or _PLACEHOLDER in theirs
            for mine, theirs in zip(self._segments, other._segments)
        )


def _pattern(part: Part) -> str:
    if part.kind == "text":
        return re.escape(part.value)
    return f"([^{keys.SEPARATOR}]*)" if part.kind == "field" else r"\d+"


class TableKeyReader:
    """Tells the entities of one table apart by their keys."""

    def __init__(self, entities: Sequence[EntityMap]) -> None:
        self._readers = [KeyIdentity(of) for of in entities]

    def entity_of(self, key: Item) -> EntityMap | None:
        """Return the entity that a key belongs to.

        Returns None if the key fits no entity of the table, or more than one.
        """
        fitting = [each for each in self._readers if each.read(key) is not None]
        return fitting[0].of if len(fitting) == 1 else None

    def closest(self, key: Item) -> EntityMap | None:
        """Return the entity whose key fits best, for items that do not name their entity.

        If several entities fit, the entity whose key has the most literal text wins. An example:
        the sort key PROFILE fits a user, whose sort key is that word, and an order, whose sort key
        is ``{order_id}``. The key belongs to the user. Returns None if no entity fits, or if two
        fit equally well.
        """
        fitting = [each for each in self._readers if each.read(key) is not None]
        if len(fitting) > 1:
            most = max(each.literals for each in fitting)
            fitting = [each for each in fitting if each.literals == most]
        return fitting[0].of if len(fitting) == 1 else None

    def identity_of(self, of: EntityMap, key: Item) -> Mapping[str, Any] | None:
        """Return the identity that a key holds, or None if the key does not hold all of it."""
        reader = next(each for each in self._readers if each.of is of)
        found = reader.read(key) if reader.is_derivable else None
        return None if found is None else {name: found[name] for name in of.identity}

    def is_certain(self, of: EntityMap) -> bool:
        """Whether a key of this entity cannot belong to another entity of the table."""
        mine = next(each for each in self._readers if each.of is of)
        return not any(mine.overlaps(each) for each in self._readers if each is not mine)
