"""Frozen dataclasses as plain JSON data, for the lock file.

Fields that have their default value are left out, and the order is fixed.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, TypeVar, Union

T = TypeVar("T")


def to_data(value: Any) -> Any:
    """Return a value as JSON data. Equal values give equal data in the same order."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: float(found) if field.type == "float" else to_data(found)
            for field in dataclasses.fields(value)
            if (found := getattr(value, field.name)) != _default(field)
        }
    if isinstance(value, (tuple, list)):
        return [to_data(each) for each in value]
    if isinstance(value, dict):
        return {name: to_data(each) for name, each in sorted(value.items())}
    return value


def from_data(cls: type[T], data: Any) -> T:
    return typing.cast("T", _read(cls, data))


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default is not dataclasses.MISSING else _NOTHING


_NOTHING = object()


def _read(hint: Any, data: Any) -> Any:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return hint(**{name: _read(hints[name], each) for name, each in data.items()})
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        inner = [argument for argument in arguments if argument is not type(None)]
        return None if data is None or len(inner) > 1 else _read(inner[0], data)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_read(arguments[0], each) for each in data)
        return tuple(_read(argument, each) for argument, each in zip(arguments, data, strict=True))
    if origin is dict:
        return {name: _read(arguments[1], each) for name, each in data.items()}
    return float(data) if hint is float else data
