"""The writer: carries out runs of events, and returns the outcome of each event.

Guarded writes of several runs go out together. A refused fold is planned again: with the numbers
that the stored item lacks, or else in halves, until the event at fault is alone. So one bad event
does not make its neighbours fail.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stator.errors import ServiceError, StatorError, Throttled, ValidationFailed
from stator.model.values import Item
from stator.pipeline.ingest.event_window import EventRun
from stator.pipeline.ingest.routes.fold_route import BoundFold
from stator.pipeline.ingest.routes.handler_route import BoundHandler, HandlerWriter
from stator.pipeline.ingest.routes.put_route import BoundPut
from stator.pipeline.ingest.routes.route import FATAL, RunOutcome, reason_of
from stator.pipeline.ingest.source_record import PendingEvent
from stator.tables.context import Context
from stator.tables.work import Call, Work
from stator.tables.writes.guarded.guarded_write import GuardedWrite
from stator.tables.writes.guarded.outcomes import Outcome, Refused
from stator.tables.writes.guarded.writer import GuardedWriter

_LABEL: Final = "ingest"


@dataclass(slots=True)
class WrittenRuns:
    """The outcomes of runs, in their order, and the units that they consumed."""

    outcomes: list[RunOutcome] = field(default_factory=list)
    write_units: float = 0.0


@dataclass(slots=True)
class _Planned:
    """A run with the write that was made of its first ``used`` events."""

    at: int
    run: EventRun
    write: GuardedWrite
    used: int


class EventWriter:
    """Carries out runs. One object serves several threads."""

    def __init__(self, context: Context, chance: random.Random, *, max_attempts: int = 8) -> None:
        self._context = context
        self._guarded = GuardedWriter(chance, label=_LABEL, measure=True)
        self._handlers = HandlerWriter(context, max_attempts)

    def write(self, runs: Sequence[EventRun]) -> Work[WrittenRuns]:
        """Write the runs, and return the outcomes of their events.

        Raises an error of ``FATAL``. Events that were written before may then be written again,
        which changes nothing.
        """
        found: dict[int, RunOutcome] = {}
        result = WrittenRuns()
        plain: list[int] = []
        planned: list[_Planned] = []
        for at, run in enumerate(runs):
            route = run.events[0].route
            if isinstance(route, BoundHandler):
                found[at] = yield from self._handlers.write(route, run)
            elif isinstance(route, BoundPut) and route.route.guard == "none":
                plain.append(at)
            else:
                self._plan(at, run, len(run.events), planned, found)
        if plain:
            yield from self._write_plain(runs, plain, found, result)
        if planned:
            yield from self._write_guarded(planned, found, result)
        result.outcomes = [found[at] for at in range(len(runs))]
        return result

    # -- guarded

    def _plan(
        self,
        at: int,
        run: EventRun,
        limit: int,
        planned: list[_Planned],
        found: dict[int, RunOutcome],
    ) -> None:
        """Plan a write of up to ``limit`` events of a run, and add it to ``planned``.

        If even a single event cannot be planned, it becomes a dead letter. Its outcome is added to
        ``found``.
        """
        while True:
            try:
                write, used = run.events[0].route.plan(run.events[:limit])
            except StatorError as error:
                if limit == 1:
                    found[at] = _first_dead(run, error)
                    return
                limit = max(1, limit // 2)
                continue
            planned.append(_Planned(at, run, write, used))
            return

    def _write_guarded(
        self, planned: list[_Planned], found: dict[int, RunOutcome], result: WrittenRuns
    ) -> Work[None]:
        while planned:
            written = yield from self._guarded.write([each.write for each in planned])
            result.write_units += written.write_units
            again: list[_Planned] = []
            for each, outcome in zip(planned, written.outcomes):
                yield from self._ended(each, outcome, again, found)
            planned = again

    def _ended(
        self,
        each: _Planned,
        outcome: Outcome,
        again: list[_Planned],
        found: dict[int, RunOutcome],
    ) -> Work[None]:
        route, events = each.run.events[0].route, each.run.events[: each.used]
        if isinstance(outcome, Refused):
            if isinstance(outcome.error, FATAL):
                raise outcome.error
            if isinstance(route, BoundFold):
                stored = yield from self._stored(each.write)
                if route.note_missing(events, stored):
                    self._plan(each.at, each.run, each.used, again, found)
                    return
                if each.used > 1:
                    self._plan(each.at, each.run, each.used // 2, again, found)
                    return
        after: RunOutcome = route.after(events, outcome)
        after.left = [*after.left, *each.run.events[each.used :]]
        found[each.at] = after

    def _stored(self, write: GuardedWrite) -> Work[Item | None]:
        request = {"TableName": write.table, "Key": dict(write.key), "ConsistentRead": True}
        reply = yield Call("GetItem", request, _LABEL)
        found: Item | None = reply.get("Item")
        return found

    # -- without a guard

    def _write_plain(
        self,
        runs: Sequence[EventRun],
        places: list[int],
        found: dict[int, RunOutcome],
        result: WrittenRuns,
    ) -> Work[None]:
        by_table: dict[str, list[int]] = {}
        for at in places:
            route: BoundPut = runs[at].events[0].route
            by_table.setdefault(route.of.table.name, []).append(at)
        for table, members in by_table.items():
            seen: set[Any] = set()
            rest = list(members)
            while rest:  # a request must not name an item twice, and lanes may share one
                batch = []
                for at in rest:
                    key = runs[at].key[1]
                    if key not in seen:
                        seen.add(key)
                        batch.append(at)
                rest = [at for at in rest if at not in batch]
                seen.clear()
                yield from self._send_plain(table, runs, batch, found, result)

    def _send_plain(
        self,
        table: str,
        runs: Sequence[EventRun],
        places: list[int],
        found: dict[int, RunOutcome],
        result: WrittenRuns,
    ) -> Work[None]:
        requests = [_plain_request(runs[at].events[-1]) for at in places]
        call = Call(
            "BatchWriteItem",
            {"RequestItems": {table: requests}, "ReturnConsumedCapacity": "TOTAL"},
            _LABEL,
        )
        try:
            reply = yield call
        except FATAL:
            raise
        except ValidationFailed as error:
            if len(places) == 1:
                [at] = places
                found[at] = _first_dead(runs[at], error)
                return
            middle = len(places) // 2
            yield from self._send_plain(table, runs, places[:middle], found, result)
            yield from self._send_plain(table, runs, places[middle:], found, result)
            return
        except StatorError as error:
            for at in places:
                found[at] = _later_or_dead(runs[at], error)
            return
        left = (reply.get("UnprocessedItems") or {}).get(table, ())
        result.write_units += sum(
            each.get("CapacityUnits", 0.0) for each in reply.get("ConsumedCapacity") or ()
        )
        unprocessed = {_plain_key(runs[places[0]], each) for each in left}
        for at in places:
            events = runs[at].events
            if runs[at].key[1] in unprocessed:
                slow = Throttled("DynamoDB left the item unprocessed")
                found[at] = RunOutcome(left=events, error=slow)
            else:
                found[at] = RunOutcome(applied=1, folded=len(events) - 1)


def _plain_request(event: PendingEvent) -> dict[str, Any]:
    if event.record.value is None:
        return {"DeleteRequest": {"Key": event.content}}
    return {"PutRequest": {"Item": event.content}}


def _plain_key(run: EventRun, request: dict[str, Any]) -> Any:
    route: BoundPut = run.events[0].route
    item = request["PutRequest"]["Item"] if "PutRequest" in request else None
    return route.of.key_values(item or request["DeleteRequest"]["Key"])


def _first_dead(run: EventRun, error: StatorError) -> RunOutcome:
    return RunOutcome(left=run.events[1:], dead=[(run.events[0], reason_of(error))])


def _later_or_dead(run: EventRun, error: StatorError) -> RunOutcome:
    if isinstance(error, ServiceError) and not error.retryable:
        return _first_dead(run, error)
    return RunOutcome(left=run.events, error=error)
