"""pydantic and msgspec, as far as entities need them: their models and their own types.

A model may be an entity (``adapters``) or a member of one. Neither library is imported before one
of its types is used.
"""

from __future__ import annotations

import importlib
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol, cast

from stator.design.entities.custom_codecs import CustomCodec
from stator.design.entities.shapes import (
    Coded,
    Nested,
    Scalar,
    Shape,
    ShapeReader,
    as_kept_unless,
)
from stator.design.entities.wire import WrongValue
from stator.errors import DesignError, ItemMismatch


@dataclass(frozen=True, slots=True)
class ForeignTypes:
    """Reads annotations that are models or other types of a model library."""

    def shape(self, annotation: Any, where: str, reader: ShapeReader) -> Shape | None:
        library = _library_behind(annotation)
        if library is None:
            return None
        if library.is_model(annotation):
            return _nested(library, annotation, where, reader.inside(annotation, where))
        plain = library.plain(annotation)
        if plain is not None:
            return Scalar(plain)
        codec = library.codec(annotation)
        return None if codec is None else Coded.of(codec, reader.shape(codec.stored, where))

    def tag(self, annotation: Any) -> tuple[str, Any] | None:
        """Return the attribute name and value of the tag that a library gives to a model.

        Returns None if the annotation has no such tag.
        """
        library = _library_behind(annotation)
        return None if library is None else library.tag(annotation)

    def is_model(self, annotation: Any) -> bool:
        library = _library_behind(annotation)
        return library is not None and library.is_model(annotation)


def _nested(library: Library, model: type, where: str, reader: ShapeReader) -> Nested:
    members = tuple(
        (
            field.name,
            as_kept_unless(reader.shape(field.type, f"{where}.{field.name}"), field.default),
            field.has_default,
        )
        for field in library.fields(model)
    )
    return NestedModel(model, members, library.maker(model, None))


@dataclass(frozen=True, slots=True)
class NestedModel(Nested):
    """A model inside an item, built by its library."""

    make: Callable[[dict[str, Any]], Any]


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
        """Return the Python type of the values of a library's own type: str for ``EmailStr``.

        Returns None if the annotation is no such type.
        """
        ...

    def codec(self, annotation: Any) -> CustomCodec | None:
        """Return the codec of one of the library's own types.

        Returns None if the annotation is no such type.
        """
        ...

    def tag(self, model: Any) -> tuple[str, Any] | None:
        """Return the attribute name and value of the tag that the library gives to a model.

        The tag tells the models of a union apart. Returns None if the model has no tag.
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

    def codec(self, annotation: Any) -> CustomCodec | None:
        if not hasattr(annotation, "__get_pydantic_core_schema__"):
            return None
        secret = {self.module.SecretStr: str, self.module.SecretBytes: bytes}.get(annotation)
        if secret is not None:
            return CustomCodec(
                annotation, annotation.get_secret_value, annotation, secret, secret=True
            )
        adapter = self.module.TypeAdapter(annotation)
        is_text = adapter.json_schema(mode="serialization").get("type") == "string"
        return CustomCodec(
            annotation,
            lambda value: adapter.dump_python(value, mode="json"),
            adapter.validate_python,
            str if is_text else Any,
        )

    def tag(self, model: Any) -> tuple[str, Any] | None:
        return None

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

    The result reports the first problem that pydantic found. For an entity, it is an ItemMismatch.
    For a nested model, where ``entity`` is None, it is a WrongValue. ``names`` maps each field to
    the name that pydantic uses in errors.
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

    def codec(self, annotation: Any) -> CustomCodec | None:
        return None

    def tag(self, model: Any) -> tuple[str, Any] | None:
        config = model.__struct_config__
        return None if config.tag is None else (config.tag_field, config.tag)

    def maker(self, model: type, entity: str | None) -> Callable[[dict[str, Any]], Any]:
        return lambda values: model(**values)


_LIBRARIES: dict[str, Callable[[], Library]] = {"pydantic": _Pydantic, "msgspec": _Msgspec}


def _library_behind(annotation: Any) -> Library | None:
    """Return the library that defines a type or one of its bases, or None."""
    bases = annotation.__mro__ if isinstance(annotation, type) else ()
    for base in bases:
        name = base.__module__.partition(".")[0].removesuffix("_core")
        if name in _LIBRARIES:
            return _LIBRARIES[name]()
    if hasattr(annotation, "__get_pydantic_core_schema__"):
        return _Pydantic()
    return None


def library_of(model: Any) -> Library:
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
