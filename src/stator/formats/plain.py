"""Converts attribute values to plain Python values and back.

Plain JSON has neither sets nor binary values: sets become lists, binary values base64 text. Numbers
keep every digit. Maps and lists are JSON text in CSV and Parquet, because their content can differ
from row to row.

In the other direction, a plain value becomes an attribute value of the type that fits it. If the
attribute has a given type, as a key attribute has, the value is converted to that type.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import orjson

from stator.errors import RowRefused
from stator.formats.exact_json import loads_exact
from stator.model.values import Item, Value

NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TRUE, _FALSE = frozenset({"true", "1", "yes", "t"}), frozenset({"false", "0", "no", "f"})


# -- from attribute values


def plain_item(item: Item) -> dict[str, Any]:
    """Return an item as plain Python values that ``orjson.dumps`` can write.

    Numbers are JSON fragments, so they keep their digits.
    """
    return {name: plain_value(value) for name, value in item.items()}


def plain_value(value: Value) -> Any:
    [(kind, content)] = value.items()
    match kind:
        case "S" | "B" | "BOOL" | "SS" | "BS":
            return content
        case "N":
            return orjson.Fragment(content)
        case "M":
            return plain_item(content)
        case "L":
            return [plain_value(each) for each in content]
        case "NS":
            return [orjson.Fragment(each) for each in content]
    return None


def plain_line(item: Item) -> bytes:
    """Return an item as one line of plain JSON."""
    return orjson.dumps(plain_item(item), None, orjson.OPT_APPEND_NEWLINE)


def cell_text(value: Value | None) -> str:
    """Return the text of a CSV cell. A missing attribute and NULL are empty cells."""
    if value is None:
        return ""
    [(kind, content)] = value.items()
    if kind in ("S", "N", "B"):
        return str(content)
    return "" if kind == "NULL" else orjson.dumps(plain_value(value)).decode()


# -- to attribute values, by what a value is


def encode_value(value: Any) -> Value:
    kind = type(value)
    if kind is str:
        return {"S": value}
    if kind is int:
        return {"N": str(value)}
    if kind is float:
        return {"N": number_text(value)}
    if kind is bool:
        return {"BOOL": value}
    if value is None:
        return {"NULL": True}
    if kind is dict:
        return {"M": {str(name): encode_value(inner) for name, inner in value.items()}}
    if kind in (list, tuple):
        return {"L": [encode_value(inner) for inner in value]}
    if kind is Decimal:
        return {"N": number_text(value)}
    if kind in (bytes, bytearray, memoryview):
        return {"B": b64encode(value).decode()}
    return {"S": text_of(value)}


def number_text(value: float | Decimal) -> str:
    if not math.isfinite(value):
        raise RowRefused(f"DynamoDB cannot store the number {value}")
    return str(value)


def text_of(value: Any) -> str:
    """Return the text that is stored for a scalar of a type that DynamoDB lacks, such as a date.

    Times are written in ISO 8601, as in Stator's fields, and durations as a number of seconds.
    """
    if isinstance(value, datetime):
        written = value.isoformat(timespec="microseconds")
        return written.removesuffix("+00:00") + "Z" if written.endswith("+00:00") else written
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value.total_seconds())
    if isinstance(value, (UUID, str)):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        return str(value)
    raise RowRefused(f"a value of type {type(value).__name__} cannot be stored")


# -- to attribute values of a given type


def _number(value: Any) -> Value:
    if isinstance(value, str):
        text = value.strip()
        if NUMBER.fullmatch(text) is None:
            raise RowRefused(f"{value!r} is not a number")
        return {"N": text}
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise RowRefused(f"{value!r} is not a number")
    return {"N": number_text(value)}


def _text(value: Any) -> Value:
    return {"S": value if type(value) is str else text_of(value)}


def _boolean(value: Any) -> Value:
    if isinstance(value, bool):
        return {"BOOL": value}
    word = str(value).strip().lower()
    if word not in _TRUE and word not in _FALSE:
        raise RowRefused(f"{value!r} is neither true nor false")
    return {"BOOL": word in _TRUE}


def _binary(value: Any) -> Value:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"B": b64encode(value).decode()}
    try:
        b64decode(value, validate=True)
    except (ValueError, TypeError):
        raise RowRefused(f"{value!r} is not base64") from None
    return {"B": value}


def _set_of(kind: str, encode_member: Callable[[Any], Value]) -> Callable[[Any], Value]:
    def encode(value: Any) -> Value:
        members = value.split(",") if isinstance(value, str) else value
        if not isinstance(members, (list, tuple, set, frozenset)) or not members:
            raise RowRefused(f"{value!r} cannot be a set; use a list with at least one member")
        return {f"{kind}S": list(dict.fromkeys(encode_member(member)[kind] for member in members))}

    return encode


def _nested(word: str, types: tuple[type, ...]) -> Callable[[Any], Value]:
    def encode(value: Any) -> Value:
        nested = value
        if isinstance(value, str):
            try:
                nested = loads_exact(value.encode())
            except ValueError:
                raise RowRefused(f"{value!r} is not JSON") from None
        if not isinstance(nested, types):
            raise RowRefused(f"{value!r} is not a {word}")
        return encode_value(nested)

    return encode


ENCODERS: Final[dict[str, Callable[[Any], Value]]] = {
    "S": _text,
    "N": _number,
    "BOOL": _boolean,
    "B": _binary,
    "NULL": lambda _: {"NULL": True},
    "SS": _set_of("S", _text),
    "NS": _set_of("N", _number),
    "BS": _set_of("B", _binary),
    "L": _nested("list", (list, tuple)),
    "M": _nested("map", (dict,)),
}
"""The function that turns a plain value into an attribute value of each DynamoDB type.

It raises RowRefused for a value that does not fit.
"""


def comparable(value: Value) -> Any:
    """Return a key's value in a form that compares as DynamoDB does: ``1`` equals ``1.0``."""
    [(kind, content)] = value.items()
    return Decimal(content) if kind == "N" else content
