"""Entities and patterns inferred from kinds of items, and the list of guesses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stator.design.infer.fields import GuessedField, field_of
from stator.design.infer.groups import Item, ItemKind, kinds_of, type_attribute
from stator.design.infer.key_text import KeyShape
from stator.design.infer.table_keys import Key, TableKeys, table_keys
from stator.errors import ConfigurationError

_GENERIC_WORDS: Final = frozenset(
    {"METADATA", "META", "PROFILE", "INFO", "DETAILS", "DATA", "ITEM", "ROOT", "A", "SELF"}
)
_TOGETHER: Final = 4


@dataclass(frozen=True, slots=True)
class GuessedEntity:
    """A guessed entity.

    ``key`` and ``indexes`` are the templates of the present keys. ``key`` is None if its form is
    not the same in all items.
    """

    name: str
    fields: tuple[GuessedField, ...]
    identity: tuple[str, ...]
    key: Key | None
    indexes: Mapping[str, Key]
    share: float


@dataclass(frozen=True, slots=True)
class GuessedPattern:
    """A guessed read pattern.

    If there are several ``entities``, they are read together. ``equal`` names the fields that the
    pattern compares with its parameters; each parameter has the name of its field.
    """

    name: str
    entities: tuple[str, ...]
    equal: tuple[str, ...]
    order: str | None
    returns: float


@dataclass(frozen=True, slots=True)
class Inference:
    """A proposed design. ``doubts`` are its guesses; ``names`` are the names of key attributes."""

    table: str
    entities: tuple[GuessedEntity, ...]
    patterns: tuple[GuessedPattern, ...]
    doubts: tuple[str, ...]
    names: Mapping[str, str]
    items: int
    """Items in the whole table by its description, or else in the sample."""


def infer(
    items: Sequence[Item], *, table: str, description: Mapping[str, Any] | None = None
) -> Inference:
    """Propose a design from items in DynamoDB JSON.

    ``description`` is the table's description, as DescribeTable returns it.
    """
    if not items:
        raise ConfigurationError(
            f"{table} has no items", hint="a design is inferred from items; write some first"
        )
    keys = table_keys(items, description)
    type_name = type_attribute(items)
    indexed = sorted({name for names in keys.indexes.values() for name in names} - set(keys.own))
    kinds = kinds_of(items, keys.own, indexed, type_name)
    guesses = _Guesses(table, keys, type_name)
    entities = tuple(guesses.entity(kind, len(items)) for kind in kinds)
    patterns = guesses.patterns(entities, kinds)
    doubts = [
        *guesses.doubts,
        "rates: every pattern has rps=1 and no writes are declared; enter the real rates",
    ]
    if description is None:
        doubts.insert(0, f"the table's key: {' and '.join(keys.own)}, because of the names")
    count = int((description or {}).get("ItemCount") or 0)
    return Inference(
        table, entities, patterns, tuple(doubts), keys.renamed(), max(count, len(items))
    )


class _Guesses:
    """Collects entities, patterns and the guesses behind them."""

    def __init__(self, table: str, keys: TableKeys, type_name: str | None) -> None:
        self.table = table
        self.keys = keys
        self.type_name = type_name
        self.doubts: list[str] = []
        self._taken: set[str] = set()

    # -- entities

    def entity(self, kind: ItemKind, total: int) -> GuessedEntity:
        name = self._name(kind)
        attributes = self._attributes(kind)
        holes = {key: self._holes(name, kind, key, attributes) for key in kind.shapes}
        in_keys = {hole for names in holes.values() for hole in names}
        identity = tuple(
            dict.fromkeys(hole for key in self.keys.own for hole in holes.get(key, ()))
        )
        fields = []
        for each in sorted(
            {*attributes, *in_keys},
            key=lambda one: (identity.index(one) if one in identity else len(identity), one),
        ):
            values = attributes[each] if each in attributes else self._made(kind, holes, each)
            fields.append(field_of(each, values, len(kind.items), in_key=each in in_keys))
        for field in fields:
            if field.doubt:
                self.doubts.append(f"{name}.{field.name}: {field.doubt}")
        if not identity:
            self.doubts.append(
                f"{name}: all items have the same key text; no field identifies an item"
            )
        key = self._templates(kind, self.keys.own, holes, name)
        indexes = {
            index: found
            for index, names in self.keys.indexes.items()
            if (found := self._templates(kind, names, holes, name, index)) is not None
        }
        if self.type_name is None and len(kind.items) < 3:
            self.doubts.append(
                f"{name}: only {len(kind.items)} of {total} items in the sample are of this kind"
            )
        return GuessedEntity(name, tuple(fields), identity, key, indexes, len(kind.items) / total)

    def _name(self, kind: ItemKind) -> str:
        label = kind.label
        if label is None:
            words = [
                word
                for key in self.keys.own
                if key in kind.shapes
                for word in kind.shapes[key].words
            ]
            telling = [word for word in words if word.upper() not in _GENERIC_WORDS]
            label = telling[-1] if telling else (words[-1] if words else self.table)
            if not words:
                self.doubts.append(f"{_pascal(label)}: the name is a guess; the keys contain none")
        name = number = _pascal(label)
        count = 2
        while number in self._taken:
            number, count = f"{name}{count}", count + 1
        if number != name:
            self.doubts.append(
                f"{number}: its keys name it {name}, like another kind of item; "
                f"rename it, or merge the two"
            )
        self._taken.add(number)
        return number

    def _attributes(self, kind: ItemKind) -> dict[str, list[dict[str, Any]]]:
        """Return every attribute with its values, except the type attribute and composed keys.

        A composed key contains constant words (``USER#17``), or has a generic name such as
        ``GSI1PK``.
        """
        hidden = {self.type_name} | {
            key for key, shape in kind.shapes.items() if shape.words or self._is_generic(key)
        }
        found: dict[str, list[dict[str, Any]]] = {}
        for item in kind.items:
            for name, value in item.items():
                if name not in hidden:
                    found.setdefault(name, []).append(value)
        return {_identifier(name): values for name, values in found.items()}

    def _is_generic(self, key: str) -> bool:
        return bool(
            re.fullmatch(
                r"(?i)_?(gsi|lsi|index)?_?\d*_?(pk|sk|partition_?key|sort_?key|hash|range)", key
            )
        )

    def _holes(
        self, entity: str, kind: ItemKind, key: str, attributes: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return a field name for each variable part of a key, in order.

        The field is an attribute that equals the part in every item. If there is no such attribute,
        the field is new, and is named after the word before the part.
        """
        shape = kind.shapes[key]
        columns = list(zip(*(shape.values(item[key]["S"]) for item in kind.items if key in item)))
        names: list[str] = []
        places = [at for at, word in enumerate(shape.parts) if word is None]
        for place, column in zip(places, columns):
            holders = [item for item in kind.items if key in item]
            same = [
                name
                for name in sorted(attributes)
                if name not in names
                and all(
                    item.get(name, {}).get("S") == value for item, value in zip(holders, column)
                )
            ]
            if key in same:
                same = [key]
            if same:
                names.append(
                    min(same, key=lambda one: (not one.endswith(("id", "Id")), len(one), one))
                )
                continue
            word = next((each for each in reversed(shape.parts[:place]) if each is not None), None)
            name = f"{_identifier((word or entity).lower())}_id"
            while name in names:
                name += "_2"
            self.doubts.append(
                f"{entity}.{name}: a new field for a value in {key} that no other attribute has"
            )
            names.append(name)
        return tuple(names)

    def _made(
        self, kind: ItemKind, holes: Mapping[str, tuple[str, ...]], name: str
    ) -> list[dict[str, Any]]:
        key = next(key for key, names in holes.items() if name in names)
        at = holes[key].index(name)
        return [
            {"S": kind.shapes[key].values(item[key]["S"])[at]} for item in kind.items if key in item
        ]

    def _templates(
        self,
        kind: ItemKind,
        names: Key,
        holes: Mapping[str, tuple[str, ...]],
        entity: str,
        index: str | None = None,
    ) -> Key | None:
        where = f"{entity}: {f'index {index}' if index else 'the key'}"
        present = [name for name in names if any(name in item for item in kind.items)]
        if index is not None and len(present) < len(names):
            return None  # these items are not in that index
        if any(name not in kind.shapes for name in names):
            self.doubts.append(
                f"{where} has no common form in all items, or is not text; a new one is planned"
            )
            return None
        shapes = [kind.shapes[name] for name in names]
        if any(shape.separator not in ("", "#") for shape in shapes):
            self.doubts.append(
                f"{where} uses the separator {_other(shapes)!r}; Stator writes '#', "
                f"so a new one is planned"
            )
            return None
        return tuple(shape.filled(holes[name]) for shape, name in zip(shapes, names))

    # -- patterns

    def patterns(
        self, entities: Sequence[GuessedEntity], kinds: Sequence[ItemKind]
    ) -> tuple[GuessedPattern, ...]:
        found: dict[tuple[Any, ...], GuessedPattern] = {}

        def add(pattern: GuessedPattern) -> None:
            found.setdefault((pattern.entities, pattern.equal, pattern.order), pattern)

        shared: dict[tuple[Any, ...], list[GuessedEntity]] = {}
        for entity, kind in zip(entities, kinds):
            snake = _snake(entity.name)
            if entity.identity:
                add(GuessedPattern(f"{snake}_by_id", (entity.name,), entity.identity, None, 1))
            partition = self._fields_of(entity.key, 0)
            if entity.key is not None and partition:
                shared.setdefault((kind.shapes[self.keys.partition].parts, partition), []).append(
                    entity
                )
                if partition != entity.identity:
                    name = f"{snake}s_of_{_joined(partition)}"
                    add(
                        GuessedPattern(
                            name,
                            (entity.name,),
                            partition,
                            None,
                            self._per(kind, self.keys.partition),
                        )
                    )
            for index, key in entity.indexes.items():
                equal, order = self._fields_of(key, 0), self._fields_of(key, 1)
                if equal:
                    name = f"{snake}s_by_{_joined(equal)}"
                    returns = self._per(kind, self.keys.indexes[index][0])
                    add(
                        GuessedPattern(
                            name, (entity.name,), equal, order[0] if order else None, returns
                        )
                    )
        for (_, partition), members in sorted(shared.items(), key=lambda each: repr(each[0])):
            if 2 <= len(members) <= _TOGETHER:
                root = min(members, key=lambda each: (len(each.identity), each.name))
                rest = [each.name for each in members if each is not root]
                names = (root.name, *sorted(rest))
                add(GuessedPattern(f"{_snake(root.name)}_with_all", names, partition, None, 10))
        return tuple(found.values())

    def _fields_of(self, key: Key | None, at: int) -> tuple[str, ...]:
        return tuple(re.findall(r"\{(\w+)\}", key[at])) if key is not None and at < len(key) else ()

    def _per(self, kind: ItemKind, attribute: str) -> float:
        values = [item[attribute]["S"] for item in kind.items if "S" in item.get(attribute, {})]
        return max(1.0, round(len(values) / max(1, len(set(values))), 1))


def _other(shapes: Sequence[KeyShape]) -> str:
    return next(shape.separator for shape in shapes if shape.separator not in ("", "#"))


def _pascal(text: str) -> str:
    words = re.split(r"[^A-Za-z0-9]+", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text))
    name = "".join(word[:1].upper() + word[1:].lower() for word in words if word)
    return name if name and name[0].isalpha() else f"Item{name}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _joined(fields: Sequence[str]) -> str:
    return "_and_".join(_snake(field) for field in fields)


def _identifier(name: str) -> str:
    word = re.sub(r"\W", "_", name)
    return word if word[:1].isalpha() or word[:1] == "_" else f"f_{word}"
