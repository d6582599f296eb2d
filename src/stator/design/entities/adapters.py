"""pydantic v2 and msgspec models as entities.

    class OrderModel(BaseModel):
        customer: str
        order_id: str
        total: Decimal

    Order = adapt(OrderModel, ident=("customer", "order_id"))

    find(Order).where(Order.customer == "c1", Order.total > 10)

The model stays unchanged. Its class cannot carry field references (pydantic's metaclass hides them,
msgspec keeps its slots there), so ``adapt`` returns a handle that does. The handle is used in place
of the model everywhere: designs and patterns take it, and calling it creates a model. Reads return
models, built and validated by their own library. Type checkers see the handle as the model's class.

Attributes have the Python names of the fields. Aliases are for JSON and are not used. Neither
library is imported before one of its models is adapted.
"""

from __future__ import annotations

import dataclasses
import importlib
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any, Protocol, TypeVar, cast

from stator.design.entities.codec import LEFT_OUT, Codec, ObjectMaker, make_codec
from stator.design.entities.conditions import FieldRef
from stator.design.entities.entity import (
    KNOWN,
    Entity,
    EntityField,
    EntityInfo,
    KeyTemplate,
    Overrides,
    check_roles,
    stored_shape,
)
from stator.design.entities.entity_versions import OnNewer, check_version
from stator.design.entities.markers import Marker, marker_of
from stator.design.entities.shapes import Nested, Scalar, Shape, ShapeReader, as_kept_unless
from stator.design.entities.wire import WrongValue, absent_value
from stator.errors import DesignError, ItemMismatch

M = TypeVar("M")


def adapt(
    model: type[M],
    *,
    ident: str | Iterable[str],
    markers: Mapping[str, Any] | None = None,
    key: KeyTemplate | None = None,
    index: Mapping[str, KeyTemplate] | None = None,
    name: str | None = None,
    version: int = 1,
    on_newer: OnNewer = "raise",
) -> type[M]:
    """Make a model an entity: return a handle with field references such as ``Order.total``.

    ``ident`` names the fields that identify an item. ``markers`` assigns roles to other fields, for
    example ``{"email": unique()}``. ``key``, ``index``, ``name``, ``version`` and ``on_newer``
    have the same meaning as for ``Entity``.
    """
    library = _library_of(model)
    roles = {field: Marker("ident") for field in ([ident] if isinstance(ident, str) else ident)}
    for field, given in (markers or {}).items():
        roles[field] = _marker(model, field, given)
    check_version(model.__name__, version, on_newer)
    overrides = Overrides(key, tuple((index or {}).items()), name, version, on_newer)
    known = KNOWN.get(model)
    if isinstance(known, AdaptedInfo) and (known.roles, known.overrides) == (roles, overrides):
        return cast(
            "type[M]", known.cls
        )  # a design file that is loaded again gets the handle it had
    made = AdaptedInfo(model, library, roles, overrides)
    KNOWN[made.cls] = KNOWN[model] = made
    return cast("type[M]", made.cls)


def _marker(model: type, field: str, given: Any) -> Marker:
    found = marker_of(given) if isinstance(given, dataclasses.Field) else None
    if found is None:
        raise DesignError(
            f"{model.__name__}.{field}: {given!r} is not a marker",
            hint='for example, markers={"email": unique()}',
        )
    return found


class _Handle(type):
    """The metaclass of handles.

    It makes ``isinstance(order, Order)`` true for the model's instances.
    """

    __model__: type

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__model__)


