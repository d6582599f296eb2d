"""One entity from the items of one kind: its fields, its keys, and the evidence for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stator.design.entities.entity import Entity
from stator.design.entities.entity_versions import VERSION_ATTRIBUTE
from stator.design.entities.shapes import CLASS_TAG
from stator.design.infer.fields import KEY_TYPES, GuessedField, field_of, holds_set
from stator.design.infer.groups import ItemKind, is_key_text
from stator.design.infer.key_text import VALUE, KeyShape
from stator.design.infer.table_keys import IndexKeys, Item, Key, TableKeys, is_generic
from stator.design.infer.words import field_name, singular, snake
from stator.design.plan.key_text import unescape
from stator.errors import ConfigurationError

_RESERVED: Final = frozenset({VERSION_ATTRIBUTE, CLASS_TAG})


@dataclass(frozen=True, slots=True)
class GuessedEntity:
    """A guessed entity.

    ``key`` and ``indexes`` have the key templates that its items have now, such as
    ``USER#{user_id}``, in the order of the key attributes. ``label`` is the value of the type
    attribute in its items, or None.
    """

    name: str
    fields: tuple[GuessedField, ...]
    identity: tuple[str, ...]
    key: Key
    indexes: Mapping[str, Key]
    share: float
    label: str | None = None
    has_versions: bool = False
    """Whether items have the attribute of Stator's own shape versions."""


