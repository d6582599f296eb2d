"""How many distinct values a field has, or several fields together, and which counts are guesses.

A count comes from the first of these sources that knows the field:

1. a fact: ``distinct(Order.status, values=5)``;
2. uniqueness: an identity, or a ``unique()`` field, has a value for each item;
3. the type: a ``Literal``, an ``Enum`` or a ``bool``;
4. a reference to another entity: ``Order.user_id`` has a value for each ``User``. If an identity
   has several fields, the field named after the entity has a value for each item: ``order_id`` in
   the identity ``customer_id, order_id`` of ``Order``;
5. ``returns`` of a pattern that compares the field and has neither a limit nor another condition:
   if a call returns 20 posts of an author, there is one author for every 20 posts;
6. a guess, which the plan shows.

A derived part (``month_of(Order.placed_at)``) has a count of its own. A time decides its month, and
so does a day. So the month adds no values to a count over a time and its month, or over a day and
its month.

The counts of several fields are multiplied, and are at most the number of items. That assumes that
the fields do not depend on each other, which is a guess too: an owner has few of all repositories.
A fact about some of the fields together, or a pattern that returns all items with values of them,
replaces the product of their counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any, Final

from stator.design.declaration import Declaration
from stator.design.entities.conditions import Comparison, FieldRef
from stator.design.entities.derived_parts import (
    DerivedPart,
    PartComparison,
    derived_part,
    source_field,
    without_implied,
)
from stator.design.entities.entity import Entity, EntityInfo, info
from stator.design.entities.shapes import Epoch, Maybe, Scalar, Shape
from stator.design.patterns.pattern import Pattern
from stator.design.value_facts import is_unique, possible_values, shown_name
from stator.model.quantities import amount

_YEARS_OF_DAYS: Final = 3 * 365
_DAYS_OF: Final = {"year": 365.0, "month": 365 / 12, "day": 1.0, "hour": 1 / 24}
_VALUES_OF_CHARACTER: Final = 10.0
_FEW_VALUES: Final = 50
_MOST_CHARACTERS: Final = 18
"""Longer prefixes have as many values as the field."""


@dataclass(frozen=True, slots=True, order=True)
class Guess:
    """A number that the planner guesses (``what``), and what to declare instead (``declare``)."""

    what: str
    declare: str

    def __str__(self) -> str:
        return f"{self.what} is a guess; declare {self.declare}"


@dataclass(frozen=True, slots=True)
class ValueCount:
    """The number of distinct values of some fields, and the guesses it rests on."""

    values: float
    guesses: tuple[Guess, ...] = ()


class DistinctValues:
    """The numbers of distinct values in one declaration."""

    def __init__(self, design: Declaration) -> None:
        self._design = design
        self._found: dict[tuple[type[Entity], frozenset[str]], ValueCount] = {}
        self._named: dict[type[Entity], dict[frozenset[str], float]] = {}

    def volume(self, entity: type[Entity]) -> float:
        return max(1.0, self._design.volume(entity))

    def count(self, entity: type[Entity], fields: Iterable[str]) -> ValueCount:
        """Return how many values, or tuples of values, the fields have in an entity's items."""
        key = entity, frozenset(fields)
        if key not in self._found:
            self._found[key] = self._count(*key, self._returned)
        return self._found[key]

    def _count(
        self,
        entity: type[Entity],
        fields: frozenset[str],
        returned: dict[tuple[type[Entity], frozenset[str]], _Returned],
    ) -> ValueCount:
        volume, known = self.volume(entity), info(entity)
        fields = without_implied(fields)
        if not fields:
            return ValueCount(1.0)
        if is_unique(known, fields):
            return ValueCount(volume)
        parts = self._parts(entity, returned)
        if fields in parts:
            return ValueCount(min(volume, parts[fields]))
        product, guesses, cover = 1.0, list[Guess](), list(_cover(fields, parts))
        for part in cover:
            if part in parts:
                product *= parts[part]
            else:
                [name] = part
                part_of = derived_part(name)
                if part_of is not None:
                    count = self._count_part(entity, part_of, returned)
                    product, guesses = product * count.values, [*guesses, *count.guesses]
                    continue
                product *= self._guessed(known, name, volume)
                guesses.append(self._guess(entity, name, volume))
        least = max((parts[each] for each in parts if each < fields), default=1.0)
        most = min((parts[each] for each in parts if each > fields), default=volume)
        value = max(least, min(product, most, volume))
        if not guesses and self._is_open(entity, cover, parts) and least < value:
            guesses.append(_joint_guess(entity, fields, value))
        here = returned.get((entity, fields))
        if here is not None and guesses and here.at_least is not None:
            value = max(1.0, min(value, volume / here.at_least))
        return ValueCount(value, tuple(guesses))

    def _is_open(
        self,
        entity: type[Entity],
        cover: Iterable[frozenset[str]],
        parts: dict[frozenset[str], float],
    ) -> bool:
        """Whether counts were multiplied although the fields may depend on each other.

        Two kinds of fields are assumed to be independent of others. A few values, such as those of
        an Enum, are equally frequent within each value of another field. And times go on for every
        value: a device reports on every day.
        """
        known = info(entity)
        named = [
            part
            for part in cover
            if not all(
                is_period(known, name) or possible_values(known, name) is not None for name in part
            )
        ]
        return sum(parts.get(part, math.inf) > _FEW_VALUES for part in named) > 1

    def _count_part(
        self,
        entity: type[Entity],
        part: DerivedPart,
        returned: dict[tuple[type[Entity], frozenset[str]], _Returned],
    ) -> ValueCount:
        """Return how many values a derived part of a field has.

        If the count of a finer or coarser part of the same time is declared, the count follows from
        it: 90 days are 3 months. Otherwise the count is a guess: times cover three years, and each
        character of a prefix has ten values.
        """
        whole = self._count(entity, frozenset((part.field,)), returned).values
        for names, values in sorted(
            self._parts(entity, returned).items(), key=lambda each: sorted(each[0])
        ):
            other = derived_part(next(iter(names))) if len(names) == 1 else None
            if other is not None and other.field == part.field and other.is_time and part.is_time:
                days = values * _DAYS_OF[other.part]
                return ValueCount(min(whole, max(1.0, days / _DAYS_OF[part.part])))
        if part.is_time:
            guess = _YEARS_OF_DAYS / _DAYS_OF[part.part]
        else:
            guess = _VALUES_OF_CHARACTER ** min(part.length, _MOST_CHARACTERS)
        values, shown = min(whole, guess), shown_name(entity, str(part))
        what = f"{shown}: about {amount(values)} distinct values"
        return ValueCount(values, (Guess(what, f"distinct({shown}, values=...)"),))

    # -- what is known

    def _parts(
        self,
        entity: type[Entity],
        returned: dict[tuple[type[Entity], frozenset[str]], _Returned],
    ) -> dict[frozenset[str], float]:
        """Return the known counts: a map from sets of an entity's fields to numbers of values."""
        volume = self.volume(entity)
        found = {
            fields: volume * self._design.facts.all_present(entity, fields) / each.exactly
            for (owner, fields), each in returned.items()
            if owner is entity and each.exactly is not None
        }
        if entity not in self._named:
            self._named[entity] = self._by_identity(entity)
        found |= self._named[entity]
        for name in info(entity).fields:
            size = possible_values(info(entity), name)
            if size is not None:
                found[frozenset((name,))] = float(size)
        found |= self._design.facts.distinct_parts(entity)
        return {fields: max(1.0, min(volume, values)) for fields, values in found.items()}

    def _by_identity(self, entity: type[Entity]) -> dict[frozenset[str], float]:
        """Return the counts of fields that refer to other entities, by the names of the fields.

        ``Order.user_id`` has one value for each user. ``Issue.owner`` and ``Issue.repo`` together
        have one for each repository, if a repository has the identity ``owner, repo``.
        """
        found: dict[frozenset[str], float] = {}
        fields, own = info(entity).fields, _own_id(info(entity))
        if own is not None:
            found[frozenset((own,))] = self.volume(entity)
        for other in sorted(self._design.entities, key=lambda each: info(each).name):
            known = info(other)
            if other is entity:
                continue
            volume = self.volume(other)
            for names, theirs in _references(known):
                if all(
                    name in fields and _plain(fields[name].shape) == _plain(known.fields[its].shape)
                    for name, its in zip(names, theirs)
                ):
                    key = frozenset(names)
                    if names == (own,):
                        continue
                    found[key] = max(found.get(key, 0.0), volume)
        return found

    # -- guesses

    def _guessed(self, known: EntityInfo, name: str, volume: float) -> float:
        shape = _plain(known.fields[name].shape)
        python = shape.python if isinstance(shape, Scalar) else str
        if python is date:
            return min(volume, _YEARS_OF_DAYS)
        return volume if python in (datetime, Epoch) else math.sqrt(volume)

    def _guess(self, entity: type[Entity], name: str, volume: float) -> Guess:
        shown = repr(FieldRef(entity, (name,)))
        values = self._guessed(info(entity), name, volume)
        return Guess(
            f"{shown}: about {amount(values)} distinct values", f"distinct({shown}, values=...)"
        )

    def volume_guess(self, entity: type[Entity]) -> tuple[Guess, ...]:
        """Return the guess about an entity's volume, or an empty tuple if it is declared."""
        if self._design.has_volume(entity):
            return ()
        name = info(entity).name
        return (
            Guess(
                f"{name}: {amount(self.volume(entity))} items",
                f"volumes={{{entity.__name__}: ...}}",
            ),
        )

    # -- what patterns say

    @cached_property
    def _returned(self) -> dict[tuple[type[Entity], frozenset[str]], _Returned]:
        """The numbers of items per value of some fields, where only ``returns=`` tells them."""
        found: dict[tuple[type[Entity], frozenset[str]], _Returned] = {}
        for pattern in sorted(self._design.reads, key=lambda each: each.name):
            for entity, fields, items, is_exact in self._said_by(pattern):
                if not fields or not self._count(entity, fields, {}).guesses:
                    continue
                before = found.get((entity, fields), _Returned())
                found[entity, fields] = before.with_items(items, is_exact)
        return found

    def _said_by(
        self, pattern: Pattern[..., Any]
    ) -> Iterator[tuple[type[Entity], frozenset[str], float, bool]]:
        """Yield what ``returns=`` of a pattern says about the fields that it compares.

        Each tuple has the entity, the fields, the number of items that share one value of them, and
        whether that number is exact.
        """
        ask, returns = pattern.trace(), pattern.traffic.returns
        if returns is None or (ask.is_count and returns <= 1):
            return  # a count returns one number
        equal = [
            test for test in ask.tests if test.operator in ("=", "part") and not _is_none(test)
        ]
        plain = all(not isinstance(test.values[0], FieldRef) for test in equal)
        is_whole = plain and len(equal) == len(ask.tests) and not ask.filters
        exact = is_whole and ask.limit is None
        members = []
        for target in ask.targets:
            known = info(target).fields
            own = {compared_name(test) for test in equal if issubclass(target, test.field.owner)}
            shared = {compared_name(test) for test in equal if test.field.name in known}
            members.append((target, frozenset(own | shared if len(ask.targets) > 1 else own)))
        counted = [(target, fields, self._count(target, fields, {})) for target, fields in members]
        open_ = [each for each in counted if each[2].guesses]
        known_items = sum(
            self.volume(target) / count.values for target, _, count in counted if not count.guesses
        )
        rest = max(1.0, returns - known_items)
        for target, fields, _ in open_:
            yield target, fields, rest / len(open_), exact

    def absent_share(self, entity: type[Entity], name: str) -> float | None:
        """Return the share of items without a field, if ``returns`` of a pattern declares it.

        The pattern asks for these items and has neither a limit nor another condition.
        """
        for pattern in sorted(self._design.reads, key=lambda each: each.name):
            ask, returns = pattern.trace(), pattern.traffic.returns
            if returns is None or ask.limit is not None or ask.filters or ask.is_count:
                continue
            is_about = ask.targets == (entity,) and len(ask.tests) == 1
            if is_about and ask.tests[0].field.path == (name,) and _is_none(ask.tests[0]):
                return min(1.0, returns / self.volume(entity))
        return None


