"""The writes to an entity: their rates, the fields they change, and the key they must find."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from stator.design.entities.conditions import Comparison
from stator.design.entities.entity import Entity, info
from stator.design.patterns.write_pattern import DeclaredWrite
from stator.design.planner.needs.need import Need, ValueSource
from stator.errors import DesignError


@dataclass(frozen=True)
class ItemWrite:
    """A write to one item of an entity, and how often it happens each second.

    An update changes ``fields``. ``before`` and ``after`` are the declared states of the item.
    """

    kind: Literal["create", "update", "delete"]
    rate: float
    fields: frozenset[str] = frozenset()
    before: tuple[Comparison, ...] = ()
    after: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class WriteRates:
    """The writes to an entity. Writes with the same effect are added up to one."""

    writes: tuple[ItemWrite, ...] = ()

    @cached_property
    def creates(self) -> float:
        return sum(each.rate for each in self.writes if each.kind == "create")

    @cached_property
    def deletes(self) -> float:
        return sum(each.rate for each in self.writes if each.kind == "delete")

    @cached_property
    def updates(self) -> tuple[tuple[frozenset[str], float], ...]:
        """Updates per second, by the fields they change."""
        found: dict[frozenset[str], float] = {}
        for each in self.writes:
            if each.kind == "update":
                found[each.fields] = found.get(each.fields, 0.0) + each.rate
        return tuple(sorted(found.items(), key=lambda each: sorted(each[0])))

    @property
    def by_key(self) -> float:
        """Updates and deletes per second. These writes must find their item by its key."""
        return self.deletes + sum(rate for _, rate in self.updates)


def item_write(change: DeclaredWrite, rate: float) -> ItemWrite:
    """Return a declared write as a write to one item.

    An update also changes the fields that every update changes. A soft delete is an update.
    """
    known = info(change.entity)
    always = {name for name, each in known.fields.items() if each.role in ("version", "updated")}
    marks = {name for name, each in known.fields.items() if each.role == "soft_delete"}
    if change.kind == "delete" and marks:
        return ItemWrite("update", rate, frozenset(marks | always), change.before)
    fields = frozenset(change.fields) | always if change.kind == "update" else frozenset[str]()
    return ItemWrite(change.kind, rate, fields, change.before, change.after)


def rates_of(entity: type[Entity], changes: Iterable[tuple[DeclaredWrite, float]]) -> WriteRates:
    found: dict[tuple[object, ...], ItemWrite] = {}
    for change, rate in changes:
        if change.entity is not entity:
            continue
        each = item_write(change, rate)
        states = [tuple(map(repr, states)) for states in (each.before, each.after)]
        key = each.kind, tuple(sorted(each.fields)), *states
        before = found.get(key)
        found[key] = each if before is None else replace(before, rate=before.rate + rate)
    return WriteRates(tuple(found[key] for key in sorted(found, key=repr)))


def mutable_fields(entity: type[Entity], rates: WriteRates) -> frozenset[str]:
    """Return the fields that some declared write changes. A base key must not hold them."""
    known = info(entity)
    changed = {name for fields, _ in rates.updates for name in fields}
    roles = {
        name
        for name, each in known.fields.items()
        if each.role in ("version", "updated", "counter", "ttl", "soft_delete")
    }
    for name in known.identity:
        if name in changed:
            raise DesignError(
                f"{known.name}.{name} is part of the identity, but a write pattern changes it",
                hint="delete the item and create another, or mark another field with ident()",
            )
    return frozenset(changed | roles)


def identity_need(entity: type[Entity], rates: WriteRates) -> Need | None:
    """Return the need of updates and deletes to find an item's key from its identity.

    Returns None if no declared write updates or deletes items.
    """
    if rates.by_key <= 0:
        return None
    equal = {name: ValueSource(param=name) for name in info(entity).identity}
    return Need(f"writes to {info(entity).name}", entity, equal, only_key=True, rps=rates.by_key)
