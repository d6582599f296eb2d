"""Which days of a week are alike, and what stands out from the days that are.

``alike_weeks`` returns the week's needs several times, each with other days grouped. In a group,
every day needs what the most demanding of it needs, half hour by half hour, so that a schedule has
the same times for all of them. What one day needs far beyond the others, such as a weekly batch,
stays with that day: it *stands out*, and the others do not follow it.

The groups come from merging, one by one, the two groups whose days differ least. A difference
leaves out the quarter of the day in which two days differ most, so a batch on Wednesday does not
part Wednesday from the other weekdays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

Groups = tuple[tuple[int, ...], ...]

_WORK_WEEK: Final[Groups] = ((0, 1, 2, 3, 4), (5, 6))
_DAILY: Final[Groups] = ((0, 1, 2, 3, 4, 5, 6),)
_COMPARED: Final = 0.75
_FAR: Final = 1.5
"""A need stands out from 1.5 times what the group's middle day needs at that time ..."""
_FAR_SHARE: Final = 0.1
"""... if it is also a tenth of the week's highest need above it."""


def alike_weeks(needs: Sequence[int]) -> Iterator[list[int]]:
    """Yield the week's needs with similar days made equal, once for each grouping.

    Every result covers ``needs``.
    """
    days = _days(needs)
    seen: set[tuple[int, ...]] = set()
    for groups in (*_merged_groups(days), _WORK_WEEK):
        week = _grouped(days, groups, max(needs) * _FAR_SHARE)
        if tuple(week) not in seen:
            seen.add(tuple(week))
            yield week
    for groups in (_WORK_WEEK, _DAILY):
        week = _grouped(days, groups, max(needs))  # nothing stands out
        if tuple(week) not in seen:
            seen.add(tuple(week))
            yield week


def _days(needs: Sequence[int]) -> list[Sequence[int]]:
    slots = len(needs) // 7
    return [needs[day * slots : (day + 1) * slots] for day in range(7)]


def _merged_groups(days: Sequence[Sequence[int]]) -> Iterator[Groups]:
    """Yield groupings from seven days alone to all days together."""
    groups: Groups = tuple((day,) for day in range(len(days)))
    yield groups
    while len(groups) > 1:
        pairs = list(combinations(groups, 2))
        apart = [_difference(days, first, second) for first, second in pairs]
        first, second = pairs[apart.index(min(apart))]
        kept = [each for each in groups if each not in (first, second)]
        groups = tuple(sorted([*kept, tuple(sorted((*first, *second)))]))
        yield groups


def _difference(
    days: Sequence[Sequence[int]], first: Sequence[int], second: Sequence[int]
) -> float:
    """Return how much the middle days of two groups differ, without the worst quarter."""
    apart = sorted(
        abs(_middle(days, first, slot) - _middle(days, second, slot))
        for slot in range(len(days[0]))
    )
    return float(sum(apart[: int(len(apart) * _COMPARED)]))


def _middle(days: Sequence[Sequence[int]], group: Sequence[int], slot: int) -> int:
    """Return the median, of two middle values the lower one."""
    return sorted(days[day][slot] for day in group)[(len(group) - 1) // 2]


def _grouped(days: Sequence[Sequence[int]], groups: Groups, far: float) -> list[int]:
    week = [list(day) for day in days]
    for group in groups:
        for slot in range(len(days[0])):
            middle = _middle(days, group, slot)
            most = max(middle * _FAR, middle + far)
            usual = max(days[day][slot] for day in group if days[day][slot] <= most)
            for day in group:
                week[day][slot] = max(days[day][slot], usual)
    return [need for day in week for need in day]
