"""Estimates of item sizes and distinct values, from types and volumes.

Estimates only rank layouts. A declared number (``sizes=``, ``returns=``, ``volumes=``) always wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import cached_property
from typing import Final
from uuid import UUID

from stator.design.declaration import Declaration
from stator.design.entities.conditions import FieldRef
from stator.design.entities.derived_parts import derived_part, source_field
from stator.design.entities.entity import Entity, info
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
    type_name,
)
from stator.design.patterns.write_pattern import WritePattern
from stator.design.plan.demand import ChangeDemand, Demand, EntityDemand, FieldDemand, PatternDemand
from stator.design.planner.distinct_values import DistinctValues, Guess
from stator.design.value_facts import is_unique

KEPT_BY_FILTER: Final = 1 / 3
"""The assumed share of items that pass a range or a filter."""

PRESENT_OPTIONAL: Final = 0.5
ABSENT_OPTIONAL: Final = 1 - PRESENT_OPTIONAL
"""The assumed shares of items that have an optional field, and that lack it."""

_BYTES: Final[dict[type, int]] = {
    str: 24, int: 6, float: 9, Decimal: 8, bool: 1, bytes: 64, datetime: 27, Epoch: 6, date: 10,
    time: 15, UUID: 36,
}  # fmt: skip
_KEY_TEXT_BYTES: Final[dict[type, int]] = {
    int: 8, float: 9, Decimal: 8, bytes: 128, Epoch: 13,
}  # fmt: skip
_ELEMENTS: Final = 5
_LARGE_BYTES: Final = 4096


def value_bytes(shape: Shape) -> int:
    """Return the typical size of a value, counted by DynamoDB's rules."""
    match shape:
        case Scalar(python):
            return _BYTES[python]
        case Choice(values, scalar):
            return (
                max(len(str(value)) for value in values)
                if scalar.kind == "S"
                else _BYTES[scalar.python]
            )
        case Maybe(inner):
            return value_bytes(inner)
        case ListOf(elements, _, fixed):
            each = [value_bytes(element) + 1 for element in elements]
            return 3 + (sum(each) if fixed else _ELEMENTS * sum(each))
        case MapOf(values):
            return 3 + _ELEMENTS * (value_bytes(values) + 9)
        case SetOf(element):
            return _ELEMENTS * value_bytes(element)
        case Coded(PackedType(packing, container)):
            return packing.value_bytes * (1 if container is None else _ELEMENTS)
        case Coded(_, stored):
            return value_bytes(stored)
        case OneOf(tag, members, is_added):
            label = len(tag) + 9 if is_added else 0
            return label + max(value_bytes(member) for _, member in members)
        case Nested(_, fields) | TypedMap(_, fields):
            return 3 + sum(len(name) + value_bytes(inner) + 1 for name, inner, _ in fields)
        case Anything():
            return 32
    raise AssertionError(shape)


def has_open_size(shape: Shape) -> bool:
    """Whether values of a type differ so much in size that ``value_bytes`` is a guess."""
    match shape:
        case Scalar(python):
            return python in (str, bytes)
        case Coded(PackedType(_, container)):
            return container is not None
        case Maybe(inner) | Coded(_, inner):
            return has_open_size(inner)
        case ListOf(elements, _, fixed):
            return not fixed or any(map(has_open_size, elements))
        case Nested(_, fields) | TypedMap(_, fields):
            return any(has_open_size(inner) for _, inner, _ in fields)
        case Choice():
            return False
    return True


def key_text_bytes(shape: Shape) -> int:
    """Return the typical size of a value as text in a concatenated key (``key_text``)."""
    match shape:
        case Maybe(inner) | Coded(_, inner):
            return key_text_bytes(inner)
        case Choice(_, scalar) if scalar.kind != "S":
            return _KEY_TEXT_BYTES.get(scalar.python, value_bytes(shape))
        case Scalar(python):
            return _KEY_TEXT_BYTES.get(python, _BYTES[python])
    return value_bytes(shape)


def named_values(shape: Shape) -> int | None:
    """Return the number of values of an Enum, a Literal or a bool, or None for any other type."""
    match shape:
        case Maybe(inner):
            return named_values(inner)
        case Choice(values):
            return len(values)
        case Scalar(python) if python is bool:
            return 2
    return None


