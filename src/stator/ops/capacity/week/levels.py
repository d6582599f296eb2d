"""The few levels of capacity that cover a cycle of needs at the least cost.

A level must cover what each of its slots needs; the cost is the sum of the levels, plus a price
for each change. For a given set of levels, a dynamic program walks around the cycle once and keeps
the cheapest way to end on each level. Every set of at most four levels is tried.

The levels are taken from eight candidates. If more than eight needs occur, the candidates are those
that cover all needs with the least excess: a high need that is rare gets a candidate of its own
and does not raise the candidate below it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, groupby
from math import inf
from typing import Final

MOST_LEVELS: Final = 4
_CANDIDATES: Final = 8
_DISTINCT: Final = 48
"""More needs than this are first rounded up to steps of a tenth."""
_STEP: Final = 1.1


def choose_levels(
    needs: Sequence[int], change_cost: float, most_levels: int = MOST_LEVELS
) -> list[int]:
    """Return a level for each slot of a cycle that covers its need, at the least cost.

    The cost is the sum of the levels plus ``change_cost`` for each change between neighbours; the
    last slot and the first are neighbours.
    """
    candidates = _candidates(needs)
    highest, others = candidates[-1], candidates[:-1]
    # The way begins where only the highest level will do.
    first = max(range(len(needs)), key=needs.__getitem__)
    covering = [candidates[bisect_left(candidates, need)] for need in needs]
    runs = [(need, len(list(run))) for need, run in groupby(covering[first:] + covering[:first])]
    best_cost, best = inf, [highest] * len(runs)
    for count in range(min(most_levels, len(candidates))):
        for chosen in combinations(others, count):
            cost, levels = _cheapest_way(runs, (*chosen, highest), change_cost)
            if cost < best_cost - 1e-9:
                best_cost, best = cost, levels
    way = [level for level, (_, length) in zip(best, runs) for _ in range(length)]
    return way[len(needs) - first :] + way[: len(needs) - first]


def _candidates(needs: Iterable[int]) -> list[int]:
    """Return at most eight of the needs, chosen to cover all needs with the least excess."""
    counts = Counter(needs)
    if len(counts) > _DISTINCT:
        counts = _in_steps(counts)
    distinct = sorted(counts)
    if len(distinct) <= _CANDIDATES:
        return distinct
    # Prefix sums give the excess of covering distinct[first..last] with distinct[last].
    many, units = [0], [0]
    for each in distinct:
        many.append(many[-1] + counts[each])
        units.append(units[-1] + counts[each] * each)

    def excess(first: int, last: int) -> int:
        return distinct[last] * (many[last + 1] - many[first]) - units[last + 1] + units[first]

    # The least excess of the needs up to each one if that one is a candidate, and how.
    ways = [(excess(0, at), [at]) for at in range(len(distinct))]
    for _ in range(_CANDIDATES - 1):
        ways = [
            min([ways[at], *((ways[last][0] + excess(last + 1, at), [*ways[last][1], at])
                for last in range(at))], key=lambda way: way[0])
            for at in range(len(distinct))
        ]  # fmt: skip
    return [distinct[at] for at in ways[-1][1]]


def _in_steps(counts: Counter[int]) -> Counter[int]:
    """Replace needs that differ by at most a tenth with the highest of them."""
    found: Counter[int] = Counter()
    top = 0
    for need in sorted(counts, reverse=True):
        if not top or need * _STEP < top:
            top = need
        found[top] += counts[need]
    return found


def _cheapest_way(
    runs: Sequence[tuple[int, int]], levels: Sequence[int], change_cost: float
) -> tuple[float, list[int]]:
    """Return the cheapest way around the cycle with these levels, and its cost.

    ``runs`` has pairs of a need and of how many slots have it; the first needs the highest level,
    which is the last of ``levels``. A level never changes within a run: one that covers the run's
    need does so in all its slots, so the cheaper one covers them all.
    """
    places = range(len(levels))
    costs = [inf] * len(levels)
    costs[-1] = float(levels[-1] * runs[0][1])
    came_from: list[list[int]] = []
    for need, length in runs[1:]:
        cheapest = min(places, key=costs.__getitem__)
        switch = costs[cheapest] + change_cost
        row, moved = [], []
        for at in places:
            cost, level = costs[at], levels[at]
            stays = cost <= switch
            moved.append(at if stays else cheapest)
            row.append((cost if stays else switch) + level * length if level >= need else inf)
        costs = row
        came_from.append(moved)
    costs = [cost + change_cost for cost in costs[:-1]] + costs[-1:]
    last = min(places, key=costs.__getitem__)
    return costs[last], _way(levels, came_from, last)


def _way(levels: Sequence[int], came_from: Sequence[Sequence[int]], last: int) -> list[int]:
    way = [last]
    for moved in reversed(came_from):
        way.append(moved[way[-1]])
    return [levels[at] for at in reversed(way)]
