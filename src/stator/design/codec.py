"""Encode and decode functions, generated per entity: straight between DynamoDB JSON and objects.

For ``class Order(Entity): order_id: str; total: Decimal; note: str | None`` the generated code is about

    def encode(o):
        d = o.__dict__
        item = {}
        v = d["order_id"]
        item["order_id"] = {"S": v} if type(v) is str else e0(v)
        v = d["total"]
        item["total"] = {"N": str(v)} if type(v) is Decimal else e1(v)
        v = d["note"]
        if v is not None: item["note"] = {"S": v} if type(v) is str else e2(v)
        return item

    def decode(item):
        o = new(cls)
        d = o.__dict__
        v = item["order_id"]
        d["order_id"] = v["S"]
        ...
        return o

so that the common value costs a type test and a dictionary. ``e0`` and its like are closures that accept what also fits (a subclass, an
int for a Decimal) or raise. When decoding fails, a second, slow walk finds the field at fault, so that errors name entity, field and value.
"""

from __future__ import annotations

import dataclasses
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from stator.design.types import Maybe, Scalar, SetOf
from stator.design.wire import (
    REQUIRED,
    Decoder,
    Encoder,
    WrongValue,
    absent_value,
    decode_time,
    decoder,
    encode_time,
    encoder,
    omits,
)
from stator.errors import ItemMismatch
from stator.model.values import Item, Value

if TYPE_CHECKING:
    from stator.design.entity import EntityInfo

