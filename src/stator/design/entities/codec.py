"""The codec of an entity: generated functions between objects and DynamoDB JSON.

For ``class Order(Entity): order_id: str; total: Decimal; note: str | None`` the generated code
looks like this:
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

``codec_source`` writes the expressions. Each field also gets functions of its own. If encoding or
decoding fails, a second, slow walk finds the field at fault, so that errors name the entity, the
field and the value. Classes with their own ``__init__`` logic, and models of other libraries, are
built by a call with all values (``ObjectMaker``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stator.design.entities.codec_source import CodecSource, attribute, default_of, is_plain
from stator.design.entities.entity_versions import VERSION_ATTRIBUTE, ShapeVersion
from stator.design.entities.shapes import Shape
from stator.design.entities.wire import (
    REQUIRED,
    Decoder,
    Encoder,
    WrongValue,
    decoder,
    omits,
)
from stator.errors import ItemMismatch
from stator.model.values import Item, Value

_FAULTS = (WrongValue, KeyError, ValueError, TypeError, ArithmeticError, AttributeError)


@dataclass(frozen=True, slots=True)
class Codec:
    """The generated functions of one entity.

    ``encode_field`` and ``decode_field`` handle single fields, for keys, conditions and updates.
    ``omits_field`` says for which values a field's attribute is left out. ``current`` converts a
    stored item to the current version of the entity's shape (``entity_versions``), without decoding
    the item.
    """

    encode: Callable[[Any], Item]
    decode: Callable[[Item], Any]
    encode_field: dict[str, Encoder]
    decode_field: dict[str, Decoder]
    omits_field: dict[str, Callable[[Any], bool]]
    current: Callable[[Item], Item]

    def attribute(self, field: str, value: Any) -> Value | None:
        """Return the stored value of a field, or None if its attribute is left out."""
        return None if self.omits_field[field](value) else self.encode_field[field](value)


@dataclass(frozen=True, slots=True)
class ObjectMaker:
    """Builds objects from values by field name.

    ``absent`` has a function for each field. It is called if the item lacks the field's attribute,
    and returns the value to use. The function REQUIRED raises an error instead; LEFT_OUT leaves the
    choice to ``make``.
    """

    make: Callable[[dict[str, Any]], Any]
    absent: dict[str, Callable[[], Any]]


def LEFT_OUT() -> Any:
    raise AssertionError("a value that is left out is never read")


def make_codec(
    entity: str,
    cls: type,
    shapes: dict[str, Shape],
    maker: ObjectMaker | None = None,
    *,
    versions: ShapeVersion | None = None,
) -> Codec:
    """Generate the codec of a class whose fields have these shapes.

    ``entity`` is the name of the entity in errors. ``versions`` holds the version of the entity's
    shape and its upcasts. The default is version 1 without upcasts.
    """
    versions = versions or ShapeVersion(entity, 1, "raise")
    if maker is None and not is_plain(cls):
        maker = _by_init(cls, shapes)
    absent = (
        maker.absent
        if maker
        else {name: default_of(cls, name, shape) for name, shape in shapes.items()}
    )
    source = CodecSource()
    _write_encode(source, shapes, versions)
    _write_decode(source, cls, shapes, absent, maker)
    for at, shape in enumerate(shapes.values()):
        source.function(f"encode_{at}", "v", [f"return {source.encode(shape, 'v')}"])
        source.function(f"decode_{at}", "v", [f"return {source.decode(shape, 'v')}"])
    made = source.functions()
    to_wire, from_wire = made["encode"], made["decode"]
    encoders = {name: _named(entity, name, made[f"encode_{at}"]) for at, name in enumerate(shapes)}
    decoders = {
        name: _checked(entity, name, shapes[name], made[f"decode_{at}"])
        for at, name in enumerate(shapes)
    }

    omitted = {name: omits(shape) for name, shape in shapes.items()}

    def encode(made: Any) -> Item:
        try:
            found: Item = to_wire(made)
        except WrongValue:
            for name, encode in encoders.items():
                if not omitted[name](getattr(made, name)):
                    encode(getattr(made, name))  # raises for the field at fault
            raise
        return found

    def current(item: Item) -> Item:
        return versions.current(item, encoders)

    own_version = versions.value

    def decode(item: Item) -> Any:
        if item.get(VERSION_ATTRIBUTE) != own_version:
            item = current(item)
        try:
            return from_wire(item)
        except _FAULTS as error:
            fault = _fault(entity, shapes, absent, item, error)
            raise fault from (error if fault.field == "?" else None)

    return Codec(encode, decode, encoders, decoders, omitted, current)


def _named(entity: str, field: str, encode: Encoder) -> Encoder:
    """Return an encoder whose errors name the entity and the field."""

    def named(value: Any) -> Value:
        try:
            return encode(value)
        except WrongValue as error:
            raise ItemMismatch(entity, field, error.wanted, error.value) from None

    return named


def _checked(entity: str, field: str, shape: Shape, decode: Decoder) -> Decoder:
    """Return a decoder whose errors name the entity and the field."""

    def checked(value: Value) -> Any:
        try:
            return decode(value)
        except _FAULTS as error:
            problem = _problem(shape, value) or error
            raise _mismatch(entity, field, value, problem) from None

    return checked


def _problem(shape: Shape, value: Value) -> Exception | None:
    """Return the error that says why a stored value does not fit a shape, or None if it fits.

    The decoders of ``wire`` raise it. Unlike the generated code, they explain the error in words.
    """
    try:
        decoder(shape)(value)
    except _FAULTS as error:
        return error
    return None


def _mismatch(entity: str, field: str, value: Any, error: Exception) -> ItemMismatch:
    if isinstance(error, WrongValue):
        return ItemMismatch(entity, field, error.wanted, error.value)
    return ItemMismatch(entity, field, "the stored value does not fit the field's type", value)


def _write_encode(source: CodecSource, shapes: dict[str, Shape], versions: ShapeVersion) -> None:
    is_first = versions.value is None
    body = ["item = {}" if is_first else f"item = {{{VERSION_ATTRIBUTE!r}: {versions.value!r}}}"]
    for name, shape in shapes.items():
        body += [f"v = {attribute('o', name)}", *source.put(name, shape)]
    source.function("encode", "o", [*body, "return item"])


def _write_decode(
    source: CodecSource,
    cls: type,
    shapes: dict[str, Shape],
    absent: dict[str, Callable[[], Any]],
    maker: ObjectMaker | None,
) -> None:
    if maker is None:
        body = source.fill(source.bind("t", cls), shapes, absent)
    else:
        body = ["d = {}"]
        for name, shape in shapes.items():
            body += source.get(name, shape, absent[name], leave_out=absent[name] is LEFT_OUT)
        body.append(f"return {source.bind('make', maker.make)}(d)")
    source.function("decode", "item", body)


def _by_init(cls: type, shapes: dict[str, Shape]) -> ObjectMaker:
    """Return a maker that builds objects through ``__init__``.

    Fields that ``__init__`` does not take are set afterwards.
    """
    takes = {field.name for field in dataclasses.fields(cls) if field.init}

    def make(values: dict[str, Any]) -> Any:
        made = cls(**{name: value for name, value in values.items() if name in takes})
        for name in values.keys() - takes:
            object.__setattr__(made, name, values[name])
        return made

    return ObjectMaker(make, {name: default_of(cls, name, shape) for name, shape in shapes.items()})


def _fault(
    entity: str,
    shapes: dict[str, Shape],
    absent: dict[str, Callable[[], Any]],
    item: Item,
    error: Exception,
) -> ItemMismatch:
    """Return an error that names the field that made decoding fail.

    It decodes all fields again, one by one, which is slow.
    """
    for name, shape in shapes.items():
        if name not in item:
            if absent[name] is REQUIRED:
                return ItemMismatch(entity, name, "the item has no such attribute", sorted(item))
            continue
        problem = _problem(shape, item[name])
        if problem is not None:
            return _mismatch(entity, name, item[name], problem)
    unbuilt = f"the object cannot be built from the item: {type(error).__name__}"
    return ItemMismatch(entity, "?", unbuilt, item)