class AdaptedInfo(EntityInfo):
    """The ``EntityInfo`` of an adapted model. ``cls`` is the model's handle."""

    def __init__(
        self, model: type, library: Library, roles: dict[str, Marker], overrides: Overrides
    ) -> None:
        self.model = model
        self.library = library
        self.roles = roles
        self._overrides = overrides
        self._declared = {field.name: field for field in library.fields(model)}
        for field in roles.keys() - self._declared.keys():
            raise DesignError(
                f"{model.__name__} has no field {field!r}",
                hint=f"its fields are {', '.join(self._declared)}",
            )
        super().__init__(self._handle())

    def _handle(self) -> type[Any]:
        model = self.model

        def make(cls: type, *args: Any, **kwargs: Any) -> Any:
            return model(*args, **kwargs)

        body = {
            "__new__": make,
            "__model__": model,
            "__module__": model.__module__,
            "__doc__": model.__doc__,
        }
        handle = _Handle(model.__name__, (Entity,), body)
        for name in self._declared:
            setattr(handle, name, FieldRef(handle, (name,)))
        return handle

    @property
    def overrides(self) -> Overrides:
        return self._overrides

    @cached_property
    def fields(self) -> dict[str, EntityField]:
        entity = self.model.__name__
        reader = ShapeReader(_Models(self.library), (self.model,))
        fields = {}
        for name, field in self._declared.items():
            shape = as_kept_unless(reader.shape(field.type, f"{entity}.{name}"), field.default)
            marker = self.roles.get(name)
            fields[name] = EntityField(name, stored_shape(shape, marker), marker, field.has_default)
        check_roles(entity, fields)
        self.check_reserved(fields)
        return fields

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """The names of the identity fields, in the order of ``ident``."""
        names = tuple(name for name, marker in self.roles.items() if marker.role == "ident")
        if not names:
            raise DesignError(
                f"{self.name} has no identity", hint='name the fields, for example ident="order_id"'
            )
        return names

    def default_maker(self, field: str) -> Callable[[], Any] | None:
        return self._declared[field].default

    @property
    def is_frozen(self) -> bool:
        return self.library.is_frozen(self.model)

    def replaced(self, made: Any, changes: Mapping[str, Any]) -> Any:
        return self.library.replaced(made, changes)

    @cached_property
    def codec(self) -> Codec:
        absent = {
            name: LEFT_OUT if field.has_default else absent_value(field.shape)
            for name, field in self.fields.items()
        }
        maker = ObjectMaker(self.library.maker(self.model, self.name), absent)
        return make_codec(self.name, self.cls, self.shapes, maker, versions=self.shape_version)


# --- shapes -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Models:
    """Reads annotations that contain models of one library."""

    library: Library

    def shape(self, annotation: Any, where: str, reader: ShapeReader) -> Shape | None:
        if self.library.is_model(annotation):
            return self._nested(annotation, where, reader.inside(annotation, where))
        plain = self.library.plain(annotation)
        return None if plain is None else Scalar(plain)

    def _nested(self, model: type, where: str, reader: ShapeReader) -> Nested:
        members = tuple(
            (
                field.name,
                as_kept_unless(reader.shape(field.type, f"{where}.{field.name}"), field.default),
                field.has_default,
            )
            for field in self.library.fields(model)
        )
        return NestedModel(model, members, self.library.maker(model, None))


@dataclass(frozen=True, slots=True)
class NestedModel(Nested):
    """A model inside an item, built by its library."""

    make: Callable[[dict[str, Any]], Any]


# --- the libraries ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelField:
    """A field of a model.

    ``default`` is a function that creates the field's default value, or None if the field is
    required.
    """

    name: str
    type: Any
    default: Callable[[], Any] | None

    @property
    def has_default(self) -> bool:
        return self.default is not None


class Library(Protocol):
    """The interface that this module needs from a model library."""

    def is_model(self, annotation: Any) -> bool: ...

    def fields(self, model: type) -> list[ModelField]: ...

    def plain(self, annotation: Any) -> type | None:
        """Return the Python type behind one of the library's own types.

        Returns None if the annotation is no such type.
        """
        ...

    def maker(self, model: type, entity: str | None) -> Callable[[dict[str, Any]], Any]:
        """Return a function that builds an instance of a model from values by field name.

        ``entity`` is the name of the entity in errors, or None for a nested model.
        """
        ...

    def is_frozen(self, model: type) -> bool: ...

    def replaced(self, made: Any, changes: Mapping[str, Any]) -> Any: ...