def _joint_guess(entity: type[Entity], fields: frozenset[str], values: float) -> Guess:
    known = list(info(entity).fields)
    names = sorted(fields, key=lambda name: (known.index(source_field(name)), name))
    shown = [shown_name(entity, name) for name in names]
    return Guess(
        f"{' with '.join(shown)}: about {amount(values)} combinations, as if independent",
        f"distinct({', '.join(shown)}, values=...)",
    )


def is_period(known: EntityInfo, name: str) -> bool:
    """Whether a name stands for a day or another period, shared by all items of one moment."""
    part = None if name in known.fields else derived_part(name)
    if part is not None:
        return part.is_time
    shape = known.fields[name].shape
    inner = shape.inner if isinstance(shape, Maybe) else shape
    return isinstance(inner, Scalar) and inner.python is date


def compared_name(test: Comparison) -> str:
    """Return the name of the field, or of the derived part, that a comparison tests."""
    return str(test.derived) if isinstance(test, PartComparison) else test.field.name


def _is_none(test: Comparison) -> bool:
    return test.operator == "not_exists" or (test.operator == "=" and test.values[0] is None)


@dataclass(frozen=True, slots=True)
class _Returned:
    """How many items share one value, as ``returns=`` says: an exact number, or a lower bound."""

    exactly: float | None = None
    at_least: float | None = None

    def with_items(self, items: float, is_exact: bool) -> _Returned:
        least = max(items, self.at_least or 0.0)
        exact = max(items, self.exactly or 0.0) if is_exact else self.exactly
        return _Returned(exact, least)


