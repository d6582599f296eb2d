"""Plain Python values to DynamoDB JSON, by what they are or by the type an attribute is to have."""

from __future__ import annotations

import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from stator.errors import RowRefused
from stator.model.values import Value

NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
KINDS: Final = ("S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M")
_TRUE, _FALSE = frozenset({"true", "1", "yes", "t"}), frozenset({"false", "0", "no", "f"})


def encode_value(value: Any) -> Value:
    """A value by what it is."""
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
        raise RowRefused(f"{value} is not a number that DynamoDB has")
    return str(value)


def text_of(value: Any) -> str:
    """Text for what DynamoDB has no type for: times in ISO 8601, as Stator's own fields have them."""
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


def _set_of(kind: str, one: Callable[[Any], Value]) -> Callable[[Any], Value]:
    def encode(value: Any) -> Value:
        members = value.split(",") if isinstance(value, str) else value
        if not isinstance(members, (list, tuple, set, frozenset)) or not members:
            raise RowRefused(f"{value!r} is not a set with members")
        return {f"{kind}S": list(dict.fromkeys(one(member)[kind] for member in members))}

    return encode


def _nested(kind: str, wanted: tuple[type, ...]) -> Callable[[Any], Value]:
    from stator.pipeline.bulk.exact_json import loads_exact

    def encode(value: Any) -> Value:
        made = value
        if isinstance(value, str):
            try:
                made = loads_exact(value.encode())
            except ValueError:
                raise RowRefused(f"{value!r} is not JSON") from None
        if not isinstance(made, wanted):
            raise RowRefused(f"{value!r} is not a {'map' if kind == 'M' else 'list'}")
        return encode_value(made)

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
    "L": _nested("L", (list, tuple)),
    "M": _nested("M", (dict,)),
}


def comparable(value: Value) -> Any:
    """A key attribute's value as something to compare: numbers by what they are, whatever their spelling."""
    [(kind, content)] = value.items()
    return Decimal(content) if kind == "N" else content
