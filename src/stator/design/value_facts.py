"""Facts about values: how many a field has, how often a condition holds, how uneven a field is.

    facts=[
        distinct(Order.status, values=5),
        distinct(Order.region, Order.day, values=4_000),
        share(Ride.status == "open", 0.001),
        largest(Order.tenant_id, 0.30),
        moving(day_of(Device.seen_at), 0.01),
    ]

The planner computes how many items a key condition matches from volumes and from these facts. For
values that no fact, type or volume says anything about, it guesses and shows the guess.

``distinct``, ``share`` and ``largest`` check what can be checked without a design. ``ValueFacts``
holds the facts of one design and refuses those that contradict each other, a type or a volume.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

from stator.design.entities.conditions import (
    All,
    Any_,
    Comparison,
    Condition,
    Conditional,
    FieldRef,
    Inverse,
    as_condition,
)
from stator.design.entities.derived_parts import (
    DerivedPart,
    PartComparison,
    PartRef,
    derived_part,
)
from stator.design.entities.entity import Entity, EntityInfo, info
from stator.design.entities.shapes import Choice, Maybe, Scalar
from stator.design.patterns.compared_parts import check_part
from stator.design.patterns.condition_contents import references
from stator.design.patterns.param import Param
from stator.design.patterns.quantities import MOST, check_quantity, shown_quantity
from stator.design.plan import key_text as keys
from stator.errors import DesignError

_ROUNDING = 1e-9
MOST_CONTRADICTED: Final = 1.25
"""``returns=`` and the volumes may differ by this factor, as an estimate and a measurement may."""


@dataclass(frozen=True, slots=True)
class DistinctFact:
    """A field, or several fields together, have this many distinct values."""

    entity: type[Entity]
    fields: tuple[str, ...]
    values: float
    where: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"distinct({_shown(self.entity, self.fields)}, values={_number(self.values)})"


@dataclass(frozen=True, slots=True)
class ShareFact:
    """A condition with constant values holds for this share of an entity's items."""

    entity: type[Entity]
    condition: Condition
    part: float
    where: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"share({condition_text(self.condition)}, {_number(self.part)})"


@dataclass(frozen=True, slots=True)
class LargestFact:
    """The most frequent value of a field has this share of an entity's items."""

    entity: type[Entity]
    name: str
    part: float
    where: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"largest({_shown(self.entity, (self.name,))}, {_number(self.part)})"


@dataclass(frozen=True, slots=True)
class MovingFact:
    """This share of the updates of a field changes a part of it, such as its day."""

    entity: type[Entity]
    name: str
    part: float
    where: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"moving({_shown(self.entity, (self.name,))}, {_number(self.part)})"


Fact = DistinctFact | ShareFact | LargestFact | MovingFact
"""A fact about the values of one entity, as ``distinct``, ``share`` and the like return it."""


def distinct(*fields: Any, values: float) -> Fact:
    """Declare how many distinct values a field has, or how many combinations several fields have.

    ``distinct(Order.status, values=5)``, ``distinct(Order.region, Order.day, values=4_000)``.
    """
    where = _caller()
    example = "distinct(Order.status, values=5)"
    named = [_plain_field(each, where, example) for each in fields]
    owners = {each.owner for each in named}
    if len(owners) != 1:
        shown = ", ".join(map(repr, named)) or "no field"
        raise DesignError(
            f"{where}: distinct() takes fields of one entity, not {shown}", hint=f"write {example}"
        )
    names = tuple(each.name for each in named)
    if len(set(names)) != len(names):
        raise DesignError(
            f"{where}: distinct() names a field twice: {', '.join(map(repr, named))}",
            hint="name each field once",
        )
    found = DistinctFact(info(owners.pop()).root, names, values, where)
    check_quantity(f"{where}: {found}: values", values)
    if values < 1:
        raise DesignError(
            f"{where}: {found}: values must be 1 or more",
            hint="declare how many different values there are; a rough estimate is enough",
        )
    return found


