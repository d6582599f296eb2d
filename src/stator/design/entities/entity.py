"""Entities: dataclasses whose classes know their fields.

    class Order(Entity):
        order_id: str = ident()
        total: Decimal

``Order(order_id="o1", total=Decimal(5))`` is a plain dataclass instance with native attribute
access. ``Order.total`` on the class is a ``FieldRef`` that builds conditions. PEP 681 tells type
checkers all of it, without a plugin.

Shapes and codecs are derived from the annotations on first use, not when the class is created.
Annotations may name classes that come later in the module.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Final, dataclass_transform
from weakref import WeakKeyDictionary

from stator.design.entities.codec import Codec, make_codec, with_fields
from stator.design.entities.conditions import FieldRef
from stator.design.entities.entity_versions import (
    VERSION_ATTRIBUTE,
    F,
    OnNewer,
    ShapeVersion,
    check_version,
)
from stator.design.entities.markers import (
    Marker,
    counter,
    created,
    ident,
    large,
    marker_of,
    soft_delete,
    stored,
    stored_name,
    ttl,
    unique,
    updated,
    version,
    write_token,
)
from stator.design.entities.model_libraries import ForeignTypes
from stator.design.entities.shapes import (
    CLASS_TAG,
    Epoch,
    Maybe,
    Scalar,
    Shape,
    as_epoch,
    default_maker,
    field_shapes,
    type_name,
)
from stator.design.entities.stored_names import add_aliases, python_names
from stator.design.entities.variants import (
    VariantFields,
    check_variant,
    root_fields,
    tag_shape,
)
from stator.design.entities.written_keys import IndexKey, KeyTemplate
from stator.errors import DesignError


@dataclass(frozen=True, slots=True)
class Overrides:
    """The keys, indexes, name and table that the user set on an entity. The planner keeps these.

    ``version`` is the version of the entity's shape. ``on_newer`` says how to read items that a
    later version wrote.
    """

    key: KeyTemplate | None = None
    indexes: tuple[tuple[str, KeyTemplate | IndexKey], ...] = ()
    name: str | None = None
    version: int = 1
    on_newer: OnNewer = "raise"
    table: str | None = None


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(
        ident,
        unique,
        version,
        ttl,
        created,
        updated,
        counter,
        large,
        write_token,
        soft_delete,
        stored,
        dataclasses.field,
    ),
)
class Entity:
    """The base class of items.

    Subclass it and annotate fields; all of them are keyword arguments. Objects of a class that is
    declared with ``frozen=True`` cannot be changed; writes return a copy with the new version.

    ``version`` counts the shapes that the entity has had; see ``upcast``. ``on_newer`` says what to
    do with items that a later version wrote: "raise", or "ignore_unknown" to read them as they are.

    ``key`` and ``index`` are keys written by hand (``written_keys``). ``table`` is the name of the
    table that holds the items, whatever the design's layout.

    ``class Dog(Animal, variant="dog")`` makes a class a variant of an entity: its items are
    animals, and reading animals returns a Dog where one is stored (``variants``).
    """

    __overrides__: ClassVar[Overrides] = Overrides()
    __root__: ClassVar[type[Any]]
    _class: ClassVar[str | None] = None

    def __init_subclass__(
        cls,
        *,
        key: KeyTemplate | None = None,
        index: Mapping[str, KeyTemplate | IndexKey] | None = None,
        name: str | None = None,
        frozen: bool = False,
        version: int = 1,
        on_newer: OnNewer = "raise",
        variant: str | None = None,
        table: str | None = None,
        **rest: Any,
    ) -> None:
        super().__init_subclass__(**rest)
        check_version(cls.__name__, version, on_newer)
        overrides = Overrides(key, tuple((index or {}).items()), name, version, on_newer, table)
        if variant is None:
            cls.__root__, cls.__overrides__, cls._class = cls, overrides, None
        else:
            check_variant(cls, variant, Entity, is_bare=overrides == Overrides())
            cls.__root__ = cls.__bases__[0]
            cls._class = variant
        _forget_inherited_references(cls)
        dataclasses.dataclass(kw_only=True, frozen=frozen)(cls)
        add_aliases(cls)
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            setattr(cls, field.name, FieldRef(cls.__root__, (stored_name(field),)))
        if variant is not None:
            info(cls.__root__).add_variant(variant, cls)


def _forget_inherited_references(cls: type) -> None:
    """Remove inherited field references for the fields that this class annotates again.

    Otherwise the dataclass would take the inherited reference as the field's default value.
    """
    for name in inspect.get_annotations(cls):
        if name not in cls.__dict__ and isinstance(getattr(cls, name, None), FieldRef):
            setattr(cls, name, dataclasses.field())


CALL_ARGUMENTS: Final = frozenset(
    {
        *("entity", "when", "once", "returns", "or_create", "must_exist", "purge", "keep_blobs"),
        *("consistent", "include_expired", "include_deleted", "changes"),
    }
)
"""The arguments of calls that take an item's identity as further keyword arguments."""


