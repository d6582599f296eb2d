"""Handwritten keys: ``key=("USER#{user_id}", "ORDER#{placed_at}#{order_id}")``.

Text is literal; ``{field}`` is replaced by the field's value in its order-preserving form. Two
fields must be separated by text that begins with the separator, which never occurs in a value. So
parts cannot run into each other, and ranges over a part stay ranges of the key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from stator.design.entities.entity import Entity, info
from stator.design.plan import key_text as keys
from stator.errors import DesignError

Piece = tuple[bool, str]
"""Whether the piece is a field, and its name or text."""


@dataclass(frozen=True, slots=True)
class Handwritten:
    """A key as the user wrote it.

    ``index`` is the name of its index, or None for the table's own key.
    """

    partition: tuple[Piece, ...]
    sort: tuple[Piece, ...]
    index: str | None = None

    @property
    def rank(self) -> tuple[object, ...]:
        return (self.index or "", self.partition, self.sort)


def fields_of(pieces: tuple[Piece, ...]) -> tuple[str, ...]:
    return tuple(text for is_field, text in pieces if is_field)


def parse(entity: type[Entity], written: tuple[str, ...], index: str | None = None) -> Handwritten:
    where = f"{info(entity).name}, {f'index {index}' if index else 'key'}"
    if (
        not isinstance(written, tuple)
        or len(written) not in (1, 2)
        or not all(isinstance(one, str) for one in written)
    ):
        raise DesignError(
            f"{where}: {written!r} is not a valid key",
            hint='write one or two texts, for example ("USER#{user_id}", "ORDER#{order_id}")',
        )
    sides = [_pieces(entity, text, where) for text in written]
    return Handwritten(sides[0], sides[1] if len(sides) == 2 else (), index)


def _pieces(entity: type[Entity], text: str, where: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for part in re.split(r"(\{\w+\})", text):
        if not part:
            continue
        if not part.startswith("{"):
            pieces.append((False, part))
            continue
        name = info(entity).stored_names.get(part[1:-1], part[1:-1])
        declared = info(entity).fields.get(name)
        if declared is None or keys.encoding_of(declared.shape) is None:
            raise DesignError(
                f"{where}: {part} is not a field that a key can hold",
                hint=f"fields of {info(entity).name}: {info(entity).listed(info(entity).fields)}",
            )
        pieces.append((True, name))
    for (left, _), (right, following) in pairwise(pieces):
        if left and (right or not following.startswith(keys.SEPARATOR)):
            raise DesignError(
                f"{where}: nothing separates two fields in {text!r}",
                hint=f"put {keys.SEPARATOR} after each field: it never occurs in a value",
            )
    if not pieces:
        raise DesignError(f"{where}: the key is empty", hint="give it at least one word or field")
    return tuple(pieces)
