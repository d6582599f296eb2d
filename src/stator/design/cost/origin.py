"""The origin of a difference in cost: the workload, the keys, or something new or gone.

Each cause of a difference (see ``difference``) is attributed by comparing the two plans:

- a *pattern* or an entity that only one side has is **new or gone**;
- an *index* that only one side has, or that projects differently, belongs to the **keys**;
- every write to a table, all storage, and a *read* that makes the same requests on both sides
  belong to the **workload**: rates, volumes, sizes, items returned and fields changed;
- a *read* that makes different requests differs because of the keys and the workload. To find the
  workload's share, the old requests are priced at the new rate and with the new number of items.
  The rest belongs to the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from stator.design.cost.workload import found_by
from stator.design.plan.lock_file import requests_of
from stator.design.plan.plan import PatternPlan, Plan
from stator.model.quantities import signed_dollars

_SHOWN = 3
_CENT = Decimal("0.005")


@dataclass(frozen=True, slots=True)
class CostChange:
    """The cost of one cause (see ``difference``) in both reports, in dollars a month.

    ``before`` or ``after`` is None if that report does not have the cause.
    """

    cause: str
    before: Decimal | None
    after: Decimal | None

    @property
    def dollars(self) -> Decimal:
        """How many dollars a month the cause costs more than before."""
        return (self.after or Decimal(0)) - (self.before or Decimal(0))

    def __str__(self) -> str:
        shown = signed_dollars(self.dollars)
        if self.before is None:
            return f"{self.cause} is new ({shown})"
        if self.after is None:
            return f"{self.cause} is gone ({shown})"
        return f"{self.cause} costs {'more' if self.dollars > 0 else 'less'} ({shown})"


@dataclass(frozen=True, slots=True)
class Origin:
    """A difference in dollars a month, split by origin.

    ``asked`` has one text for each change of the workload, for example of a rate.
    """

    workload: Decimal
    keys: Decimal
    new_or_gone: Decimal
    asked: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """How much of the difference the workload causes, and how much the keys, in words."""
        parts = [
            (self.workload, f"the workload ({self._asked()})" if self.asked else "the workload"),
            (self.keys, "the keys and indexes"),
            (self.new_or_gone, "patterns and entities that are new or gone"),
        ]
        telling = [
            f"{signed_dollars(dollars)} from {what}"
            for dollars, what in parts
            if abs(dollars) >= _CENT
        ]
        if not telling:
            return "Neither the workload nor the keys make a difference."
        return (
            f"Of this, {', '.join(telling[:-1])}{' and ' if len(telling) > 1 else ''}{telling[-1]}."
        )

    def _asked(self) -> str:
        more = len(self.asked) - _SHOWN
        return ", ".join(self.asked[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def origin_of(changes: Iterable[CostChange], before: Plan, after: Plan) -> Origin | None:
    """Return the difference split by origin, or None if either plan stores no workload (demand).

    A plan without a demand is priced with the workload of the other plan. The two workloads are
    then equal, so the origins cannot be separated.
    """
    if before.demand is None or after.demand is None:
        return None
    sums: dict[str, Decimal] = dict.fromkeys(("workload", "keys", "new or gone"), Decimal(0))
    reader = _Attribution(before, after)
    for change in changes:
        for origin, dollars in reader.parts(change):
            sums[origin] += dollars
    return Origin(
        sums["workload"], sums["keys"], sums["new or gone"], tuple(demand_changes(before, after))
    )


class _Attribution:
    def __init__(self, before: Plan, after: Plan) -> None:
        self.before, self.after = before, after
        self.patterns = [{each.name: each for each in plan.patterns} for plan in (before, after)]
        self.entities = [{each.name for each in plan.entities} for plan in (before, after)]
        self.indexes = [_indexes(plan) for plan in (before, after)]

    def parts(self, change: CostChange) -> list[tuple[str, Decimal]]:
        cause = change.cause
        old, new = (patterns.get(cause) for patterns in self.patterns)
        if old is not None and new is not None:
            return self._pattern(old, new, change)
        if old is not None or new is not None:
            return [("new or gone", change.dollars)]
        if any(cause in indexes for indexes in self.indexes):
            return [(self._index(cause), change.dollars)]
        there = change.before is not None and change.after is not None
        return [
            (
                "workload" if there or not cause.startswith("storage of ") else "new or gone",
                change.dollars,
            )
        ]

    def _pattern(
        self, old: PatternPlan, new: PatternPlan, change: CostChange
    ) -> list[tuple[str, Decimal]]:
        if old.kind == "write" or requests_of(old) == requests_of(new) or change.before is None:
            return [("workload", change.dollars)]
        more = change.before * (self._growth(old, new) - 1)
        return [("workload", more), ("keys", change.dollars - more)]

    def _growth(self, old: PatternPlan, new: PatternPlan) -> Decimal:
        """Return the factor by which the new workload multiplies the cost of the old requests."""
        rate, before = Decimal(str(new.requests_per_second)), Decimal(str(old.requests_per_second))
        growth = rate / before if before else Decimal(1)
        was, now = (
            plan.demand.pattern(old.name) if plan.demand else None
            for plan in (self.before, self.after)
        )
        if was is not None and now is not None and was.returns and now.returns:
            growth *= max(Decimal(str(now.returns)) / Decimal(str(was.returns)), _least(old))
        return growth

    def _index(self, cause: str) -> str:
        entity = cause.removeprefix("index of ").partition(" by ")[0]
        if any(entity not in known for known in self.entities):
            return "new or gone"
        old, new = (indexes.get(cause) for indexes in self.indexes)
        return "workload" if old == new else "keys"


def _least(pattern: PatternPlan) -> Decimal:
    """Return the lowest possible cost of a call, as a share of its planned cost.

    Each request costs at least half a read unit, or one unit if it is strongly consistent.
    """
    least = sum(
        len(step.conditions) * step.shards * (1.0 if step.consistent else 0.5)
        for step in pattern.steps
    )
    return Decimal(str(least / pattern.units_per_call)) if pattern.units_per_call else Decimal(1)


def _indexes(plan: Plan) -> dict[str, tuple[object, ...]]:
    """Return the projection of each index, keyed by cause: ``index of Order by status``.

    An index that several entities share has one cause for each entity.
    """
    return {
        f"index of {entity.name} by {found_by(entity, index.name)}": (
            index.projection,
            index.included,
            index.native,
        )
        for entity in plan.entities
        for index in plan.table(entity.table).indexes
        if entity.name in index.entities
    }


# --- in words -------------------------------------------------------------------------------------


def demand_changes(before: Plan, after: Plan) -> list[str]:
    """Describe how the workload has changed, for the entities and patterns that both plans have."""
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
            sizes = f"{entity.item_bytes:,.0f} bytes instead of {was.item_bytes:,.0f}"
            yield f"items of {entity.name} of {sizes}"
        declared = [
            each.demand.entity(entity.name) if each.demand else None for each in (before, after)
        ]
        if (
            declared[0] is not None
            and declared[1] is not None
            and declared[0].creates != declared[1].creates
        ):
            old_rate, new_rate = declared[0].creates, declared[1].creates
            yield f"{new_rate:g} writes of {entity.name} a second instead of {old_rate:g}"


def _pattern_changes(before: Plan, after: Plan) -> Iterator[str]:
    old = {each.name: each for each in before.patterns}
    for pattern in after.patterns:
        if pattern.name not in old:
            continue
        rate = old[pattern.name].requests_per_second
        if rate != pattern.requests_per_second:
            now_rate = pattern.requests_per_second
            yield f"{pattern.name} {now_rate:g} times a second instead of {rate:g}"
        was, now = (
            each.demand.pattern(pattern.name) if each.demand else None for each in (before, after)
        )
        if was is None or now is None:
            continue
        if was.returns != now.returns:
            returned = f"{_shown(now.returns)} returned instead of {_shown(was.returns)}"
            yield f"{pattern.name} with {returned}"
        if was.changes != now.changes:
            yield f"other changes by {pattern.name}"


def _shown(returns: float | None) -> str:
    return "as many as estimated" if returns is None else f"{returns:g}"