def _cover(fields: frozenset[str], parts: dict[frozenset[str], float]) -> Iterator[frozenset[str]]:
    """Yield disjoint sets of fields that together make up ``fields``.

    ``parts`` has the sets of fields whose number of values is known. These sets are used first, the
    largest of them first. Each remaining field is a set by itself.
    """
    left = fields
    for part in sorted(parts, key=lambda each: (-len(each), sorted(each))):
        if part and part <= left:
            left -= part
            yield part
    for name in sorted(left):
        yield frozenset((name,))


def _references(known: EntityInfo) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield pairs: names that fields of other entities may have, and the identity they refer to.

    A User with the identity ``id`` yields ``("user_id",), ("id",)`` and ``("user",), ("id",)``. A
    Repo with the identity ``owner, name`` is also found as ``owner, repo``.
    """
    if len(known.identity) != 1:
        *parents, last = known.identity
        for alias in (last, *_aliases(known, last)):
            yield (*parents, alias), known.identity
        own = _own_id(known)
        if own is not None:
            yield (own,), (own,)
        return
    name = known.identity[0]
    for alias in (name, *_aliases(known, name)):
        if alias != "id":
            yield (alias,), (name,)


def _aliases(known: EntityInfo, name: str) -> tuple[str, str]:
    """Return the names that other entities may give to a field of this one's identity."""
    label = known.name.lower()
    return f"{label}_{name}", label


def _own_id(known: EntityInfo) -> str | None:
    """Return the field of a compound identity that is assumed to be unique by itself, or None.

    The field is named after the entity: ``order_id`` in the identity ``customer_id, order_id`` of
    Order.
    """
    name = f"{known.name.lower()}_id"
    return name if len(known.identity) > 1 and name in known.identity else None


def _plain(shape: Shape) -> Shape:
    return shape.inner if isinstance(shape, Maybe) else shape
