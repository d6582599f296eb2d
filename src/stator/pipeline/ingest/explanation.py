"""What an ingest writes, and what it costs: ``print(app.explain())``.

The units are those of an item of at most 1 KB, without its indexes. AWS does not document whether
it bills refused statements of a batch; the figures assume that it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from stator.pipeline.ingest.routes.fold_route import FoldRoute
from stator.pipeline.ingest.routes.handler_route import HandlerRoute
from stator.pipeline.ingest.routes.put_route import PutRoute
from stator.pipeline.ingest.routes.route import DeclaredRoute
from stator.tables.schema.schema import Schema


@dataclass(frozen=True, slots=True)
class GuardCost:
    """Write units by outcome, and read units of a replay.

    ``per`` names the contents of one write.
    """

    new: float
    replaced: float
    cold: float
    replay: float
    replay_reads: float
    per: str


_GUARDED: Final = GuardCost(1, 1, 2, 2, 1, "records of a key that wait together")
COSTS: Final = {
    "position": _GUARDED,
    "version": _GUARDED,
    "checksum": _GUARDED,
    "fold": _GUARDED,
    "id": GuardCost(1, 0, 0, 1, 0, "a record"),
    "none": GuardCost(1, 1, 1, 1, 0, "records of a key that wait together"),
    "transaction": GuardCost(4, 4, 4, 4, 0, "a record: 2 for each item, and 2 for the position"),
    "handler none": GuardCost(1, 1, 1, 1, 0, "a record: 2 for each item of several"),
}


@dataclass(frozen=True, slots=True)
class RouteExplanation:
    """One route: its name, topic, table and guard, and what a write costs in units."""

    name: str
    topic: str
    table: str
    guard: str
    cost: GuardCost

    def __str__(self) -> str:
        cost = self.cost
        lines = [f"{self.topic} -> {self.name}" + (f", table {self.table}" if self.table else "")]
        lines.append(f"  guard {self.guard}; a write holds {cost.per}")
        if self.guard == "id":
            lines.append(f"  new item {cost.new:g} write units; replay {cost.replay:g}")
            return "\n".join(lines)
        known = f"  new item {cost.new:g} write units; known item {cost.replaced:g}"
        if cost.cold != cost.replaced:
            known += f", {cost.cold:g} if this process has not written it lately"
        replay = f"  replay {cost.replay:g} write units"
        if cost.replay_reads:
            replay += f" and {cost.replay_reads:g} read unit"
        return "\n".join([*lines, known, replay])


@dataclass(frozen=True, slots=True)
class IngestExplanation:
    """The routes of an ingest. ``str`` shows them with their costs."""

    app: str
    routes: tuple[RouteExplanation, ...]

    def __str__(self) -> str:
        title = f"ingest {self.app}: units for items of up to 1 KB, without indexes"
        return "\n\n".join([title, *map(str, self.routes)])


def explained(app: str, routes: Sequence[DeclaredRoute], schema: Schema) -> IngestExplanation:
    found = []
    for route in routes:
        table = guard = ""
        cost = COSTS["handler none"]
        if isinstance(route, PutRoute):
            table, guard = schema.of(route.entity).table.name, route.guard
            cost = COSTS[guard]
        elif isinstance(route, FoldRoute):
            table, guard = schema.of(route.entity).table.name, "position"
            cost = COSTS["fold"]
        elif isinstance(route, HandlerRoute):
            guard = route.guard
            cost = COSTS["transaction"] if guard == "transaction" else cost
        found.append(RouteExplanation(route.name, route.options.topic, table, guard, cost))
    return IngestExplanation(app, tuple(found))
