"""Entities and patterns of one or several tables, inferred from their items."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from stator.design.entities.entity_versions import VERSION_ATTRIBUTE
from stator.design.infer.entity_guess import EntityGuess, GuessedEntity
from stator.design.infer.groups import ItemKind, kinds_of, type_attribute
from stator.design.infer.table_keys import Item, Key, TableKeys, table_keys
from stator.design.infer.words import class_name, class_of_table, free_name, function_name, snake
from stator.errors import ConfigurationError

_TOGETHER: Final = 4
Detail = Literal["kinds", "whole", "keys"]
"""How much is inferred from a table: kinds of items with composed keys, one kind of items with its
keys as they are, or nothing but the keys.
"""


@dataclass(frozen=True, slots=True)
class TableSample:
    """Items of a table in DynamoDB JSON, and its description as DescribeTable returns it.

    ``description`` may also have TimeToLiveDescription. It is None if it is unknown.
    """

    name: str
    items: Sequence[Item]
    description: Mapping[str, Any] | None = None


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
class GuessedTable:
    """A table: its keys, entities and patterns.

    ``type_name`` is the attribute that names the entity of an item. It is empty if the items have
    no such attribute, and None if a table of one entity needs none. ``doubts`` are the guesses.
    """

    name: str
    keys: TableKeys
    entities: tuple[GuessedEntity, ...]
    patterns: tuple[GuessedPattern, ...]
    doubts: tuple[str, ...]
    items: int
    """The number of items in the table or, if it has no description, in the sample."""
    type_name: str | None = None
    recovers: bool | None = None
    """Whether point-in-time recovery is on, if a description says so."""


@dataclass(frozen=True, slots=True)
class Inference:
    """A proposed design. ``doubts`` has all its guesses, as text, including those of its tables."""

    name: str
    tables: tuple[GuessedTable, ...]
    doubts: tuple[str, ...]

    @property
    def entities(self) -> tuple[GuessedEntity, ...]:
        """The guessed entities of all tables."""
        return tuple(each for table in self.tables for each in table.entities)

    @property
    def patterns(self) -> tuple[GuessedPattern, ...]:
        """The guessed access patterns of all tables."""
        return tuple(each for table in self.tables for each in table.patterns)


@dataclass(slots=True)
class TakenNames:
    """The names of entities and patterns that the design uses already.

    ``common`` is the start that the names of all its tables share, such as ``prod-shop``. Class
    names are made without it.
    """

    entities: set[str]
    patterns: set[str]
    common: str = ""


def guess_table(sample: TableSample, detail: Detail, taken: TakenNames) -> GuessedTable:
    """Infer the keys, entities and patterns of one table.

    ``detail`` says how much to infer. ``taken`` has the names that other tables use; the names of
    this table are added to it.
    """
    if not sample.items:
        raise ConfigurationError(
            f"{sample.name} has no items", hint="a design is inferred from items; write some first"
        )
    keys = table_keys(sample.items, sample.description)
    for item in sample.items:
        version = item.get(VERSION_ATTRIBUTE, {"N": "1"})
        if not re.fullmatch(r"[1-9]\d*", version.get("N", "")):
            raise ConfigurationError(
                f"{sample.name}: the attribute {VERSION_ATTRIBUTE} of an item is {version}, and "
                f"Stator keeps the version of an item's shape there",
                hint=f"copy the items to a table without the attribute {VERSION_ATTRIBUTE}",
            )
    guesses = _TableGuess(sample, keys, detail, taken)
    return guesses.table()


class _TableGuess:
    def __init__(
        self, sample: TableSample, keys: TableKeys, detail: Detail, taken: TakenNames
    ) -> None:
        self.sample = sample
        self.keys = keys
        self.detail = detail
        self.taken = taken
        self.doubts: list[str] = []
        type_name = type_attribute(sample.items) if detail == "kinds" else None
        self.kinds = kinds_of(sample.items, keys, type_name, whole=detail != "kinds")
        # The attribute has the names of entities, which must differ in the whole design.
        labels = {each.label for each in self.kinds}
        is_typed = len(labels) > 1 and None not in labels and not labels & taken.entities
        self.type_name = type_name if is_typed else None

    def table(self) -> GuessedTable:
        if self.sample.description is None:
            self.doubts.append(
                f"the table's key is guessed from the names: {' and '.join(self.keys.own)}"
            )
        entities = tuple(self._entity(kind, at) for at, kind in enumerate(self.kinds))
        count = int((self.sample.description or {}).get("ItemCount") or 0)
        several = len(entities) > 1
        if several and self.type_name is None:
            self.doubts.append(
                f"{self.sample.name}: no attribute names the kind of an item; kinds are told apart "
                f"by their keys"
            )
        return GuessedTable(
            self.sample.name,
            self.keys,
            entities,
            self._patterns(entities),
            tuple(self.doubts),
            max(count, len(self.sample.items)),
            (self.type_name or "") if several else None,
            _recovers(self.sample),
        )

    # -- entities

    def _entity(self, kind: ItemKind, at: int) -> GuessedEntity:
        name = self._name(kind)
        is_first = at == 0
        guess = EntityGuess(
            name,
            kind,
            self.keys,
            self.type_name,
            self.doubts.append,
            adopted=self._unused_indexes() if is_first else (),
            keys_only=self.detail == "keys",
            expires=is_first and not any(self.keys.ttl in item for item in self.sample.items),
        )
        for index in guess.adopted:
            self.doubts.append(f"{name}: no item in the sample is in the index {index}")
        found = guess.entity(len(self.sample.items))
        for field in found.fields:
            if field.doubt and not field.doubt.endswith(f"items have no {field.attribute}"):
                self.doubts.append(f"{name}.{field.name}: {field.doubt}")
        if self.type_name is None and len(kind.items) < 3 <= len(self.sample.items):
            self.doubts.append(
                f"{name}: only {len(kind.items)} of {len(self.sample.items)} items in the sample "
                f"are of this kind"
            )
        return found

    def _unused_indexes(self) -> list[str]:
        return [
            index
            for index, each in self.keys.indexes.items()
            if not any(all(name in item for name in each.names) for item in self.sample.items)
        ]

    def _name(self, kind: ItemKind) -> str:
        if kind.label is not None:
            name = class_name(kind.label)
        else:
            shapes = [kind.shapes[key] for key in self.keys.own if key in kind.shapes]
            telling = [word for shape in shapes for word in shape.telling]
            if not telling and self.keys.partition in kind.shapes:
                telling = list(kind.shapes[self.keys.partition].words[-1:])
            name = (
                class_name(telling[-1])
                if telling
                else class_of_table(self.sample.name, self.taken.common)
            )
            if name in self.taken.entities and len(telling) > 1:
                name = class_name(" ".join(map(str.capitalize, telling)))
        found = free_name(name, self.taken.entities)
        if found != name:
            self.doubts.append(
                f"{found}: its keys have the word for {name}, like those of another kind of item; "
                f"rename this entity, or merge the two"
            )
        self.taken.entities |= {found, *([kind.label] if self.type_name and kind.label else ())}
        return found

    # -- patterns

    def _patterns(self, entities: Sequence[GuessedEntity]) -> tuple[GuessedPattern, ...]:
        found: dict[tuple[Any, ...], GuessedPattern] = {}

        def add(
            name: str, members: Key, equal: Key, order: str | None = None, returns: float = 1
        ) -> None:
            if (members, equal, order) in found:
                return
            free = function_name(name, self.taken.patterns)
            self.taken.patterns.add(free)
            found[(members, equal, order)] = GuessedPattern(free, members, equal, order, returns)

        shared: dict[tuple[str, Key], list[GuessedEntity]] = {}
        for entity, kind in zip(entities, self.kinds):
            own = snake(entity.name)
            add(f"{own}_by_{_key_name(entity)}", (entity.name,), entity.identity)
            partition = _fields_of(entity.key[0])
            text = re.sub(r"\{\w+\}", "{}", entity.key[0])
            if partition and text != "{}":
                shared.setdefault((text, partition), []).append(entity)
            if partition and partition != entity.identity:
                returns = self._per(kind, (self.keys.partition,))
                name = f"{_plural(own)}_of_{'_and_'.join(partition)}"
                add(name, (entity.name,), partition, None, returns)
            for index, texts in entity.indexes.items():
                names = self.keys.indexes[index]
                size = len(names.partition)
                equal = tuple(name for text in texts[:size] for name in _fields_of(text))
                order = [name for text in texts[size:] for name in _fields_of(text)]
                if equal:
                    returns = self._per(kind, names.partition)
                    name = f"{_plural(own)}_by_{'_and_'.join(equal)}"
                    add(name, (entity.name,), equal, order[0] if order else None, returns)
        for (_, partition), members in sorted(shared.items()):
            if 2 <= len(members) <= _TOGETHER:
                root = min(members, key=lambda each: (len(each.identity), each.name))
                rest = sorted(each.name for each in members if each is not root)
                add(f"{snake(root.name)}_with_all", (root.name, *rest), partition, None, 10)
        return tuple(found.values())

    def _per(self, kind: ItemKind, attributes: Key) -> float:
        """Return the mean number of items that share the values of these attributes."""
        values = [
            repr([item[name] for name in attributes])
            for item in kind.items
            if all(name in item for name in attributes)
        ]
        return max(1.0, round(len(values) / max(1, len(set(values))), 1))


def _fields_of(text: str) -> Key:
    return tuple(re.findall(r"\{(\w+)\}", text))


def _key_name(entity: GuessedEntity) -> str:
    return entity.identity[0] if len(entity.identity) == 1 else "id"


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _recovers(sample: TableSample) -> bool | None:
    found = (sample.description or {}).get("PointInTimeRecoveryDescription")
    return None if found is None else found.get("PointInTimeRecoveryStatus") == "ENABLED"