class EntityGuess:
    """Collects what the items of one kind say about their entity.

    ``doubt`` is a function that records a guess, as text. ``type_name`` is the attribute whose
    value names the entity, or None if the proposed design does not use one. With ``keys_only``,
    other attributes do not become fields; they stay in the items as they are.
    """

    def __init__(
        self,
        name: str,
        kind: ItemKind,
        keys: TableKeys,
        type_name: str | None,
        doubt: Callable[[str], None],
        *,
        adopted: Sequence[str] = (),
        keys_only: bool = False,
        expires: bool = False,
    ) -> None:
        self.name = name
        self.kind = kind
        self.keys = keys
        self.doubt = doubt
        self.type_name = type_name
        self.adopted = frozenset(adopted)
        """Indexes that no item of the sample is in, and that this entity declares."""
        self.keys_only = keys_only
        self.expires = expires
        """Whether this entity declares the time to live, because no item in the sample has it."""
        self.shapes = dict(kind.shapes)
        self._values: dict[str, list[dict[str, Any]]] = {}
        for item in kind.items:
            for attribute, value in item.items():
                self._values.setdefault(attribute, []).append(value)
        self.indexes = {
            index: each for index, each in keys.indexes.items() if self._is_in(index, each)
        }
        self._python: dict[str, str] = {}
        """The Python name of the field for each attribute."""
        self._made: dict[str, tuple[str, int]] = {}
        """For each new field, the key attribute that holds its value, and the value's position."""
        self.holes: dict[str, tuple[str, ...]] = {}
        """The fields in each composed key attribute."""

    def _is_in(self, index: str, each: IndexKeys) -> bool:
        return index in self.adopted or any(
            all(name in item for name in each.names) for item in self.kind.items
        )

    def entity(self, total: int) -> GuessedEntity:
        used = [name for each in self.indexes.values() for name in each.names]
        own = tuple(dict.fromkeys((*self.keys.own, *used)))
        self._name_attributes(own)
        for attribute in own:
            self._fill_holes(attribute)
        for attribute in own:
            if attribute not in self.keys.own and self._adds_keys(attribute):
                self.doubt(
                    f"{self.name}: only some items have {attribute}, and no field tells which; "
                    f"the attribute is a field itself"
                )
                self.shapes[attribute] = VALUE
                self.holes.pop(attribute, None)
                self._name(attribute)
        identity = tuple(
            dict.fromkeys(name for key in self.keys.own for name in self._fields_in(key))
        )
        return GuessedEntity(
            self.name,
            tuple(self._fields(own, identity)),
            identity,
            tuple(self._template(name) for name in self.keys.own),
            {
                index: tuple(self._template(name) for name in each.names)
                for index, each in self.indexes.items()
            },
            len(self.kind.items) / total,
            self.kind.label if self.type_name is not None else None,
            VERSION_ATTRIBUTE in self._values,
        )

    # -- names

    def _name_attributes(self, own: Key) -> None:
        """Choose the Python name of each attribute that becomes a field.

        ``own`` has the key attributes of the table, without those of its indexes.
        """
        hidden = {self.type_name, *(name for name in self.keys.names if self._is_composed(name))}
        wanted = [name for name in own if not self._is_composed(name)]
        if not self.keys_only:
            wanted += [name for name in sorted(self._values) if name not in wanted]
        if self.keys.ttl is not None and self.expires:
            wanted.append(self.keys.ttl)
        wanted = [name for name in dict.fromkeys(wanted) if name not in hidden]
        # Names that are fine as they are come first, so that no other attribute takes them.
        for name in sorted(wanted, key=lambda each: field_name(each) != each):
            self._name(name, own)

    def _name(self, attribute: str, own: Key = ()) -> None:
        is_key = attribute in own or attribute in self.keys.names
        python = field_name(attribute, {*self._python.values(), *self._made})
        others = {*self._values, *self.keys.names} - {attribute}
        while python in others or hasattr(Entity, python):
            python += "_"
        if attribute in _RESERVED or hasattr(Entity, attribute):
            if is_key:
                raise ConfigurationError(
                    f"the key attribute {attribute} has a name that Stator uses itself",
                    hint="copy the items to a table with another key attribute",
                )
            if attribute != VERSION_ATTRIBUTE:
                self.doubt(f"{self.name}: {attribute} cannot be a field; items keep it as it is")
            return
        self._python[attribute] = python

    def _new_name(self, attribute: str, place: int, values: Sequence[str]) -> str:
        """Return a name for a field that only a key contains.

        The name comes from the word before the value, or from the entity if there is no word: the
        value in ``USER#17`` becomes ``user_id``. ``place`` is the position of the value in the key,
        and ``values`` has its values in the sample.
        """
        shape = self.shapes[attribute]
        word = next((each for each in reversed(shape.parts[:place]) if each), None)
        base = snake(singular(word) if word else self.name) or "key"
        guess = field_of("x", [{"S": value} for value in values], len(values))
        ending = "id"
        if guess.python == "date":
            ending = "date"
        elif "looks like a time" in guess.doubt or guess.python == "datetime":
            ending = "time"
        taken = {*self._python.values(), *self._made, *self._values, *self.keys.names}
        name = field_name(f"{base}_{ending}", taken)
        while hasattr(Entity, name):
            name += "_"
        return name

    # -- keys

    def _is_composed(self, attribute: str) -> bool:
        return self.shapes.get(attribute, VALUE) != VALUE or self._repeats(attribute) is not None

    def _repeats(self, attribute: str) -> str | None:
        """Return the attribute whose value a generic key attribute repeats, or None.

        For example, PK has the value of user_id in all items.
        """
        if not is_generic(attribute) or attribute in self.keys.whole or self.keys_only:
            return None
        if self.keys.types.get(attribute, "S") != "S":
            return None
        held = [item for item in self.kind.items if attribute in item]
        if not held or attribute not in self.kind.shapes:
            return None
        texts = [item[attribute].get("S", "") for item in held]
        return self._equal(held, texts) if all(map(is_key_text, texts)) else None

    def _equal(self, held: Sequence[Item], texts: Sequence[str]) -> str | None:
        """Return the attribute that has the same value as the key text in every item, or None.

        ``texts`` has one key text, or one value of a composed key, for each item of ``held``.
        """
        plain = [unescape(text) for text in texts]
        same = [
            name
            for name in sorted(self._values)
            if not is_generic(name)
            and name != self.type_name
            and name not in _RESERVED
            and not hasattr(Entity, name)
            and self.shapes.get(name, VALUE) == VALUE
            and all(item.get(name, {}).get("S") == text for item, text in zip(held, plain))
        ]
        ranked = sorted(same, key=lambda one: (not one.lower().endswith("id"), len(one), one))
        return ranked[0] if ranked and not self.keys_only else None

    def _fill_holes(self, attribute: str) -> None:
        """Find or make a field for each value in a composed key attribute.

        ``USER#17#o1`` has two values, so ``holes`` gets two fields for it.
        """
        repeated = self._repeats(attribute) if self.shapes.get(attribute, VALUE) == VALUE else None
        if repeated is not None:
            self.shapes[attribute] = KeyShape((None,), "")
            self.holes[attribute] = (self._python[repeated],)
            return
        shape = self.shapes.get(attribute, VALUE)
        if shape == VALUE:
            return
        held = [item for item in self.kind.items if attribute in item]
        columns = list(zip(*(shape.values(item[attribute]["S"]) for item in held)))
        places = [at for at, word in enumerate(shape.parts) if word is None]
        names: list[str] = []
        for place, column in zip(places, columns):
            same = self._equal(held, column)
            if same is not None and self._python[same] not in names:
                names.append(self._python[same])
                continue
            known = self._known_column(held, column, names)
            if known is None:
                known = self._new_name(attribute, place, column)
                self._made[known] = (attribute, len(names))
                self.doubt(
                    f"{self.name}.{known}: a new field for a value in {attribute} that no other "
                    f"attribute has"
                )
            names.append(known)
        self.holes[attribute] = tuple(names)

    def _known_column(
        self, held: Sequence[Item], column: Sequence[str], used: Sequence[str]
    ) -> str | None:
        """Return a field made for another key that has the same value in every item, or None.

        ``column`` has the value for each item of ``held``. Fields in ``used`` are not returned.
        """
        for name, (attribute, at) in self._made.items():
            if name not in used and all(
                attribute in item
                and self.shapes[attribute].values(item[attribute]["S"])[at] == value
                for item, value in zip(held, column)
            ):
                return name
        return None

    def _adds_keys(self, attribute: str) -> bool:
        """Whether Stator would add an index key to items that do not have it now.

        Stator writes a composed key (``USER#17``) on every item that has all fields of the key.
        """
        if attribute not in self.holes and self.shapes.get(attribute, VALUE) == VALUE:
            return False
        attributes = {python: each for each, python in self._python.items()}
        for item in self.kind.items:
            fields = self.holes.get(attribute, ())
            filled = all(
                attributes.get(name, self._made.get(name, ("", 0))[0]) in item for name in fields
            )
            if filled and attribute not in item:
                return True
        return False

    def _fields_in(self, attribute: str) -> tuple[str, ...]:
        if attribute in self.holes:
            return self.holes[attribute]
        return (self._python[attribute],) if attribute in self._python else ()

    def _template(self, attribute: str) -> str:
        if attribute in self.holes:
            return self.shapes[attribute].filled(self.holes[attribute])
        if self.shapes.get(attribute, VALUE) != VALUE:
            return self.shapes[attribute].filled(())
        return f"{{{self._python[attribute]}}}"

    # -- fields

    def _fields(self, own: Key, identity: tuple[str, ...]) -> list[GuessedField]:
        found = {}
        in_keys = {name for names in self.holes.values() for name in names}
        total = len(self.kind.items)
        for attribute, python in self._python.items():
            values = self._values.get(attribute, [])
            found[python] = self._field(attribute, python, values, total, own, in_keys)
        for name, (attribute, at) in self._made.items():
            if name not in in_keys:
                continue
            held = [item for item in self.kind.items if attribute in item]
            shape = self.shapes[attribute]
            made = [{"S": unescape(shape.values(item[attribute]["S"])[at])} for item in held]
            found[name] = field_of(name, made, total, in_key=True)
        found = {name: each for name, each in found.items() if each is not None}
        order = {name: at for at, name in enumerate(identity)}
        return sorted(
            (each for each in found.values() if each is not None),
            key=lambda each: (order.get(each.name, len(order)), each.name),
        )

    def _field(
        self,
        attribute: str,
        python: str,
        values: list[dict[str, Any]],
        total: int,
        own: Key,
        in_keys: set[str],
    ) -> GuessedField | None:
        key_type = None
        if attribute in own:
            seen = next((kind for value in values for kind in value if kind in KEY_TYPES), "S")
            key_type = self.keys.types.get(attribute, seen)
        is_ttl = attribute == self.keys.ttl if self.keys.is_ttl_known else None
        if is_ttl and not values:
            guess = GuessedField(attribute, "datetime", True, marker="ttl")
        else:
            guess = field_of(
                attribute,
                values,
                total,
                in_key=python in in_keys,
                key_type=key_type,
                is_ttl=is_ttl,
            )
        if is_ttl and guess.marker != "ttl" and guess.python in ("int", "Decimal"):
            self.doubt(
                f"{self.name}: {attribute} is the time to live, but not all values are seconds "
                f"since 1970; items keep it as it is"
            )
            return None
        if "Any" in guess.python and any(map(holds_set, values)):
            self.doubt(
                f"{self.name}: {attribute} holds sets among other values, which no type describes; "
                f"items keep it as it is"
            )
            return None
        stored = attribute if python != attribute else ""
        return GuessedField(python, guess.python, guess.optional, guess.marker, guess.doubt, stored)