class _Pydantic:
    _PLAIN: typing.ClassVar[dict[str, type]] = {
        "EmailStr": str, "AwareDatetime": datetime, "PastDatetime": datetime,
        "FutureDatetime": datetime, "PastDate": date, "FutureDate": date,
    }  # fmt: skip

    def __init__(self) -> None:
        self.module = _imported("pydantic")
        if not hasattr(self.module.BaseModel, "model_validate"):
            raise DesignError(
                f"pydantic {self.module.VERSION} is too old", hint="pip install 'stator[pydantic]'"
            )

    def is_model(self, annotation: Any) -> bool:
        return isinstance(annotation, type) and issubclass(annotation, self.module.BaseModel)

    def fields(self, model: type) -> list[ModelField]:
        declared: dict[str, Any] = cast("Any", model).model_fields
        return [
            ModelField(name, field.annotation, self._default(field))
            for name, field in declared.items()
        ]

    def _default(self, field: Any) -> Callable[[], Any] | None:
        return None if field.is_required() else lambda: field.get_default(call_default_factory=True)

    def is_frozen(self, model: type) -> bool:
        return bool(cast("Any", model).model_config.get("frozen"))

    def replaced(self, made: Any, changes: Mapping[str, Any]) -> Any:
        return made.model_copy(update=dict(changes))

    def plain(self, annotation: Any) -> type | None:
        ours = getattr(annotation, "__module__", "").startswith("pydantic.")
        return self._PLAIN.get(getattr(annotation, "__name__", "")) if ours else None

    def maker(self, model: type, entity: str | None) -> Callable[[dict[str, Any]], Any]:
        made: Any = model
        names = {name: _alias(field) or name for name, field in made.model_fields.items()}
        renamed = any(name != alias for name, alias in names.items())
        validate, refused = made.model_validate, self.module.ValidationError

        def make(values: dict[str, Any]) -> Any:
            given = {names[name]: value for name, value in values.items()} if renamed else values
            try:
                return validate(given)
            except refused as error:
                raise _refusal(entity, error, names, values) from None

        return make


def _alias(field: Any) -> str | None:
    """Return the alias under which pydantic expects a field's value, or None.

    None means that the field has no alias, or none that is a plain name.
    """
    alias = field.validation_alias or field.alias
    choices = [choice for choice in getattr(alias, "choices", [alias]) if isinstance(choice, str)]
    return choices[0] if choices else None


def _refusal(
    entity: str | None, error: Any, names: dict[str, str], values: dict[str, Any]
) -> Exception:
    """Return the error to raise in place of a pydantic ValidationError.

    It reports the first problem that pydantic found. It is an ItemMismatch for an entity, and a
    WrongValue for a nested model, where ``entity`` is None. ``names`` maps each field to the name
    that pydantic uses in errors.
    """
    first = error.errors(include_url=False)[0]
    path = [str(step) for step in first["loc"]]
    field = next((name for name, alias in names.items() if path[:1] == [alias]), "?")
    at, value = ".".join([field, *path[1:]]), first.get("input", values.get(field))
    return (
        WrongValue(f"{at}: {first['msg']}", value)
        if entity is None
        else ItemMismatch(entity, at, first["msg"], value)
    )


class _Msgspec:
    def __init__(self) -> None:
        self.module = _imported("msgspec")

    def is_model(self, annotation: Any) -> bool:
        return isinstance(annotation, type) and issubclass(annotation, self.module.Struct)

    def fields(self, model: type) -> list[ModelField]:
        return [
            ModelField(field.name, field.type, self._default(field))
            for field in self.module.structs.fields(model)
        ]

    def _default(self, field: Any) -> Callable[[], Any] | None:
        if field.required:
            return None
        no_default = self.module.NODEFAULT
        return field.default_factory if field.default is no_default else lambda: field.default

    def is_frozen(self, model: type) -> bool:
        return bool(cast("Any", model).__struct_config__.frozen)

    def replaced(self, made: Any, changes: Mapping[str, Any]) -> Any:
        return self.module.structs.replace(made, **changes)

    def plain(self, annotation: Any) -> type | None:
        return None

    def maker(self, model: type, entity: str | None) -> Callable[[dict[str, Any]], Any]:
        return lambda values: model(**values)


_LIBRARIES: dict[str, Callable[[], Library]] = {"pydantic": _Pydantic, "msgspec": _Msgspec}


def _library_of(model: Any) -> Library:
    shown = getattr(model, "__name__", repr(model))
    modules = [base.__module__ for base in model.__mro__] if isinstance(model, type) else []
    for name, library in _LIBRARIES.items():
        if any(module == name or module.startswith(f"{name}.") for module in modules):
            found = library()
            if found.is_model(model):
                return found
            raise DesignError(
                f"{shown} is not a model of {name} that can be stored", hint=_ACCEPTED
            )
    raise DesignError(
        f"{shown} is not a model",
        hint=f"{_ACCEPTED}; a dataclass becomes an entity as `class {shown}(Entity)`",
    )


_ACCEPTED = "adapt() takes a pydantic v2 BaseModel or a msgspec Struct"


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise DesignError(
            f"{name} is not installed", hint=f"pip install 'stator[{name}]'"
        ) from None
