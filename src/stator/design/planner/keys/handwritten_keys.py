"""Handwritten keys: ``key=("USER#{user_id}", "ORDER#{placed_at}#{order_id}")``.

Text is literal; ``{field}`` is replaced by the field's value in its order-preserving form, and
``{month_of(field)}`` or ``{prefix_of(field, 5)}`` by a derived part of the value. Two fields must
be separated by text that begins with the separator, which never occurs in a value. So two values
cannot run into each other, and a range of values is a range of the key.

``key={"email": "{email}"}`` also names the attribute. Here the attribute is the field itself, so
the key is native: the value is stored once, in DynamoDB's own type and without escapes. The keys of
existing tables are written in this form.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from stator.design.entities.derived_parts import derived_part, source_field
from stator.design.entities.entity import Entity, info
from stator.design.entities.written_keys import (
    IndexKey,
    KeyTemplate,
    WrittenSide,
    written_sides,
)
from stator.design.patterns.compared_parts import check_part
from stator.design.plan import key_text as keys
from stator.errors import DesignError

_HOLE: Final = re.compile(r"(\{(?:\w+|\w+_of\([^{}()]+\))\})")
Piece = tuple[bool, str]
"""Whether the piece is a field or a derived part, and its name or text."""


@dataclass(frozen=True, slots=True)
class KeyAttributes:
    """The partition key or the sort key of a handwritten key.

    ``names`` has the attribute names that the user gave. It is empty if the planner chooses them
    (PK, SK, GSI1PK). If ``native`` is True, each attribute is a field. Otherwise there is one
    attribute, and ``pieces`` has its parts.
    """

    pieces: tuple[Piece, ...]
    names: tuple[str, ...] = ()
    native: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(text for is_field, text in self.pieces if is_field)

    def named(self, default: Callable[[], str]) -> tuple[str, ...]:
        """Return the attributes.

        ``default`` returns the name that the design gives to an attribute.
        """
        return self.names or (default(),)


@dataclass(frozen=True, slots=True)
class Handwritten:
    """A key as the user wrote it.

    ``index`` is the name of the key's index, or None for the table's own key. ``sort`` is None if
    the user wrote no sort key. The entity's label then takes its place, unless the table or index
    has no sort key (``is_partition_only``).
    """

    partition: KeyAttributes
    sort: KeyAttributes | None
    index: str | None = None
    is_local: bool = False
    projection: Literal["ALL", "KEYS_ONLY", "INCLUDE"] = "ALL"
    included: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[object, ...]:
        return (
            self.index or "",
            *(
                () if side is None else (side.pieces, side.names)
                for side in (self.partition, self.sort)
            ),
        )

    @property
    def is_partition_only(self) -> bool:
        return self.sort is None and bool(self.partition.names)

    @property
    def native_partition(self) -> bool:
        return self.partition.native

    @property
    def native_sort(self) -> bool:
        return self.sort is not None and self.sort.native

    @property
    def is_native(self) -> bool:
        """Whether all attributes of the key are fields."""
        return self.partition.native and (self.native_sort or self.is_partition_only)

    @property
    def native_fields(self) -> frozenset[str]:
        """The fields that are attributes of the key themselves."""
        sides = [side for side in (self.partition, self.sort) if side is not None and side.native]
        return frozenset(name for side in sides for name in side.fields)


def parse(
    entity: type[Entity], written: KeyTemplate | IndexKey, index: str | None = None
) -> Handwritten:
    where = f"{info(entity).name}, {f'index {index}' if index else 'key'}"
    options = written if isinstance(written, IndexKey) else IndexKey(written)
    sides = [_side(entity, each, where) for each in written_sides(where, options.key)]
    partition, sort = sides[0], sides[1] if len(sides) == 2 else None
    if index is None and any(len(each.names) > 1 for each in sides):
        raise DesignError(
            f"{where}: the partition or sort key of a table cannot have several attributes",
            hint="name one attribute for each; only an index can have several",
        )
    if options.local and sort is None:
        raise DesignError(
            f"{where}: a local index needs a sort key", hint="write both attributes of its key"
        )
    if isinstance(options.projection, str):
        if options.projection not in ("ALL", "KEYS_ONLY"):
            raise DesignError(
                f"{where}: unknown projection {options.projection!r}",
                hint='use "ALL", "KEYS_ONLY", or the names of attributes: ("title", "author")',
            )
        return Handwritten(partition, sort, index, options.local, options.projection)
    included = tuple(sorted(_stored(entity, name) for name in options.projection))
    return Handwritten(partition, sort, index, options.local, "INCLUDE", included)


def _stored(entity: type[Entity], name: str) -> str:
    return info(entity).stored_names.get(name, name)


def _named(entity: type[Entity], written: str) -> str:
    """Return a name as the planner uses it, with the stored name of the field.

    ``written`` is the name of a field or of a derived part, as the user wrote it in the key.
    """
    part = derived_part(written)
    if part is None:
        return _stored(entity, written)
    return str(replace(part, field=_stored(entity, part.field)))


def _side(entity: type[Entity], side: WrittenSide, where: str) -> KeyAttributes:
    pieces = [(name, _pieces(entity, text, where)) for name, text in side]
    names = tuple(name for name, _ in pieces if name is not None)
    joined = tuple(piece for _, several in pieces for piece in several)
    native = bool(names) and all(
        each == ((True, name),) and name in info(entity).fields for name, each in pieces
    )
    if native:
        for name in names:
            encoding = keys.encoding_of(info(entity).fields[name].shape)
            if encoding is None or encoding.native is None:
                raise DesignError(
                    f"{where}: {name} cannot be a key attribute by itself",
                    hint="a key attribute is text, a number or bytes",
                )
    elif len(pieces) > 1:
        raise DesignError(
            f"{where}: if a partition or sort key has several attributes, each must be a field",
            hint='write each attribute with its own field: {"region": "{region}", "day": "{day}"}',
        )
    elif names and names[0] in info(entity).fields:
        raise DesignError(
            f"{where}: the attribute {names[0]} is also a field of {info(entity).name}",
            hint=f'write {{"{names[0]}": "{{{names[0]}}}"}}, or rename the field',
        )
    return KeyAttributes(joined, names, native)


def _pieces(entity: type[Entity], text: str, where: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for part in _HOLE.split(text):
        if not part:
            continue
        if not part.startswith("{"):
            pieces.append((False, part))
            continue
        name = _named(entity, part[1:-1])
        known = info(entity)
        declared = known.fields.get(source_field(name))
        derived = derived_part(name)
        if declared is not None and derived is not None:
            check_part(known, derived)
        if declared is None or keys.encoding_of(declared.shape) is None:
            raise DesignError(
                f"{where}: {part} is not a field that a key can hold",
                hint=f"fields of {info(entity).name}: {info(entity).listed(info(entity).fields)}",
            )
        pieces.append((True, name))
    for (left, _), (right, following) in pairwise(pieces):
        if left and (right or not following.startswith(keys.SEPARATOR)):
            raise DesignError(
                f"{where}: {keys.SEPARATOR} is missing between a field and {following!r}"
                f" in {text!r}",
                hint=f"write {keys.SEPARATOR} right after the field: it never occurs in a value",
            )
    if not pieces:
        raise DesignError(f"{where}: the key is empty", hint="give it at least one word or field")
    return tuple(pieces)
