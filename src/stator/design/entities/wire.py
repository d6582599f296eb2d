"""Encoders and decoders between Python values and DynamoDB JSON: one closure for each shape.

The generated code of ``codec_source`` handles the common values and calls these closures for the
rest: a subclass, a value that must be refused, a value of type ``Any``. The closures are also the
reference that tests compare the generated code with.

If a field is None or an empty set, its attribute is left out (DynamoDB has no empty sets). Inside
a list or a map, None is stored as NULL and an empty set as an empty list (``kept`` shapes). A value
that does not fit raises ``WrongValue``; the codec, which knows the field, turns it into an
ItemMismatch.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from stator.design.entities.shapes import (
    Anything,
    Choice,
    Coded,
    Epoch,
    ListOf,
    MapOf,
    Maybe,
    Nested,
    OneOf,
    Scalar,
    SetOf,
    Shape,
    TypedMap,
    is_packed,
)
from stator.model.values import Item, Value

Encoder = Callable[[Any], Value]
Decoder = Callable[[Value], Any]


class WrongValue(Exception):
    """A value of the wrong type. The codec adds the field and raises ItemMismatch."""

    def __init__(self, wanted: str, value: object) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.value = value


# --- single values ------------------------------------------------------------------------------


def encode_time(value: datetime) -> str:
    """Return the time as text in UTC with microseconds: ``2026-03-01T10:00:00.000000Z``.

    The text always has 27 characters, so text order is time order.
    """
    if value.tzinfo is not UTC:
        if value.tzinfo is None:
            raise WrongValue("a datetime needs a time zone", value)
        try:
            value = value.astimezone(UTC)
        except OverflowError:
            raise WrongValue("the time is outside the years 1 to 9999 in UTC", value) from None
    return encode_utc(value)


def encode_utc(value: datetime) -> str:
    """Return the text of ``encode_time`` for a datetime that is already in UTC.

    It uses orjson, which is five times as fast as isoformat.
    """
    text = orjson.dumps(value, option=orjson.OPT_UTC_Z)
    return text[1:-1].decode() if value.microsecond else text[1:20].decode() + ".000000Z"


def decode_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _encode_scalar(python: type) -> Encoder:
    def wrong(value: Any) -> WrongValue:
        return WrongValue(f"expected {python.__name__}, got {type(value).__name__}", value)

    def text(value: Any) -> Value:
        if not isinstance(value, str):
            raise wrong(value)
        return {"S": str(value)}

    def number(value: Any) -> Value:
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong(value)
        return {"N": str(int(value))}

    def real(value: Any) -> Value:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong(value)
        if value != value or value in _INFINITE:
            raise WrongValue(f"expected a float that is finite, got {value}", value)
        return {"N": repr(value)}

    def decimal(value: Any) -> Value:
        if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
            raise wrong(value)
        if isinstance(value, Decimal) and not value.is_finite():
            raise WrongValue(f"expected a Decimal that is finite, got {value}", value)
        return {"N": str(value)}

    def boolean(value: Any) -> Value:
        if not isinstance(value, bool):
            raise wrong(value)
        return {"BOOL": value}

    def binary(value: Any) -> Value:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise wrong(value)
        return {"B": b64encode(value).decode()}

    def moment(value: Any) -> Value:
        if not isinstance(value, datetime):
            raise wrong(value)
        return {"S": encode_time(value)}

    def day(value: Any) -> Value:
        if not isinstance(value, date) or isinstance(value, datetime):
            raise wrong(value)
        return {"S": value.isoformat()}

    def clock(value: Any) -> Value:
        if not isinstance(value, time):
            raise wrong(value)
        return {"S": value.isoformat(timespec="microseconds")}

    def identifier(value: Any) -> Value:
        if not isinstance(value, UUID):
            raise wrong(value)
        return {"S": str(value)}

    def epoch(value: Any) -> Value:
        if not isinstance(value, datetime):
            raise WrongValue(f"expected datetime, got {type(value).__name__}", value)
        if value.tzinfo is None:
            raise WrongValue("a datetime needs a time zone", value)
        return {"N": str(math.ceil(value.timestamp()))}  # rounded up: an item never expires early

    encoders: dict[type, Encoder] = {
        str: text, int: number, float: real, Decimal: decimal, bool: boolean, bytes: binary,
        datetime: moment, Epoch: epoch, date: day, time: clock, UUID: identifier,
    }  # fmt: skip
    return encoders[python]


_INFINITE = (float("inf"), float("-inf"))

_DECODERS: dict[type, Decoder] = {
    str: lambda value: value["S"],
    int: lambda value: int(value["N"]),
    float: lambda value: float(value["N"]),
    Decimal: lambda value: Decimal(value["N"]),
    bool: lambda value: value["BOOL"],
    bytes: lambda value: b64decode(value["B"]),
    datetime: lambda value: decode_time(value["S"]),
    Epoch: lambda value: datetime.fromtimestamp(int(value["N"]), UTC),
    date: lambda value: date.fromisoformat(value["S"]),
    time: lambda value: time.fromisoformat(value["S"]),
    UUID: lambda value: UUID(value["S"]),
}

# --- shapes --------------------------------------------------------------------------------------


def encoder(shape: Shape) -> Encoder:
    match shape:
        case Scalar(python):
            return _encode_scalar(python)
        case Choice():
            return _encode_choice(shape)
        case Maybe(inner, kept):
            return _encode_kept(encoder(inner)) if kept else encoder(inner)
        case ListOf():
            return _encode_list(shape)
        case MapOf(values):
            return _encode_map(encoder(values))
        case SetOf(element):
            return _encode_set(encoder(element), shape)
        case Nested():
            return _encode_nested(shape)
        case TypedMap():
            return _encode_typed_map(shape)
        case OneOf():
            return _encode_one_of(shape)
        case Coded():
            return _encode_coded(shape)
        case Anything():
            return encode_anything
    raise AssertionError(shape)


def _encode_kept(inner: Encoder) -> Encoder:
    return lambda value: {"NULL": True} if value is None else inner(value)


def _encode_choice(shape: Choice) -> Encoder:
    enum, inner, allowed = shape.enum, _encode_scalar(shape.scalar.python), frozenset(shape.values)

    def encode(value: Any) -> Value:
        if enum is not None:
            if not isinstance(value, enum):
                raise WrongValue(
                    f"expected a member of {enum.__name__}, got {type(value).__name__}", value
                )
            if value.value not in allowed:
                raise WrongValue(f"expected one of {', '.join(map(repr, shape.values))}", value)
            return inner(value.value)
        if value not in allowed:
            raise WrongValue(f"expected one of {', '.join(map(repr, shape.values))}", value)
        return inner(value)

    return encode


def _encode_list(shape: ListOf) -> Encoder:
    encoders = [encoder(element) for element in shape.elements]

    def encode(value: Any) -> Value:
        if not isinstance(value, (list, tuple)):
            raise WrongValue(
                f"expected a {shape.container.__name__}, got {type(value).__name__}", value
            )
        if shape.fixed:
            if len(value) != len(encoders):
                raise WrongValue(f"expected {len(encoders)} elements, got {len(value)}", value)
            return {"L": [one(element) for one, element in zip(encoders, value)]}
        [each] = encoders
        return {"L": [each(element) for element in value]}

    return encode


def _encode_map(each: Encoder) -> Encoder:
    def encode(value: Any) -> Value:
        if not isinstance(value, dict) or not all(type(name) is str for name in value):
            raise WrongValue("expected a dict with str keys", value)
        return {"M": {name: each(inner) for name, inner in value.items()}}

    return encode


def _encode_set(each: Encoder, shape: SetOf) -> Encoder:
    kind = shape.element.kind  # type: ignore[union-attr]

    def encode(value: Any) -> Value:
        if not isinstance(value, (set, frozenset)):
            raise WrongValue(f"expected a set, got {type(value).__name__}", value)
        if not value:
            if shape.kept:
                return {"L": []}
            raise WrongValue("DynamoDB has no empty sets", value)
        return {f"{kind}S": sorted(each(member)[kind] for member in value)}

    return encode


def _encode_nested(shape: Nested) -> Encoder:
    members = [(name, encoder(inner), omits(inner)) for name, inner, _ in shape.fields]

    def encode(value: Any) -> Value:
        if not isinstance(value, shape.cls):
            raise WrongValue(f"expected {shape.cls.__name__}, got {type(value).__name__}", value)
        item = {}
        for name, each, omits in members:
            inner = getattr(value, name)
            if not omits(inner):
                item[name] = each(inner)
        return {"M": item}

    return encode


def _encode_typed_map(shape: TypedMap) -> Encoder:
    members = {name: encoder(inner) for name, inner, _ in shape.fields}
    required = [name for name, _, needed in shape.fields if needed]

    def encode(value: Any) -> Value:
        if not isinstance(value, dict):
            raise WrongValue(f"expected {shape.cls.__name__}, got {type(value).__name__}", value)
        for name in required:
            if name not in value:
                raise WrongValue(f"member {name} is missing", value)
        unknown = next((name for name in value if name not in members), None)
        if unknown is not None:
            raise WrongValue(f"{shape.cls.__name__} has no member {unknown!r}", value)
        return {"M": {name: members[name](inner) for name, inner in value.items()}}

    return encode


def _encode_one_of(shape: OneOf) -> Encoder:
    known = {each.cls: (tag, encoder(each)) for tag, each in shape.members}
    names = ", ".join(cls.__name__ for cls in known)

    def encode(value: Any) -> Value:
        cls = next((base for base in type(value).__mro__ if base in known), None)
        if cls is None:
            raise WrongValue(f"expected one of {names}, got {type(value).__name__}", value)
        tag, each = known[cls]
        item: Item = each(value)["M"]
        return {"M": {shape.tag: encode_anything(tag), **item}} if shape.is_added else {"M": item}

    return encode


class _Hidden:
    """Takes the place of a secret value in an error, and shows as asterisks."""

    def __repr__(self) -> str:
        return "**********"


HIDDEN = _Hidden()


def _encode_coded(shape: Coded) -> Encoder:
    each, name = encoder(shape.stored), getattr(shape.python, "__name__", str(shape.python))

    def encode(value: Any) -> Value:
        if isinstance(shape.python, type) and not isinstance(value, shape.python):
            shown = HIDDEN if shape.secret else value
            raise WrongValue(f"expected {name}, got {type(value).__name__}", shown)
        if is_packed(shape):
            try:
                return each(shape.encode(value))
            except ValueError as error:
                raise WrongValue(str(error), value) from None
        return each(shape.encode(value))

    return encode


DEEPEST = 100
"""Levels of lists and dicts that a value without a declared type may have.

