"""The stored shape of an entity: its fields and their types, as a lock file keeps them.

A plan says under which keys items are stored; the stored shape says what is in them. From the
shapes of two plans, ``shape_changes`` tells whether code of the new plan can read items that code
of the old plan has written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from stator.design.entities.entity import info
from stator.design.entities.shapes import (
    Anything,
    Choice,
    ListOf,
    MapOf,
    Maybe,
    Nested,
    Scalar,
    SetOf,
    Shape,
    type_name,
)

Presence = Literal["required", "default", "optional"]
Risk = Literal["safe", "default", "upcast", "backfill", "orphans"]


@dataclass(frozen=True, slots=True)
class StoredType:
    """The type of a field as it is stored.

    ``of`` has inner types: those of the elements of a list or set, of the values of a map, or of
    the values of a choice. A choice is an Enum or a Literal, and ``values`` has its values.
    ``fields`` has the members of a nested class.
    """

    kind: str
    of: tuple[StoredType, ...] = ()
    values: tuple[str, ...] = ()
    fields: tuple[StoredField, ...] = ()

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.of))
        match self.kind:
            case "optional":
                return f"{inner}?"
            case "choice":
                return f"{inner} ({', '.join(self.values)})"
            case "object":
                return f"{{{', '.join(f'{each.name}: {each.type}' for each in self.fields)}}}"
        return f"{self.kind}[{inner}]" if inner else self.kind


@dataclass(frozen=True, slots=True)
class StoredField:
    """A field: its attribute, its type, and whether items may lack the attribute."""

    name: str
    type: StoredType
    presence: Presence = "required"
    role: str | None = None


@dataclass(frozen=True, slots=True)
class ShapeChange:
    """A difference between two shapes: its risk for existing items, and what to do about it.

    ``blocks`` is True if the lock file must not be written before ``do`` is done.
    """

    risk: Risk
    subject: str
    what: str
    do: str
    blocks: bool = False


# --- from a class ---------------------------------------------------------------------------------


def stored_fields(entity: type[Any]) -> tuple[StoredField, ...]:
    """Return the fields of an entity, ordered by name."""
    return tuple(
        _field(name, field.shape, field.has_default, field.role)
        for name, field in sorted(info(entity).fields.items())
    )


def _field(name: str, shape: Shape, has_default: bool, role: str | None = None) -> StoredField:
    presence: Presence = "default" if has_default else "required"
    if isinstance(shape, Maybe):
        presence, shape = "optional", shape.inner
    elif isinstance(shape, SetOf) and not has_default:
        presence = "optional"  # an empty set is stored as no attribute
    return StoredField(name, stored_type(shape), presence, role)


def stored_type(shape: Any) -> StoredType:
    """Return the stored type of a field's shape.

    A shape that ``match`` does not name gets a stored type with a name only, from ``type_name``.
    """
    match shape:
        case Maybe(inner):
            return StoredType("optional", (stored_type(inner),))
        case Scalar(python):
            return StoredType(python.__name__.lower())
        case Choice(values, scalar, _):
            return StoredType("choice", (stored_type(scalar),), tuple(sorted(map(str, values))))
        case ListOf(elements, _, fixed):
            return StoredType("tuple" if fixed else "list", tuple(map(stored_type, elements)))
        case MapOf(values):
            return StoredType("map", (stored_type(values),))
        case SetOf(element):
            return StoredType("set", (stored_type(element),))
        case Nested():
            members = (_field(name, inner, default) for name, inner, default in shape.fields)
            return StoredType("object", fields=tuple(sorted(members, key=lambda each: each.name)))
        case Anything():
            return StoredType("any")
    return StoredType(type_name(shape))


# --- from one shape to the next -------------------------------------------------------------------

# The types whose stored values each type reads, besides its own.
_READS: Final[dict[str, frozenset[str]]] = {
    "str": frozenset({"uuid", "datetime", "date", "time"}),
    "float": frozenset({"int", "decimal", "epoch"}),
    "decimal": frozenset({"int", "float", "epoch"}),
    "int": frozenset({"epoch"}),
    "epoch": frozenset({"int"}),
}


def reads(new: StoredType, old: StoredType) -> bool:
    """Whether every value stored as ``old`` can be read as ``new``."""
    if new == old or new.kind == "any":
        return True
    if new.kind == "optional":
        return reads(new.of[0], old.of[0] if old.kind == "optional" else old)
    if old.kind == "choice":
        fits = new.kind != "choice" or set(old.values) <= set(new.values)
        return fits and reads(new.of[0] if new.kind == "choice" else new, old.of[0])
    if new.kind == "list" and old.kind == "tuple":
        return all(reads(new.of[0], each) for each in old.of)
    if new.kind != old.kind:
        return old.kind in _READS.get(new.kind, ())
    if new.kind == "object":
        before = {each.name: each for each in old.fields}
        return all(_reads_member(each, before.get(each.name)) for each in new.fields)
    return len(new.of) == len(old.of) and all(map(reads, new.of, old.of))


def _reads_member(new: StoredField, old: StoredField | None) -> bool:
    if old is None:
        return new.presence != "required"
    return reads(new.type, old.type) and not _may_be_missing(new, old)


def _may_be_missing(new: StoredField, old: StoredField) -> bool:
    """Whether a field is required now, although stored items may lack its attribute."""
    return new.presence == "required" and old.presence != "required"


@dataclass(frozen=True, slots=True)
class VersionedShape:
    """The fields of an entity at one version, and the versions that its upcasts start from."""

    entity: str
    version: int
    fields: tuple[StoredField, ...]
    upcasts: tuple[int, ...]


def shape_changes(old: VersionedShape, new: VersionedShape) -> Iterator[ShapeChange]:
    """Yield every difference between two shapes of an entity.

    If the version was raised, upcasts translate the fields, and only the chain of upcasts matters.
    """
    yield from _chain(old, new)
    is_raised = new.version > old.version
    before = {each.name: each for each in old.fields}
    after = {each.name: each for each in new.fields}
    renamed = likely_renames(old.fields, new.fields)
    for name in sorted({*before, *after}):
        subject = f"field {new.entity}.{name}"
        if name not in before:
            yield _new_field(subject, after[name], new, is_raised)
        elif name not in after:
            change = _dropped_field(subject, before[name], new, is_raised)
            yield _or_renamed(change, before[name], renamed.get(name))
        else:
            yield from _field_changes(subject, before[name], after[name], new, is_raised)


def likely_renames(old: Iterable[StoredField], new: Iterable[StoredField]) -> dict[str, str]:
    """Return the fields that may have been renamed, as a map from the old name to the new one.

    A field that is gone and a new field of the same type and role are taken for one field if
    neither has another candidate. Only the user knows whether that is true.
    """
    before = {each.name: each for each in old}
    after = {each.name: each for each in new}
    gone = [each for name, each in before.items() if name not in after]
    added = [each for name, each in after.items() if name not in before]
    found = {}
    for field in gone:
        alike = [each for each in added if _is_alike(field, each)]
        rivals = [each for each in gone if _is_alike(field, each)]
        if len(alike) == len(rivals) == 1:
            found[field.name] = alike[0].name
    return found


def _is_alike(one: StoredField, other: StoredField) -> bool:
    return (one.type, one.role) == (other.type, other.role)


def kept_attribute(field: StoredField, name: str) -> str:
    """Return the declaration with which a renamed field keeps its attribute.

    The field ``total``, renamed to ``amount``, gives ``amount: ... = stored("total")``.
    """
    kept = f'"{field.name}"'
    value = f"{field.role}(stored={kept})" if field.role else f"stored({kept})"
    return f"{name}: ... = {value}"


def _or_renamed(change: ShapeChange, field: StoredField, name: str | None) -> ShapeChange:
    if name is None or change.risk == "safe":
        return change
    keep = f"if {name} is its new name, keep the attribute: `{kept_attribute(field, name)}`"
    return replace(change, do=f"{keep}; otherwise {change.do}")


def _chain(old: VersionedShape, new: VersionedShape) -> Iterator[ShapeChange]:
    subject, versions = f"entity {new.entity}", f"version {old.version} and is {new.version} now"
    if new.version < old.version:
        do = f"items of version {old.version} exist: keep that version or a later one"
        yield ShapeChange("upcast", subject, f"had {versions}", do, blocks=True)
    for version in range(old.version, new.version):
        if version not in new.upcasts:
            what = f"no upcast leads from version {version} to {version + 1}"
            do = f"write one: @upcast({new.entity}, {version})"
            yield ShapeChange("upcast", subject, what, do, blocks=True)
    for version in sorted(set(old.upcasts) - set(new.upcasts)):
        if version < min(old.version, new.version):
            do = f"keep it until no item has version {version}"
            what = f"the upcast from version {version} is gone"
            yield ShapeChange("upcast", subject, what, do, blocks=True)
    if new.version > old.version:
        do = "items of earlier versions are upcast when they are read"
        yield ShapeChange("safe", subject, f"had {versions}", do)


def _raise(new: VersionedShape) -> str:
    return f"raise the version to {new.version + 1} and write @upcast({new.entity}, {new.version})"


def _new_field(
    subject: str, field: StoredField, new: VersionedShape, is_raised: bool
) -> ShapeChange:
    if field.presence != "required" or is_raised:
        return ShapeChange("safe", subject, "is new", "deploy it; items without it get the default")
    return ShapeChange(
        "default",
        subject,
        "is new and required, and existing items lack it",
        f"give it a default, make it optional, or {_raise(new)}",
        blocks=True,
    )


def _dropped_field(
    subject: str, field: StoredField, new: VersionedShape, is_raised: bool
) -> ShapeChange:
    if field.presence == "required" and not is_raised:
        return ShapeChange(
            "upcast",
            subject,
            "is gone, and code that is deployed now cannot read items without it",
            f"{_raise(new)}, or make it optional first",
            blocks=True,
        )
    if is_raised:
        return ShapeChange("safe", subject, "is gone", "the upcast decides about its value")
    do = "existing items keep the attribute until they are replaced"
    return ShapeChange("orphans", subject, "is gone", do)


def _field_changes(
    subject: str, old: StoredField, new: StoredField, shape: VersionedShape, is_raised: bool
) -> Iterator[ShapeChange]:
    if old.type != new.type:
        what = f"its type was {old.type} and is {new.type} now"
        if is_raised or reads(new.type, old.type):
            yield ShapeChange("safe", subject, what, "deploy it; stored values can be read")
        else:
            yield ShapeChange("upcast", subject, what, _raise(shape), blocks=True)
    if _may_be_missing(new, old) and not is_raised:
        what = "is required now, and existing items may lack it"
        do = f"give it a default, or {_raise(shape)}"
        yield ShapeChange("default", subject, what, do, blocks=True)
    elif old.presence != new.presence:
        what = f"was {_PRESENCE[old.presence]} and is {_PRESENCE[new.presence]} now"
        yield ShapeChange("safe", subject, what, "deploy it")
    if old.role != new.role and new.role == "unique":
        do = f"write the guards of existing items: UniqueAudit(db, {shape.entity}).repair()"
        yield ShapeChange("backfill", subject, "is unique now", do)


_PRESENCE: Final = {
    "required": "required",
    "default": "with a default",
    "optional": "optional",
}
