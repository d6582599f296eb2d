"""The entity diagram: relations found by the names of fields, and their Mermaid text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stator.design.declaration import Declaration
from stator.design.entities.entity import EntityInfo, info
from stator.design.entities.shapes import type_name
from stator.model.quantities import amount


@dataclass(frozen=True, slots=True)
class BoxField:
    """A row of a box. ``mark`` is PK, UK, FK, several of them, or empty."""

    name: str
    kind: str
    mark: str


@dataclass(frozen=True, slots=True)
class EntityBox:
    """An entity in the diagram."""

    name: str
    fields: tuple[BoxField, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """A child entity that holds the identity of its parent.

    ``each`` is the average number of children of a parent. ``is_one`` means at most one child for
    each parent: both have the same identity fields.
    """

    parent: str
    child: str
    each: float
    is_one: bool

    @property
    def label(self) -> str:
        if self.is_one:
            return "one each" if self.each >= 1 else "at most one"
        return f"{amount(self.each)} each"


@dataclass(frozen=True, slots=True)
class Diagram:
    """The boxes and lines of an entity diagram, with their places."""

    boxes: tuple[EntityBox, ...]
    relations: tuple[Relation, ...]


def diagram_of(design: Declaration) -> Diagram:
    relations = tuple(_relations(design))
    return Diagram(tuple(_box(info(entity), design) for entity in design.entities), relations)


def _relations(design: Declaration) -> list[Relation]:
    """Return the relations of a design, without those that follow from others.

    A visit has the identity of its patient, and so the one of the patient's clinic. The diagram
    shows the nearer parent only: clinic, patient, visit.
    """
    known = [info(entity) for entity in design.entities]
    found: dict[tuple[str, str], Relation] = {}
    for parent in known:
        for child in known if _may_own(parent, known) else ():
            if parent is not child and _references(parent, child):
                each = design.volume(child.cls) / max(1.0, design.volume(parent.cls))
                is_one = set(parent.identity) == set(child.identity)
                if not is_one or _owns(parent):
                    found[parent.name, child.name] = Relation(parent.name, child.name, each, is_one)
    by_name = {each.name: each for each in known}
    return [
        relation
        for (above, below), relation in found.items()
        if not any(
            (above, between) in found
            and (between, below) in found
            and _is_nearer(by_name[above], by_name[between], by_name[below])
            for between in by_name
        )
    ]


def _is_nearer(above: EntityInfo, between: EntityInfo, below: EntityInfo) -> bool:
    """Whether a child belongs to ``above`` only because it belongs to ``between``."""
    far, near = _references(above, below), _references(between, below)
    if far < near:
        return True
    lives_there = near <= set(below.identity) and not far <= set(below.identity)
    return lives_there and _references(above, between) == far


def _may_own(known: EntityInfo, everyone: list[EntityInfo]) -> bool:
    """Whether other entities may belong to this one.

    Of entities with the same identity fields, only the one after which they are named may be a
    parent: Patient, and not the Waiting of a patient.
    """
    same = [each for each in everyone if set(each.identity) == set(known.identity)]
    return len(same) == 1 or (_owns(known) and not any(_owns(e) for e in same if e is not known))


def _owns(known: EntityInfo) -> bool:
    """Whether the identity is named after the entity, as ``driver_id`` is after Driver."""
    stem = _snake(known.name)
    return any(name == stem or name.startswith(f"{stem}_") for name in known.identity)


def _references(parent: EntityInfo, child: EntityInfo) -> set[str]:
    """Return the fields of a child that identify its parent.

    A field named ``id`` is never such a field, because it identifies the child itself.
    """
    if "id" not in parent.identity and set(parent.identity) <= child.fields.keys():
        return set(parent.identity)
    if len(parent.identity) == 1:
        name = f"{_snake(parent.name)}_{parent.identity[0]}"
        return {name} & child.fields.keys()
    return set()


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _box(known: EntityInfo, design: Declaration) -> EntityBox:
    others = [info(each) for each in design.entities if each is not known.cls]
    foreign = {name for other in others for name in _references(other, known)}
    return EntityBox(known.name, tuple(_shown(known, name, foreign) for name in known.fields))


def _shown(known: EntityInfo, name: str, foreign: set[str]) -> BoxField:
    field = known.fields[name]
    marks = [
        mark
        for mark, holds in (
            ("PK", field.role == "ident"),
            ("FK", name in foreign),
            ("UK", field.role == "unique"),
        )
        if holds
    ]
    return BoxField(name, type_name(field.shape), ", ".join(marks))


def mermaid(diagram: Diagram) -> str:
    """Return the diagram as a Mermaid erDiagram.

    Mermaid's grammar allows only one-word types, without punctuation.
    """
    lines = ["erDiagram", *map(_mermaid_relation, diagram.relations)]
    for box in diagram.boxes:
        lines.append(f"    {_word(box.name)} {{")
        lines += [
            f"        {_word(field.kind)} {_word(field.name)} {field.mark}".rstrip()
            for field in box.fields
        ]
        lines.append("    }")
    return "\n".join(lines)


def _mermaid_relation(relation: Relation) -> str:
    end = "o{" if not relation.is_one else "||" if relation.each >= 1 else "o|"
    return f'    {_word(relation.parent)} ||--{end} {_word(relation.child)} : "{relation.label}"'


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_\[\]]", "", text.replace(" ", "_"))
