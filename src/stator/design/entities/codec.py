"""The codec of an entity: generated functions between objects and DynamoDB JSON.

For ``class Order(Entity): order_id: str; total: Decimal; note: str | None`` the generated code is
about

    def encode(o):
        item = {}
        v = o.order_id
        item["order_id"] = {"S": v} if type(v) is str else e1(v)
        v = o.total
        item["total"] = {"N": str(v)} if type(v) is Decimal and v.is_finite() else e2(v)
        v = o.note
        if v is not None:
            item["note"] = {"S": v} if type(v) is str else e3(v)
        return item

    def decode(item):
        o = new(cls)
        d = o.__dict__
        v = item["order_id"]
        d["order_id"] = v["S"]
        ...
        return o

(``codec_source`` writes the expressions). If either fails, a second, slow walk finds the field at
fault, so that errors name the entity, the field and the value. Classes with their own ``__init__``
logic, and models of other libraries, are built by a call with all values (``ObjectMaker``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stator.design.entities.codec_source import CodecSource, attribute, default_of, is_plain
from stator.design.entities.shapes import Shape
from stator.design.entities.wire import (
    REQUIRED,
    Decoder,
    Encoder,
    WrongValue,
    decoder,
    encoder,
    omits,
)
from stator.errors import ItemMismatch
from stator.model.values import Item, Value

_FAULTS = (WrongValue, KeyError, ValueError, TypeError, ArithmeticError, AttributeError)


@dataclass(frozen=True, slots=True)
class Codec:
    """``encode_field`` and ``decode_field`` handle single fields: keys, conditions, updates."""

    encode: Callable[[Any], Item]
    decode: Callable[[Item], Any]
    encode_field: dict[str, Encoder]
    decode_field: dict[str, Decoder]


@dataclass(frozen=True, slots=True)
class ObjectMaker:
    """Builds objects from values by field name. ``absent`` gives the value of a missing attribute.

    There, REQUIRED refuses a missing attribute, and LEFT_OUT leaves the choice to ``make``.
    """

    make: Callable[[dict[str, Any]], Any]
    absent: dict[str, Callable[[], Any]]


def LEFT_OUT() -> Any:
    raise AssertionError("a value that is left out is never read")


def make_codec(
    entity: str, cls: type, shapes: dict[str, Shape], maker: ObjectMaker | None = None
) -> Codec:
    encoders = {name: _named(entity, name, encoder(shape)) for name, shape in shapes.items()}
    decoders = {name: decoder(shape) for name, shape in shapes.items()}
    if maker is None and not is_plain(cls):
        maker = _by_init(cls, shapes)
    absent = (
        maker.absent
        if maker
        else {name: default_of(cls, name, shape) for name, shape in shapes.items()}
    )
    to_wire, from_wire = _make_encode(shapes), _make_decode(cls, shapes, absent, maker)

    def encode(made: Any) -> Item:
        try:
            return to_wire(made)
        except WrongValue:
            for name, encode in encoders.items():
                if not omits(shapes[name])(getattr(made, name)):
                    encode(getattr(made, name))  # raises for the field at fault
            raise

    def decode(item: Item) -> Any:
        try:
            return from_wire(item)
        except _FAULTS as error:
            fault = _fault(entity, decoders, absent, item, error)
            raise fault from (error if fault.field == "?" else None)

    return Codec(encode, decode, encoders, _checked(entity, decoders))


def _named(entity: str, field: str, encode: Encoder) -> Encoder:
    """An encoder whose errors name the entity and the field."""

    def named(value: Any) -> Value:
        try:
            return encode(value)
        except WrongValue as error:
            raise ItemMismatch(entity, field, error.wanted, error.value) from None

    return named


def _checked(entity: str, decoders: dict[str, Decoder]) -> dict[str, Decoder]:
    def checked(field: str, decode: Decoder) -> Decoder:
        def run(value: Value) -> Any:
            try:
                return decode(value)
            except _FAULTS as error:
                raise _mismatch(entity, field, value, error) from None

        return run

    return {field: checked(field, decode) for field, decode in decoders.items()}


def _mismatch(entity: str, field: str, value: Any, error: Exception) -> ItemMismatch:
    if isinstance(error, WrongValue):
        return ItemMismatch(entity, field, error.wanted, error.value)
    return ItemMismatch(entity, field, "the stored value does not fit the field's type", value)


def _make_encode(shapes: dict[str, Shape]) -> Callable[[Any], Item]:
    source = CodecSource()
    body = ["item = {}"]
    for name, shape in shapes.items():
        body += [f"v = {attribute('o', name)}", *source.put(name, shape)]
    source.function("encode", "o", [*body, "return item"])
    return source.compiled("encode")


def _make_decode(
    cls: type,
    shapes: dict[str, Shape],
    absent: dict[str, Callable[[], Any]],
    maker: ObjectMaker | None,
) -> Callable[[Item], Any]:
    source = CodecSource()
    if maker is None:
        body = source.fill(source.bind("t", cls), shapes, absent)
    else:
        body = ["d = {}"]
        for name, shape in shapes.items():
            body += source.get(name, shape, absent[name], leave_out=absent[name] is LEFT_OUT)
        body.append(f"return {source.bind('make', maker.make)}(d)")
    source.function("decode", "item", body)
    return source.compiled("decode")


def _by_init(cls: type, shapes: dict[str, Shape]) -> ObjectMaker:
    """Build through ``__init__``; fields it does not take are set afterwards."""
    takes = {field.name for field in dataclasses.fields(cls) if field.init}

    def make(values: dict[str, Any]) -> Any:
        made = cls(**{name: value for name, value in values.items() if name in takes})
        for name in values.keys() - takes:
            object.__setattr__(made, name, values[name])
        return made

    return ObjectMaker(make, {name: default_of(cls, name, shape) for name, shape in shapes.items()})


def _fault(
    entity: str,
    decoders: dict[str, Decoder],
    absent: dict[str, Callable[[], Any]],
    item: Item,
    error: Exception,
) -> ItemMismatch:
    """The slow walk: find the field that made decoding fail."""
    for name, decode in decoders.items():
        if name not in item:
            if absent[name] is REQUIRED:
                return ItemMismatch(entity, name, "the item has no such attribute", sorted(item))
            continue
        try:
            decode(item[name])
        except _FAULTS as problem:
            return _mismatch(entity, name, item[name], problem)
    return ItemMismatch(entity, "?", str(error), item)
