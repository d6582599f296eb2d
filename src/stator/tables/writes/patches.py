"""Patches: partial updates from a plain dict, such as the JSON of an HTTP PATCH.

JSON has no dates, decimals, sets or objects. A value in the form that JSON gives it (ISO text,
a number, a list, an object) becomes a value of the field's type. A value that already has the
field's type is taken as it is. Everything else is refused: a patch comes from outside.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from stator.design.entities.packed_numbers import PackedType
from stator.design.entities.shapes import (
    Choice,
    Coded,
    Epoch,
    ListOf,
    MapOf,
    Maybe,
    Nested,
    Scalar,
    SetOf,
    Shape,
)
from stator.design.entities.wire import maker_of
from stator.errors import ItemMismatch, UpdateRefused
from stator.tables.schema.entity_map import EntityMap


def patch_values(of: EntityMap, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes with each value converted to the type of its field.

    Raises UpdateRefused if ``changes`` is empty or names a field that a caller may not change.
    Raises ItemMismatch if a value does not fit its field.
    """
    if not changes:
        raise UpdateRefused(f"the patch of {of.name} is empty", hint="name a field to change")
    changes = of.given(changes)
    for name in changes:
        _check_name(of, name)
    return {name: _value(of, name, value) for name, value in changes.items()}


def _check_name(of: EntityMap, name: str) -> None:
    if name not in of.fields:
        raise UpdateRefused(
            f"{of.name} has no field {name!r}", hint=f"its fields are {of.info.listed(of.fields)}"
        )
    if name in of.identity or name in of.base_fields:
        raise UpdateRefused(
            f"{of.name}.{name} is part of the item's key, and a patch cannot change it",
            hint="leave it out of the patch",
        )
    if name in (of.version, of.created, of.updated, of.write_token, of.deleted):
        raise UpdateRefused(
            f"{of.name}.{name} is set by Stator itself, and a patch cannot change it",
            hint="leave it out of the patch; "
            f"pass when={of.name}.{name} == ... to change only that version"
            if name == of.version
            else "leave it out of the patch",
        )


def _value(of: EntityMap, name: str, value: Any) -> Any:
    shape = of.fields[name].shape
    if value is None and not isinstance(shape, Maybe):
        raise ItemMismatch(
            of.name, name, "the field is required, so a patch cannot set it to None", None
        )
    try:
        return _typed(shape, value)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ItemMismatch(of.name, name, str(error), value) from None


def _typed(shape: Shape, value: Any) -> Any:
    """Convert a value from JSON to the type that ``shape`` describes.

    Values that need no conversion are returned unchanged. The encoder checks them later.
    """
    match shape:
        case Maybe(inner):
            return None if value is None else _typed(inner, value)
        case Scalar(python):
            return _scalar(python, value)
        case Choice():
            return _choice(shape, value)
        case Coded(PackedType() as packed) if isinstance(value, (list, tuple)):
            return packed.from_file(value)
        case ListOf(elements, container, fixed) if isinstance(value, (list, tuple)):
            if fixed and len(value) != len(elements):
                raise ValueError(f"expected {len(elements)} elements, got {len(value)}")
            shapes = elements if fixed else elements * len(value)
            return container(_typed(each, member) for each, member in zip(shapes, value))
        case SetOf(element, frozen) if isinstance(value, (list, set, frozenset)):
            members = {_typed(element, member) for member in value}
            return frozenset(members) if frozen else members
        case MapOf(values) if isinstance(value, Mapping):
            return {name: _typed(values, inner) for name, inner in value.items()}
        case Nested() if isinstance(value, Mapping):
            return _nested(shape, value)
    return value


def _scalar(python: type, value: Any) -> Any:
    read = _FROM_TEXT.get(python)
    if read is not None and isinstance(value, str):
        try:
            return read(value)
        except (ValueError, ArithmeticError):
            raise ValueError(f"the text is not a {_NAMES.get(python, python.__name__)}") from None
    if python is Decimal and isinstance(value, float):
        return Decimal(str(value))  # 0.1 in JSON means 0.1
    return value


def _choice(shape: Choice, value: Any) -> Any:
    if shape.enum is not None and isinstance(value, shape.enum):
        return value
    found = _scalar(shape.scalar.python, value)
    # True == 1 in Python, and both are hashable: compare the types as well
    if not any(type(found) is type(known) and found == known for known in shape.values):
        raise ValueError(f"expected one of {', '.join(map(repr, shape.values))}")
    return found if shape.enum is None else shape.enum(found)


def _nested(shape: Nested, value: Mapping[str, Any]) -> Any:
    members = {name: inner for name, inner, _ in shape.fields}
    unknown = [name for name in value if name not in members]
    if unknown:
        raise ValueError(f"{shape.cls.__name__} has no field {unknown[0]!r}")
    missing = [
        name
        for name, inner, has_default in shape.fields
        if name not in value and not has_default and not isinstance(inner, Maybe)
    ]
    if missing:
        raise ValueError(f"{shape.cls.__name__} needs {missing[0]!r}")
    given = {name: _typed(members[name], inner) for name, inner in value.items()}
    absent = {
        name: None
        for name, inner, has_default in shape.fields
        if name not in value and not has_default and isinstance(inner, Maybe)
    }
    return maker_of(shape)(given | absent)


_FROM_TEXT: dict[type, Callable[[str], Any]] = {
    Decimal: Decimal,
    datetime: datetime.fromisoformat,
    Epoch: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    UUID: UUID,
    bytes: lambda text: b64decode(text, validate=True),
}
_NAMES: dict[type, str] = {
    Decimal: "number",
    datetime: "time in ISO 8601",
    Epoch: "time in ISO 8601",
    date: "date in ISO 8601",
    time: "time of day in ISO 8601",
    bytes: "value in base64",
}
