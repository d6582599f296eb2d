"""Finds the cheapest way to serve every need of one entity whose base key is already chosen.

The search is a branch and bound. It decides needs one after the other, those with the fewest
options first. Each need uses a placement that is already open (part of the layout, so its price is
already paid), or opens another.

The bound divides the price of each placement by the number of needs that could use it. Each need
counts with its cheapest option, including such a share of the price. No assignment costs less. If
there are fewer shared indexes than needs, a second bound applies. It charges a rent for each
placement in a shared index, and refunds the rent once for each index that is available.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from stator.design.planner.choices import EntityChoices
from stator.design.planner.cost_model import Placement

ASSIGNMENT_BUDGET: Final = 10_000
TIE: Final = 1e-8
FAR: Final = float("inf")

Caps = tuple[int, int]
"""How many shared indexes may be used: with projection KEYS_ONLY, and with projection ALL."""
UNCAPPED: Final[Caps] = (99, 99)


@dataclass(frozen=True)
class EntityLayout:
    """The choices for one entity.

    ``assigned`` has the placement of each need, in the order of the needs. None means that a Scan
    serves the need. None also stands for a leg (one entity's part of a pattern over several
    entities) if a single query serves the whole pattern.
    """

    base: Placement
    opened: tuple[Placement, ...]
    assigned: tuple[Placement | None, ...]
    dollars: float
    proven: bool = True


def shared_by(placements: Iterable[Placement]) -> Caps:
    shared = [each.projection for each in placements if each.shares_slot]
    return shared.count("KEYS_ONLY"), shared.count("ALL")


def within(used: Caps, caps: Caps) -> bool:
    return used[0] <= caps[0] and used[1] <= caps[1]


class Assignment:
    """The search for the placements of one entity, with its base key already chosen.

    ``forced`` placements are part of every result. ``apart`` names the patterns over several
    entities that send one request for each entity. A leg is one entity's part of such a pattern.
    Legs of patterns that are not in ``apart`` cost nothing.
    """

    def __init__(
        self,
        choices: EntityChoices,
        base: Placement,
        forced: tuple[Placement, ...],
        caps: Caps,
        apart: frozenset[str] = frozenset(),
    ) -> None:
        self.choices = choices
        self.counts = [need.leg_of is None or need.leg_of in apart for need in choices.needs]
        self.base = base
        self.forced = (*choices.pinned, *(each for each in forced if each not in choices.pinned))
        self.caps = caps
        candidates = [
            each for each in choices.secondary if each not in self.forced and _fits_base(each, base)
        ]
        self.candidates = candidates
        self.have = [choices.open_dollars[each] for each in candidates]
        given = [choices.keyless, *(choices.use_dollars[each] for each in (base, *self.forced))]
        self.given = [
            min(map(_number, column), default=FAR) if counts else 0.0
            for counts, column in zip(self.counts, zip(*given))
        ]
        # A placement that serves a need no cheaper than what is there anyway does not count for it.
        self.use = [
            tuple(
                price if price is not None and price < there else None
                for price, there in zip(choices.use_dollars[each], self.given)
            )
            for each in candidates
        ]
        self.needs = self._hardest_first()
        self.floor = [self._floor(at) for at in range(len(choices.needs))]
        self.room = sum(caps) - sum(shared_by(self.forced))
        self.rent = self._rent()
        self.rented = [self._floor(at, self.rent) for at in range(len(choices.needs))]
        self.nodes = 0
        self.best = FAR
        self.chosen: tuple[int, ...] | None = None

    def _hardest_first(self) -> list[int]:
        options = [
            sum(use[at] is not None for use in self.use) for at in range(len(self.choices.needs))
        ]
        return sorted(range(len(options)), key=lambda at: (self.given[at] < FAR, options[at], at))

    def _floor(self, at: int, rent: float = 0.0) -> float:
        """Return a lower bound for the cost of need number ``at``: the cost of its cheapest option.

        An option is a placement. The price of a placement is divided among all needs that could use
        it, and each need pays one share. ``rent`` is added to the price of a placement in a shared
        index.
        """
        lowest = self.given[at]
        for placement, have, use in zip(self.candidates, self.have, self.use):
            price = use[at]
            if price is not None:
                paid = have + (rent if placement.shares_slot else 0.0)
                able = sum(each is not None and counts for each, counts in zip(use, self.counts))
                lowest = min(lowest, price + paid / max(1, able))
        return lowest

    def _rent(self) -> float:
        """Return the rent: the charge of the second bound for each placement in a shared index.

        The bound refunds the rent once for each available index. So the bound rises if a layout
        needs more placements than there are indexes. Any rent gives a valid bound. The best rent is
        the saving of the first need that gets no index.
        """
        if self.room >= len(self.needs):
            return 0.0
        without = [min(self._floor(at, FAR), 1e12) for at in range(len(self.choices.needs))]
        saved = sorted(
            (high - low for high, low in zip(without, self.floor) if low < FAR), reverse=True
        )
        return min(saved[self.room], 1e9) if 0 <= self.room < len(saved) else 0.0

    def solve(self) -> EntityLayout | None:
        if not within(shared_by(self.forced), self.caps):
            return None
        fixed = self.choices.open_dollars[self.base] + sum(
            self.choices.open_dollars[each] for each in self.forced
        )
        self._descend(0, fixed, frozenset(), list(self.given))
        if self.chosen is None:
            return None
        opened = (*self.forced, *(self.candidates[at] for at in self.chosen))
        return EntityLayout(
            self.base, opened, self._assigned(opened), self.best, self.nodes <= ASSIGNMENT_BUDGET
        )

    def _bound(self, depth: int, opened: frozenset[int], now: list[float]) -> float:
        rest = sum(min(self.floor[at], now[at]) for at in self.needs[depth:])
        if not self.rent:
            return rest
        left = self.room - sum(self.candidates[at].shares_slot for at in opened)
        return max(
            rest, sum(min(self.rented[at], now[at]) for at in self.needs[depth:]) - self.rent * left
        )

    def _descend(self, depth: int, spent: float, opened: frozenset[int], now: list[float]) -> None:
        self.nodes += 1
        if spent + self._bound(depth, opened, now) >= self.best - TIE:
            return
        if self.nodes > ASSIGNMENT_BUDGET and self.chosen is not None:
            return
        if depth == len(self.needs):
            self.best, self.chosen = spent, tuple(sorted(opened))
            return
        at = self.needs[depth]
        options: list[tuple[float, int]] = [(now[at], -1)] if now[at] < FAR else []
        for index, use in enumerate(self.use):
            price = use[at]
            # ``now`` covers what is open. Opening something more expensive never pays for this
            # need alone; a later need for which it pays opens it itself.
            if price is not None and index not in opened and price + self.have[index] < FAR:
                options.append((price + self.have[index], index))
        for extra, index in sorted(options):
            if index < 0:
                self._descend(depth + 1, spent + extra, opened, now)
            elif extra < now[at] + self.have[index] and self._room(opened, index):
                use = self.use[index]
                better = [min(old, _number(new)) for old, new in zip(now, use)]
                self._descend(depth + 1, spent + extra, opened | {index}, better)

    def _room(self, opened: frozenset[int], index: int) -> bool:
        placements = [*self.forced, *(self.candidates[at] for at in opened), self.candidates[index]]
        return within(shared_by(placements), self.caps)

    def _assigned(self, opened: tuple[Placement, ...]) -> tuple[Placement | None, ...]:
        found: list[Placement | None] = []
        for at in range(len(self.choices.needs)):
            if not self.counts[at]:
                found.append(None)
                continue
            able = [
                each
                for each in (self.base, *opened)
                if self.choices.use_dollars[each][at] is not None
            ]
            best = min(
                able,
                key=lambda each: (self._used(each, at), not each.is_base, each.rank),
                default=None,
            )
            keyless = _number(self.choices.keyless[at])
            found.append(None if best is None or keyless < self._used(best, at) - TIE else best)
        return tuple(found)

    def _used(self, placement: Placement, at: int) -> float:
        return round(_number(self.choices.use_dollars[placement][at]) / TIE) * TIE


def _number(price: float | None) -> float:
    return FAR if price is None else price


def _fits_base(placement: Placement, base: Placement) -> bool:
    """Whether a placement is possible with this base key.

    A local index must have the table's partition key and another sort key. Other placements always
    fit.
    """
    if placement.kind != "local":
        return True
    mine, its = placement.path, base.path
    if base.is_native and not its.sort:
        return False  # DynamoDB allows local indexes only on tables with a sort key
    return (
        its.handwritten is None
        and mine.partition == its.partition
        and mine.shards == its.shards
        and mine.sort != its.sort
    )