@dataclass(frozen=True)
class Estimates:
    """The estimates for one declaration."""

    design: Declaration

    def volume(self, entity: type[Entity]) -> float:
        return max(1.0, self.design.volume(entity))

    def item_bytes(self, entity: type[Entity]) -> int:
        """Return the size of an item without the key attributes that the planner adds."""
        return self._item_bytes[entity]

    @cached_property
    def _item_bytes(self) -> dict[type[Entity], int]:
        estimated = {
            each: self.fields_bytes(each, tuple(info(each).fields)) for each in self.design.entities
        }
        return {**estimated, **self.design.sizes}

    def is_size_guessed(self, entity: type[Entity]) -> bool:
        """Whether the size of an item is a guess: neither ``sizes=`` nor its types decide it."""
        return entity not in self.design.sizes and any(
            field.role == "large" or has_open_size(field.shape)
            for field in info(entity).fields.values()
        )

    def fields_bytes(self, entity: type[Entity], fields: tuple[str, ...]) -> int:
        return sum(self.field_bytes(entity, field) for field in fields)

    def field_bytes(self, entity: type[Entity], field: str) -> int:
        declared = info(entity).fields[field]
        return len(field) + (
            _LARGE_BYTES if declared.role == "large" else value_bytes(declared.shape)
        )

    def key_text_bytes(self, entity: type[Entity], name: str) -> int:
        """Return the typical size of a field, or of a derived part, as text in a key."""
        part, fields = derived_part(name), info(entity).fields
        if part is None or name in fields:
            return key_text_bytes(fields[name].shape)
        return min(part.length, key_text_bytes(fields[part.field].shape))

    # -- values

    @cached_property
    def _values(self) -> DistinctValues:
        return DistinctValues(self.design)

    def distinct(self, entity: type[Entity], fields: Iterable[str]) -> float:
        """Return the number of distinct values, or tuples of values, of the fields."""
        return self._values.count(entity, fields).values

    def guesses(self, entity: type[Entity], fields: Iterable[str]) -> tuple[Guess, ...]:
        """Return the guesses behind the result of ``distinct``."""
        return self._values.count(entity, fields).guesses

    def is_declared(self, entity: type[Entity], name: str) -> bool:
        """Whether a fact says how many values a field has, or how frequent they are."""
        facts = self.design.facts
        return (
            any(name in fields for fields in facts.distinct_parts(entity))
            or facts.largest(entity, name) is not None
        )

    def volume_guess(self, entity: type[Entity]) -> tuple[Guess, ...]:
        return self._values.volume_guess(entity)

    def hottest(self, entity: type[Entity], fields: Iterable[str]) -> float:
        """Return the share that the most frequent value has of the items that have the fields.

        Items without an optional field do not count: no index on the field holds them. Without a
        ``largest`` fact, all values are equally frequent.
        """
        names = tuple(fields)
        values = self.distinct(entity, names)
        even = 1 / values
        # A fact may also say that each item has its own values: distinct(User.team, User.handle).
        present = self.design.facts.all_present(entity, names)
        if is_unique(info(entity), names) or values >= self.volume(entity) * present:
            return even
        parts = [
            max(self.largest(entity, name) or 0.0, 1 / self.distinct(entity, (name,)))
            for name in names
        ]
        return max(even, math.prod(parts)) if self.is_skewed(entity, names) else even

    def largest(self, entity: type[Entity], name: str) -> float | None:
        """Return the share that a field's most frequent value has of the items with the field.

        Facts are about all items: if 10 % of the tasks have one assignee, and 20 % have any, that
        assignee has half of the assigned tasks. Returns None if no fact is about the field.
        """
        found = self.design.facts.largest(entity, name)
        if found is None:
            return None
        return min(
            1.0, found / (self.design.facts.all_present(entity, (source_field(name),)) or 1.0)
        )

    def is_skewed(self, entity: type[Entity], fields: Iterable[str]) -> bool:
        """Whether a fact says that the values of these fields are not equally frequent."""
        return any(self.design.facts.largest(entity, name) is not None for name in fields)

    def present(self, entity: type[Entity], name: str) -> float:
        """Return the share of items that have an optional field."""
        absent = self.absent_share(entity, name)
        return PRESENT_OPTIONAL if absent is None else 1.0 - absent

    def absent_share(self, entity: type[Entity], name: str) -> float | None:
        """Return the share of items that lack an optional field, or None if nothing declares it."""
        name = source_field(name)
        present = self.design.facts.present(entity, name)
        if present is not None:
            return 1.0 - present
        return self._values.absent_share(entity, name)

    def presence_guess(self, entity: type[Entity], name: str) -> Guess:
        shown = repr(FieldRef(entity, (source_field(name),)))
        return Guess(
            f"{shown}: {PRESENT_OPTIONAL:.0%} of the items have it",
            f"share(attr({shown}).exists(), ...)",
        )


# --- the demand of a plan -------------------------------------------------------------------------


def demand_of(design: Declaration) -> Demand:
    """Return the workload of a design in the form that its plan stores."""
    estimates = Estimates(design)
    entities = [_entity_demand(each, design, estimates) for each in design.entities]
    reads = [PatternDemand(each.name, _float(each.traffic.returns)) for each in design.reads]
    writes = [_write_demand(each) for each in design.write_patterns]
    return Demand(
        tuple(sorted(entities, key=lambda each: each.name)),
        tuple(sorted((*reads, *writes), key=lambda each: each.name)),
    )


def _entity_demand(entity: type[Entity], design: Declaration, estimates: Estimates) -> EntityDemand:
    fields = tuple(
        FieldDemand(
            name,
            type_name(declared.shape),
            estimates.field_bytes(entity, name),
            value_bytes(declared.shape),
            round(float(estimates.distinct(entity, (name,))), 2),
            isinstance(declared.shape, Maybe),
        )
        for name, declared in info(entity).fields.items()
    )
    return EntityDemand(info(entity).name, fields, float(design.declared_writes.get(entity, 0.0)))


def _write_demand(pattern: WritePattern) -> PatternDemand:
    changes = []
    for change in pattern.trace():
        known = info(change.entity)
        always = {
            name for name, each in known.fields.items() if each.role in ("version", "updated")
        }
        fields = sorted({*change.fields, *always}) if change.kind == "update" else ()
        changes.append(ChangeDemand(change.kind, known.name, tuple(fields), float(change.times)))
    return PatternDemand(pattern.name, changes=tuple(changes))


def _float(number: float | None) -> float | None:
    return None if number is None else float(number)
