"""The declared shape of the data: how many items there are, and how their values are spread.

Everything here follows from the declaration: volumes, ``per()``, types, identities and facts. The
planner's estimates are computed by other code. Where the declaration says nothing, the following is
assumed, and the report calls each assumption a guess:

| Not declared | Assumed |
|---|---|
| the volume of an entity | 1,000,000 items |
| the values of a text or a number | the square root of the volume |
| the values of a date | three years of days |
| the years, months, days or hours of a time | as many as three years have |
| the values of a prefix | ten for each character, and at most as many as the field has |
| whether an optional field is set | in half of the items, if a pattern or an index asks for it |
| how many items pass a filter or a range | a third |
| how values are spread | evenly; ``largest()`` gives one value more |

``per()``, ``distinct()`` and volumes say how many items a value has on average. A usual value has
that many, and the value of a ``largest()`` fact has more. Otherwise a tenant with a third of all
items would make every other tenant smaller than declared, and no call could show the average that
a plan estimates.

A field refers to another entity if it has the name of that entity's identity: ``Order.user_id``
to ``User.user_id``, or to ``User.id``. It then has as many values as there are users. A pattern
that only compares fields with arguments says by ``returns`` how many items have these values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final, cast
from uuid import UUID

from stator.design.declaration import Declaration, Per
from stator.design.entities.conditions import Comparison, FieldRef, Inverse
from stator.design.entities.derived_parts import (
    DerivedPart,
    PartComparison,
    derived_part,
    source_field,
    without_implied,
)
from stator.design.entities.entity import Entity, EntityInfo, info
from stator.design.entities.shapes import Choice, Epoch, Maybe, Scalar, Shape
from stator.design.patterns.param import Param
from stator.design.value_facts import DistinctFact, LargestFact, ShareFact

KEPT_SHARE: Final = 1 / 3
PRESENT_SHARE: Final = 1 / 2
_VOLUME: Final = 1_000_000
_DAYS: Final = 3 * 365
_DAYS_IN: Final = {"year": 365.0, "month": 365 / 12, "day": 1.0, "hour": 1 / 24}
_COMMON_NAMES: Final = frozenset({"id", "key", "name", "code", "number", "no", "at", "title"})
"""Names of identity fields that say nothing about the entity they belong to."""


@dataclass(frozen=True, slots=True)
class EntityReference:
    """A reference from the fields of an entity to the identity of another one, its ``parent``.

    ``fields`` pairs each referring field with the identity field of ``parent`` that it refers to:
    ``("user_id", "id")``.
    """

    parent: type[Entity]
    fields: tuple[tuple[str, str], ...]

    def named(self, fields: set[str]) -> list[tuple[str, str]]:
        """Return the pairs of this reference whose referring field is one of ``fields``."""
        return [(own, theirs) for own, theirs in self.fields if own in fields]


@dataclass(slots=True)
class Guesses:
    """The assumptions that a measurement rests on, in the order in which they were made."""

    found: dict[str, None] = field(default_factory=dict)

    def add(self, text: str) -> None:
        self.found[text] = None

    def drop(self, subject: str) -> None:
        """Forget the guesses about a field, because its number of values follows from elsewhere."""
        for text in [each for each in self.found if each.startswith(f"{subject} has ")]:
            del self.found[text]

    def drop_filter(self, condition: str) -> None:
        """Forget the guess about how many items pass a filter."""
        for text in [each for each in self.found if each.startswith(f"{condition} keeps ")]:
            del self.found[text]

    def drop_presence(self, subject: str) -> None:
        """Forget the guess about how many items have a field, because it follows from elsewhere."""
        for text in [each for each in self.found if each.startswith(f"{subject} is set in ")]:
            del self.found[text]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(self.found)


def inner(shape: Shape) -> Shape:
    return shape.inner if isinstance(shape, Maybe) else shape


class DeclaredShape:
    """The volumes, the references between entities, and the shares of values of one design."""

    def __init__(self, design: Declaration) -> None:
        self.design = design
        self.guesses = Guesses()
        """Collects the guesses; a caller replaces it to see only those of one measurement."""
        self._facts = design.facts.all
        self._implied_by: dict[type[Entity], list[tuple[frozenset[str], float]]] = {}
        self._present: dict[tuple[type[Entity], str], float] = {}
        self.references = {entity: self._references(entity) for entity in design.entities}

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        """Discard the guesses made in a ``with`` block: the measurement does not rest on them."""
        kept, self.guesses = self.guesses, Guesses()
        try:
            yield
        finally:
            self.guesses = kept

    # -- volumes

    def volume(self, entity: type[Entity]) -> float:
        return max(1.0, self._volume(entity))

    def _volume(self, entity: type[Entity]) -> float:
        declared = self.design.declared_volumes.get(entity)
        if declared is None:
            self.guesses.add(
                f"{info(entity).name} has {_VOLUME:,} items; declare volumes={{{_class(entity)}: "
                "...}"
            )
            return float(_VOLUME)
        if isinstance(declared, Per):
            return declared.count * self.volume(declared.entity)
        return float(declared)

    # -- references

    def _references(self, entity: type[Entity]) -> tuple[EntityReference, ...]:
        others = [each for each in self.design.entities if each is not entity]
        found = [each for other in others if (each := _reference(entity, other)) is not None]
        declared = self.design.declared_volumes.get(entity)
        if isinstance(declared, Per) and all(each.parent is not declared.entity for each in found):
            found += self._only_candidate(entity, declared.entity)
        # Of two entities with one identity, such as User and Profile, the larger one counts.
        return tuple(
            sorted(
                found,
                key=lambda each: (
                    -len(each.fields),
                    -self.design.volume(each.parent),
                    each.fields,
                ),
            )
        )

    def _only_candidate(self, entity: type[Entity], parent: type[Entity]) -> list[EntityReference]:
        """Return the field that probably refers to the parent in ``per(parent, n)``, in a list.

        Candidates are the fields that read patterns compare and that have the type of the parent's
        identity. The list is empty unless there is exactly one candidate.
        """
        identity = info(parent).identity
        if len(identity) != 1:
            return []
        wanted = inner(info(parent).fields[identity[0]].shape)
        own = info(entity)
        candidates = [
            name
            for name in sorted(self._compared(entity))
            if own.identity != (name,) and inner(own.fields[name].shape) == wanted
        ]
        return (
            [EntityReference(parent, ((candidates[0], identity[0]),))]
            if len(candidates) == 1
            else []
        )

    def _compared(self, entity: type[Entity]) -> set[str]:
        return {
            test.field.name
            for pattern in self.design.reads
            for test in pattern.trace().tests
            if test.operator == "=" and issubclass(entity, test.field.owner)
            and test.field.name in info(entity).fields
        }  # fmt: skip

    # -- values

    def values(self, entity: type[Entity], fields: Iterable[str]) -> float:
        """Return how many distinct values, or combinations of values, the fields have."""
        return self._values(entity, frozenset(fields), frozenset())

    def _values(
        self, entity: type[Entity], fields: frozenset[str], above: frozenset[type[Entity]]
    ) -> float:
        known, volume = info(entity), self.volume(entity)
        fields = without_implied(fields)
        if not fields:
            return 1.0
        if set(known.identity) <= fields or _has_unique(known, fields):
            return volume
        total, left = 1.0, set(fields)
        facts, open_ = (
            self._distinct_facts(entity),
            [each for each in self.references[entity] if each.parent not in above],
        )
        # What is known about several fields together counts before what is known about one.
        for least in (2, 1):
            for declared in facts:
                if len(declared.fields) >= least and set(declared.fields) <= left:
                    total *= declared.values
                    left -= set(declared.fields)
            while open_:  # the parent that most of the fields name comes first
                best = max(open_, key=lambda each: len(each.named(left)))
                named = best.named(left)
                if len(named) < least:
                    break
                open_.remove(best)
                theirs = frozenset(name for _, name in named)
                total *= self._values(best.parent, theirs, above | {entity})
                left -= {own for own, _ in named}
        for implied, count in self._implied(entity):
            if implied <= left:
                held = self.design.facts.all_present(entity, map(source_field, implied))
                total *= max(1.0, volume * held / count)
                left -= implied
        for name in sorted(left):
            total *= self._alone(known, name, volume)
        return max(1.0, min(volume, total))

    def _distinct_facts(self, entity: type[Entity]) -> list[DistinctFact]:
        found = [
            each for each in self._facts if isinstance(each, DistinctFact) and each.entity is entity
        ]
        return sorted(found, key=lambda each: (-len(each.fields), each.fields))

    def _implied(self, entity: type[Entity]) -> list[tuple[frozenset[str], float]]:
        """Return sets of fields, and how many items share their values, as ``returns`` declares.

        A pattern that only compares fields for equality returns all items with these values. So if
        ``orders_of_user`` returns 20, each ``user_id`` has 20 orders.
        """
        found = self._implied_by.get(entity)
        if found is None:
            counts: dict[frozenset[str], float] = {}
            for pattern in self.design.reads:
                ask, returns = pattern.trace(), pattern.traffic.returns
                if returns is None or ask.targets != (entity,) or ask.filters:
                    continue
                if ask.limit is not None:
                    continue
                fields = frozenset(
                    compared_name(test)
                    for test in ask.tests
                    if test.operator in ("=", "part") and isinstance(test.values[0], Param)
                )
                is_open = any(self._is_open(entity, name) for name in fields)
                if len(fields) == len(ask.tests) and is_open:
                    counts.setdefault(fields, returns)
            found = sorted(counts.items(), key=lambda each: (-len(each[0]), sorted(each[0])))
            self._implied_by[entity] = found
        return found

    def _is_open(self, entity: type[Entity], name: str) -> bool:
        """Whether neither a type nor a volume nor a fact says how many values a field has."""
        return not self._is_known(entity, name) and self.is_text_like(entity, name)

    @staticmethod
    def is_text_like(entity: type[Entity], name: str) -> bool:
        """Whether a field's type allows any number of values."""
        if derived_part(name) is not None:
            return True
        shape = inner(info(entity).fields[name].shape)
        return not isinstance(shape, Choice) and shape != Scalar(bool)

    def is_guessed(self, entity: type[Entity], name: str) -> bool:
        """Whether the number of values of a field is a guess."""
        return not self.is_declared(entity, name) and self.is_text_like(entity, name)

    def _part_values(self, known: EntityInfo, part: DerivedPart, volume: float) -> float:
        """Return how many values a derived part of a field has.

        Without a fact, times are assumed to cover three years, and a character of a prefix to have
        ten values. The derived part never has more values than the field.
        """
        entity = cast("type[Entity]", known.cls)
        for declared in self._distinct_facts(entity):
            other = derived_part(declared.fields[0]) if len(declared.fields) == 1 else None
            if other is not None and part.is_time and other.field == part.field:
                days = declared.values * _DAYS_IN[other.part]
                return max(1.0, min(volume, days / _DAYS_IN[part.part]))
        whole = self._values(entity, frozenset((part.field,)), frozenset())
        most = _DAYS / _DAYS_IN[part.part] if part.is_time else 10.0 ** min(part.length, 18)
        found = max(1.0, min(whole, most))
        shown = part.shown(f"{_class(known.cls)}.{part.field}")
        self.guesses.add(f"{shown} has {found:,.0f} values; declare distinct({shown}, values=...)")
        return found

    def _alone(self, known: EntityInfo, name: str, volume: float) -> float:
        part = derived_part(name)
        if part is not None:
            return self._part_values(known, part, volume)
        shape = inner(known.fields[name].shape)
        if isinstance(shape, Choice):
            return len(shape.values)
        python = shape.python if isinstance(shape, Scalar) else str
        if name == _own_id(known):
            return volume
        if python is bool:
            return 2
        if python in (datetime, Epoch, UUID):
            return volume
        found = float(_DAYS) if python is date else math.sqrt(volume)
        found = max(1.0, min(volume, found))
        self.guesses.add(
            f"{known.name}.{name} has {found:,.0f} values; declare "
            f"distinct({_class(known.cls)}.{name}, values=...)"
        )
        return found

    # -- chances

    def chance(self, entity: type[Entity], fixed: Mapping[str, Any]) -> float:
        """Return the share of an entity's items that have these values.

        At least one item is assumed to have these values, because a call asks for them.
        """
        volume = self.volume(entity)
        known = info(entity)
        if set(known.identity) <= set(fixed) or _has_unique(known, fixed):
            return 1 / volume
        found, left = 1.0, dict(fixed)
        for name, value in fixed.items():
            declared = (
                self._absent_share(entity, name)
                if value is None
                else self.value_share(entity, name, value)
            )
            if declared is not None:
                found *= declared
                del left[name]
            elif isinstance(known.fields[source_field(name)].shape, Maybe):
                found *= self.present_share(entity, source_field(name))
        return max(1 / volume, found / self.values(entity, left))

    def _absent_share(self, entity: type[Entity], name: str) -> float:
        return 1 - self.present_share(entity, name)

    def present_share(self, entity: type[Entity], name: str) -> float:
        """Return the share of items that have a value of an optional field."""
        declared = self.design.facts.present(entity, name)
        if declared is None:
            declared = self._present.get((entity, name))
        if declared is not None:
            return declared
        self.guesses.add(
            f"{info(entity).name}.{name} is set in half of the items; declare "
            f"share(attr({_class(entity)}.{name}).exists(), ...)"
        )
        return PRESENT_SHARE

    def is_presence_declared(self, entity: type[Entity], name: str) -> bool:
        """Whether a fact says how many items have an optional field."""
        return self.design.facts.present(entity, name) is not None

    def settle_presence(self, entity: type[Entity], name: str, share: float) -> None:
        """Use ``share`` from now on as the share of items that have an optional field."""
        self._present[entity, name] = share

    def value_share(self, entity: type[Entity], name: str, value: Any) -> float | None:
        """Return the share of items with one value of a field, or None if no fact says it."""
        shares = self._value_shares(entity, name)
        if plain(value) in shares:
            return shares[plain(value)]
        if not shares:
            return None
        others = self.values(entity, (name,)) - len(shares)
        return max(0.0, 1 - sum(shares.values())) / max(1.0, others)

    def _value_shares(self, entity: type[Entity], name: str) -> dict[Any, float]:
        return {
            plain(each.condition.values[0]): each.part
            for each in self._facts
            if isinstance(each, ShareFact)
            and each.entity is entity
            and isinstance(each.condition, Comparison)
            and each.condition.operator in ("=", "part")
            and each.condition.values[0] is not None  # says how many items lack the field
            and len(each.condition.field.path) == 1
            and compared_name(each.condition) == name
        }

    def largest(self, entity: type[Entity], name: str) -> float | None:
        """Return the share of the most frequent value, if ``largest()`` declares it."""
        return next(
            (
                each.part
                for each in self._facts
                if isinstance(each, LargestFact) and each.entity is entity and each.name == name
            ),
            None,
        )

    def spread(self, entity: type[Entity], name: str) -> tuple[tuple[Any, float], ...]:
        """Return the values of a field whose share is declared, with their shares."""
        return tuple(self._value_shares(entity, name).items())

    def condition_share(self, entity: type[Entity], condition: Any) -> float | None:
        """Return the share of items that meet a condition, or None if no ``share()`` declares it.

        A fact about the opposite condition counts, too: if a third of the items have a field, two
        thirds lack it. Likewise, the share of one value says how many items have another.
        """
        found = self.design.facts.share(entity, condition)
        if found is None and isinstance(condition, Inverse):
            opposite = self.condition_share(entity, condition.operand)
            return None if opposite is None else 1 - opposite
        if found is None and isinstance(condition, Comparison) and len(condition.field.path) == 1:
            values = self._values_share(entity, condition)
            if values is not None:
                return values
            present = self.design.facts.present(entity, condition.field.name)
            if present is not None and condition.operator == "exists":
                return present
            is_absence = condition.operator == "=" and condition.values == (None,)
            if present is not None and (is_absence or condition.operator == "not_exists"):
                return 1 - present
        return found

    def _values_share(self, entity: type[Entity], condition: Comparison) -> float | None:
        """Return the share of items with the values that a comparison with constants accepts.

        Returns None unless facts declare the shares of such values.
        """
        name, operator = condition.field.name, condition.operator
        values = condition.values
        if operator not in ("=", "<>", "in") or name not in info(entity).fields:
            return None
        if any(value is None or isinstance(value, (Param, FieldRef)) for value in values):
            return None
        if derived_part(compared_name(condition)) is not None:
            return None
        declared = self._value_shares(entity, name)
        is_open = self.is_text_like(entity, name)  # values without a share have none by type
        if not declared or (is_open and any(plain(value) not in declared for value in values)):
            return None
        shares = [self.value_share(entity, name, value) or 0.0 for value in values]
        return 1 - sum(shares) if operator == "<>" else min(1.0, sum(shares))

    def is_declared(self, entity: type[Entity], name: str) -> bool:
        """Whether volumes, facts, an identity or ``returns`` decide how many values there are."""
        return self._is_known(entity, name) or any(
            fields == {name} for fields, _ in self._implied(entity)
        )

    def _is_known(self, entity: type[Entity], name: str) -> bool:
        known = info(entity)
        return (
            known.identity == (name,)
            or _has_unique(known, (name,))
            or any(name in (own for own, _ in each.fields) for each in self.references[entity])
            or any(name in each.fields for each in self._distinct_facts(entity))
            or bool(self._value_shares(entity, name))
            or self.largest(entity, name) is not None
        )


