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
from collections.abc import Callable, Mapping
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
    encoder,
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

    ``absent`` has a function for each field, which is called if the item lacks the field's
    attribute. The function returns the value to use. Two functions are special: REQUIRED raises an
    error, and with LEFT_OUT, ``make`` gets no value for the field and chooses one.
    """

    make: Callable[[dict[str, Any]], Any]
    absent: dict[str, Callable[[], Any]]


def LEFT_OUT() -> Any:
    raise AssertionError("internal error: a codec read a field that the item leaves out")


def make_codec(
    entity: str,
    cls: type,
    shapes: dict[str, Shape],
    maker: ObjectMaker | None = None,
    *,
    versions: ShapeVersion | None = None,
    constants: Item | None = None,
    python_names: Mapping[str, str] | None = None,
) -> Codec:
    """Generate the codec of a class whose fields have these shapes.

    ``entity`` is the name of the entity in errors. ``versions`` holds the version of the entity's
    shape and its upcasts. The default is version 1 without upcasts. ``constants`` are attributes
    that every item has with the same value, and that are not fields. ``shapes`` has the names
    under which fields are stored. ``python_names`` maps these to the names of the fields, where
    they differ.
    """
    python = {name: (python_names or {}).get(name, name) for name in shapes}
    versions = versions or ShapeVersion(entity, 1, "raise")
    if maker is None and not is_plain(cls):
        maker = _by_init(cls, shapes, python)
    absent = (
        maker.absent
        if maker
        else {name: default_of(cls, python[name], shape) for name, shape in shapes.items()}
    )
    source = CodecSource()
    own_version = versions.value
    version = {} if own_version is None else {VERSION_ATTRIBUTE: own_version}
    _write_encode(source, shapes, python, version | (constants or {}))
    _write_decode(source, cls, shapes, absent, maker, python)
    for at, shape in enumerate(shapes.values()):
        source.function(f"encode_{at}", "v", [f"return {source.encode(shape, 'v')}"])
        source.function(f"decode_{at}", "v", [f"return {source.decode(shape, 'v')}"])
    made = source.functions()
    to_wire, from_wire = made["encode"], made["decode"]
    encoders = {
        name: _named(entity, python[name], made[f"encode_{at}"]) for at, name in enumerate(shapes)
    }
    decoders = {
        name: _checked(entity, python[name], shapes[name], made[f"decode_{at}"])
        for at, name in enumerate(shapes)
    }

    omitted = {name: omits(shape) for name, shape in shapes.items()}

    def encode(made: Any) -> Item:
        try:
            found: Item = to_wire(made)
        except WrongValue:
            for name, encode in encoders.items():
                value = getattr(made, python[name])
                if not omitted[name](value):
                    encode(value)  # raises for the field at fault
            raise
        return found

    def current(item: Item) -> Item:
        return versions.current(item, encoders)

    def decode(item: Item) -> Any:
        if item.get(VERSION_ATTRIBUTE) != own_version:
            item = current(item)
        try:
            return from_wire(item)
        except _FAULTS as error:
            fault = _fault(entity, shapes, python, absent, item, error)
            raise fault from (error if fault.field == "?" else None)

    return Codec(encode, decode, encoders, decoders, omitted, current)


def with_fields(codec: Codec, entity: str, shapes: dict[str, Shape]) -> Codec:
    """Return a codec that also encodes and decodes fields which the class itself does not have.

    Conditions and keys can name these fields. Whole objects are encoded and decoded as before.
    """
    return dataclasses.replace(
        codec,
        encode_field=codec.encode_field
        | {name: _named(entity, name, encoder(shape)) for name, shape in shapes.items()},
        decode_field=codec.decode_field
        | {name: _checked(entity, name, shape, decoder(shape)) for name, shape in shapes.items()},
        omits_field=codec.omits_field | {name: omits(shape) for name, shape in shapes.items()},
    )


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

    The decoders of ``wire`` raise this error. Unlike the generated code, they explain it in words.
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


def _write_encode(
    source: CodecSource, shapes: dict[str, Shape], python: Mapping[str, str], constants: Item
) -> None:
    body = [f"item = {constants!r}"]
    for name, shape in shapes.items():
        body += [f"v = {attribute('o', python[name])}", *source.put(name, shape)]
    source.function("encode", "o", [*body, "return item"])


def _write_decode(
    source: CodecSource,
    cls: type,
    shapes: dict[str, Shape],
    absent: dict[str, Callable[[], Any]],
    maker: ObjectMaker | None,
    python: Mapping[str, str],
) -> None:
    if maker is None:
        body = source.fill(source.bind("t", cls), shapes, absent, python)
    else:
        body = ["d = {}"]
        for name, shape in shapes.items():
            leave_out = absent[name] is LEFT_OUT
            body += source.get(name, shape, absent[name], leave_out=leave_out, field=python[name])
        body.append(f"return {source.bind('make', maker.make)}(d)")
    source.function("decode", "item", body)


def _by_init(cls: type, shapes: dict[str, Shape], python: Mapping[str, str]) -> ObjectMaker:
    """Return a maker that builds objects through ``__init__``.

    Fields that ``__init__`` does not take are set afterwards.
    """
    takes = {field.name for field in dataclasses.fields(cls) if field.init}

    def make(values: dict[str, Any]) -> Any:
        made = cls(**{name: value for name, value in values.items() if name in takes})
        for name in values.keys() - takes:
            object.__setattr__(made, name, values[name])
        return made

    return ObjectMaker(
        make, {name: default_of(cls, python[name], shape) for name, shape in shapes.items()}
    )


def _fault(
    entity: str,
    shapes: dict[str, Shape],
    python: Mapping[str, str],
    absent: dict[str, Callable[[], Any]],
    item: Item,
    error: Exception,
) -> ItemMismatch:
    """Return an error that names the field that made decoding fail.

    To find the field, all fields are decoded again, one by one, which is slow.
    """
    for name, shape in shapes.items():
        if name not in item:
            if absent[name] is REQUIRED:
                missing = "the item has no such attribute"
                return ItemMismatch(entity, python[name], missing, sorted(item))
            continue
        problem = _problem(shape, item[name])
        if problem is not None:
            return _mismatch(entity, python[name], item[name], problem)
    unbuilt = f"the object cannot be built from the item: {type(error).__name__}"
    return ItemMismatch(entity, "?", unbuilt, item)
