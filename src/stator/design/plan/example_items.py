"""Example items, made from the types of an entity's fields, for documents and exports.

Examples are the same each time. Fields with the same name have the same value everywhere, so that
examples that belong together share a partition.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from stator.design.entities.entity import Entity, EntityField, EntityInfo, info
from stator.design.entities.packed_numbers import PackedType
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
)
from stator.design.plan.plan import EntityPlan
from stator.errors import DesignError
from stator.model.values import Item, Value

_WORDS: Final = {
    "name": "Anna Berg", "first_name": "Anna", "last_name": "Berg", "email": "anna@example.org",
    "city": "Lisbon", "country": "PT", "street": "Rua Augusta 12", "title": "A good title",
    "text": "It works as it should.", "description": "What it is, in a few words",
    "category": "tea", "currency": "EUR", "url": "https://example.org/1",
    "phone": "+351 21 000 0000", "handle": "anna", "hashtag": "dynamodb", "ip": "192.0.2.7",
    "colour": "green", "color": "green", "language": "en",
}  # fmt: skip
_SCALARS: Final[dict[type, Any]] = {
    int: 42,
    float: 1.5,
    Decimal: Decimal("19.90"),
    bool: True,
    bytes: b"\x01\x02\x03",
    datetime: datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC),
    date: date(2026, 3, 14),
    time: time(15, 9, 26),
    UUID: UUID("6f1c2b1e-4c57-4a6e-9c33-0f6a3c1b2d4e"),
}
_STORED_EXAMPLES: Final = (
    "1", 1, "https://example.org/1", "192.0.2.7", "2001:db8::7", "192.0.2.0/24", "UTC", "1 EUR",
)  # fmt: skip
_ROLES: Final[dict[str, Any]] = {
    "version": 1,
    "created": _SCALARS[datetime],
    "updated": _SCALARS[datetime],
    "ttl": datetime(2026, 6, 12, 15, 9, 26, tzinfo=UTC),
}


def example_of(entity: type[Entity], plan: EntityPlan | None = None) -> Any:
    """Return an example instance.

    With a plan, the instance belongs to as many sparse indexes as possible.
    """
    known = info(entity)
    values = {name: _field(field) for name, field in known.fields.items()}
    if plan is not None:
        values |= _constants(known, plan, values)
    return _make(entity, values)


def _make(entity: type[Entity], values: dict[str, Any]) -> Any:
    taken = {
        name
        for name, field in info(entity).fields.items()
        if field.role not in ("version", "created", "updated")
    }
    python = info(entity).python_names
    made = entity(**{python.get(name, name): values[name] for name in values if name in taken})
    for name in values.keys() - taken:
        object.__setattr__(made, python.get(name, name), values[name])
    return made


def _field(field: EntityField) -> Any:
    inner = field.shape.inner if isinstance(field.shape, Maybe) else field.shape
    if (
        field.role in _ROLES
        and isinstance(inner, Scalar)
        and inner.python in (int, datetime, Epoch)
    ):
        return _ROLES[str(field.role)]
    return _value(field.name, field.shape)


def _value(name: str, shape: Shape) -> Any:
    match shape:
        case Maybe(inner):
            return _value(name, inner)
        case Choice(values, _, enum):
            return values[0] if enum is None else enum(values[0])
        case Scalar(python):
            return _text(name) if python is str else _SCALARS[python]
        case ListOf(elements, container, _):
            return container(_value(_singular(name), element) for element in elements)
        case MapOf(values):
            return {"a": _value(name, values)}
        case SetOf(element, frozen):
            return (frozenset if frozen else set)([_value(_singular(name), element)])
        case Coded(PackedType(_, container, number)):
            return _SCALARS[number] if container is None else container([_SCALARS[number]])
        case Coded():
            return _coded(name, shape)
        case OneOf(_, members):
            return _value(name, members[0][1])
        case TypedMap(_, fields):
            return {inner: _value(inner, shape) for inner, shape, _ in fields}
        case Nested(cls, fields):
            return cls(**{inner: _value(inner, shape) for inner, shape, _ in fields})
        case Anything():
            return _text(name)
    raise AssertionError(shape)


def _coded(name: str, shape: Coded) -> Any:
    """Return an example value of a type with its own codec.

    The example is the first of a few stored values that the codec can decode. Raises DesignError if
    the codec can decode none of these.
    """
    for stored in (_value(name, shape.stored), *_STORED_EXAMPLES):
        try:
            return shape.decode(stored)
        except Exception:  # a user's function may raise anything  # noqa: S112
            continue
    raise DesignError(
        f"{name}: no example of {getattr(shape.python, '__name__', shape.python)} is known",
        hint="let the decode function of register_codec() accept '1' or 1",
    )


def _text(name: str) -> str:
    if name in _WORDS:
        return _WORDS[name]
    return f"{name.removesuffix('_id').replace('_', '-')}-1" if name != "id" else "1"


def _singular(name: str) -> str:
    return name.removesuffix("s") if len(name) > 3 else name


def _constants(known: EntityInfo, plan: EntityPlan, values: dict[str, Any]) -> dict[str, Any]:
    """Return values for fields with few possible values, so that the item is in the sparse indexes.

    If two indexes require different values of a field, the first index wins.
    """
    found: dict[str, Any] = {}
    for key in plan.keys:
        for test, wanted in key.when:
            names = {part.value for part in test.parts if part.kind == "field"} - found.keys()
            if wanted is None:
                found |= dict.fromkeys(names & known.fields.keys())
                continue
            for name in names & known.fields.keys():
                choices = _choices(known.fields[name].shape)
                fitting = [
                    each for each in choices if test.fill(values | {name: each}) == {"S": wanted}
                ]
                if fitting:
                    found[name] = fitting[0]
    return found


def _choices(shape: Shape) -> list[Any]:
    match shape:
        case Maybe(inner):
            return _choices(inner)
        case Choice(values, _, enum):
            return [value if enum is None else enum(value) for value in values]
        case Scalar(python) if python is bool:
            return [True, False]
    return []


# --- how an item is shown -------------------------------------------------------------------------


def shown_value(value: Value) -> str:
    """Return a DynamoDB JSON value as a person would write it."""
    [(kind, content)] = value.items()
    if kind in ("S", "N"):
        return str(content)
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Value) -> Any:
    [(kind, content)] = value.items()
    if kind == "N":
        return json.loads(str(content))
    if kind == "L":
        return [_plain(each) for each in content]
    if kind == "M":
        return {name: _plain(each) for name, each in content.items()}
    if kind in ("NS", "SS", "BS"):
        return list(content)
    return None if kind == "NULL" else content


def items_of(entity: type[Entity], plan: EntityPlan, count: int = 2) -> list[Item]:
    """Return several example items as they are stored.

    The items differ in the last field of their identity and in their times. So if the items have a
    parent, all have the same parent.
    """
    known, first = info(entity), example_of(entity, plan)
    values = {name: getattr(first, known.python_names.get(name, name)) for name in known.fields}
    last = known.identity[-1]
    found = []
    for at in range(count):
        changed = {
            name: _later(value, at)
            for name, value in values.items()
            if name == last
            or known.fields[name].role == "unique"
            or (isinstance(value, datetime) and name not in known.identity)
        }
        found.append(plan.item(_make(entity, values | changed)))
    return [each for at, each in enumerate(found) if each not in found[:at]]


def _later(value: Any, at: int) -> Any:
    """Return another value of the same type: ``at`` steps later for a number, a time or a text."""
    match value:
        case bool() | None:
            return value
        case int() | float() | Decimal():
            return value + at
        case datetime():
            return value + timedelta(hours=26 * at)
        case date():
            return value + timedelta(days=at)
        case UUID():
            return UUID(int=value.int + at)
        case str() if at:
            stem = value[:-1] if value.endswith("1") else f"{value}-"
            return f"{stem}{at + 1}"
    return value


def example_value(field: EntityField, at: int = 0) -> Any:
    """Return the value of a field in the example number ``at``, counted from 0."""
    choices = _choices(field.shape)
    return choices[at] if at < len(choices) else _later(_value(field.name, field.shape), at)


def item_of(entity: type[Entity], plan: EntityPlan) -> Item:
    """Return the example item as it is stored."""
    return plan.item(example_of(entity, plan))