@dataclass(frozen=True)
class EntityField:
    """One field: its stored shape, and the marker that sets its role."""

    name: str
    shape: Shape
    marker: Marker | None
    has_default: bool

    @property
    def role(self) -> str | None:
        return None if self.marker is None else self.marker.role


def stored_shape(shape: Shape, marker: Marker | None) -> Shape:
    """Return the shape as stored: a ``ttl()`` field is stored in seconds."""
    return as_epoch(shape) if marker is not None and marker.role == "ttl" else shape


class EntityInfo:
    """Everything derived from an entity class: fields, identity, codec."""

    def __init__(self, cls: type[Any]) -> None:
        self.cls = cls

    @cached_property
    def name(self) -> str:
        return self.cls.__name__ if self.is_variant else self.overrides.name or self.cls.__name__

    @property
    def root(self) -> type[Any]:
        """The entity that this class is a variant of, or the class itself."""
        found: type[Any] = getattr(self.cls, "__root__", self.cls)
        return found

    @property
    def is_variant(self) -> bool:
        return self.root is not self.cls

    @cached_property
    def variants(self) -> dict[str, type[Any]]:
        """The variants of this entity, by the tag that their items carry."""
        return {}

    def add_variant(self, tag: str, cls: type[Any]) -> None:
        if "fields" in self.__dict__:
            raise DesignError(
                f"the variant {cls.__name__} is declared too late: {self.name} has been planned "
                f"or used already",
                hint=f"declare all variants of {self.name} before the first design with it",
            )
        if tag in self.variants:
            raise DesignError(
                f"{self.variants[tag].__name__} and {cls.__name__} both have variant={tag!r}",
                hint="give each variant a tag of its own",
            )
        self.variants[tag] = cls

    @property
    def overrides(self) -> Overrides:
        found = getattr(self.cls, "__overrides__", None)
        return found if isinstance(found, Overrides) else Overrides()

    @cached_property
    def fields(self) -> dict[str, EntityField]:
        """The fields of the class.

        A variant also has the tag of its items. An entity with variants has their fields as well,
        each of which may be absent.
        """
        fields = dict(self.own_fields)
        tag = getattr(self.cls, CLASS_TAG, None) if self.is_variant else None
        extra = (
            {CLASS_TAG: tag_shape((tag,))}
            if tag is not None
            else root_fields(
                self.name,
                self.own_shapes,
                {tag: info(cls).roles_and_shapes() for tag, cls in self.variants.items()},
            )
        )
        for name, shape in extra.items():
            fields[name] = EntityField(name, shape, None, has_default=True)
        return fields

    @cached_property
    def python_names(self) -> dict[str, str]:
        """A map from stored names to field names, for the fields where the two differ."""
        return python_names(self.cls)

    @cached_property
    def stored_names(self) -> dict[str, str]:
        """A map from field names to stored names, for the fields where the two differ."""
        return {python: stored for stored, python in self.python_names.items()}

    def listed(self, names: Iterable[str]) -> str:
        """Return the names of fields for a message, separated by commas.

        ``names`` are stored names. The text has the names that the class declares.
        """
        return ", ".join(self.python_names.get(name, name) for name in names)

    def roles_and_shapes(self) -> VariantFields:
        return {name: (field.shape, field.role) for name, field in self.own_fields.items()}

    @cached_property
    def own_fields(self) -> dict[str, EntityField]:
        """The fields that objects of exactly this class have."""
        markers = {field.name: marker_of(field) for field in dataclasses.fields(self.cls)}
        declared = field_shapes(self.cls, self.cls.__name__, ForeignTypes())
        fields = {}
        for python, shape, has_default in declared:
            name, marker = self.stored_names.get(python, python), markers[python]
            fields[name] = EntityField(name, stored_shape(shape, marker), marker, has_default)
        check_roles(self.cls.__name__, fields)
        self.check_reserved(fields)
        return fields

    def check_reserved(self, fields: Mapping[str, EntityField]) -> None:
        if VERSION_ATTRIBUTE in fields:
            raise DesignError(
                f"{self.name}.{VERSION_ATTRIBUTE}: this attribute is reserved for the version of "
                f"an item's shape",
                hint="give the field another name",
            )
        for field in fields.values():
            name = self.python_names.get(field.name, field.name)
            if field.role == "ident" and name in CALL_ARGUMENTS:
                raise DesignError(
                    f"{self.name}.{name}: an identity field cannot have this name, because db.get, "
                    f"db.update or db.delete has an argument {name!r} of its own",
                    hint=f"give it another name, such as {name}_id",
                )
        if CLASS_TAG in fields:
            raise DesignError(
                f"{self.name}.{CLASS_TAG}: this attribute is reserved for the variant of an item",
                hint="give the field another name",
            )

    @cached_property
    def shape_version(self) -> ShapeVersion:
        """The version of the entity's shape, and its upcasts."""
        if self.is_variant:
            return info(self.root).shape_version
        return ShapeVersion(self.name, self.overrides.version, self.overrides.on_newer)

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """The fields that identify an item, in the order of declaration."""
        names = tuple(field.name for field in self.fields.values() if field.role == "ident")
        if not names:
            raise DesignError(
                f"{self.name} has no identity",
                hint="mark the identifying fields with ident(), for example `id: str = ident()`",
            )
        return names

    @cached_property
    def codec(self) -> Codec:
        tag = getattr(self.cls, CLASS_TAG, None) if self.is_variant else None
        codec = make_codec(
            self.name,
            self.cls,
            self.own_shapes,
            versions=self.shape_version,
            constants=None if tag is None else {CLASS_TAG: {"S": tag}},
            python_names=self.python_names,
        )
        extra = {name: self.shapes[name] for name in self.shapes if name not in self.own_fields}
        return with_fields(codec, self.name, extra) if extra else codec

    @property
    def own_shapes(self) -> dict[str, Shape]:
        return {name: field.shape for name, field in self.own_fields.items()}

    @property
    def shapes(self) -> dict[str, Shape]:
        return {name: field.shape for name, field in self.fields.items()}

    def default_maker(self, field: str) -> Callable[[], Any] | None:
        """Return the function that creates a field's default value.

        Returns None if the field is required.
        """
        if field not in self.own_fields:
            tag = getattr(self.cls, CLASS_TAG, None) if field == CLASS_TAG else None
            return lambda: tag
        python = self.python_names.get(field, field)
        declared = next(each for each in dataclasses.fields(self.cls) if each.name == python)
        default = default_maker(declared)
        if default is None and isinstance(self.fields[field].shape, Maybe):
            return lambda: None
        return default

    @property
    def is_frozen(self) -> bool:
        """Whether instances are immutable."""
        return bool(self.cls.__dataclass_params__.frozen)

    def replaced(self, made: Any, changes: Mapping[str, Any]) -> Any:
        """Return a copy of an instance with some fields changed."""
        copied = copy.copy(made)
        for name, value in changes.items():
            object.__setattr__(copied, name, value)  # a frozen class refuses setattr
        return copied