DynamoDB stores 32 levels, and a packed ``large()`` value may have more. A value that contains
itself has no end.
"""


def text_key(name: Any) -> str:
    """Return a dict key as a plain str. Raises WrongValue if the key is not a str."""
    if not isinstance(name, str):
        raise WrongValue(
            f"expected a dict with str keys, got a key of type {type(name).__name__}", name
        )
    return str.__str__(name)  # the text of a member of a str Enum is its value


def encode_anything(value: Any, level: int = 0) -> Value:
    """Encode a value without a declared type, by its Python type.

    ``level`` counts the lists and dicts around the value.
    """
    if level > DEEPEST:
        raise WrongValue(
            f"the value contains itself, or has more than {DEEPEST} levels of lists and dicts",
            value,
        )
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int() | float() | Decimal():
            return _encode_scalar(float if isinstance(value, float) else Decimal)(value)
        case bytes() | bytearray():
            return {"B": b64encode(value).decode()}
        case datetime():
            return {"S": encode_time(value)}
        case list() | tuple():
            return {"L": [encode_anything(inner, level + 1) for inner in value]}
        case dict():
            return {
                "M": {
                    text_key(name): encode_anything(inner, level + 1)
                    for name, inner in value.items()
                }
            }
    raise WrongValue(f"{type(value).__name__} cannot be stored", value)


def decoder(shape: Shape) -> Decoder:
    match shape:
        case Scalar(python):
            return _DECODERS[python]
        case Choice(_, scalar):
            return _decode_choice(_DECODERS[scalar.python], shape)
        case Maybe(inner):
            return _decode_maybe(decoder(inner))
        case ListOf():
            return _decode_list(shape)
        case MapOf(values):
            each = decoder(values)
            return lambda value: {name: each(inner) for name, inner in value["M"].items()}
        case SetOf(element, frozen, kept):
            kind = element.kind  # type: ignore[union-attr]
            container = frozenset if frozen else set
            decode = _decode_set(decoder(element), kind, container)
            return _decode_kept_set(decode, container) if kept else decode
        case Nested():
            return _decode_nested(shape)
        case TypedMap():
            return _decode_typed_map(shape)
        case OneOf():
            return _decode_one_of(shape)
        case Coded():
            return _decode_coded(shape)
        case Anything():
            return decode_anything
    raise AssertionError(shape)


def choices(shape: Choice) -> dict[Any, Any]:
    """Map each stored value to its Python value: an Enum member, or the value of a Literal."""
    enum: Any = shape.enum
    return {value: value if enum is None else enum(value) for value in shape.values}


def _decode_choice(inner: Decoder, shape: Choice) -> Decoder:
    members = choices(shape)

    def decode(value: Value) -> Any:
        found = inner(value)
        if found not in members:
            raise WrongValue(f"expected one of {', '.join(map(repr, shape.values))}", found)
        return members[found]

    return decode


def _decode_maybe(inner: Decoder) -> Decoder:
    return lambda value: None if "NULL" in value else inner(value)


def _decode_list(shape: ListOf) -> Decoder:
    decoders = [decoder(element) for element in shape.elements]
    if shape.fixed:
        return lambda value: tuple(
            one(inner) for one, inner in zip(decoders, value["L"], strict=True)
        )
    [each] = decoders
    if shape.container is tuple:
        return lambda value: tuple(each(inner) for inner in value["L"])
    return lambda value: [each(inner) for inner in value["L"]]


def _decode_set(each: Decoder, kind: str, container: Callable[[Any], Any]) -> Decoder:
    return lambda value: container([each({kind: member}) for member in value[f"{kind}S"]])


def _decode_kept_set(inner: Decoder, container: Callable[[], Any]) -> Decoder:
    return lambda value: container() if value == {"L": []} else inner(value)


def _decode_nested(shape: Nested) -> Decoder:
    members = [(name, decoder(inner), absent_value(inner)) for name, inner, _ in shape.fields]
    fill = {name for name, inner, has_default in shape.fields if not has_default}
    make = maker_of(shape)

    def decode(value: Value) -> Any:
        found = value["M"]
        arguments = {}
        for name, each, absent in members:
            if name in found:
                arguments[name] = each(found[name])
            elif name in fill:
                if absent is REQUIRED:
                    raise WrongValue(f"member {name} is missing", found)
                arguments[name] = absent()
        return make(arguments)

    return decode


def _decode_typed_map(shape: TypedMap) -> Decoder:
    members = [(name, decoder(inner), needed) for name, inner, needed in shape.fields]

    def decode(value: Value) -> Any:
        found, made = value["M"], {}
        for name, each, needed in members:
            if name in found:
                made[name] = each(found[name])
            elif needed:
                raise WrongValue(f"member {name} is missing", found)
        return made

    return decode


def _decode_one_of(shape: OneOf) -> Decoder:
    known = {tag: decoder(each) for tag, each in shape.members}

    def decode(value: Value) -> Any:
        found = value["M"].get(shape.tag)
        tag = None if found is None else decode_anything(found)
        if tag not in known:
            wanted = ", ".join(map(repr, known))
            raise WrongValue(f"member {shape.tag} must be one of {wanted}", tag)
        return known[tag](value)

    return decode


def _decode_coded(shape: Coded) -> Decoder:
    each, name = decoder(shape.stored), getattr(shape.python, "__name__", str(shape.python))

    def decode(value: Value) -> Any:
        try:
            return shape.decode(each(value))
        except Exception as error:  # a user's function may raise anything
            reason = type(error).__name__ if shape.secret else str(error)
            shown = HIDDEN if shape.secret else value
            raise WrongValue(f"not a stored {name}: {reason}", shown) from None

    return decode


def maker_of(shape: Nested) -> Callable[[dict[str, Any]], Any]:
    """Return the function that builds an object of the shape.

    The function is the shape's class, unless the shape has a function of its own.
    """
    make: Callable[[dict[str, Any]], Any] | None = getattr(shape, "make", None)
    return make or (lambda values: shape.cls(**values))


def decode_number(text: str) -> int | Decimal:
    """Return a number whose type is not declared: an int if it is whole, otherwise a Decimal.

    DynamoDB does not tell 2 from 2.0, and has more digits than a float.
    """
    try:
        return int(text)
    except ValueError:
        number = Decimal(text)
        return int(number) if number == number.to_integral_value() else number


def decode_anything(value: Value) -> Any:
    """Decode a value without a declared type. Whole numbers become int, others Decimal."""
    [(kind, content)] = value.items()
    match kind:
        case "N":
            return decode_number(content)
        case "B":
            return b64decode(content)
        case "NULL":
            return None
        case "L":
            return [decode_anything(inner) for inner in content]
        case "M":
            return {name: decode_anything(inner) for name, inner in content.items()}
        case "SS":
            return set(content)
        case "NS":
            return set(map(decode_number, content))
        case "BS":
            return set(map(b64decode, content))
    return content


def omits(shape: Shape) -> Callable[[Any], bool]:
    """Return a function that says, for a value of this shape, whether its attribute is left out.

    None and empty sets are left out, unless the shape is ``kept``.
    """
    if isinstance(shape, Maybe) and not shape.kept:
        inner = omits(shape.inner)
        return lambda value: value is None or inner(value)
    if isinstance(shape, SetOf) and not shape.kept:
        return lambda value: isinstance(value, (set, frozenset)) and not value
    return lambda value: False


class _Required:
    def __call__(self) -> Any:
        raise AssertionError("a required field has no value when it is absent")


REQUIRED = _Required()


def absent_value(shape: Shape) -> Callable[[], Any]:
    """Return a function that creates the value of a field if its attribute is missing.

    The function is used for fields without a default. The value is None for an optional type, and
    an empty set for a set type. Any other type needs the attribute, so the marker REQUIRED is
    returned.
    """
    if isinstance(shape, Maybe):
        return lambda: None
    if isinstance(shape, SetOf):
        return frozenset if shape.frozen else set
    return REQUIRED