def share(condition: Conditional, part: float) -> Fact:
    """Declare for which share of an entity's items a condition holds.

    ``share(Ride.status == "open", 0.001)`` says that one ride in a thousand is open. The condition
    compares fields with constants.
    """
    where = _caller()
    test = as_condition(condition)
    named = references(test)
    owners = {each.owner for each in named}
    if len(owners) != 1 or len(named) != sum(1 for _ in _comparisons(test)):
        raise DesignError(
            f"{where}: share() takes a condition on one entity with constant values, "
            f"not {condition_text(test)}",
            hint='write share(Ride.status == "open", 0.001)',
        )
    for each in _comparisons(test):
        if any(isinstance(value, Param) for value in each.values):
            raise DesignError(
                f"{where}: share() takes constants, not arguments of a pattern: {each!r}",
                hint="declare facts in Design(..., facts=[...]), outside of patterns",
            )
    found = ShareFact(info(owners.pop()).root, test, part, where)
    _check_part(found, part, where)
    return found


def largest(field: Any, part: float) -> Fact:
    """Declare which share of an entity's items has the most frequent value of a field.

    ``largest(Order.tenant_id, 0.30)`` says that the largest tenant has 30 % of the orders.
    """
    where = _caller()
    named = _plain_field(field, where, "largest(Order.tenant_id, 0.30)")
    found = LargestFact(info(named.owner).root, named.name, part, where)
    _check_part(found, part, where)
    if not part:
        raise DesignError(
            f"{where}: {found}: the share must be above 0",
            hint="the most frequent value has at least one item",
        )
    return found


def moving(part: Any, share: float) -> Fact:
    """Declare which share of the updates of a field changes a part of it.

    ``moving(prefix_of(Position.cell, 5), 0.1)`` says that one update of ``cell`` in ten changes its
    first five characters. Such an update moves the item in an index by that prefix.
    """
    where = _caller()
    named = _plain_field(part, where, "moving(prefix_of(Position.cell, 5), 0.1)")
    if not isinstance(named, PartRef):
        raise DesignError(
            f"{where}: moving() takes a part of a field, not {named!r}: an update changes the "
            f"whole field",
            hint="write moving(prefix_of(Position.cell, 5), 0.1), or moving(day_of(...), ...)",
        )
    found = MovingFact(info(named.owner).root, named.name, share, where)
    _check_part(found, share, where)
    return found


def _caller() -> str:
    """Return the file and line that declares a fact."""
    frame: FrameType | None = inspect.currentframe()
    for _ in range(2):
        frame = frame.f_back if frame is not None else None
    return "facts" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _plain_field(given: Any, where: str, example: str) -> FieldRef | PartRef:
    if isinstance(given, PartRef):
        check_part(info(given.owner), DerivedPart(given.field.name, given.part))
        return given
    if not isinstance(given, FieldRef) or len(given.path) != 1:
        shown = repr(given) if isinstance(given, FieldRef) else f"{type(given).__name__} {given!r}"
        raise DesignError(f"{where}: {shown} is not a field of an entity", hint=f"write {example}")
    return given


def _check_part(found: Fact, part: Any, where: str) -> None:
    check_quantity(f"{where}: {found}: the share", part)
    if part > 1:
        raise DesignError(
            f"{where}: {found}: the share is above 1, which means all items",
            hint=f"write {part / 100:g} for {part:g} %",
        )


# --- conditions -----------------------------------------------------------------------------------


def condition_text(condition: Condition) -> str:
    """Return a condition as text. Conditions with the same text accept the same items."""
    match condition:
        case PartComparison():
            return repr(condition)
        case Comparison(named, operator, values):
            shown = ", ".join(repr(keys.plain(value)) for value in values)
            return f"{named!r} {'==' if operator == '=' else operator} {shown}".rstrip()
        case All(operands):
            return " & ".join(sorted(f"({condition_text(each)})" for each in operands))
        case Any_(operands):
            return " | ".join(sorted(f"({condition_text(each)})" for each in operands))
        case Inverse(operand):
            return f"~({condition_text(operand)})"
    raise AssertionError(condition)


