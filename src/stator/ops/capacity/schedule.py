"""Schedules: capacity that rises before a rise in traffic that the clock foretells.

``week_schedule`` derives the scheduled actions of Application Auto Scaling from the use of past
weeks: it cuts the week into half hours, takes the units that each needs, and chooses at most four
levels and the times at which they change. (A schedule that a user writes is a ``CapacityWindow``.)

The choice is a dynamic program. A level must cover what each of its slots needs; the cost is the
sum of the levels, plus the price of half an hour at the highest need for each change. For a given
set of levels it walks around the week once and keeps the cheapest way to end on each level; it
tries every set. Days may be alike (all of them, weekdays and weekends, none): the cheapest wins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from math import ceil, inf
from typing import Final

from stator.model.scaling.capacity_window import LEAD_MINUTES, clock, day_names, days_action
from stator.model.scaling.scheduled_action import ScheduledAction, zone
from stator.ops.capacity.use_series import MINUTE, Dimension, TableHistory

SLOT_MINUTES: Final = 30
DAY_SLOTS: Final = 24 * 60 // SLOT_MINUTES
WEEK_SLOTS: Final = 7 * DAY_SLOTS
MOST_LEVELS: Final = 4
_CANDIDATES: Final = 8
_COVERED: Final = 0.95
"""The share of a slot's minutes that its need covers; burst and scaling cover the rest."""

_ALIKE: Final = ((0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 1, 1), (0, 1, 2, 3, 4, 5, 6))


# --- from the week's profile ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WeekSchedule:
    """The least units of each half hour of a week, from Monday 00:00 in a time zone."""

    levels: tuple[int, ...]
    timezone: str

    @property
    def base(self) -> int:
        """The lowest level, which holds outside of all windows."""
        return min(self.levels)

    @property
    def is_flat(self) -> bool:
        """Whether one level holds for the whole week."""
        return len(set(self.levels)) == 1

    def actions(self) -> tuple[ScheduledAction, ...]:
        """Return an action for each time at which the least units change; rises run early."""
        days_by_change: dict[tuple[int, int], list[int]] = defaultdict(list)
        for slot, level in enumerate(self.levels):
            before = self.levels[slot - 1]
            if level == before:
                continue
            minute = slot * SLOT_MINUTES - (LEAD_MINUTES if level > before else 0)
            day, minute = divmod(minute % (7 * 24 * 60), 24 * 60)
            days_by_change[minute, level].append(day)
        return tuple(
            days_action(sorted(days), minute, level, None, self.timezone)
            for (minute, level), days in sorted(days_by_change.items())
        )

    def windows(self) -> Iterator[str]:
        """Yield the parts of the week above the base: ``weekdays 17:50-22:30 min 160``."""
        found: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for start, end, level in self._stretches():
            day, minute = divmod(start * SLOT_MINUTES - LEAD_MINUTES, 24 * 60)
            found[minute, end * SLOT_MINUTES % (24 * 60), level].append(day % 7)
        for (start, end, level), days in sorted(found.items()):
            yield f"{day_names(sorted(days))} {clock(start)}-{clock(end)} min {level}"

    def _stretches(self) -> Iterator[tuple[int, int, int]]:
        """Yield runs of one level above the base: first slot, slot after the last, level."""
        levels, base = self.levels, self.base
        first = next((at for at, level in enumerate(levels) if level == base), 0)
        at = first
        while at < first + WEEK_SLOTS:
            level, start = levels[at % WEEK_SLOTS], at
            while at < first + WEEK_SLOTS and levels[at % WEEK_SLOTS] == level:
                at += 1
            if level != base:
                yield start % WEEK_SLOTS, start % WEEK_SLOTS + at - start, level


