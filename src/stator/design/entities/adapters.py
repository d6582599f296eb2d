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
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar, cast

from stator.design.entities.codec import LEFT_OUT, Codec, ObjectMaker, make_codec
from stator.design.entities.conditions import FieldRef
from stator.design.entities.entity import (
    KNOWN,
    Entity,
    EntityField,
    EntityInfo,
    Overrides,
    check_roles,
    stored_shape,
)
from stator.design.entities.entity_versions import OnNewer, check_version
from stator.design.entities.markers import Marker, marker_of
from stator.design.entities.model_libraries import ForeignTypes, Library, library_of
from stator.design.entities.shapes import ShapeReader, as_kept_unless
from stator.design.entities.wire import absent_value
from stator.design.entities.written_keys import IndexKey, KeyTemplate
from stator.errors import DesignError

M = TypeVar("M")


def adapt(
    model: type[M],
    *,
    ident: str | Iterable[str],
    markers: Mapping[str, Any] | None = None,
    key: KeyTemplate | None = None,
    index: Mapping[str, KeyTemplate | IndexKey] | None = None,
    name: str | None = None,
    version: int = 1,
    on_newer: OnNewer = "raise",
    table: str | None = None,
) -> type[M]:
    """Make a model an entity: return a handle with field references such as ``Order.total``.

    ``ident`` names the fields that identify an item. ``markers`` assigns roles to other fields, for
    example ``{"email": unique()}``. ``key``, ``index``, ``name``, ``version``, ``on_newer`` and
    ``table`` have the same meaning as for ``Entity``.
    """
    library = library_of(model)
    roles = {field: Marker("ident") for field in ([ident] if isinstance(ident, str) else ident)}
    for field, given in (markers or {}).items():
        roles[field] = _marker(model, field, given)
    check_version(model.__name__, version, on_newer)
    overrides = Overrides(key, tuple((index or {}).items()), name, version, on_newer, table)
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
    def own_fields(self) -> dict[str, EntityField]:
        entity = self.model.__name__
        reader = ShapeReader(ForeignTypes(), (self.model,))
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
