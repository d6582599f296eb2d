"""Selectivity: how many of an entity's items each condition of a need leaves.

A query reads all items under its key condition, even if a filter then drops most of them. So two
numbers matter for each need:

- how many items have the compared values (``fraction``): the volume divided by the distinct values
  of the fields, times the declared share of a constant;
- which share of those a range or a filter keeps (``spans`` and ``filter_shares`` of
  ``Selectivity``).

Declared shares come first. ``returns=`` of a pattern then says what the remaining ranges and
filters keep together, unless a limit cuts the result off. If neither decides, each range or filter
is assumed to keep a third. ``returns`` does not make the collection smaller that a query reads. The
only exception is a value of an Enum, a Literal or a bool without declared shares: if the pattern
has no range, filter or limit, ``returns`` says how many items have the value.

If ``returns`` is larger than the collection that the volumes allow, the pattern is assumed to ask
for larger collections than the mean: ``excess`` says by how much.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from stator.design.entities.conditions import Condition
from stator.design.entities.derived_parts import derived_part
from stator.design.entities.entity import Entity, info
from stator.design.patterns.param import Param
from stator.design.patterns.pattern import Pattern
from stator.design.planner.declared_shares import condition_share, value_share
from stator.design.planner.distinct_values import Guess
from stator.design.planner.estimates import KEPT_BY_FILTER, Estimates, named_values
from stator.design.planner.needs.need import (
    FieldSpan,
    Need,
    Selectivity,
    TogetherGroup,
    ValueSource,
)
from stator.design.planner.needs.traced_needs import group_of, need_of
from stator.design.value_facts import MOST_CONTRADICTED, is_unique
from stator.model.limits import PAGE_BYTES
from stator.model.quantities import amount

MOST_SORTED: Final = 1_000
MOST_SORTED_BYTES: Final = PAGE_BYTES
"""A larger result is never planned to be sorted in memory. One page of a query is 1 MB."""
ASSUMED_LIMIT: Final = 25
"""The assumed value of a limit that is an argument."""


def estimated_need(pattern: Pattern[..., Any], target: type[Entity], estimates: Estimates) -> Need:
    """Return what a pattern requires of one of its targets, with the numbers of its conditions."""
    return with_numbers(need_of(pattern, target), estimates, pattern.traffic.returns)


def estimated_group(pattern: Pattern[..., Any], estimates: Estimates) -> TogetherGroup:
    """Return the group of a pattern over several entities, with the numbers of its conditions.

    If the declaration says how many items of an entity a call returns, that number stays. The rest
    of ``returns=`` is divided among the other entities in proportion to their collections.
    """
    group = group_of(pattern)
    members = [with_numbers(member, estimates, None) for member in group.members]
    declared = pattern.traffic.returns
    if declared is not None:
        fixed = [not _open(member, estimates) for member in members]
        rest = max(
            1.0,
            declared - sum(each.numbers.result for each, known in zip(members, fixed) if known),
        )
        whole = sum(each.numbers.equal for each, known in zip(members, fixed) if not known)
        members = [
            member
            if known
            else with_numbers(member, estimates, rest * member.numbers.equal / (whole or 1.0))
            for member, known in zip(members, fixed)
        ]
    limit = _limit_items(members[0], declared)
    members = [replace(member, limit_items=limit) for member in members]
    return replace(group, members=tuple(members))


def with_numbers(need: Need, estimates: Estimates, declared: float | None) -> Need:
    """Return a need with the numbers of its conditions. ``declared`` is ``returns=``.

    For a count, ``returns=`` says how many items are counted. A value of 1 is ignored, because the
    user may have meant the single number that a count returns.
    """
    declared = None if need.is_count and declared is not None and declared <= 1 else declared
    equal = estimates.volume(need.entity) * fraction(need, need.equal, estimates)
    whole = None
    if declared is not None and declared < equal and _says_how_many(need, estimates):
        equal, whole = declared, declared / estimates.volume(need.entity)
    known: dict[int, float] = {}
    guesses: list[Guess] = []
    conditions: list[FieldSpan | Condition] = [*need.spans, *need.filters]
    for at, condition in enumerate(conditions):
        part, found_guesses = _declared_share(condition, need, estimates)
        if part is not None:
            known[at] = part
            guesses += found_guesses
    unknown = len(conditions) - len(known)
    limit = _limit_items(need, declared)
    is_cut = limit is not None and (declared is None or declared >= limit)
    left = equal * math.prod(known.values())
    each = KEPT_BY_FILTER
    if declared is not None and unknown and left:
        said = min(1.0, (declared / left)) ** (1 / unknown)
        each = max(each, said) if is_cut else said
    shares = [known.get(at, each) for at in range(len(conditions))]
    result = equal * math.prod(shares)
    excess = 1.0
    if declared is not None and result and not is_unique(info(need.entity), need.keyed):
        excess = max(1.0, declared / result)
    if unknown and declared is None:
        guesses.append(_range_guess(need, unknown))
    if isinstance(need.limit, Param) and declared is None:
        guesses.append(
            Guess(f"{need.name}: limit {ASSUMED_LIMIT}", f"@read(returns=...) of {need.name}")
        )
    numbers = Selectivity(
        equal,
        {span.field: part for span, part in zip(need.spans, shares)},
        tuple(shares[len(need.spans) :]),
        min(result * excess, estimates.volume(need.entity)),
        excess,
        tuple(guesses),
        whole,
    )
    found = replace(need, numbers=numbers, limit_items=limit, declared=declared)
    return replace(found, may_sort=_may_sort(found, estimates))


def _may_sort(need: Need, estimates: Estimates) -> bool:
    """Whether a need's whole result is known to be so small that the client can sort it.

    A guess is not enough for that: a key that holds the order is right for any number of items.
    """
    if not need.sequence or not need.is_whole or need.is_count:
        return False
    items = need.numbers.result
    if items > MOST_SORTED or items * estimates.item_bytes(need.entity) > MOST_SORTED_BYTES:
        return False
    guesses = (*estimates.volume_guess(need.entity), *need.numbers.guesses)
    return need.declared is not None or not (
        guesses or fraction_guesses(need, need.equal, estimates)
    )


def _says_how_many(need: Need, estimates: Estimates) -> bool:
    """Whether ``returns=`` decides how many items have the compared values.

    It does if the need has no range, filter or limit, and compares an Enum, a Literal or a bool
    without declared shares. Such values would otherwise be assumed to be equally frequent.
    """
    if need.spans or need.filters or need.limit is not None:
        return False
    return any(
        derived_part(name) is None
        and named_values(info(need.entity).fields[name].shape) is not None
        and _value_share(source, need, name, estimates) is None
        and not estimates.is_declared(need.entity, name)
        for name, source in need.equal.items()
    )


def _open(need: Need, estimates: Estimates) -> bool:
    """Whether the need has a number that would be a guess without ``returns=``.

    Such a number is a share or a count of values that neither a fact nor a type declares.
    """
    if is_unique(info(need.entity), need.keyed):
        return False
    conditions: list[FieldSpan | Condition] = [*need.spans, *need.filters]
    is_open = any(_declared_share(each, need, estimates)[0] is None for each in conditions)
    return is_open or bool(fraction_guesses(need, need.equal, estimates))


def _limit_items(need: Need, declared: float | None) -> int | None:
    if need.limit is None or need.is_count:
        return None  # a count reads everything that it counts
    if isinstance(need.limit, int):
        return need.limit
    return ASSUMED_LIMIT if declared is None else max(1, math.ceil(declared))


def _range_guess(need: Need, unknown: int) -> Guess:
    fields = [span.field for span in need.spans]
    what = f"the range of {' and '.join(fields)}" if fields else "its filter"
    kept = KEPT_BY_FILTER**unknown
    return Guess(f"{need.name}: {what} keeps {kept:.0%}", f"@read(returns=...) of {need.name}")


# --- values compared for equality -----------------------------------------------------------------


def fraction(need: Need, fields: Iterable[str], estimates: Estimates) -> float:
    """Return the share of an entity's items that have the compared values of ``fields``.

    Fields and derived parts that the need does not compare for equality are ignored.
    """
    key = frozenset(name for name in fields if _compared(need, name) is not None)
    if key not in need.fractions:
        need.fractions[key] = _fraction(need, key, estimates)
    return need.fractions[key]


def _compared(need: Need, name: str) -> ValueSource | None:
    """Return where the value comes from that a need compares with a field or derived part.

    Returns None if the need compares no value with it.
    """
    return need.equal.get(name) or need.source(name)


def _fraction(need: Need, fields: frozenset[str], estimates: Estimates) -> float:
    if need.numbers.said is not None and fields == need.equal.keys():
        return need.numbers.said
    part, counted = 1.0, []
    for name in sorted(fields):
        source = _compared(need, name)
        assert source is not None
        known = _value_share(source, need, name, estimates)
        if known is None:
            counted.append(name)
        else:
            part *= known
    values = estimates.distinct(need.entity, tuple(counted))
    held = estimates.design.facts.all_present(need.entity, counted)
    return part * held * min(1.0, need.options(counted) / values)


def fraction_guesses(need: Need, fields: Iterable[str], estimates: Estimates) -> tuple[Guess, ...]:
    """Return the guesses behind the result of ``fraction``."""
    counted, guesses = list[str](), list[Guess]()
    for name in sorted(set(fields)):
        source = _compared(need, name)
        if source is None:
            continue
        if source.is_absent and estimates.absent_share(need.entity, name) is None:
            guesses.append(estimates.presence_guess(need.entity, name))
        elif _value_share(source, need, name, estimates) is None:
            counted.append(name)
        else:
            guesses += _value_guesses(source, need, name, estimates)
    return (*guesses, *estimates.guesses(need.entity, counted))


def _value_share(source: ValueSource, need: Need, name: str, estimates: Estimates) -> float | None:
    """Return the share of items whose field has the value that the need asks for.

    Returns None if no declared fact says so.
    """
    if source.is_absent:
        return 1.0 - estimates.present(need.entity, name)
    if source.options:
        parts = [_value_share(each, need, name, estimates) for each in source.options]
        known = [each for each in parts if each is not None]
        return min(1.0, sum(known)) if len(known) == len(parts) else None
    if not source.is_constant:
        return None
    return value_share(need.entity, name, source.constant, estimates)[0]


def _value_guesses(
    source: ValueSource, need: Need, name: str, estimates: Estimates
) -> tuple[Guess, ...]:
    """Return the guesses behind the result of ``_value_share``."""
    if source.options:
        return tuple(
            guess
            for each in source.options
            for guess in _value_guesses(each, need, name, estimates)
        )
    if source.is_absent or not source.is_constant:
        return ()
    return value_share(need.entity, name, source.constant, estimates)[1]


# --- ranges and filters ---------------------------------------------------------------------------


def _declared_share(
    condition: FieldSpan | Condition, need: Need, estimates: Estimates
) -> tuple[float | None, tuple[Guess, ...]]:
    """Return the share of items that meet a range or a filter, if facts decide it, with guesses."""
    if not isinstance(condition, FieldSpan):
        return condition_share(need.entity, condition, estimates)
    facts = estimates.design.facts
    parts = [facts.share(need.entity, test) for test in condition.tests]
    return parts[0] if len(parts) == 1 else None, ()


# --- in words -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A declared ``returns`` that does not agree with the declared volumes.

    ``collection`` is the number of items that have the compared values, according to the volumes.
    """

    returns: float
    collection: float

    def text(self, need: Need) -> str:
        known = info(need.entity)
        fields = " and ".join(name for name in need.equal if name in known.fields)
        under = f" under one {fields}" if fields else ""
        return (
            f"returns={amount(self.returns)} contradicts the volumes, which give about "
            f"{amount(round(self.collection, 1))} {known.name} items{under}"
        )


def contradiction(need: Need, present: float) -> Contradiction | None:
    """Return how ``returns=`` disagrees with the volumes, or None if it does not.

    ``returns=`` may be smaller than the collection if a range, a filter or a limit cuts the result.
    ``present`` is the guessed share of items that have the optional fields which the need compares.
    It is 1 if nothing is guessed. A collection of less than one item is no contradiction: a lookup
    may say that it returns the one item that it usually finds.
    """
    declared, numbers = need.declared, need.numbers
    if declared is None or not numbers.equal:
        return None
    for collection in (numbers.equal * present, declared / numbers.excess):
        if declared > max(1.0, collection) * MOST_CONTRADICTED:
            return Contradiction(declared, min(collection, numbers.equal))
    is_cut = bool(need.spans or need.filters) or need.limit is not None
    if not is_cut and numbers.equal > declared * MOST_CONTRADICTED:
        return Contradiction(declared, numbers.equal)
    return None
