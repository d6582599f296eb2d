"""Key labels: the literal words in keys, such as ``USER`` in ``USER#u1``, and their order.

A partition is labelled by its field (``user_id`` becomes USER, ``email`` becomes EMAIL), not by the
entity. So ``USER#u1`` holds everything about that user, no matter which entity it belongs to. If a
pattern over several entities compares fields with one value, the fields share one label, even if
their names differ. A sort key begins with the label of its entity, so the items of each entity lie
next to each other in a partition.

In a partition key of several fields, labels stand in the order in which the fields are declared.
Entities that are read together share one order. The labels of the entity with the fewest identity
fields come first: those of a tenant before those of its projects. Labels in the lock file stay.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, count

from stator.design.entities.derived_parts import derived_part, source_field
from stator.design.entities.entity import Entity, info
from stator.design.plan import key_text as keys
from stator.design.planner.needs.need import TogetherGroup

Column = tuple[str, str]
"""The names of an entity and of one of its fields."""


def upper_words(name: str) -> str:
    """Convert a name: ``OrderLine`` becomes ``ORDER_LINE``."""
    return keys.escape(
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()
    )


@dataclass(frozen=True)
class KeyLabels:
    """The labels of entities and of columns. A column is one field of one entity.

    ``order`` has the labels of entities that are read together, in the order in which they stand in
    their partition keys.
    """

    entities: dict[str, str]
    columns: dict[Column, str]
    order: list[str] = dataclasses.field(default_factory=list)

    def entity(self, entity: type[Entity]) -> str:
        return self.entities[info(entity).name]

    def field(self, entity: type[Entity], field: str) -> str:
        return self.columns.get((info(entity).name, field)) or self._own(entity, field)

    def place(self, entity: type[Entity], field: str) -> tuple[int, str]:
        """Return a Python sort key, by which the fields of a partition key are ordered."""
        label = self.field(entity, field)
        if label in self.order:
            return self.order.index(label), label
        return len(self.order) + list(info(entity).fields).index(source_field(field)), label

    def _own(self, entity: type[Entity], field: str) -> str:
        part = derived_part(field)
        if part is not None:
            word = part.part.upper() if part.is_time else str(part.length)
            return f"{upper_words(part.field)}_{word}"
        if field == "id":
            return self.entity(entity)
        return upper_words(field.removesuffix("_id") or field)


def labels_of(
    entities: Iterable[type[Entity]], groups: Iterable[TogetherGroup], kept: KeyLabels | None = None
) -> KeyLabels:
    """Return the labels of a design. ``kept`` are the labels in existing keys."""
    kept = kept or KeyLabels({}, {})
    together = list(groups)
    names = sorted(info(entity).name for entity in entities)
    fresh = [name for name in names if name not in kept.entities]
    words = [upper_words(name) for name in fresh]
    # Two names may become the same word; then both stay as they are.
    chosen = [
        word if words.count(word) == 1 else keys.escape(name) for word, name in zip(words, fresh)
    ]
    taken = set(kept.entities.values())
    labels = KeyLabels(
        {**kept.entities, **{name: _free(word, taken) for name, word in zip(fresh, chosen)}},
        dict(kept.columns),
    )
    labels.columns.update(_joined(labels, together, kept))
    labels.order.extend(_shared_order(labels, together, kept))
    return labels


def _shared_order(labels: KeyLabels, groups: list[TogetherGroup], kept: KeyLabels) -> list[str]:
    """Return the labels of entities that are read together, as ordered in their partition keys.

    Each label stands for a field (``USER`` for ``user_id``). The labels have the order in which the
    entities declare these fields. If the existing keys (``kept``) have their labels in another
    order, those labels come first, in that order.
    """
    members = {member.entity for group in groups for member in group.members}
    declared = dict.fromkeys(
        labels.field(entity, name)
        for entity in sorted(members, key=lambda each: (len(info(each).identity), info(each).name))
        for name in (*info(entity).identity, *info(entity).fields)
    )
    fixed = [label for label in kept.order if label in declared]
    if fixed == [label for label in declared if label in fixed]:
        return list(declared)
    return list(dict.fromkeys([*fixed, *declared]))


def _free(word: str, taken: set[str]) -> str:
    """Return the word, with a number (``ORDER2``, ``ORDER3``, ...) if the word itself is taken.

    ``taken`` are the labels in the lock file.
    """
    return next(
        each for each in chain([word], (f"{word}{at}" for at in count(2))) if each not in taken
    )


def _joined(labels: KeyLabels, groups: list[TogetherGroup], kept: KeyLabels) -> dict[Column, str]:
    """Return the labels of columns that some pattern compares with the same value.

    Such columns have the same label. Labels in ``kept`` take precedence.
    """
    classes: dict[Column, set[Column]] = {}
    entities: dict[str, type[Entity]] = {}
    for group in groups:
        for fields in group.shared:
            columns = [
                (info(member.entity).name, field) for member, field in zip(group.members, fields)
            ]
            entities |= {info(member.entity).name: member.entity for member in group.members}
            merged = set(columns).union(*(classes.get(column, set()) for column in columns))
            classes |= dict.fromkeys(merged, merged)
    found: dict[Column, str] = {}
    for column, joined in sorted(classes.items()):
        # ``kept.columns`` starts with base keys, whose labels take precedence.
        fixed = next((label for each, label in kept.columns.items() if each in joined), None)
        if fixed is not None:
            found[column] = fixed
            continue
        # The label is that of the entity that the value identifies; of several, the one that a
        # field is named after. Otherwise it is that of the first field.
        words = {labels._own(entities[name], field) for name, field in joined if field != "id"}
        owners = sorted(
            (name for name, field in joined if info(entities[name]).identity == (field,)),
            key=lambda name: (labels.entities[name] not in words, name),
        )
        name, field = next(
            (each for each in sorted(joined) if owners and each[0] == owners[0]), min(joined)
        )
        found[column] = labels.entities[owners[0]] if owners else labels._own(entities[name], field)
    return found