def _comparisons(condition: Condition) -> Iterable[Comparison]:
    match condition:
        case Comparison():
            yield condition
        case All(operands) | Any_(operands):
            for each in operands:
                yield from _comparisons(each)
        case Inverse(operand):
            yield from _comparisons(operand)


def possible_values(known: EntityInfo, name: str) -> int | None:
    """Return how many values a field's type allows: a Literal, an Enum or a bool.

    Returns None for other types, and for derived parts.
    """
    if name not in known.fields:
        return None
    shape = known.fields[name].shape
    shape = shape.inner if isinstance(shape, Maybe) else shape
    if isinstance(shape, Choice):
        return len(shape.values)
    return 2 if isinstance(shape, Scalar) and shape.python is bool else None


def is_unique(known: EntityInfo, fields: Iterable[str]) -> bool:
    """Whether no two items have the same values of these fields and derived parts."""
    names = set(fields)
    return set(known.identity) <= names or any(
        name in known.fields and known.fields[name].role == "unique" for name in names
    )


# --- the facts of a design ------------------------------------------------------------------------


class ValueFacts:
    """The facts of one design, checked and found by entity and fields."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self.all: tuple[Fact, ...] = tuple(facts)
        self._distinct: dict[tuple[type[Entity], frozenset[str]], DistinctFact] = {}
        self._shares: dict[tuple[type[Entity], str], ShareFact] = {}
        self._largest: dict[tuple[type[Entity], str], LargestFact] = {}
        self._moving: dict[tuple[type[Entity], str], MovingFact] = {}

    def check(
        self,
        design: str,
        entities: Iterable[type[Entity]],
        volume: Callable[[type[Entity]], float],
    ) -> None:
        """Raise DesignError for a fact that cannot be true in a design with these volumes."""
        known = set(entities)
        for each in self.all:
            if not isinstance(each, (DistinctFact, ShareFact, LargestFact, MovingFact)):
                raise DesignError(
                    f"{design}: facts has {each!r}, which is not a fact",
                    hint="write facts=[distinct(Order.status, values=5)]",
                )
            if each.entity not in known:
                raise DesignError(
                    f"{each.where}: {each} is about {each.entity.__name__}, "
                    f"which is not in the design {design}",
                    hint=f"add {each.entity.__name__} to the entities of {design}",
                )
            self._add(each)
        for counted in self._distinct.values():
            self._check_distinct(counted, volume(counted.entity))
        for skewed in self._largest.values():
            self._check_largest(skewed)
        self._check_shares()

    def _add(self, fact: Fact) -> None:
        before: Fact | None
        match fact:
            case DistinctFact(entity, fields):
                before = self._distinct.setdefault((entity, frozenset(fields)), fact)
            case ShareFact(entity, condition):
                before = self._shares.setdefault((entity, condition_text(condition)), fact)
            case LargestFact(entity, name):
                before = self._largest.setdefault((entity, name), fact)
            case MovingFact(entity, name):
                before = self._moving.setdefault((entity, name), fact)
        if before is not fact and before != fact:
            raise DesignError(
                f"{fact.where}: {fact} contradicts {before} at {before.where}",
                hint="declare one of the two",
            )

    def _check_distinct(self, fact: DistinctFact, volume: float) -> None:
        known = info(fact.entity)
        if fact.values > volume + _ROUNDING:
            raise DesignError(
                f"{fact.where}: {fact} has more values than {known.name} has items, "
                f"which is {_number(volume)}",
                hint=f"declare volumes={{{fact.entity.__name__}: ...}}, or fewer values",
            )
        if is_unique(known, fact.fields) and fact.values < volume - _ROUNDING:
            raise DesignError(
                f"{fact.where}: {fact} has too few values: they are unique to each of "
                f"{_number(volume)} items",
                hint=f"leave the fact out: volumes={{{fact.entity.__name__}: ...}} says it",
            )
        for name in fact.fields:
            size = possible_values(known, name)
            if len(fact.fields) == 1 and size is not None and fact.values > size:
                raise DesignError(
                    f"{fact.where}: {fact}, but the type of {known.name}.{name} has {size} values",
                    hint=f"declare at most {size}, or leave the fact out: the type says it",
                )
            alone = self._distinct.get((fact.entity, frozenset((name,))))
            if alone is not None and alone.values > fact.values:
                raise DesignError(
                    f"{fact.where}: {fact} has fewer values than {alone} at {alone.where}",
                    hint="several fields together have at least as many values as each of them",
                )
        most = math.prod(self._most(fact.entity, name) for name in fact.fields)
        if fact.values > most + _ROUNDING:
            raise DesignError(
                f"{fact.where}: {fact} has more values than its fields have combinations, "
                f"which is {_number(most)}",
                hint="declare fewer values, or more values of one of the fields",
            )

    def _most(self, entity: type[Entity], name: str) -> float:
        """Return the most values that a field can have.

        A ``distinct`` fact or the field's type limits them. Without a limit, returns infinity.
        """
        declared = self._distinct.get((entity, frozenset((name,))))
        size = possible_values(info(entity), name)
        found = declared.values if declared is not None else size
        return math.inf if found is None else float(found)

    def _check_largest(self, fact: LargestFact) -> None:
        present = self.present(fact.entity, fact.name)
        if present is not None and fact.part > present + _ROUNDING:
            raise DesignError(
                f"{fact.where}: {fact} is more than the {_number(present)} of the items that have "
                f"{fact.name}",
                hint="largest() is a share of all items: lower it, or declare more items with the "
                "field",
            )
        values = self._most(fact.entity, fact.name)
        least = (1.0 if present is None else present) / values
        if fact.part < least - _ROUNDING:
            raise DesignError(
                f"{fact.where}: {fact} is less than an equal share of {_number(values)} values",
                hint=f"the largest value has at least {least:.4g} of the items",
            )

    def _check_shares(self) -> None:
        sums: dict[tuple[type[Entity], str], list[ShareFact]] = {}
        for fact in self._shares.values():
            test = fact.condition
            if not isinstance(test, Comparison) or test.operator != "=" or len(test.field.path) > 1:
                continue
            name = test.field.name
            self._check_value(fact, test)
            skew = self._largest.get((fact.entity, name))
            is_value = test.values[0] is not None
            if is_value and skew is not None and fact.part > skew.part + _ROUNDING:
                raise DesignError(
                    f"{fact.where}: {fact} contradicts {skew} at {skew.where}",
                    hint="the share gives one value more items than largest() allows: lower the "
                    "share, or raise largest()",
                )
            sums.setdefault((fact.entity, name), []).append(fact)
        for facts in sums.values():
            total = sum(each.part for each in facts)
            if total > 1 + _ROUNDING:
                raise DesignError(
                    f"{facts[-1].where}: {' and '.join(map(str, facts))} add up to {total:g}, "
                    f"which is more than all items",
                    hint="the shares of different values of one field are at most 1 together",
                )

    def _check_value(self, fact: ShareFact, test: Comparison) -> None:
        shape = info(fact.entity).fields[test.field.name].shape
        shape = shape.inner if isinstance(shape, Maybe) else shape
        value = keys.plain(test.values[0])
        if isinstance(shape, Choice) and value is not None:
            options = [keys.plain(each) for each in shape.values]
            if value not in options:
                raise DesignError(
                    f"{fact.where}: {fact}: {test.field!r} cannot be {value!r}",
                    hint=f"use one of {', '.join(map(repr, options))}",
                )

    # -- lookups

    def distinct(self, entity: type[Entity], fields: Iterable[str]) -> float | None:
        """Return how many values the fields together have, if a fact says so."""
        found = self._distinct.get((entity, frozenset(fields)))
        return None if found is None else float(found.values)

    def distinct_parts(self, entity: type[Entity]) -> Mapping[frozenset[str], float]:
        """Return every ``distinct`` fact of an entity: its fields and how many values they have."""
        return {
            fields: float(fact.values)
            for (owner, fields), fact in self._distinct.items()
            if owner is entity
        }

    def share(self, entity: type[Entity], condition: Condition) -> float | None:
        """Return the share of items for which a condition holds, if a fact says so."""
        found = self._shares.get((entity, condition_text(condition)))
        return None if found is None else float(found.part)

    def present(self, entity: type[Entity], name: str) -> float | None:
        """Return the share of items that have an optional field, if a fact says so."""
        named = FieldRef(entity, (name,))
        found = self.share(entity, named.exists())
        if found is not None:
            return found
        for test in (named.not_exists(), Comparison(named, "=", (None,))):
            absent = self.share(entity, test)
            if absent is not None:
                return 1.0 - absent
        return None

    def all_present(self, entity: type[Entity], names: Iterable[str]) -> float:
        """Return the share of items that have all these fields.

        A field about which no fact says anything counts as present in every item.
        """
        parts = [self.present(entity, name) for name in names]
        return math.prod(each for each in parts if each is not None)

    def moving(self, entity: type[Entity], name: str) -> float | None:
        """Return the share of updates of a field that change a derived part, if a fact says so.

        ``name`` names the derived part: ``day_of(seen_at)``.
        """
        found = self._moving.get((entity, name))
        return None if found is None else float(found.part)

    def _largest_part(self, entity: type[Entity], part: DerivedPart) -> float | None:
        parts = [
            fact.part
            for (owner, _), fact in self._shares.items()
            if owner is entity
            and isinstance(fact.condition, PartComparison)
            and fact.condition.derived == part
        ]
        return max(parts, default=None)

    def frequent(self, entity: type[Entity], name: str) -> list[tuple[Any, float]]:
        """Return the values of a field whose shares are declared, each with its share.

        The shares come from ``share`` facts about one value. The most frequent value comes first.
        """
        found = [
            (fact.condition.values[0], float(fact.part))
            for (owner, _), fact in self._shares.items()
            if owner is entity
            and isinstance(fact.condition, Comparison)
            and fact.condition.operator == "="
            and fact.condition.field.path == (name,)
            and fact.condition.values[0] is not None
        ]
        return sorted(found, key=lambda each: -each[1])

    def largest(self, entity: type[Entity], name: str) -> float | None:
        """Return the share of items that have a field's most frequent value, if facts say so.

        Without a ``largest`` fact, the result is the largest share that a ``share`` fact declares
        for one value of the field. ``share(Ride.driver_id == None, 0.07)`` is about no value:
        no key holds None.
        """
        found = self._largest.get((entity, name))
        if found is not None:
            return float(found.part)
        part = derived_part(name)
        if part is not None:
            return self._largest_part(entity, part)
        return next((part for _, part in self.frequent(entity, name)), None)


def shown_name(entity: type[Entity], name: str) -> str:
    """Return a field or a derived part as a user writes it: ``month_of(Order.placed_at)``."""
    part = derived_part(name)
    if part is None:
        return repr(FieldRef(entity, (name,)))
    return part.shown(repr(FieldRef(entity, (part.field,))))


def _shown(entity: type[Entity], names: Iterable[str]) -> str:
    return ", ".join(shown_name(entity, name) for name in names)


def _number(value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:,.10g}" if is_number and abs(value) <= MOST else shown_quantity(value)