def compared_name(test: Comparison) -> str:
    """Return the name of the field, or of the derived part, that a comparison tests."""
    return str(test.derived) if isinstance(test, PartComparison) else test.field.name


def plain(value: Any) -> Any:
    """Return the value of an Enum member, and any other value unchanged."""
    return getattr(value, "value", value)


def _reference(entity: type[Entity], other: type[Entity]) -> EntityReference | None:
    """Return how an entity refers to another one by the names of its fields, or None."""
    own, theirs = info(entity), info(other)
    label = theirs.name.lower()
    alone = _own_id(theirs)
    if alone is not None and alone in own.fields and alone != _own_id(own):
        both = [
            name
            for name in theirs.identity
            if name in own.fields
            and inner(own.fields[name].shape) == inner(theirs.fields[name].shape)
        ]
        return EntityReference(other, tuple((name, name) for name in both))
    is_compound = len(theirs.identity) > 1
    pairs: dict[str, str] = {}
    for name in theirs.identity:
        # A comment with the owner, repo and number of an issue belongs to it. One with an id only
        # does not.
        names = [name] if is_compound or name not in _COMMON_NAMES else []
        names += [f"{label}_{name}", label]
        names += [] if is_compound else [f"{label}_id"]
        shape = inner(theirs.fields[name].shape)
        fitting = [
            each
            for each in names
            if each in own.fields and each not in pairs and inner(own.fields[each].shape) == shape
        ]
        if not fitting:
            return None
        pairs[fitting[0]] = name
    if is_compound and (pairs.keys() == set(own.identity) or pairs.keys() <= _COMMON_NAMES):
        return None  # two entities with one compound identity: neither owns the other
    return EntityReference(other, tuple(pairs.items()))


def _own_id(known: EntityInfo) -> str | None:
    """Return the field of a compound identity that tells items apart by itself.

    An Order with the identity ``customer_id, order_id`` has one ``order_id`` for each order.
    """
    name = f"{known.name.lower()}_id"
    return name if len(known.identity) > 1 and name in known.identity else None


def _has_unique(known: EntityInfo, fields: Iterable[str]) -> bool:
    return any(name in known.fields and known.fields[name].role == "unique" for name in fields)


def _class(entity: type[Any]) -> str:
    return entity.__name__
