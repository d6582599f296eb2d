"""Shapes: the Python types of fields, resolved once for the codec and the planner.

A field may have one of these types:
str int float Decimal bool bytes datetime date time timedelta UUID Enum Flag Literal
Path, IP addresses, types with a registered codec, types of pydantic
Optional list tuple dict set TypedDict, dataclasses and models of all of these, tagged unions
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum, Flag
from typing import Any, Generic, Literal, Protocol, TypeVar, Union
from uuid import UUID

from stator.design.entities.custom_codecs import CustomCodec, codec_for
from stator.design.entities.packed_numbers import PackedType, Packing
from stator.errors import DesignError

CLASS_TAG = "_class"
"""The stored member that names the class of a union's value, if no Literal field does."""


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
    """Return the shape of a value that is always stored, even if it is None or an empty set."""
    if isinstance(shape, Maybe):
        return Maybe(as_kept(shape.inner), kept=True)
    return SetOf(shape.element, shape.frozen, kept=True) if isinstance(shape, SetOf) else shape


def as_kept_unless(shape: Shape, default: Callable[[], Any] | None) -> Shape:
    """Return the shape of a field whose default value ``default()`` creates.

    ``default`` is None for a field without a default. A missing attribute is read as the default.
    So None and empty sets may be left out only if they are the default; otherwise the returned
    shape stores them (``as_kept``).
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
    is_literal: bool = False

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
    """A set. DynamoDB has no empty sets, so the attribute of an empty set is left out.

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
class TypedMap:
    """A TypedDict: a map with known members.

    ``fields`` holds the name and shape of each member, and whether the member is required.
    """

    cls: type
    fields: tuple[tuple[str, Shape, bool], ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """A union of classes, told apart by the value of the member ``tag``.

    ``members`` has the tag values of each class. ``is_added`` says that the tag is not a field of
    the classes, so that the codec adds it.
    """

    tag: str
    members: tuple[tuple[Any, Nested], ...]
    is_added: bool


@dataclass(frozen=True, slots=True)
class Coded:
    """A type with a codec of its own, stored as values of the shape ``stored``."""

    python: Any
    stored: Shape
    encode: Callable[[Any], Any] = dataclasses.field(repr=False, compare=False)
    decode: Callable[[Any], Any] = dataclasses.field(repr=False, compare=False)
    secret: bool = False

    @classmethod
    def of(cls, codec: CustomCodec, stored: Shape) -> Coded:
        return cls(codec.python, stored, codec.encode, codec.decode, codec.secret)

    @property
    def kind(self) -> str:
        """The DynamoDB type of the stored values, or an empty text if they are not scalars."""
        return self.stored.kind if isinstance(self.stored, Scalar) else ""


@dataclass(frozen=True, slots=True)
class Anything:
    """``Any``: every value that DynamoDB can store."""


@dataclass(frozen=True, slots=True)
class Maybe:
    """An optional type. If a field is None, its attribute is left out.

    If ``kept``, None is stored as NULL instead. This is so in lists and maps, and in fields whose
    default is not None: an absent attribute would be read as the default.
    """

    inner: Shape
    kept: bool = False


Shape = Union[Scalar, Choice, Coded, ListOf, MapOf, SetOf, Nested, TypedMap, OneOf, Anything, Maybe]


def packed_shape(shape: Shape, packing: Packing, where: str) -> Shape:
    """Return the shape of a number or of a list of numbers that is stored as bytes."""
    if isinstance(shape, Maybe):
        return Maybe(packed_shape(shape.inner, packing, where), shape.kept)
    is_list = isinstance(shape, ListOf) and not shape.fixed
    element = shape.elements[0] if isinstance(shape, ListOf) and is_list else shape
    wanted = float if packing.kind.startswith("float") else int
    if element != Scalar(wanted):
        raise DesignError(
            f"{where}: packed({packing.kind!r}) needs the type {wanted.__name__}, or a list or "
            f"tuple of {wanted.__name__} values",
            hint=f'declare it as Annotated[list[{wanted.__name__}], packed("{packing.kind}")]',
        )
    container = shape.container if isinstance(shape, ListOf) else None
    made = PackedType(packing, container, wanted)
    return Coded(made, Scalar(bytes), made.encode, made.decode)


def is_packed(shape: Shape | None) -> bool:
    inner = shape.inner if isinstance(shape, Maybe) else shape
    return isinstance(inner, Coded) and isinstance(inner.python, PackedType)


def described_type(shape: Shape) -> str:
    """Return the name of a shape, and for packed numbers the bytes that packing saves."""
    inner = shape.inner if isinstance(shape, Maybe) else shape
    if isinstance(inner, Coded) and isinstance(inner.python, PackedType):
        return inner.python.described
    return type_name(shape)


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
        case Nested(cls, _) | TypedMap(cls, _):
            return cls.__name__
        case OneOf(_, members):
            return " or ".join(dict.fromkeys(type_name(member) for _, member in members))
        case Coded(python):
            return str(getattr(python, "__name__", python))
        case Anything():
            return "any"
    raise AssertionError(shape)


class ModelReader(Protocol):
    """Finds the shapes of a model library's own types, such as pydantic's."""

    def shape(self, annotation: Any, where: str, reader: ShapeReader) -> Shape | None:
        """Return the shape of an annotation, or None if its type is not from the library."""
        ...

    def is_model(self, annotation: Any) -> bool: ...

    def tag(self, annotation: Any) -> tuple[str, Any] | None:
        """Return the attribute name and value of the tag that the library gives to a model.

        Returns None if the annotation has no such tag.
        """
        ...


@dataclass(frozen=True, slots=True)
class ShapeReader:
    """Turns type annotations into shapes.

    ``models`` reads the annotations of model libraries such as pydantic. ``above`` are the classes
    that contain the annotation.
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
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Annotated:
            packing = next((each for each in arguments[1:] if isinstance(each, Packing)), None)
            inner = self.shape(arguments[0], where)
            return inner if packing is None else packed_shape(inner, packing, where)
        if origin in (Union, types.UnionType):
            return self._union(arguments, where)
        if origin is Literal:
            return _literal(arguments, where)
        if isinstance(annotation, type) and origin is None and annotation in SCALARS:
            return Scalar(annotation)
        if annotation is Any or annotation is object:
            return Anything()
        codec = codec_for(annotation) if origin is None else None
        if codec is not None:
            return Coded.of(codec, self.shape(codec.stored, where))
        found = self.models.shape(annotation, where, self) if self.models is not None else None
        if found is not None:
            return found
        alias_of = getattr(annotation, "__supertype__", getattr(annotation, "__value__", None))
        if alias_of is not None and not isinstance(annotation, type):  # NewType, `type X = ...`
            return self.shape(alias_of, where)
        if isinstance(annotation, TypeVar):
            raise DesignError(
                f"{where}: the type parameter {annotation.__name__} has no type here",
                hint="name the type: `Page[int]` for a field, `class Order(Base[int])` for a base",
            )
        if isinstance(origin, type) and dataclasses.is_dataclass(origin):
            return self._nested(origin, annotation, where)
        if typing.is_typeddict(annotation):
            return self._typed_map(annotation, where)
        if origin is not None or annotation in (list, tuple, dict, set, frozenset):
            return self._collection(origin or annotation, arguments, where)
        if isinstance(annotation, type) and issubclass(annotation, Flag):
            return Coded(annotation, Scalar(int), lambda value: value.value, annotation)
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            return _choice(tuple(member.value for member in annotation), annotation, where)
        if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
            return self._nested(annotation, annotation, where)
        raise _unsupported(annotation, where)

    def _nested(self, cls: type, annotation: Any, where: str) -> Nested:
        """Return the shape of a dataclass. ``annotation`` has its type arguments, if any."""
        return Nested(cls, tuple(self.inside(cls, where).members(annotation, where)))

    def members(self, annotation: Any, where: str) -> list[tuple[str, Shape, bool]]:
        """Return, for each field of a dataclass, its name, its shape and whether it has a default.

        Call this method on the reader that ``inside`` returns for the class.
        """
        cls = typing.get_origin(annotation) or annotation
        hints = _hints(annotation, where)
        found = []
        for field in dataclasses.fields(cls):
            shape = self.shape(hints[field.name], f"{where}.{field.name}")
            default = default_maker(field)
            found.append((field.name, as_kept_unless(shape, default), default is not None))
        return found

    def _typed_map(self, cls: Any, where: str) -> TypedMap:
        reader, members = self.inside(cls, where), []
        for name, hint in _hints(cls, where).items():
            required = name in cls.__required_keys__
            if typing.get_origin(hint) in (typing.Required, typing.NotRequired):
                required = typing.get_origin(hint) is typing.Required
                [hint] = typing.get_args(hint)
            members.append((name, as_kept(reader.shape(hint, f"{where}.{name}")), required))
        return TypedMap(cls, tuple(members))

    def _union(self, arguments: tuple[Any, ...], where: str) -> Shape:
        inner = [argument for argument in arguments if argument is not type(None)]
        shape = self.shape(inner[0], where) if len(inner) == 1 else self._tagged_union(inner, where)
        return Maybe(shape) if len(inner) < len(arguments) else shape

    def _tagged_union(self, annotations: list[Any], where: str) -> Shape:
        shapes = [self.shape(each, where) for each in annotations if self._is_record(each)]
        records = [shape for shape in shapes if isinstance(shape, Nested)]
        if len(records) < len(annotations):
            raise DesignError(
                f"{where}: a union of several types cannot be stored",
                hint="use one type, that type and None, or several dataclasses or models",
            )
        tags = [self.models.tag(record.cls) if self.models else None for record in records]
        if all(tags) and len({tag[0] for tag in tags if tag is not None}) == 1:
            pairs = [(tag[1], record) for tag, record in zip(tags, records) if tag is not None]
            return _one_of(tags[0][0] if tags[0] else "", pairs, where, is_added=True)
        tag = _tag_field(records)
        if tag is None:
            named = [(record.cls.__name__, record) for record in records]
            return _one_of(CLASS_TAG, named, where, is_added=True)
        values = [(value, each) for each in records for value in _literal_values(each, tag)]
        return _one_of(tag, values, where, is_added=False)

    def _is_record(self, annotation: Any) -> bool:
        cls = typing.get_origin(annotation) or annotation
        if typing.get_origin(annotation) is typing.Annotated:
            return self._is_record(typing.get_args(annotation)[0])
        return isinstance(cls, type) and (
            dataclasses.is_dataclass(cls) or (self.models is not None and self.models.is_model(cls))
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
            if arguments and self.shape(arguments[0], where) != Scalar(str):
                raise DesignError(
                    f"{where}: the keys of a map must be str", hint="use dict[str, ...]"
                )
            return MapOf(self._element(arguments[1:], where))
        if origin in (set, frozenset):
            element = self._element(arguments, where)
            kind = element.kind if isinstance(element, (Scalar, Choice, Coded)) else ""
            if kind not in ("S", "N", "B"):
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


def field_shapes(
    cls: type, where: str, models: ModelReader | None = None
) -> list[tuple[str, Shape, bool]]:
    """Return, for each field of a dataclass, its name, its shape and whether it has a default."""
    return ShapeReader(models, (cls,)).members(cls, where)


def _hints(annotation: Any, where: str) -> dict[str, Any]:
    """Return the annotations of a class by field name, with type parameters replaced.

    Raises DesignError if an annotation uses an undefined name.
    """
    cls = typing.get_origin(annotation) or annotation
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise DesignError(
            f"{where}: an annotation names something that is not defined: {error}",
            hint="define or import it in the module of the class",
        ) from None
    known = _type_arguments(cls, typing.get_args(annotation))
    owners = {
        name: base for base in reversed(cls.__mro__) for name in inspect.get_annotations(base)
    }
    return {name: _filled(hint, known.get(owners.get(name), {})) for name, hint in hints.items()}


def _type_arguments(cls: Any, arguments: tuple[Any, ...]) -> dict[Any, dict[Any, Any]]:
    """Return the types that each generic base of a class has for its type parameters."""
    mine = dict(zip(getattr(cls, "__parameters__", ()), arguments))
    found = {cls: mine}
    for base in getattr(cls, "__orig_bases__", cls.__bases__):
        origin = typing.get_origin(base) or base
        if origin not in (Generic, Protocol, object) and isinstance(origin, type):
            filled = tuple(_filled(each, mine) for each in typing.get_args(base))
            found = _type_arguments(origin, filled) | found
    return found


def _filled(annotation: Any, known: dict[Any, Any]) -> Any:
    """Return an annotation with type parameters replaced by the types that are known for them."""
    if isinstance(annotation, TypeVar):
        return known.get(annotation, annotation)
    parameters = getattr(annotation, "__parameters__", ())
    if isinstance(annotation, type) or not parameters or not known:
        return annotation
    return annotation[tuple(known.get(each, each) for each in parameters)]


def _tag_field(records: list[Nested]) -> str | None:
    """Return the Literal field whose values tell the classes apart, or None."""
    for name, _, _ in records[0].fields:
        values = [value for record in records for value in _literal_values(record, name)]
        if all(_literal_values(record, name) for record in records) and len(set(values)) == len(
            values
        ):
            return name
    return None


def _literal_values(record: Nested, name: str) -> tuple[Any, ...]:
    """Return the values of a field whose type is a Literal, or nothing for any other field."""
    shape = next((shape for field, shape, _ in record.fields if field == name), None)
    return shape.values if isinstance(shape, Choice) and shape.is_literal else ()


def _one_of(tag: str, members: list[tuple[Any, Nested]], where: str, *, is_added: bool) -> OneOf:
    values = [value for value, _ in members]
    clash = next((each for _, each in members if is_added and _has(each, tag)), None)
    if len(set(values)) < len(values) or clash is not None:
        raise DesignError(
            f"{where}: the classes of the union cannot be told apart by {tag!r}",
            hint="give each class a field such as `kind: Literal['cat'] = 'cat'`",
        )
    return OneOf(tag, tuple(members), is_added)


def _has(record: Nested, name: str) -> bool:
    return any(field == name for field, _, _ in record.fields)


def default_maker(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    """Return the function that creates a field's default value, or None if it has no default."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    if field.default is not dataclasses.MISSING:
        default = field.default
        return lambda: default
    return None


def _literal(values: tuple[Any, ...], where: str) -> Choice:
    enum = type(values[0])
    if issubclass(enum, Enum) and all(type(value) is enum for value in values):
        choice = _choice(tuple(value.value for value in values), enum, where)
        return dataclasses.replace(choice, is_literal=True)
    return dataclasses.replace(_choice(values, None, where), is_literal=True)


def _choice(values: tuple[Any, ...], enum: type[Enum] | None, where: str) -> Choice:
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or next(iter(kinds)) not in (str, int, bool, Decimal):
        raise DesignError(
            f"{where}: the choices must all be str, or all be int",
            hint="use one type for all choices, or register_codec() for an Enum of other values",
        )
    return Choice(values, Scalar(next(iter(kinds))), enum)


def _unsupported(annotation: Any, where: str) -> DesignError:
    shown = getattr(annotation, "__name__", repr(annotation))
    return DesignError(
        f"{where}: {shown} cannot be stored in DynamoDB",
        hint="use str, int, float, Decimal, bool, bytes, datetime, date, time, timedelta, UUID, an "
        "Enum, a Literal, a dataclass, a TypedDict, or lists, dicts, sets and tuples of these; or "
        f"say how it is stored: register_codec({shown}, encode=..., decode=..., stored=str)",
    )
