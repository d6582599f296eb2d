"""The forms in which a user writes a key by hand, for ``key=`` and ``index=`` of an entity.

    key=("USER#{user_id}", "PROFILE")              texts for the attributes PK and SK
    key={"user_id": "{user_id}"}                   the attribute user_id, which is the field itself
    key={"customer": "{customer}", "sk": "ORDER#{order_id}"}
    index={"ByEmail": {"email": "{email}"}}
    index={"ByDay": IndexKey({"forum": "{forum}", "day": "{day}"}, local=True)}

A tuple has the text of the partition key and, if there is one, of the sort key. The design names
their attributes. A mapping also names the attributes. If an attribute has the name of a field, and
its text is only that field, it holds the field's value in DynamoDB's own type: the key is native.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stator.errors import DesignError

KeySide = str | Mapping[str, str]
"""The text of one key attribute, or the texts of attributes by their names."""
KeyTemplate = tuple[KeySide] | tuple[KeySide, KeySide] | Mapping[str, str]
WrittenSide = tuple[tuple[str | None, str], ...]
"""Pairs of an attribute, or None for the name that the design gives it, and its text."""


@dataclass(frozen=True, slots=True)
class IndexKey:
    """A handwritten index with its options.

    ``local`` makes it a local index. ``projection`` is ALL, KEYS_ONLY, or the names of the
    attributes that the index includes.
    """

    key: KeyTemplate
    local: bool = False
    projection: Literal["ALL", "KEYS_ONLY"] | tuple[str, ...] = "ALL"


def written_sides(where: str, written: Any) -> tuple[WrittenSide, ...]:
    """Return the partition key and, if there is one, the sort key, as pairs of attribute and text.

    The attribute is None if the design names it. ``where`` names the key in errors.
    """
    given: Any = (
        [{name: text} for name, text in written.items()]
        if isinstance(written, Mapping)
        else written
    )
    if not isinstance(given, (tuple, list)) or len(given) not in (1, 2):
        raise _invalid(where, written)
    sides = []
    for side in given:
        pairs = tuple(side.items()) if isinstance(side, Mapping) else ((None, side),)
        if not pairs or not all(
            isinstance(text, str) and (name is None or (isinstance(name, str) and name))
            for name, text in pairs
        ):
            raise _invalid(where, written)
        sides.append(pairs)
    return tuple(sides)


def _invalid(where: str, written: Any) -> DesignError:
    return DesignError(
        f"{where}: {written!r} is not a valid key",
        hint='write one or two texts, for example ("USER#{user_id}", "ORDER#{order_id}"), '
        'or the attributes with their texts: {"user_id": "{user_id}"}',
    )