_FAULTS = (WrongValue, KeyError, ValueError, TypeError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class Codec:
    """``encode_field`` and ``decode_field`` do single fields, for keys, conditions and updates."""

    encode: Callable[[Any], Item]
    decode: Callable[[Item], Any]
    encode_field: dict[str, Encoder]
    decode_field: dict[str, Decoder]


# Source for the values that need no closure: the test that the fast form applies, and the fast form.
_FAST_ENCODE: dict[type, tuple[str, str]] = {
    str: ("type(v) is str", '{"S": v}'),
    int: ("type(v) is int", '{"N": str(v)}'),
    bool: ("v is True or v is False", '{"BOOL": v}'),
    Decimal: ("type(v) is Decimal and v.is_finite()", '{"N": str(v)}'),
    bytes: ("type(v) is bytes", '{"B": b64encode(v).decode()}'),
    UUID: ("type(v) is UUID", '{"S": str(v)}'),
    datetime: ("type(v) is datetime and v.tzinfo is not None", '{"S": encode_time(v)}'),
}
_FAST_DECODE: dict[type, str] = {
    str: 'v["S"]',
    int: 'int(v["N"])',
    float: 'float(v["N"])',
    Decimal: 'Decimal(v["N"])',
    bool: 'v["BOOL"]',
    bytes: 'b64decode(v["B"])',
    datetime: 'decode_time(v["S"])',
    date: 'date.fromisoformat(v["S"])',
    UUID: 'UUID(v["S"])',
}


def make_codec(entity: EntityInfo) -> Codec:
    encoders = {name: _named(entity, name, encoder(field.shape)) for name, field in entity.fields.items()}
    decoders = {name: decoder(field.shape) for name, field in entity.fields.items()}
    return Codec(_make_encode(entity, encoders), _make_decode(entity, decoders), encoders, _checked(entity, decoders))


def _named(entity: EntityInfo, field: str, encode: Encoder) -> Encoder:
    """An encoder whose errors say which field of which entity they are about."""

    def named(value: Any) -> Value:
        try:
            return encode(value)
        except WrongValue as error:
            raise ItemMismatch(entity.name, field, error.wanted, error.value) from None

    return named


def _checked(entity: EntityInfo, decoders: dict[str, Decoder]) -> dict[str, Decoder]:
    def checked(field: str, decode: Decoder) -> Decoder:
        def run(value: Value) -> Any:
            try:
                return decode(value)
            except _FAULTS as error:
                raise _mismatch(entity, field, value, error) from None

        return run

    return {field: checked(field, decode) for field, decode in decoders.items()}


def _mismatch(entity: EntityInfo, field: str, value: Any, error: Exception) -> ItemMismatch:
    if isinstance(error, WrongValue):
        return ItemMismatch(entity.name, field, error.wanted, error.value)
    return ItemMismatch(entity.name, field, "the stored value does not fit the field's type", value)


_GLOBALS: dict[str, Any] = {
    "Decimal": Decimal, "UUID": UUID, "date": date, "b64encode": b64encode, "b64decode": b64decode,
    "datetime": datetime, "encode_time": encode_time, "decode_time": decode_time, "new": object.__new__,
}  # fmt: skip


def _compile(name: str, lines: list[str], names: dict[str, Any]) -> Any:
    namespace = {**_GLOBALS, **names}
    exec("\n".join(lines), namespace)  # noqa: S102 - source made here, of field names the interpreter has accepted
    return namespace[name]


def _make_encode(entity: EntityInfo, encoders: dict[str, Encoder]) -> Callable[[Any], Item]:
    names: dict[str, Any] = {}
    lines = ["def encode(o):", "    d = o.__dict__", "    item = {}"]
    for at, (name, field) in enumerate(entity.fields.items()):
        shape = field.shape
        names[f"e{at}"], names[f"omit{at}"] = encoders[name], omits(shape)
        lines.append(f"    v = d[{name!r}]")
        indent = "    "
        if isinstance(shape, Maybe):
            lines.append("    if v is not None:")
            indent, shape = "        ", shape.inner
        if isinstance(shape, SetOf):
            lines.append(f"{indent}if not omit{at}(v):")
            indent += "    "
        fast = _FAST_ENCODE.get(shape.python) if isinstance(shape, Scalar) else None
        form = f"{fast[1]} if {fast[0]} else e{at}(v)" if fast else f"e{at}(v)"
        lines.append(f"{indent}item[{name!r}] = {form}")
    lines.append("    return item")
    return _compile("encode", lines, names)  # type: ignore[no-any-return]


def _make_decode(entity: EntityInfo, decoders: dict[str, Decoder]) -> Callable[[Item], Any]:
    if hasattr(entity.cls, "__post_init__") or not hasattr(entity.cls, "__overrides__"):
        fast = _decode_by_init(entity, decoders)
    else:
        fast = _decode_into_dict(entity, decoders)

    def decode(item: Item) -> Any:
        try:
            return fast(item)
        except _FAULTS as error:
            raise _fault(entity, decoders, item, error) from None

    return decode


def _decode_into_dict(entity: EntityInfo, decoders: dict[str, Decoder]) -> Callable[[Item], Any]:
    """Without ``__init__``: the fields are put where it would put them."""
    names: dict[str, Any] = {"cls": entity.cls}
    lines = ["def decode(item):", "    o = new(cls)", "    d = o.__dict__"]
    for at, (name, field) in enumerate(entity.fields.items()):
        names[f"d{at}"], names[f"a{at}"] = decoders[name], _default_of(entity, name)
        fast = _FAST_DECODE.get(field.shape.python) if isinstance(field.shape, Scalar) else None
        value = fast or f"d{at}(v)"
        if names[f"a{at}"] is REQUIRED:
            lines += [f"    v = item[{name!r}]", f"    d[{name!r}] = {value}"]
        else:
            lines += [f"    v = item.get({name!r})", f"    d[{name!r}] = a{at}() if v is None else {value}"]
    lines.append("    return o")
    return _compile("decode", lines, names)  # type: ignore[no-any-return]


def _default_of(entity: EntityInfo, name: str) -> Callable[[], Any]:
    declared = next(field for field in dataclasses.fields(entity.cls) if field.name == name)
    if declared.default_factory is not dataclasses.MISSING:
        return declared.default_factory
    if declared.default is not dataclasses.MISSING:
        default = declared.default
        return lambda: default
    return absent_value(entity.fields[name].shape)


def _decode_by_init(entity: EntityInfo, decoders: dict[str, Decoder]) -> Callable[[Item], Any]:
    """Through ``__init__``, for classes that do something in it; what it does not take is set afterwards."""
    takes = {field.name for field in dataclasses.fields(entity.cls) if field.init}

    def decode(item: Item) -> Any:
        values = {
            name: decode(item[name]) if name in item else _default_of(entity, name)()
            for name, decode in decoders.items()
        }
        made = entity.cls(**{name: value for name, value in values.items() if name in takes})
        for name in values.keys() - takes:
            object.__setattr__(made, name, values[name])
        return made

    return decode


def _fault(entity: EntityInfo, decoders: dict[str, Decoder], item: Item, error: Exception) -> ItemMismatch:
    """The slow walk: which field made decoding fail."""
    for name, decode in decoders.items():
        if name not in item:
            if _default_of(entity, name) is REQUIRED:
                return ItemMismatch(entity.name, name, "the item has no such attribute", sorted(item))
            continue
        try:
            decode(item[name])
        except _FAULTS as problem:
            return _mismatch(entity, name, item[name], problem)
    return ItemMismatch(entity.name, "?", str(error), item)
