"""The intake: from records to written items, whatever the source is.

Records come in through ``take_in``; ``write_once`` writes some of the waiting events;
``uncommitted`` says up to which offset every record is done. Sources and their threads conduct
these (``running_ingest``), and so do simulations, in one thread and in random order.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from stator.backoff import Backoff
from stator.design.capacity_units import write_units
from stator.errors import (
    ConnectionTrouble,
    RegistryUnavailable,
    ServiceError,
    SlowDown,
    StatorError,
    TooManyErrors,
)
from stator.pipeline.bulk.job.governor import Governor
from stator.pipeline.ingest.commit_marks import CommitMarks
from stator.pipeline.ingest.dead_records import DeadRecord, DeadRecords
from stator.pipeline.ingest.event_window import EventRun, EventWindow
from stator.pipeline.ingest.event_writer import EventWriter
from stator.pipeline.ingest.options import IngestOptions
from stator.pipeline.ingest.routes.route import FATAL, BoundRoute, DeclaredRoute, RunOutcome
from stator.pipeline.ingest.source_record import Lane, PendingEvent, RecordBlock, SourceRecord
from stator.tables.context import Context
from stator.tables.runner import Runner
from stator.throttle_reason import throttle_scope

log = logging.getLogger("stator.ingest")

_RUNS: Final = 25
_BACKOFF: Final = Backoff(base_seconds=0.05, cap_seconds=5.0)


@dataclass(slots=True)
class IngestProgress:
    """The counts and the lag of an ingest since it started.

    ``records`` were read. The next four count what routes made of them; with two routes, a record
    counts twice. ``written`` is the number of writes that were applied, ``folded`` of records that
    were written together with another, ``stale`` of those that the table had already, or a newer
    one, and ``dead`` of dead letters. ``unrouted`` records had no route.

    ``waiting`` records are read and not yet written. ``lag_seconds`` is the age of the oldest
    record that is not yet written, and ``lag_records`` how many the topics have beyond those that
    were read; both are None if that is unknown. ``partitions`` are those that this process reads.
    ``lost`` were deleted from the topics before they were read. ``trouble`` is the last error for
    which writes wait, or empty.
    """

    records: int = 0
    written: int = 0
    folded: int = 0
    stale: int = 0
    dead: int = 0
    unrouted: int = 0
    lost: int = 0
    waiting: int = 0
    lag_seconds: float | None = None
    lag_records: int | None = None
    partitions: int = 0
    trouble: str = ""

    @property
    def handled(self) -> int:
        """The number of events that need no more work."""
        return self.written + self.folded + self.stale + self.dead


class Intake:
    """The records that one consumer has read and not yet committed.

    Any thread may call its methods. Only one thread calls ``take_in``.
    """

    def __init__(
        self,
        app: str,
        routes: Sequence[DeclaredRoute],
        context: Context,
        runner: Runner,
        letters: DeadRecords,
        options: IngestOptions,
    ) -> None:
        self.app = app
        self._context = context
        self._runner = runner
        self._letters = letters
        self._options = options
        self._routes: defaultdict[str, list[tuple[int, str, BoundRoute]]] = defaultdict(list)
        for at, route in enumerate(routes):
            bound = route.bind(context, app)
            self._routes[route.options.topic].append((at, route.name, bound))
        self.window = EventWindow(options.window_records, options.window_bytes, context.clock)
        self.marks = CommitMarks()
        self._writer = EventWriter(context, context.random, max_attempts=options.max_attempts)
        self.governor = Governor(context.clock, options.units_per_second)
        self._names = {at: route.name for at, route in enumerate(routes)}
        self._progress = IngestProgress()
        self._lock = threading.Lock()
        self._next: dict[Lane, int] = {}

    # -- in

    def take_in(self, records: Sequence[SourceRecord]) -> None:
        """Decode records and add their events to the window. Records of a lane are in order.

        A record that was taken in before, and not forgotten, is left out.
        """
        by_lane: defaultdict[Lane, list[SourceRecord]] = defaultdict(list)
        for record in records:
            lane = record.lane
            if record.offset >= self._next.get(lane, 0):
                by_lane[lane].append(record)
                self._next[lane] = record.offset + 1
        for lane, found in by_lane.items():
            block = RecordBlock(lane, found[-1].offset + 1, 0, found[0].at)
            events: list[PendingEvent] = []
            unrouted = 0
            for record in found:
                made = self._events(record, block)
                unrouted += made is None
                events += made or ()
            block.left = len(events)
            with self._lock:
                self._progress.records += len(found)
                self._progress.unrouted += unrouted
            self.marks.opened(block)
            self.window.add(events)

    def _events(self, record: SourceRecord, block: RecordBlock) -> list[PendingEvent] | None:
        """Return the events of a record, or None if no route takes it."""
        decoded: dict[int, Any] = {}
        events: list[PendingEvent] = []
        is_routed = False
        for at, name, route in self._routes[record.topic]:
            try:
                value = None
                if record.value is not None:
                    decoder = route.options.decode
                    if id(decoder) not in decoded:
                        decoded[id(decoder)] = decoder.decode(record)
                    value = decoded[id(decoder)]
                found = route.event(record, value)
            except RegistryUnavailable:
                raise  # no record is at fault
            except Exception as error:  # of the record, or of the user's functions
                is_routed = True
                self._bury(DeadRecord(record, name, _message(error)))
                continue
            if found is not None:
                is_routed = True
                key, content = found
                whole = (at, key, record.partition, record.topic)
                events.append(PendingEvent(route, whole, record, block, content))
        return events if is_routed else None

    def _bury(self, letter: DeadRecord) -> None:
        attempt = 0
        while True:
            try:
                self._letters.add(letter)
                break
            except (ConnectionTrouble, ServiceError) as error:
                if (
                    isinstance(error, FATAL)
                    or not _is_passing(error)
                    or self.governor.gate.is_stopped
                ):
                    raise
                self._note(error)
                self.governor.gate.pause(_BACKOFF.delay(attempt, self._context.random.random()))
                attempt += 1
        log.warning("%s: %s: %s", letter.record, letter.route, letter.reason)
        with self._lock:
            self._progress.dead += 1
            dead = self._progress.dead
        most = self._options.max_errors
        if most is not None and dead > most:
            raise TooManyErrors(dead, most, letter.reason)

    # -- out

    def write_once(self, wait_seconds: float = 0.0, runs: int = _RUNS) -> bool:
        """Write some of the events that wait. Returns False if none was ready in time.

        Raises an error that every write would have. The events then stay in the window.
        """
        taken = self.window.take(runs, wait_seconds)
        if not taken:
            return False
        units = float(sum(map(_units, taken)))
        try:
            self.governor.acquire(units)
            written = self._runner.run(self._writer.write(taken))
            self._account(taken, written.outcomes, units, written.write_units)
            ended = list(zip(taken, written.outcomes))
            for run, outcome in ended:
                for event, reason in outcome.dead:
                    self._bury(DeadRecord(event.record, self._names[run.key[0]], reason))
        except BaseException:
            for run in taken:
                self.window.settle(run, run.events)
            raise
        for run, outcome in ended:
            self._settle(run, outcome)
        return True

    def _account(
        self,
        runs: Sequence[EventRun],
        outcomes: Sequence[RunOutcome],
        estimated: float,
        consumed: float,
    ) -> None:
        slow = [each.error for each in outcomes if isinstance(each.error, SlowDown)]
        if consumed or not slow:
            self.governor.consumed(estimated, consumed)
        else:
            self.governor.returned(estimated)
        if slow:
            named = throttle_scope(slow[0])
            scope = named or ("key range" if len(slow) < len(runs) else "table")
            # A refused key waits by itself, so the others need not go slower.
            self.governor.throttled(
                scope, is_named=named is not None, is_paced=named == "key range"
            )

    def _settle(self, run: EventRun, outcome: RunOutcome) -> None:
        delay = 0.0
        if outcome.error is not None and outcome.left:
            delay = _BACKOFF.delay(run.attempts, self._context.random.random())
            self._note(outcome.error)
        with self._lock:
            self._progress.written += outcome.applied
            self._progress.folded += outcome.folded
            self._progress.stale += outcome.stale
            if outcome.applied or outcome.stale:
                self._progress.trouble = ""
        done = self.window.settle(run, outcome.left, delay)
        self.marks.done(event.block for event in done)

    def _note(self, error: StatorError) -> None:
        shown = f"{type(error).__name__}: {error.message}"
        with self._lock:
            is_new, self._progress.trouble = self._progress.trouble != shown, shown
        if is_new and not isinstance(error, SlowDown):
            log.warning("writes wait: %s", shown)

    # -- commits

    def uncommitted(self) -> dict[Lane, int]:
        """Return the offsets to commit. Every dead letter before them is stored."""
        marks = self.marks.uncommitted()
        if marks:
            self._letters.flush()
        return marks

    def forget(self, lanes: Collection[Lane]) -> None:
        """Drop the records read from these lanes, because another consumer reads the lanes now."""
        self.window.forget(lanes)
        self.marks.forget(lanes)
        for lane in lanes:
            self._next.pop(lane, None)

    def start(self, starts: Mapping[Lane, int]) -> None:
        """Record the offsets at which the source begins to read lanes."""
        self._next |= starts
        self.marks.started(starts)

    def positions(self) -> dict[Lane, int]:
        """Return the next offset to read of each lane. Only the reading thread calls this."""
        return dict(self._next)

    def stop(self) -> None:
        """Hand out no more events, and end the waits of writers."""
        self.governor.gate.stop()
        self.window.stop()

    def progress(self) -> IngestProgress:
        oldest = self.marks.oldest_at()
        with self._lock:
            return replace(
                self._progress,
                waiting=self.window.events,
                lag_seconds=None if oldest is None else max(0.0, self._context.now() - oldest),
            )


def _units(run: EventRun) -> int:
    return write_units(max(1, max(event.record.size_bytes for event in run.events)))


def _message(error: Exception) -> str:
    message = getattr(error, "message", None) or str(error)
    is_own = isinstance(error, StatorError)
    return message if is_own and message else f"{type(error).__name__}: {message}"


def _is_passing(error: StatorError) -> bool:
    return isinstance(error, ConnectionTrouble) or (
        isinstance(error, ServiceError) and error.retryable
    )
