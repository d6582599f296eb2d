"""Reading an index value whose number of shards follows the traffic, under one cursor.

The reader asks for the number first, with strong consistency, and queries every shard that the
value has ever had (``stator.tables.shards.index_shards``). A later page may find that there are
more. What was stored before the first page is in the shards that the first page has seen, because
an entry does not move. So a new shard only has newer entries, and is read from the *frontier*: the
last item that was returned, in the pattern's order. Entries before the frontier are like others
that are inserted behind a cursor.

A cursor has the positions of the shards that it has seen, and then their number and the frontier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stator.design.plan.plan import PatternPlan, Step
from stator.errors import CursorRefused
from stator.model.values import Item
from stator.tables.context import Context
from stator.tables.reads.cursors import Position
from stator.tables.reads.page_stream import PageStream
from stator.tables.schema.schema import StepRoute
from stator.tables.shards.index_shards import SpreadValue
from stator.tables.work import Work


class AdaptiveSpread:
    """The shards of the one value that a call of a pattern reads."""

    def __init__(self, context: Context, step: Step, value: SpreadValue) -> None:
        self._context = context
        self._step = step
        self._value = value
        self.numbers: dict[str, int] = {}
        """The number of shards, by the text of the value."""
        self._frontier: Item | None = None

    @classmethod
    def of(
        cls, context: Context, plan: PatternPlan, arguments: Mapping[str, Any]
    ) -> AdaptiveSpread | None:
        """Return the spread that a call reads, or None if its shards are fixed."""
        step = plan.steps[0]
        if not step.is_adaptive or step.index is None:
            return None
        texts = step.spread_values(arguments)
        if not texts:
            return None  # an empty list as an argument: nothing is read
        [text] = texts
        return cls(context, step, SpreadValue(step.table, step.index, text, step.shards))

    def read(self, label: str) -> Work[None]:
        """Read the number of shards."""
        [found] = yield from self._context.index_shards.numbers([self._value], label)
        self.numbers = {self._value.text: found.every}

    def positions(
        self,
        stored: list[Position],
        requests: Sequence[tuple[StepRoute, dict[str, Any]]],
        backward: bool,
    ) -> list[Position]:
        """Return a position for each request, from the content of a cursor.

        The requests for shards that the cursor has not seen start at the frontier.
        """
        last = stored[-1] if stored else "end"
        if not isinstance(last, dict) or "spread" not in last:
            raise CursorRefused(
                "the cursor was made before the index had adaptive shards",
                hint="start again without a cursor",
            )
        found = stored[:-1]
        frontier = last["spread"].get("frontier")
        if isinstance(frontier, dict):
            self._frontier = frontier
        for route, request in requests[len(found) :]:
            found.append(self._at_frontier(route, request, backward))
        return found

    def _at_frontier(self, route: StepRoute, request: dict[str, Any], backward: bool) -> Position:
        if self._frontier is None:
            return "end" if backward else "start"
        assert route.index is not None
        partition = request["ExpressionAttributeValues"][":k0"]
        return self._frontier | {route.index.partition[0]: partition}

    def with_frontier(
        self, positions: list[Position], streams: Sequence[PageStream], *, backward: bool
    ) -> list[Position]:
        """Return the positions of a new cursor, with the frontier behind them.

        ``backward`` says in which direction the cursor leads.
        """
        forward = streams[0].step.forward
        ends = [stream.returned for stream in streams if stream.returned is not None]
        frontier = self._frontier
        if ends:
            edges = [(stream, item) for stream in streams for item in stream.returned or ()]
            choose = min if forward is backward else max
            stream, item = choose(edges, key=lambda edge: edge[0].order(edge[1]))
            frontier = stream.key_of(item)
        return [*positions, {"spread": {"frontier": frontier}}]
