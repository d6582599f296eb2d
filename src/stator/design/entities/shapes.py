"""Shapes: the Python types of fields, resolved once for the codec and the planner.

A field may have one of these types:
str int float Decimal bool bytes datetime date time UUID Enum Literal
Optional list tuple dict set and dataclasses of all of these
"""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Union
from uuid import UUID

from stator.errors import DesignError


class Epoch(datetime):
    """Marks a datetime that is stored as whole seconds since 1970, as DynamoDB's TTL requires."""


SCALARS: dict[type, str] = {
    str: "S",
    int: "N",
    float: "N",
    Decimal: "N",
    bool: "BOOL",
    bytes: "B",
    datetime: "S",
    Epoch: "N",
    date: "S",
    time: "S",
    UUID: "S",
}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar type, such as str, Decimal or datetime. ``python`` is one of SCALARS."""

    python: type

    @property
    def kind(self) -> str:
        return SCALARS[self.python]


def as_epoch(shape: Shape) -> Shape:
    """Return the shape with its datetimes stored as epoch seconds."""
    if isinstance(shape, Maybe):
        return Maybe(as_epoch(shape.inner))
    return Scalar(Epoch) if shape == Scalar(datetime) else shape


@dataclass(frozen=True, slots=True)
class Choice:
    """An Enum or a Literal: one of a few values, all of one scalar type."""

    values: tuple[Any, ...]
    scalar: Scalar
    enum: type[Enum] | None = None

    @property
    def kind(self) -> str:
        return self.scalar.kind


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list or a tuple, as ``container`` says.

    A tuple of fixed length has a shape for each element.
    """

    elements: tuple[Shape, ...]
    container: type
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class MapOf:
    values: Shape


@dataclass(frozen=True, slots=True)
class SetOf:
    element: Shape
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class Nested:
    """A dataclass inside an item: a map with known members."""

    cls: type
    fields: tuple[tuple[str, Shape, bool], ...]


@dataclass(frozen=True, slots=True)
class Anything:
    """``Any``: every value that DynamoDB can store."""


@dataclass(frozen=True, slots=True)
class Maybe:
    """An optional type. If a field is None, its attribute is left out."""

    inner: Shape


Shape = Union[Scalar, Choice, ListOf, MapOf, SetOf, Nested, Anything, Maybe]


def type_name(shape: Shape) -> str:
    """Return a short, readable name of a shape."""
    match shape:
        case Maybe(inner):
            return f"{type_name(inner)}?"
        case Scalar(python):
            return python.__name__
        case Choice(_, scalar, enum):
            return scalar.python.__name__ if enum is None else enum.__name__
        case ListOf(elements, _, fixed):
            return "tuple" if fixed else f"{type_name(elements[0])}[]"
        case MapOf():
            return "map"
        case SetOf(element):
            return f"set of {type_name(element)}"
        case Nested(cls, _):
            return cls.__name__
        case Anything():
            return "any"
    raise AssertionError(shape)


def shape_of(annotation: Any, where: str) -> Shape:
    """Return the shape of an annotation. ``where`` names the field in messages."""
    if annotation in SCALARS:
        return Scalar(annotation)
    if annotation is Any or annotation is object:
        return Anything()
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType):
        return _optional(arguments, where)
    if origin is Literal:
        return _choice(arguments, None, where)
    if origin is typing.Annotated:
        return shape_of(arguments[0], where)
    if origin is not None or annotation in (list, tuple, dict, set, frozenset):
        return _collection(origin or annotation, arguments, where)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice(tuple(member.value for member in annotation), annotation, where)
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return nested_shape(annotation, where)
    raise _unsupported(annotation, where)


def _optional(arguments: tuple[Any, ...], where: str) -> Shape:
    inner = [argument for argument in arguments if argument is not type(None)]
    if len(inner) == 1 and len(inner) < len(arguments):
        return Maybe(shape_of(inner[0], where))
    raise DesignError(
        f"{where}: a union of several types cannot be stored",
        hint="use one type, or that type and None",
    )


def _choice(values: tuple[Any, ...], enum: type[Enum] | None, where: str) -> Choice:
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or next(iter(kinds)) not in (str, int, bool, Decimal):
        raise DesignError(
            f"{where}: the choices must all be str, or all be int",
            hint="use one type for all choices",
        )
    return Choice(values, Scalar(next(iter(kinds))), enum)


def _collection(origin: Any, arguments: tuple[Any, ...], where: str) -> Shape:
    if origin is list:
        return ListOf((_element(arguments, where),), list)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return ListOf((shape_of(arguments[0], where),), tuple)
        if not arguments:
            return ListOf((Anything(),), tuple)
        return ListOf(tuple(shape_of(argument, where) for argument in arguments), tuple, fixed=True)
    if origin is dict:
        if arguments and arguments[0] is not str:
            raise DesignError(f"{where}: the keys of a map must be str", hint="use dict[str, ...]")
        return MapOf(shape_of(arguments[1], where) if arguments else Anything())
    if origin in (set, frozenset):
        element = _element(arguments, where)
        if not isinstance(element, (Scalar, Choice)) or element.kind not in ("S", "N", "B"):
            raise DesignError(
                f"{where}: a set holds strings, numbers or binaries",
                hint="use a list for members of other types",
            )
        return SetOf(element, origin is frozenset)
    raise _unsupported(origin, where)


def _element(arguments: tuple[Any, ...], where: str) -> Shape:
    return shape_of(arguments[0], where) if arguments else Anything()


def nested_shape(cls: type, where: str) -> Nested:
    return Nested(cls, tuple(field_shapes(cls, where)))


def field_shapes(cls: type, where: str) -> list[tuple[str, Shape, bool]]:
    """Return, for each field of a dataclass, its name, its shape and whether it has a default."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise DesignError(
            f"{where}: an annotation names something that is not defined: {error}",
            hint="define or import it in the module of the class",
        ) from None
    shapes = []
    for field in dataclasses.fields(cls):
        missing_ok = (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
        )
        shapes.append(
            (field.name, shape_of(hints[field.name], f"{where}.{field.name}"), missing_ok)
        )
    return shapes


def _unsupported(annotation: Any, where: str) -> DesignError:
    shown = getattr(annotation, "__name__", repr(annotation))
    return DesignError(
        f"{where}: {shown} cannot be stored in DynamoDB",
        hint="use str, int, float, Decimal, bool, bytes, datetime, date, time, UUID, an Enum, a "
        "Literal, a dataclass, or lists, dicts, sets and tuples of these",
    )
