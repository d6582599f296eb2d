"""Entity versions: how items that were stored in an earlier shape are read in the current one.

    class Order(Entity, version=2):
        order_id: str = ident()
        total_cents: int

    @upcast(Order, 1)
    def total_in_cents(fields: dict[str, Any]) -> dict[str, Any]:
        fields["total_cents"] = int(fields.pop("total") * 100)
        return fields

An item carries the version of its shape in the attribute ``_v``, if the version is above 1. An
*upcast* turns the fields of one version into those of the next. When an item of version 1 is read
by code that declares version 3, the upcasts of versions 1 and 2 run one after the other, before the
codec decodes the item. Every reader goes through the codec, so every reader sees the current shape.

Upcasts see plain Python values: str, int or Decimal, bool, bytes, list, dict and set. Times, UUIDs
and enums are the text or number that is stored. An upcast may return such values, or values of the
field's own type.

An item whose version is above the class's was written by newer code. Reading it raises
NewerVersion. A class with ``on_newer="ignore_unknown"`` reads it as it is, and ignores the
attributes that it does not know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Literal, TypeVar
from uuid import UUID

from stator.design.entities.shapes import Scalar, SetOf, shape_of
from stator.design.entities.wire import (
    Encoder,
    WrongValue,
    decode_anything,
    encode_anything,
    encoder,
    text_key,
)
from stator.errors import DesignError, ItemMismatch, NewerVersion
from stator.model.values import Item, Value

VERSION_ATTRIBUTE: Final = "_v"
UNKNOWN: Final = "_stator_unknown"
"""The name under which an object keeps the attributes of its item that the class does not know."""

OnNewer = Literal["raise", "ignore_unknown"]
Upcast = Callable[[dict[str, Any]], dict[str, Any]]
F = TypeVar("F", bound=Upcast)


def check_version(entity: str, version: int, on_newer: str) -> None:
    if type(version) is not int or version < 1:
        raise DesignError(
            f"{entity}: version={version!r} is not a version", hint="count from 1: version=2"
        )
    if on_newer not in ("raise", "ignore_unknown"):
        raise DesignError(
            f"{entity}: on_newer={on_newer!r} is not a rule for newer items",
            hint='use "raise" or "ignore_unknown"',
        )


def version_of(item: Item) -> int:
    """Return the version of an item's shape. An item without one has version 1."""
    stored = item.get(VERSION_ATTRIBUTE)
    return 1 if stored is None or "N" not in stored else int(stored["N"])


class ShapeVersion:
    """The version of an entity's shape, and the upcasts that lead to it."""

    def __init__(self, entity: str, version: int, on_newer: OnNewer) -> None:
        self.entity = entity
        self.version = version
        self.on_newer = on_newer
        self.upcasts: dict[int, Upcast] = {}
        self.value: Value | None = None if version == 1 else {"N": str(version)}
        """The value of ``_v`` in items of this version. None means no such attribute."""

    def add(self, version: int, function: Upcast) -> None:
        if type(version) is not int or not 1 <= version < self.version:
            raise DesignError(
                f"@upcast({self.entity}, {version!r}): {self.entity} has version {self.version}, "
                "and an upcast starts at an earlier one",
                hint=f"raise the version: class {self.entity}(Entity, version={self.version + 1})",
            )
        known = self.upcasts.get(version)
        if known is not None and _name(known) != _name(function):
            raise DesignError(
                f"{self.entity} has two upcasts from version {version}: "
                f"{_name(known)} and {_name(function)}",
                hint="keep one of them",
            )
        self.upcasts[version] = function

    def refuse_newer(self, item: Item) -> None:
        """Raise NewerVersion for an item of a later version, unless ``on_newer`` allows it."""
        stored = version_of(item)
        if stored > self.version and self.on_newer == "raise":
            raise NewerVersion(self.entity, stored, self.version)

    def current(self, item: Item, encode_field: Mapping[str, Encoder]) -> Item:
        """Return an item in the current shape, after all upcasts from its version on.

        An item of the current version is returned unchanged. An item of a later version raises
        NewerVersion, or is returned unchanged with ``on_newer="ignore_unknown"``. ``encode_field``
        maps each field of the current class to its encoder.
        """
        stored = version_of(item)
        if stored == self.version:
            return item
        if stored > self.version:
            if self.on_newer == "raise":
                raise NewerVersion(self.entity, stored, self.version)
            return item
        for version in range(stored, self.version):
            item = self._upcast(item, version, encode_field)
        assert self.value is not None
        item[VERSION_ATTRIBUTE] = self.value
        return item

    def _upcast(self, item: Item, version: int, encode_field: Mapping[str, Encoder]) -> Item:
        function = self.upcasts.get(version)
        if function is None:
            raise ItemMismatch(
                self.entity,
                VERSION_ATTRIBUTE,
                f"no upcast leads from version {version} to {version + 1}; "
                f"write one with @upcast({self.entity}, {version})",
                version,
            )
        fields = {
            name: decode_anything(value)
            for name, value in item.items()
            if name != VERSION_ATTRIBUTE
        }
        try:
            made = function(fields)
            return {
                name: _stored(name, value, encode_field)
                for name, value in made.items()
                if not _is_left_out(value)
            }
        except Exception as error:
            raise ItemMismatch(
                self.entity,
                VERSION_ATTRIBUTE,
                f"@upcast({self.entity}, {version}) {_name(function)} failed "
                f"({type(error).__name__}: {error})",
                version,
            ) from error


def _name(function: Upcast) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _is_left_out(value: Any) -> bool:
    return value is None or (isinstance(value, (set, frozenset)) and not value)


def _stored(name: str, value: Any, encode_field: Mapping[str, Encoder]) -> Value:
    encode = encode_field.get(name)
    if encode is not None:
        try:
            return encode(value)
        except ItemMismatch:
            pass  # a plain value, or one of an earlier version
    return _plain(value)


def _plain(value: Any) -> Value:
    """Encode a value by its Python type, as a field of that type would store it."""
    match value:
        case Enum():
            return _plain(value.value)
        case Decimal() if value.is_finite() and value == value.to_integral_value():
            return {"N": str(int(value))}
        case UUID() | date() | time() | datetime():
            kind = next(each for each in (UUID, datetime, date, time) if isinstance(value, each))
            return encoder(Scalar(kind))(value)
        case set() | frozenset():
            return _set(value)
        case list() | tuple():
            return {"L": [_plain(each) for each in value]}
        case dict():
            return {"M": {text_key(name): _plain(each) for name, each in value.items()}}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return encoder(shape_of(type(value), type(value).__name__))(value)
    return encode_anything(value)


def _set(values: set[Any] | frozenset[Any]) -> Value:
    kinds = {type(each) for each in values}
    for kind in (str, bytes, Decimal):
        if kinds <= ({int, Decimal, float} if kind is Decimal else {kind}):
            return encoder(SetOf(Scalar(kind)))(values)
    raise WrongValue("expected a set of texts, numbers or binaries", values)
