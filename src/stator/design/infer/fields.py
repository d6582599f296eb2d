"""Python types of attributes, from the values in a sample."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

Value = dict[str, Any]

_DATETIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?\Z")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d\Z")
_UUID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.IGNORECASE
)
_INT: Final = re.compile(r"-?\d+\Z")
_EPOCH: Final = range(1_000_000_000, 5_000_000_000)
_TTL_NAME: Final = re.compile(
    r"(?i)\A(_?ttl|expires?(_?at|_?on)?|expiration(_?time)?|time_?to_?live)\Z"
)
_FEW_CHOICES: Final = 8
_ENOUGH: Final = 20


@dataclass(frozen=True, slots=True)
class GuessedField:
    """A guessed field.

    ``python`` is its annotation without ``| None``; ``doubt`` describes the guess behind it.
    """

    name: str
    python: str
    optional: bool = False
    marker: str = ""
    doubt: str = ""

    @property
    def annotation(self) -> str:
        return f"{self.python} | None" if self.optional else self.python


def field_of(
    name: str, values: Sequence[Value], total: int, *, in_key: bool = False
) -> GuessedField:
    """Guess the field of an attribute from its ``values``.

    ``total`` is the number of items in the sample, with or without the attribute. A field in a key
    stays text, so that keys keep their form.
    """
    present = [value for value in values if "NULL" not in value]
    optional = len(present) < total
    kinds = sorted({next(iter(value)) for value in present})
    if not present:
        return GuessedField(
            name, "str", True, doubt="every value in the sample is NULL; the type str is a guess"
        )
    if len(kinds) > 1:
        return GuessedField(name, "Any", doubt=f"its values have several types: {', '.join(kinds)}")
    [kind] = kinds
    contents = [value[kind] for value in present]
    if in_key and kind == "S":
        return GuessedField(name, "str", optional)
    if kind == "N" and _TTL_NAME.match(name) and all(_is_epoch(content) for content in contents):
        return GuessedField(
            name,
            "datetime",
            True,
            marker="ttl(default=None)",
            doubt="treated as the time to live because of its name",
        )
    python, doubt = _typed(kind, contents)
    return GuessedField(name, python, optional, doubt=doubt)


def _is_epoch(content: str) -> bool:
    return bool(_INT.match(content)) and int(content) in _EPOCH


def _typed(kind: str, contents: list[Any]) -> tuple[str, str]:
    match kind:
        case "S":
            return _text(contents)
        case "N":
            return (
                ("int", "") if all(_INT.match(content) for content in contents) else ("Decimal", "")
            )
        case "BOOL":
            return "bool", ""
        case "B":
            return "bytes", ""
        case "SS" | "NS" | "BS":
            element, _ = _typed(kind[0], [content for many in contents for content in many])
            return f"set[{element}]", ""
        case "L":
            return _list(contents)
    return "dict[str, Any]", "it is a map; declare a dataclass for it to type its members"


def _text(contents: list[str]) -> tuple[str, str]:
    if all(_DATETIME.match(content) for content in contents):
        if all(content.endswith(("Z", "+00:00")) and "." in content for content in contents):
            return "datetime", "its values look like the times that Stator writes; check one"
        return "str", "it looks like a time; a datetime would be written in a different form"
    if all(_DATE.match(content) for content in contents):
        return "date", ""
    if all(_UUID.match(content) for content in contents) and all(
        content == content.lower() for content in contents
    ):
        return "UUID", ""
    distinct = sorted(set(contents))
    if (
        len(contents) >= _ENOUGH
        and len(distinct) <= _FEW_CHOICES
        and all(map(str.isidentifier, distinct))
    ):
        return "Literal[" + ", ".join(
            f'"{each}"' for each in distinct
        ) + "]", "the table may hold values that are not in the sample"
    return "str", ""


def _list(contents: list[list[Value]]) -> tuple[str, str]:
    elements = [element for many in contents for element in many]
    kinds = {next(iter(element)) for element in elements}
    if len(kinds) != 1:
        return "list[Any]", "" if not kinds else "its elements have several types"
    [kind] = kinds
    inner, doubt = _typed(kind, [element[kind] for element in elements])
    return f"list[{inner if not inner.startswith('Literal') else 'str'}]", "" if inner.startswith(
        "Literal"
    ) else doubt