def week_needs(
    history: TableHistory, dimension: Dimension, target_percent: float, timezone: str
) -> list[int]:
    """Return the units that each half hour of the week needs to be used at the target."""
    where = zone(timezone)
    demand = history.of(dimension).demand()
    slots: list[list[float]] = [[] for _ in range(WEEK_SLOTS)]
    skew = (history.start // MINUTE) % SLOT_MINUTES
    at = -skew
    while at < len(demand):
        local = datetime.fromtimestamp(history.start + at * MINUTE, where)
        slot = local.weekday() * DAY_SLOTS + (local.hour * 60 + local.minute) // SLOT_MINUTES
        slots[slot] += demand[max(0, at) : at + SLOT_MINUTES]
        at += SLOT_MINUTES
    return [_need(minutes, target_percent) for minutes in slots]


def _need(minutes: list[float], target_percent: float) -> int:
    if not minutes:
        return 1
    covering = sorted(minutes)[min(len(minutes) - 1, int(len(minutes) * _COVERED))]
    return max(1, ceil(covering / MINUTE * 100.0 / target_percent - 1e-9))


def week_schedule(needs: Sequence[int], timezone: str) -> WeekSchedule:
    """Choose the levels of a week and the times at which they change. See the module's header."""
    change_cost = float(max(needs))
    found: list[tuple[float, list[int]]] = []
    for alike in _ALIKE:
        levels = choose_levels(_alike_needs(needs, alike), change_cost)
        schedule = WeekSchedule(tuple(levels), timezone)
        found.append((sum(levels) + change_cost * len(schedule.actions()), levels))
    return WeekSchedule(tuple(min(found, key=lambda each: each[0])[1]), timezone)


def _alike_needs(needs: Sequence[int], alike: Sequence[int]) -> list[int]:
    """Let days of one group need what the most demanding of them needs, slot by slot."""
    return [
        max(needs[day * DAY_SLOTS + slot] for day in range(7) if alike[day] == alike[this])
        for this in range(7)
        for slot in range(DAY_SLOTS)
    ]


def choose_levels(
    needs: Sequence[int], change_cost: float, most_levels: int = MOST_LEVELS
) -> list[int]:
    """Return a level for each slot of a cycle that covers its need, at the least cost.

    The cost is the sum of the levels plus ``change_cost`` for each change between neighbours; the
    last slot and the first are neighbours. Levels are needs that occur; of more than eight, those
    at equal ranks.
    """
    candidates = _candidates(needs)
    highest, others = candidates[-1], candidates[:-1]
    best_cost, best = inf, [highest] * len(needs)
    for count in range(min(most_levels, len(candidates))):
        for chosen in combinations(others, count):
            cost, levels = _cheapest_way(needs, (*chosen, highest), change_cost)
            if cost < best_cost - 1e-9:
                best_cost, best = cost, levels
    return best


def _candidates(needs: Iterable[int]) -> list[int]:
    ordered = sorted(needs)
    distinct = sorted(set(ordered))
    if len(distinct) <= _CANDIDATES:
        return distinct
    last = len(ordered) - 1
    return sorted({ordered[last * rank // (_CANDIDATES - 1)] for rank in range(_CANDIDATES)})


def _cheapest_way(
    needs: Sequence[int], levels: Sequence[int], change_cost: float
) -> tuple[float, list[int]]:
    """Return the cheapest way around the cycle with these levels, and its cost."""
    count = len(levels)
    best: tuple[float, list[int]] = (inf, [])
    for first in range(count):
        if levels[first] < needs[0]:
            continue
        costs = [inf] * count
        costs[first] = float(levels[first])
        came_from: list[list[int]] = []
        for need in needs[1:]:
            cheapest = min(range(count), key=costs.__getitem__)
            switch = costs[cheapest] + change_cost
            row, moved = [], []
            for at, level in enumerate(levels):
                stays = costs[at] <= switch
                moved.append(at if stays else cheapest)
                row.append((costs[at] if stays else switch) + level if level >= need else inf)
            costs = row
            came_from.append(moved)
        for last in range(count):
            cost = costs[last] + (change_cost if last != first else 0.0)
            if cost < best[0]:
                best = (cost, _way(levels, came_from, last))
    return best


def _way(levels: Sequence[int], came_from: Sequence[Sequence[int]], last: int) -> list[int]:
    way = [last]
    for moved in reversed(came_from):
        way.append(moved[way[-1]])
    return [levels[at] for at in reversed(way)]
