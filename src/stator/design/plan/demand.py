"""What is asked of a design, frozen with its plan: so that an old lock can be priced by the workload of its day.

A plan has rates, volumes and sizes of items already. Here is the rest: how much each pattern returns, what each write changes, which
writes are only declared, and of every field its type, its size, how many values it has and whether it may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import Maybe, type_name
from stator.design.patterns.pattern import WritePattern
from stator.design.planner.estimates import Estimates, value_bytes

if TYPE_CHECKING:
    from stator.design.design import Design
    from stator.design.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class FieldDemand:
    """``bytes`` has the name in it, ``value_bytes`` has not."""

    name: str
    type: str
    bytes: int
    value_bytes: int
    values: float
    optional: bool = False


@dataclass(frozen=True, slots=True)
class EntityDemand:
    """``creates`` a second are those that ``writes=`` declares beside the write patterns."""

    name: str
    fields: tuple[FieldDemand, ...]
    creates: float = 0.0

    def field(self, name: str) -> FieldDemand | None:
        return next((each for each in self.fields if each.name == name), None)


@dataclass(frozen=True, slots=True)
class ChangeDemand:
    """``fields`` are all that an update changes, with those that change by themselves."""

    kind: Literal["create", "update", "delete"]
    entity: str
    fields: tuple[str, ...] = ()
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class PatternDemand:
    """A read with what it returns, if that was said; a write with its changes."""

    name: str
    returns: float | None = None
    changes: tuple[ChangeDemand, ...] = ()


@dataclass(frozen=True, slots=True)
class Demand:
    entities: tuple[EntityDemand, ...]
    patterns: tuple[PatternDemand, ...]

    def entity(self, name: str) -> EntityDemand | None:
        return next((each for each in self.entities if each.name == name), None)

    def pattern(self, name: str) -> PatternDemand | None:
        return next((each for each in self.patterns if each.name == name), None)


# --- from a design ------------------------------------------------------------------------------------------


def demand_of(design: Design) -> Demand:
    estimates = Estimates(design)
    entities = [_entity(each, design, estimates) for each in design.entities]
    reads = [PatternDemand(each.name, _float(each.traffic.returns)) for each in design.reads]
    writes = [_write(each) for each in design.write_patterns]
    return Demand(
        tuple(sorted(entities, key=lambda each: each.name)),
        tuple(sorted((*reads, *writes), key=lambda each: each.name)),
    )


def _entity(entity: type[Entity], design: Design, estimates: Estimates) -> EntityDemand:
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


def _write(pattern: WritePattern) -> PatternDemand:
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


# --- in words -----------------------------------------------------------------------------------------------


def demand_changes(before: Plan, after: Plan) -> list[str]:
    """What is asked otherwise of what both plans have."""
    return [*_entity_changes(before, after), *_pattern_changes(before, after)]


def _entity_changes(before: Plan, after: Plan) -> Iterator[str]:
    old = {each.name: each for each in before.entities}
    for entity in after.entities:
        if entity.name not in old:
            continue
        was = old[entity.name]
        if was.items != entity.items:
            yield f"{entity.items:,.0f} items of {entity.name} instead of {was.items:,.0f}"
        if was.item_bytes != entity.item_bytes:
            yield f"items of {entity.name} of {entity.item_bytes:,.0f} bytes instead of {was.item_bytes:,.0f}"
        declared = [
            each.demand.entity(entity.name) if each.demand else None for each in (before, after)
        ]
        if (
            declared[0] is not None
            and declared[1] is not None
            and declared[0].creates != declared[1].creates
        ):
            yield f"{declared[1].creates:g} writes of {entity.name} a second instead of {declared[0].creates:g}"


def _pattern_changes(before: Plan, after: Plan) -> Iterator[str]:
    old = {each.name: each for each in before.patterns}
    for pattern in after.patterns:
        if pattern.name not in old:
            continue
        rate = old[pattern.name].requests_per_second
        if rate != pattern.requests_per_second:
            yield f"{pattern.name} {pattern.requests_per_second:g} times a second instead of {rate:g}"
        was, now = (
            each.demand.pattern(pattern.name) if each.demand else None for each in (before, after)
        )
        if was is None or now is None:
            continue
        if was.returns != now.returns:
            yield f"{pattern.name} with {_shown(now.returns)} returned instead of {_shown(was.returns)}"
        if was.changes != now.changes:
            yield f"other changes by {pattern.name}"


def _shown(returns: float | None) -> str:
    return "as many as estimated" if returns is None else f"{returns:g}"
