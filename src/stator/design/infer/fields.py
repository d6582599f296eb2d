"""Python types of attributes, from the values in a sample."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

Value = dict[str, Any]

_DATETIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?\Z")
_STATOR_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d\Z")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_INT: Final = re.compile(r"-?\d+\Z")
_EPOCH: Final = range(1_000_000_000, 5_000_000_000)
_TTL_NAME: Final = re.compile(
    r"(?i)\A(_?ttl|expires?(_?at|_?on)?|expiration(_?time)?|time_?to_?live)\Z"
)
_FEW_CHOICES: Final = 8
_ENOUGH: Final = 20
KEY_TYPES: Final = {"S": "str", "N": "Decimal", "B": "bytes"}
"""The Python types for key attributes of which the sample has no value."""


@dataclass(frozen=True, slots=True)
class GuessedField:
    """A guessed field.

    ``python`` is its annotation without ``| None``; ``doubt`` says why the annotation is a guess.
    ``stored`` is the name of its attribute, or empty if the attribute has the name of the field.
    """

    name: str
    python: str
    optional: bool = False
    marker: str = ""
    doubt: str = ""
    stored: str = ""

    @property
    def annotation(self) -> str:
        return f"{self.python} | None" if self.optional else self.python

    @property
    def attribute(self) -> str:
        return self.stored or self.name


def field_of(
    name: str,
    values: Sequence[Value],
    total: int,
    *,
    in_key: bool = False,
    key_type: str | None = None,
    is_ttl: bool | None = None,
) -> GuessedField:
    """Guess the field of an attribute from its ``values``.

    ``total`` is the number of items in the sample, with or without the attribute. A field in a key
    stays text, so that keys keep their form. ``key_type`` is the DynamoDB type of a key attribute.
    ``is_ttl`` says whether items expire by the attribute; None if that is unknown.
    """
    present = [value for value in values if "NULL" not in value]
    optional, missing = len(present) < total, _missing(name, len(present), total)
    if key_type is not None:
        return _key_field(name, present, optional, key_type, missing)
    kinds = sorted({next(iter(value)) for value in present})
    if not present:
        return GuessedField(
            name, "str", True, doubt="every value in the sample is NULL; the type str is a guess"
        )
    if len(kinds) > 1:
        several = f"its values have several types: {', '.join(kinds)}"
        return GuessedField(name, "Any", optional, doubt=_joined(several, missing))
    [kind] = kinds
    contents = [value[kind] for value in present]
    if in_key and kind == "S":
        return GuessedField(name, "str", optional, doubt=missing)
    may_expire = is_ttl or (is_ttl is None and bool(_TTL_NAME.match(name)))
    if may_expire and kind == "N" and all(map(_is_epoch, contents)):
        why = "" if is_ttl else "treated as the time to live because of its name"
        return GuessedField(name, "datetime", True, marker="ttl", doubt=why)
    python, doubt = _typed(kind, contents)
    return GuessedField(name, python, optional, doubt=_joined(doubt, missing))


def _key_field(
    name: str, present: list[Value], optional: bool, key_type: str, missing: str
) -> GuessedField:
    """Return the field of a key attribute, whose type the table prescribes.

    ``missing`` is the evidence that the field is optional, or empty.
    """
    contents = [value[key_type] for value in present if key_type in value]
    python = KEY_TYPES[key_type]
    if key_type == "N" and contents and all(_INT.match(content) for content in contents):
        python = "int"
    return GuessedField(name, python, optional, doubt=missing)


def _missing(name: str, present: int, total: int) -> str:
    """Return the evidence that a field is optional, as text, or "" if all items have it."""
    return f"{total - present} of {total} items have no {name}" if present < total else ""


def _joined(*doubts: str) -> str:
    return "; ".join(doubt for doubt in doubts if doubt)


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
            members = [content for many in contents for content in many]
            element = "str" if kind == "SS" else _typed(kind[0], members)[0]
            return f"set[{element}]", ""
        case "L":
            return _list(contents)
    return "dict[str, Any]", "it is a map; declare a dataclass for it to type its members"


def _text(contents: list[str]) -> tuple[str, str]:
    if all(_DATETIME.match(content) for content in contents):
        if all(_STATOR_TIME.match(content) for content in contents):
            return "datetime", "its values look like the times that Stator writes; check one"
        return "str", "it looks like a time; a datetime would be written in a different form"
    if all(map(_is_date, contents)):
        return "date", ""
    if all(_UUID.match(content) for content in contents):
        return "UUID", ""
    distinct = sorted(set(contents))
    if (
        len(contents) >= _ENOUGH
        and len(distinct) <= _FEW_CHOICES
        and all(map(str.isidentifier, distinct))
    ):
        return "str", f"all {len(contents)} values are one of {', '.join(distinct)}"
    return "str", ""


def _is_date(content: str) -> bool:
    if not _DATE.match(content):
        return False
    try:
        date.fromisoformat(content)
    except ValueError:
        return False
    return True


def holds_set(value: Value) -> bool:
    """Whether a value is a set, or has one inside."""
    [(kind, content)] = value.items()
    if kind == "M":
        return any(map(holds_set, content.values()))
    return kind in ("SS", "NS", "BS") or (kind == "L" and any(map(holds_set, content)))


def _list(contents: list[list[Value]]) -> tuple[str, str]:
    elements = [element for many in contents for element in many]
    kinds = {next(iter(element)) for element in elements}
    if len(kinds) != 1 or "NULL" in kinds:
        return "list[Any]", "" if not kinds else "its elements have several types"
    [kind] = kinds
    inner, _ = _typed(kind, [element[kind] for element in elements])
    return f"list[{inner}]", ""
