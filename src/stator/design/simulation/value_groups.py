"""Groups of calls that concern the same values: which values are frequent, and how frequent.

A group gives some fields a rank: rank 0 is the most frequent value. All keys of a call follow from
its group, so a call about the largest tenant hits that tenant's key in the table and in each index.
Fields without a rank have so many values that their traffic is even.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from math import ceil, log
from typing import Any, Final

from stator.design.declaration import Declaration
from stator.design.entities.derived_parts import derived_part, source_field
from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import Maybe, Scalar, Shape
from stator.design.plan.example_items import example_value
from stator.design.planner.estimates import Estimates
from stator.design.value_facts import is_unique

FEW_VALUES: Final = 50
"""Up to so many values are followed one by one."""
_MOST_GROUPS: Final = 60
_RANKS: Final = 50

Named = tuple[type[Entity], str]
"""An entity and the name of a field, or of a part of one such as ``month_of(placed_at)``."""


@dataclass(frozen=True, slots=True)
class ValueGroup:
    """A share of the calls, with the ranks of the values that these calls concern.

    ``ranks`` has pairs of a field's name and the rank of its value.
    """

    share: float
    ranks: tuple[tuple[str, int], ...] = ()
    is_one_item: bool = False
    """Whether the calls are about one item, not about all items with these values."""

    def rank(self, name: str) -> int | None:
        return dict(self.ranks).get(name)


class ValueRanks:
    """The frequencies of field values, according to a design's facts, types and volumes."""

    def __init__(self, design: Declaration) -> None:
        self.design = design
        self.estimates = Estimates(design)
        self._known_distinct: dict[tuple[type[Entity], tuple[str, ...]], float] = {}
        self._known_shares: dict[Named, tuple[float, ...]] = {}

    def distinct(self, entity: type[Entity], names: tuple[str, ...]) -> float:
        """Return how many different values these fields have together."""
        if not names:
            return 1.0
        if (entity, names) not in self._known_distinct:
            found = max(1.0, self.estimates.distinct(entity, names))
            self._known_distinct[entity, names] = found
        return self._known_distinct[entity, names]

    def shares(self, entity: type[Entity], name: str) -> tuple[float, ...]:
        """Return which share of the calls each of a field's most frequent values gets.

        The remaining calls are spread evenly over many values. A date, or a period such as
        ``month_of(placed_at)``, counts as one value that gets all calls, because most calls are
        about the present. Facts about shares of the field overrule this.
        """
        if (entity, name) not in self._known_shares:
            self._known_shares[entity, name] = self._shares(entity, name)
        return self._known_shares[entity, name]

    def _shares(self, entity: type[Entity], name: str) -> tuple[float, ...]:
        if is_time(entity, name) and self.design.facts.largest(entity, name) is None:
            return (1.0,)
        if is_unique(info(entity), (name,)) and self.distinct(entity, (name,)) > FEW_VALUES:
            return ()
        # Calls about a field concern items that have it.
        present = self.design.facts.all_present(entity, (source_field(name),)) or 1.0
        known = [min(1.0, part / present) for _, part in self.design.facts.frequent(entity, name)]
        largest = self.estimates.largest(entity, name)
        if largest is not None and (not known or largest > known[0] + 1e-9):
            known.insert(0, largest)
        values = max(len(known), ceil(self.distinct(entity, (name,)) - 1e-9))
        left = max(0.0, 1.0 - sum(known))
        if values <= FEW_VALUES:
            others = values - len(known)
            if not others:
                total = sum(known)
                return tuple(part / total for part in known)
            known += [left / others] * others
        return tuple(known)

    def groups(self, fields: Iterable[Named]) -> tuple[ValueGroup, ...]:
        """Return the value groups of calls that concern these fields.

        Each group has the share of the calls that concern one combination of frequent values.
        """
        by_name: dict[str, tuple[float, ...]] = {}
        for entity, name in fields:
            found = self.shares(entity, name)
            if found and (name not in by_name or found[0] > by_name[name][0]):
                by_name[name] = found
        groups = [ValueGroup(1.0)]
        for name, shares in sorted(by_name.items(), key=lambda each: (-each[1][0], each[0])):
            tail = 1.0 - sum(shares)
            has_tail = tail > 1e-9
            if len(groups) * (len(shares) + has_tail) > _MOST_GROUPS:
                continue
            groups = [
                ValueGroup(group.share * share, (*group.ranks, (name, rank)))
                for group in groups
                for rank, share in enumerate(shares)
            ] + [
                ValueGroup(group.share * tail, group.ranks) for group in groups if has_tail
            ]  # fmt: skip
        return tuple(group for group in groups if group.share > 0)

    def value(self, entity: type[Entity], name: str, rank: int) -> Any:
        """Return a field's value of this rank: a value that a fact names, or an example."""
        field = info(entity).fields[source_field(name)]
        known = [] if derived_part(name) else self.design.facts.frequent(entity, name)
        if rank < len(known):
            return known[rank][0]
        taken = [value for value, _ in known]
        found, at = example_value(field), 0
        left = rank - len(taken)
        while left >= 0:
            found = example_value(field, at)
            if getattr(found, "value", found) not in taken:
                left -= 1
            at += 1
        return found


def hot_groups(
    groups: tuple[ValueGroup, ...], names: Iterable[str], share: float
) -> tuple[ValueGroup, ...]:
    """Return the groups with a hot group in front, which takes ``share`` of the calls.

    All calls of the hot group concern a single item. The other groups share the remaining calls.
    """
    hot = ValueGroup(share, tuple((name, 0) for name in names), is_one_item=True)
    rest = [
        ValueGroup(group.share * (1 - share), group.ranks, group.is_one_item) for group in groups
    ]
    return (hot, *(group for group in rest if group.share > 0))


def zipf_groups(names: Iterable[str], values: float, exponent: float) -> tuple[ValueGroup, ...]:
    """Return a group for each of the most frequent values by Zipf's law, and one for all others.

    ``values`` is the number of different values, and ``names`` has the fields that identify a
    value.
    """
    fixed = tuple(names)
    ranks = min(_RANKS, max(1, round(values)))
    total = _harmonic(max(1, round(values)), exponent)
    groups = [
        ValueGroup((rank + 1) ** -exponent / total, tuple((name, rank) for name in fixed))
        for rank in range(ranks)
    ]
    rest = 1.0 - sum(group.share for group in groups)
    return (*groups, ValueGroup(rest)) if rest > 1e-9 else tuple(groups)


def _harmonic(values: int, exponent: float) -> float:
    """Return the sum of 1/n**exponent up to ``values``, by an integral after the first terms."""
    exact = min(values, 1000)
    total: float = sum(float(rank) ** -exponent for rank in range(1, exact + 1))
    if values > exact:
        first, last = exact + 0.5, values + 0.5
        if abs(exponent - 1) < 1e-9:
            total += log(last / first)
        else:
            total += (float(last) ** (1 - exponent) - float(first) ** (1 - exponent)) / (
                1 - exponent
            )
    return total


def is_time(entity: type[Entity], name: str) -> bool:
    """Whether a name stands for a day or another period.

    All calls at one moment then concern the same value of the name.
    """
    part = derived_part(name)
    if part is not None:
        return part.is_time
    found = scalar(info(entity).fields[name].shape)
    return found is not None and found.python is date


def scalar(shape: Shape) -> Scalar | None:
    inner = shape.inner if isinstance(shape, Maybe) else shape
    return inner if isinstance(inner, Scalar) else None
