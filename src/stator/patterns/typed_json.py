"""JSON that keeps Python types: what is read back equals what was written, in value and in type.

JSON's own types are written as they are. Every other value is an object with one member whose name
begins with ``$`` and tells the type:

    {"receipt": {"$decimal": "5.00"}, "paid_at": {"$datetime": "2026-03-01T10:00:00+00:00"}}

    $int $float     an int beyond 64 bits; NaN and the infinities
    $decimal $bytes $bytearray $datetime $date $time $timedelta $uuid
    $tuple $set $frozenset      a list of the members
    $dict           a list of pairs, if a key is no text or begins with $
    $enum           the class and the member's name, or the value of a combined flag
    $object         a dataclass, an entity or a named tuple: the class and its fields
    $model          an adapted pydantic or msgspec model: its entity's class and its item

A class is written as ``module:qualified name``. To be found again, it must be defined at the top
level of its module or of another class. The reader looks only in modules that are already imported:
stored data never makes a process import code.

Only exact types are accepted. A subclass of str, for example, would come back as a str.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from operator import attrgetter
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson

from stator.design.entities.adapters import AdaptedInfo
from stator.design.entities.entity import KNOWN
from stator.errors import StatorError

_INT64 = range(-(2**63), 2**63)


class NotTypedJson(Exception):
    """The error for a value that cannot be written with its type, or for text that cannot be read.

    The message names the place in the value and the type, never the value itself.
    """


def write_typed(value: Any) -> str:
    """Return a value as JSON text from which ``read_typed`` returns an equal value.

    Raises NotTypedJson if it could not return the same value with the same types.
    """
    try:
        return orjson.dumps(_write(value, "")).decode()
    except (TypeError, ValueError) as error:  # such as text that is not valid Unicode
        raise NotTypedJson(f"the value cannot be written as JSON: {error}") from None
    except RecursionError:
        raise NotTypedJson("the value contains itself, or is nested too deeply") from None


def is_plain(text: str) -> bool:
    """Whether text from ``write_typed`` is ordinary JSON, without any ``$`` member."""
    return '{"$' not in text


def read_typed(text: str) -> Any:
    """Return the value that ``write_typed`` wrote.

    Raises NotTypedJson if a class is missing, or has changed so that the value no longer fits it.
    """
    try:
        return _read(orjson.loads(text))
    except NotTypedJson:
        raise
    except Exception as error:  # a class from the text may raise anything when it is created
        raise NotTypedJson(
            f"the stored JSON is damaged, or a class in it has changed ({type(error).__name__}); "
            "restore the fields and members that the class had when it was stored"
        ) from error


# --- writing ------------------------------------------------------------------------------------


def _write(value: Any, where: str) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if value in _INT64 else {"$int": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if kind is list:
        return _members(value, where)
    if kind in _CONTAINERS:
        return {_CONTAINERS[kind]: _members(value, where)}
    if kind is dict:
        return _write_dict(value, where)
    if isinstance(value, Enum):
        return {"$enum": _write_member(value, where)}
    known = KNOWN.get(kind)
    if isinstance(known, AdaptedInfo):
        return {"$model": _write_model(known, value, where)}
    if dataclasses.is_dataclass(kind) or _is_named_tuple(kind):
        return {"$object": _write_object(value, where)}
    raise _refused(kind, where)


def _members(values: Any, where: str) -> list[Any]:
    return [_write(each, f"{where}[{at}]") for at, each in enumerate(values)]


def _write_dict(value: dict[Any, Any], where: str) -> Any:
    if all(type(name) is str and not name.startswith("$") for name in value):
        return {name: _write(each, f"{where}.{name}") for name, each in value.items()}
    pairs = enumerate(value.items())
    return {
        "$dict": [
            [_write(name, f"{where}, key {at}"), _write(each, f"{where}, value {at}")]
            for at, (name, each) in pairs
        ]
    }


def _write_time(name: str, value: Any) -> Any:
    """Return a datetime or a time in a form that JSON can hold.

    ISO text keeps the UTC offset, but not the name of a time zone. Nor does it keep ``fold``, which
    tells the two hours apart when clocks go back. A value with a zone or fold becomes a list: text,
    zone and fold.
    """
    zone = value.tzinfo
    key = zone.key if isinstance(zone, ZoneInfo) else None
    if key is None and not value.fold:
        return {name: value.isoformat()}
    text = (value if key is None else value.replace(tzinfo=None)).isoformat()
    return {name: [text, key, value.fold]}


def _write_member(value: Enum, where: str) -> list[Any]:
    cls = _path(type(value), where)
    name = value.name
    if name in type(value).__members__:
        return [cls, name]
    return [cls, None, _write(value.value, f"{where}.value")]


def _write_object(value: Any, where: str) -> list[Any]:
    cls = type(value)
    fields = {
        name: _write(getattr(value, name), f"{where}.{name}")
        for name in _field_names(cls)
        if hasattr(value, name)
    }
    return [_path(cls, where), fields]


def _write_model(known: AdaptedInfo, value: Any, where: str) -> list[Any]:
    try:
        item = known.codec.encode(value)
    except StatorError as error:
        raise NotTypedJson(f"{_at(where)}{error}") from None
    return [_path(known.model, where), item]


def _field_names(cls: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return cast("tuple[str, ...]", cast("Any", cls)._fields)


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make")


def _path(cls: type, where: str) -> str:
    path = f"{cls.__module__}:{cls.__qualname__}"
    if _find(path) is not cls:
        raise NotTypedJson(
            f"{_at(where)}the class {cls.__qualname__} cannot be found again by its name; "
            "define it at the top level of a module"
        )
    return path


def _refused(cls: type, where: str) -> NotTypedJson:
    return NotTypedJson(f"{_at(where)}a value of type {cls.__qualname__} cannot be stored")


def _at(where: str) -> str:
    return f"at {where.lstrip('.')}: " if where else ""


_SCALARS: dict[type, Callable[[Any], Any]] = {
    Decimal: lambda value: {"$decimal": str(value)},
    bytes: lambda value: {"$bytes": b64encode(value).decode()},
    bytearray: lambda value: {"$bytearray": b64encode(value).decode()},
    datetime: lambda value: _write_time("$datetime", value),
    date: lambda value: {"$date": value.isoformat()},
    time: lambda value: _write_time("$time", value),
    timedelta: lambda value: {"$timedelta": [value.days, value.seconds, value.microseconds]},
    UUID: lambda value: {"$uuid": str(value)},
}
_CONTAINERS: dict[type, str] = {tuple: "$tuple", set: "$set", frozenset: "$frozenset"}

# --- reading ------------------------------------------------------------------------------------


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(name, content)] = value.items()
        if name.startswith("$"):
            if name not in _READERS:
                raise NotTypedJson(
                    f"the stored JSON has a value of the unknown type {name}; "
                    "a newer version of Stator may be able to read it"
                )
            return _READERS[name](content)
    return {name: _read(each) for name, each in value.items()}


def _read_time(cls: Any, content: Any) -> Any:
    if isinstance(content, str):
        return cls.fromisoformat(content)
    text, key, fold = content
    value = cls.fromisoformat(text).replace(fold=fold)
    return value if key is None else value.replace(tzinfo=ZoneInfo(key))


def _read_member(content: list[Any]) -> Any:
    cls = _class(content[0])
    return cls[content[1]] if content[1] is not None else cls(_read(content[2]))


def _read_object(content: list[Any]) -> Any:
    """Build an object from its fields.

    ``__init__`` of a dataclass is not called: it ran when the original object was made.
    """
    cls, fields = _class(content[0]), {name: _read(each) for name, each in content[1].items()}
    if not dataclasses.is_dataclass(cls):
        return cls._make(fields[name] for name in cls._fields)
    made: Any = cast("Any", cls).__new__(cls)
    for field in dataclasses.fields(cls):
        object.__setattr__(made, field.name, _field_value(field, fields, content[0]))
    return made


def _field_value(field: dataclasses.Field[Any], found: dict[str, Any], cls: str) -> Any:
    """Return the stored value of a field, or its default if the field was added later."""
    if field.name in found:
        return found[field.name]
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    raise NotTypedJson(f"the stored {cls} has no field {field.name}; give the field a default")


def _read_model(content: list[Any]) -> Any:
    known = KNOWN.get(_class(content[0]))
    if not isinstance(known, AdaptedInfo):
        raise NotTypedJson(
            f"this process has not made the model {content[0]} an entity with adapt(); "
            "import the module that does so first"
        )
    return known.codec.decode(content[1])


def _class(path: str) -> Any:
    found = _find(path)
    is_ours = isinstance(found, type) and (
        issubclass(found, Enum)
        or dataclasses.is_dataclass(found)
        or _is_named_tuple(found)
        or found in KNOWN
    )
    if not is_ours:
        raise NotTypedJson(f"this process does not know the class {path}; import its module first")
    return found


def _find(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        return attrgetter(name)(sys.modules[module])
    except (KeyError, AttributeError):
        return None


_READERS: dict[str, Callable[[Any], Any]] = {
    "$int": int,
    "$float": float,
    "$decimal": Decimal,
    "$bytes": b64decode,
    "$bytearray": lambda content: bytearray(b64decode(content)),
    "$datetime": lambda content: _read_time(datetime, content),
    "$date": date.fromisoformat,
    "$time": lambda content: _read_time(time, content),
    "$timedelta": lambda content: timedelta(*content),
    "$uuid": UUID,
    "$tuple": lambda content: tuple(map(_read, content)),
    "$set": lambda content: set(map(_read, content)),
    "$frozenset": lambda content: frozenset(map(_read, content)),
    "$dict": lambda content: {_read(name): _read(each) for name, each in content},
    "$enum": _read_member,
    "$object": _read_object,
    "$model": _read_model,
}