def check_roles(entity: str, fields: dict[str, EntityField]) -> None:
    for role in ("version", "ttl", "created", "updated", "write_token", "soft_delete"):
        marked = [field.name for field in fields.values() if field.role == role]
        if len(marked) > 1:
            raise DesignError(
                f"{entity} has {role}() on {' and '.join(marked)}", hint="mark only one of them"
            )
    for field in fields.values():
        if field.role == "write_token" and field.shape != Scalar(str):
            raise DesignError(
                f"{entity}.{field.name} is a write_token() and must be a str",
                hint=f"declare `{field.name}: str = write_token()`",
            )
        if field.role == "soft_delete":
            _check_soft_delete(entity, field, fields)
        inner = field.shape.inner if isinstance(field.shape, Maybe) else field.shape
        wanted = _ROLE_TYPES.get(field.role or "")
        if wanted is not None and inner not in wanted:
            types = " or ".join(type_name(each) for each in wanted if each != Scalar(Epoch))
            raise DesignError(
                f"{entity}.{field.name} is a {field.role}() and cannot be a {type_name(inner)}",
                hint=f"declare it as {types}",
            )


_ROLE_TYPES: dict[str, tuple[Shape, ...]] = {
    "version": (Scalar(int),),
    "created": (Scalar(datetime),),
    "updated": (Scalar(datetime),),
    "ttl": (Scalar(Epoch), Scalar(datetime), Scalar(int)),
    "counter": (Scalar(int), Scalar(float), Scalar(Decimal)),
}
"""The types that a field with a role may have."""


def _check_soft_delete(entity: str, field: EntityField, fields: dict[str, EntityField]) -> None:
    if field.shape != Maybe(Scalar(datetime)):
        raise DesignError(
            f"{entity}.{field.name} is a soft_delete() and must be an optional time",
            hint=f"declare `{field.name}: datetime | None = soft_delete()`",
        )
    expires = field.marker is not None and field.marker.after is not None
    if expires and not any(each.role == "ttl" for each in fields.values()):
        raise DesignError(
            f"{entity}.{field.name}: deleted items are to expire, but {entity} has no ttl() field",
            hint="add one: `expires_at: datetime | None = ttl(default=None)`",
        )


def info(cls: type[Any]) -> EntityInfo:
    """Return the ``EntityInfo`` of a class. It is created once."""
    known = KNOWN.get(cls) if isinstance(cls, type) else None
    if known is None:
        known = KNOWN[cls] = _made(cls)
    return known


KNOWN: WeakKeyDictionary[type[Any], EntityInfo] = WeakKeyDictionary()


def _made(cls: Any) -> EntityInfo:
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        shown = getattr(cls, "__name__", repr(cls))
        raise DesignError(f"{shown} is not an entity", hint=f"write `class {shown}(Entity): ...`")
    return EntityInfo(cls)


def upcast(entity: type[Any], version: int) -> Callable[[F], F]:
    """Register a function that turns the fields of one version of an entity into the next.

    ``@upcast(Order, 1)`` takes the fields of an item of version 1 as a dict of plain values and
    returns those of version 2. Items of earlier versions are read through all upcasts that lead to
    the version of the class.
    """

    def register(function: F) -> F:
        info(entity).shape_version.add(version, function)
        return function

    return register
