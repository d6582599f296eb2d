"""Schedules: capacity that rises before a rise in traffic that the clock foretells.

``week_schedule`` derives the scheduled actions of Application Auto Scaling from the use of past
weeks: it cuts the week into half hours, takes the units that each needs, and chooses at most four
levels and the times at which they change. (A schedule that a user writes is a ``CapacityWindow``.)

Days that are alike get the same times (``day_groups``), and ``choose_levels`` finds the cheapest
levels of each such week. Of all of them the cheapest wins: the sum of the levels, plus the price of
two hours at a high need for each window, so that few windows are preferred to a small gain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from math import ceil
from typing import Final

from stator.model.scaling.capacity_window import (
    LEAD_MINUTES,
    clock,
    days_action,
    full_day_names,
)
from stator.model.scaling.scheduled_action import ScheduledAction, zone
from stator.ops.capacity.use_series import MINUTE, Dimension, TableHistory
from stator.ops.capacity.week.day_groups import alike_weeks
from stator.ops.capacity.week.levels import choose_levels

SLOT_MINUTES: Final = 30
DAY_SLOTS: Final = 24 * 60 // SLOT_MINUTES
WEEK_SLOTS: Final = 7 * DAY_SLOTS
_COVERED: Final = 0.95
"""The share of a slot's minutes that its need covers; burst and scaling cover the rest."""
_CHANGE_RANK: Final = 0.95
"""A change costs half hours at the need of this rank: a rare batch makes no change dear."""
_WINDOW_SLOTS: Final = 4


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
        """Yield the parts of the week above the base, as ``stator scale --schedule`` takes them.

        ``weekdays 17:50-22:30 min=160``, ``sunday 01:50-04:00 min=900``
        """
        found: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for start, end, level in self._stretches():
            lead = LEAD_MINUTES if level > self.levels[start - 1] else 0
            day, minute = divmod(start * SLOT_MINUTES - lead, 24 * 60)
            found[minute, end * SLOT_MINUTES % (24 * 60), level].append(day % 7)
        for (start, end, level), days in sorted(found.items()):
            yield f"{full_day_names(sorted(days))} {clock(start)}-{clock(end)} min={level}"

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
    ordered = sorted(needs)
    change_cost = float(ordered[int(_CHANGE_RANK * (len(ordered) - 1))])
    found: list[tuple[float, WeekSchedule]] = []
    # The same window on five days is one window, so a change costs less than a window, or as much.
    for week, slots in product(alike_weeks(needs), (1, _WINDOW_SLOTS)):
        schedule = WeekSchedule(tuple(choose_levels(week, change_cost * slots)), timezone)
        windows = change_cost * _WINDOW_SLOTS * len(list(schedule.windows()))
        found.append((sum(schedule.levels) + windows, schedule))
    return min(found, key=lambda each: each[0])[1]
