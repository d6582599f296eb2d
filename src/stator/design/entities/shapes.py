"""Shapes: the Python types of fields, resolved once for the codec and the planner.

A field may have one of these types:
str int float Decimal bool bytes datetime date time UUID Enum Literal
Optional list tuple dict set and dataclasses of all of these
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Protocol, Union
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
        return Maybe(as_epoch(shape.inner), shape.kept)
    return Scalar(Epoch) if shape == Scalar(datetime) else shape


def as_kept(shape: Shape) -> Shape:
    """Return the shape of a value that is always stored, also if it is None or an empty set."""
    if isinstance(shape, Maybe):
        return Maybe(as_kept(shape.inner), kept=True)
    return SetOf(shape.element, shape.frozen, kept=True) if isinstance(shape, SetOf) else shape


def as_kept_unless(shape: Shape, default: Callable[[], Any] | None) -> Shape:
    """Return the shape of a field with this default, or None for a field without a default.

    The field's absent attribute is read as the default. So None, or an empty set, is stored if it
    is not the default.
    """
    if default is None or not isinstance(shape, (Maybe, SetOf)):
        return shape
    value = default()
    empty = value is None if isinstance(shape, Maybe) else value == set()
    return shape if empty else as_kept(shape)


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
    """A set. DynamoDB has no empty sets, so the attribute of an empty one is left out.

    If ``kept``, the empty set is stored as an empty list instead.
    """

    element: Shape
    frozen: bool = False
    kept: bool = False


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
    """An optional type. If a field is None, its attribute is left out.

    If ``kept``, None is stored as NULL instead: in a list or a map, and in a field whose default
    is not None. There, a value that is left out would not be read as None.
    """

    inner: Shape
    kept: bool = False


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


class ModelReader(Protocol):
    """Finds the shapes of a model library's own types, such as pydantic's."""

    def shape(self, annotation: Any, where: str, reader: ShapeReader) -> Shape | None:
        """Return the shape of an annotation, or None if it is no type of the library."""
        ...


@dataclass(frozen=True, slots=True)
class ShapeReader:
    """Reads annotations. ``models`` reads those that belong to a model library.

    ``above`` are the classes that contain the annotation.
    """

    models: ModelReader | None = None
    above: tuple[type, ...] = ()

    def inside(self, cls: type, where: str) -> ShapeReader:
        """Return the reader for the members of a class.

        Raises DesignError if the class contains itself.
        """
        if cls in self.above:
            raise DesignError(
                f"{where}: {cls.__name__} contains itself",
                hint="store the inner objects as separate items, or use Any",
            )
        return ShapeReader(self.models, (*self.above, cls))

    def shape(self, annotation: Any, where: str) -> Shape:
        """Return the shape of an annotation. ``where`` names the field in messages."""
        if annotation in SCALARS:
            return Scalar(annotation)
        if annotation is Any or annotation is object:
            return Anything()
        found = self.models.shape(annotation, where, self) if self.models is not None else None
        if found is not None:
            return found
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (Union, types.UnionType):
            return self._optional(arguments, where)
        if origin is Literal:
            return _choice(arguments, None, where)
        if origin is typing.Annotated:
            return self.shape(arguments[0], where)
        if origin is not None or annotation in (list, tuple, dict, set, frozenset):
            return self._collection(origin or annotation, arguments, where)
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            return _choice(tuple(member.value for member in annotation), annotation, where)
        if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
            members = self.inside(annotation, where).members(annotation, where)
            return Nested(annotation, tuple(members))
        raise _unsupported(annotation, where)

    def members(self, cls: type, where: str) -> list[tuple[str, Shape, bool]]:
        """Return, for each field of a dataclass, its name, its shape and whether it has a default.

        This reader is the one for members of the class.
        """
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
        except NameError as error:
            raise DesignError(
                f"{where}: an annotation names something that is not defined: {error}",
                hint="define or import it in the module of the class",
            ) from None
        found = []
        for field in dataclasses.fields(cls):
            shape = self.shape(hints[field.name], f"{where}.{field.name}")
            default = default_maker(field)
            found.append((field.name, as_kept_unless(shape, default), default is not None))
        return found

    def _optional(self, arguments: tuple[Any, ...], where: str) -> Shape:
        inner = [argument for argument in arguments if argument is not type(None)]
        if len(inner) == 1 and len(inner) < len(arguments):
            return Maybe(self.shape(inner[0], where))
        raise DesignError(
            f"{where}: a union of several types cannot be stored",
            hint="use one type, or that type and None",
        )

    def _collection(self, origin: Any, arguments: tuple[Any, ...], where: str) -> Shape:
        if origin is list:
            return ListOf((self._element(arguments, where),), list)
        if origin is tuple:
            if not arguments or arguments[1:] == (Ellipsis,):
                return ListOf((self._element(arguments, where),), tuple)
            elements = tuple(as_kept(self.shape(argument, where)) for argument in arguments)
            return ListOf(elements, tuple, fixed=True)
        if origin is dict:
            if arguments and arguments[0] is not str:
                raise DesignError(
                    f"{where}: the keys of a map must be str", hint="use dict[str, ...]"
                )
            return MapOf(self._element(arguments[1:], where))
        if origin in (set, frozenset):
            element = self._element(arguments, where)
            if not isinstance(element, (Scalar, Choice)) or element.kind not in ("S", "N", "B"):
                raise DesignError(
                    f"{where}: a set holds strings, numbers or binaries",
                    hint="use a list for members of other types",
                )
            return SetOf(element, origin is frozenset)
        raise _unsupported(origin, where)

    def _element(self, arguments: tuple[Any, ...], where: str) -> Shape:
        return as_kept(self.shape(arguments[0], where)) if arguments else Anything()


def shape_of(annotation: Any, where: str) -> Shape:
    """Return the shape of an annotation. ``where`` names the field in messages."""
    return ShapeReader().shape(annotation, where)


def field_shapes(cls: type, where: str) -> list[tuple[str, Shape, bool]]:
    """Return, for each field of a dataclass, its name, its shape and whether it has a default."""
    return ShapeReader(above=(cls,)).members(cls, where)


def default_maker(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    """Return the function that creates a field's default value, or None if it has no default."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    if field.default is not dataclasses.MISSING:
        default = field.default
        return lambda: default
    return None


def _choice(values: tuple[Any, ...], enum: type[Enum] | None, where: str) -> Choice:
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or next(iter(kinds)) not in (str, int, bool, Decimal):
        raise DesignError(
            f"{where}: the choices must all be str, or all be int",
            hint="use one type for all choices",
        )
    return Choice(values, Scalar(next(iter(kinds))), enum)


def _unsupported(annotation: Any, where: str) -> DesignError:
    shown = getattr(annotation, "__name__", repr(annotation))
    return DesignError(
        f"{where}: {shown} cannot be stored in DynamoDB",
        hint="use str, int, float, Decimal, bool, bytes, datetime, date, time, UUID, an Enum, a "
        "Literal, a dataclass, or lists, dicts, sets and tuples of these",
    )
