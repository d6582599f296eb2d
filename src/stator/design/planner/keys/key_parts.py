"""Key parts: the text and fields in a path's partition key and sort key.

The partition key alternates labels and values (``USER#u1``), the sort key starts with the entity's
label (``ORDER#2026-03-01#o1``). Two keys can be equal only if their parts can produce equal text;
the comparisons at the end of the module decide that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from stator.design.entities.derived_parts import source_field
from stator.design.entities.entity import Entity, info
from stator.design.plan import key_text as keys
from stator.design.plan.templates import Part, text
from stator.design.planner.keys.handwritten_keys import Piece
from stator.design.planner.keys.key_labels import KeyLabels
from stator.design.planner.needs.need import ValueSource, key_encoding
from stator.design.planner.paths.access_path import AccessPath

PAST_EVERYTHING: Final = "\U0010ffff"
"""Sorts after every key text."""

ABSENT: Final = "$none"
"""Stands for the value of a field that an item lacks. No value is written like this."""


def field_part(entity: type[Entity], name: str, *, inverted: bool = False) -> Part:
    encoding = key_encoding(info(entity), name)
    assert encoding is not None
    return Part("field", source_field(name), encoding.name, inverted=inverted)


def value_encoding(part: Part, source: ValueSource) -> str:
    """Return the encoding that writes a compared value into this part of a key.

    The value may be a derived part of the field, such as a day, while the key holds a coarser one,
    such as the month. The encoding is then ``day.month``.
    """
    if not source.part:
        return part.encoding
    wanted = part.encoding.partition(".")[2] if keys.is_part(part.encoding) else source.part
    return f"{source.part}.{wanted}"


def constant_text(entity: type[Entity], name: str, source: ValueSource) -> str | None:
    """Return the key text of the constant in ``source``, or None if the field must be absent."""
    if source.is_absent:
        return None
    encoding = value_encoding(field_part(entity, name), source)
    return keys.encode(encoding, source.constant)


def partition_parts(path: AccessPath, labels: KeyLabels) -> tuple[Part, ...]:
    if path.handwritten:
        return _written(path.entity, path.handwritten.partition.pieces)
    parts: list[Part] = []
    for name, source in path.constants:
        encoded = constant_text(path.entity, name, source)
        parts.append(text(f"#{labels.field(path.entity, name)}#{encoded or ABSENT}"))
    for name in path.partition:
        parts += [text(f"#{labels.field(path.entity, name)}#"), field_part(path.entity, name)]
    if not parts:
        parts.append(text(f"#{labels.entity(path.entity)}"))
    if path.has_shards:
        identity = tuple(field_part(path.entity, name) for name in info(path.entity).identity)
        parts += [text("#"), Part("shard", shards=path.shards, of=identity, adaptive=path.adaptive)]
    return tidy([replace(parts[0], value=parts[0].value[1:]), *parts[1:]])


def sort_parts(path: AccessPath, labels: KeyLabels) -> tuple[Part, ...]:
    if path.handwritten:
        if path.handwritten.is_partition_only:
            return ()
        if path.handwritten.sort is None:
            return (text(labels.entity(path.entity)),)
        return _written(path.entity, path.handwritten.sort.pieces)
    parts = [text(labels.entity(path.entity))]
    for name in path.sort:
        parts += [text("#"), field_part(path.entity, name, inverted=path.turns(name))]
    return tidy(parts)


def _written(entity: type[Entity], pieces: tuple[Piece, ...]) -> tuple[Part, ...]:
    return tuple(field_part(entity, each) if is_field else text(each) for is_field, each in pieces)


def tidy(parts: list[Part]) -> tuple[Part, ...]:
    """Join neighbouring text parts of a template, and drop empty ones."""
    tidy: list[Part] = []
    for part in parts:
        if part.kind == "text" and tidy and tidy[-1].kind == "text":
            tidy[-1] = text(tidy[-1].value + part.value)
        elif part.kind != "text" or part.value:
            tidy.append(part)
    return tuple(tidy)


def same_partition(one: tuple[Part, ...], other: tuple[Part, ...]) -> bool:
    """Whether two partition keys can be equal for some values of their fields.

    Values contain no separator, so the keys are compared segment by segment.
    """
    mine, its = _segments(one), _segments(other)
    return len(mine) == len(its) and all(_may_meet(*each) for each in zip(mine, its))


def same_stretch(one: tuple[Part, ...], other: tuple[Part, ...]) -> bool:
    """Whether sort keys made of these parts may lie in the same range.

    Only the text before the first field of each key is compared.
    """
    return _may_meet(_leading(one), _leading(other))


def reaches(parts: tuple[Part, ...], low: str, high: str) -> bool:
    """Whether a sort key made of these parts can lie between the texts ``low`` and ``high``."""
    begin, is_open = _leading(parts)
    return begin <= high and (begin + PAST_EVERYTHING if is_open else begin) >= low


Leading = tuple[str, bool]
"""The text a key begins with, and whether unknown text follows."""


def _leading(parts: tuple[Part, ...]) -> Leading:
    at = next((at for at, part in enumerate(parts) if part.kind != "text"), len(parts))
    return "".join(part.value for part in parts[:at]), at < len(parts)


def _may_meet(one: Leading, other: Leading) -> bool:
    (mine, open_), (its, its_open) = one, other
    return (its_open and mine.startswith(its)) or (open_ and its.startswith(mine)) or mine == its


def _segments(parts: tuple[Part, ...]) -> list[Leading]:
    found: list[Leading] = [("", False)]
    for part in parts:
        if part.kind != "text":
            found[-1] = (found[-1][0], True)
            continue
        first, *rest = part.value.split(keys.SEPARATOR)
        before, is_open = found[-1]
        found[-1] = (before if is_open else before + first, is_open)
        found += [(each, False) for each in rest]
    return found
