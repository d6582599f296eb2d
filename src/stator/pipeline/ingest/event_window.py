"""The window: events that were read and are not yet written, in one queue for each key.

A writer takes *runs*: the events of a key, in their order. The key is then in flight, and its
further events wait, so events of one key never overtake each other. All waiting events of a key are
folded into one write when its turn comes: a key that gets many events costs few writes.

The window never blocks the thread that fills it. That thread pauses the source when the window is
full.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from stator.clock import Clock
from stator.pipeline.ingest.source_record import Lane, PendingEvent

RUN_EVENTS: Final = 1000
"""The most events of a key in one write."""
# A record in memory is larger than its bytes.
_OVERHEAD_BYTES: Final = 600


@dataclass(slots=True, eq=False)
class EventRun:
    """Events of one key that are written together, in their order."""

    key: Any
    events: list[PendingEvent]
    attempts: int = 0

    @property
    def lane(self) -> Lane:
        return self.events[0].record.lane


class EventWindow:
    """The events of all lanes of one consumer. All methods may be called from any thread."""

    def __init__(self, records: int, size_bytes: int, clock: Clock) -> None:
        self._records = records
        self._bytes = size_bytes
        self._clock = clock
        self._queues: dict[Any, deque[PendingEvent]] = {}
        self._ready: deque[Any] = deque()
        self._delayed: list[tuple[float, Any]] = []
        self._attempts: dict[Any, int] = {}
        self._in_flight: dict[Any, EventRun] = {}
        self._held: dict[Lane, int] = {}
        self._held_bytes = 0
        self._stopped = False
        self._changed = threading.Condition()

    # -- filling

    @property
    def share(self) -> float:
        """How full the window is. At 1.0 or more, no event should be added."""
        with self._changed:
            events = sum(self._held.values())
            return max(events / self._records, self._held_bytes / self._bytes)

    @property
    def events(self) -> int:
        """How many events are in the window, those in flight included."""
        with self._changed:
            return sum(self._held.values())

    def add(self, events: Collection[PendingEvent]) -> None:
        with self._changed:
            for event in events:
                queue = self._queues.get(event.key)
                if queue is None:
                    queue = self._queues[event.key] = deque()
                    if event.key not in self._in_flight:
                        self._ready.append(event.key)
                queue.append(event)
                lane = event.record.lane
                self._held[lane] = self._held.get(lane, 0) + 1
                self._held_bytes += event.record.size_bytes + _OVERHEAD_BYTES
            self._changed.notify_all()

    # -- taking

    def take(self, count: int, wait_seconds: float) -> list[EventRun]:
        """Return up to ``count`` runs. Waits for the first one for up to ``wait_seconds``."""
        with self._changed:
            found = self._taken(count)
            if not found and not self._stopped and wait_seconds > 0:
                self._changed.wait(self._until_next(wait_seconds))
                found = self._taken(count)
            return found

    def _until_next(self, wait_seconds: float) -> float:
        if not self._delayed:
            return wait_seconds
        return max(0.001, min(wait_seconds, self._delayed[0][0] - self._clock.now()))

    def _taken(self, count: int) -> list[EventRun]:
        self._wake_delayed()
        found: list[EventRun] = []
        while self._ready and len(found) < count and not self._stopped:
            key = self._ready.popleft()
            queue = self._queues.get(key)
            if not queue or key in self._in_flight:
                continue
            events = list(islice(queue, RUN_EVENTS))
            for _ in events:
                queue.popleft()
            if not queue:
                del self._queues[key]
            run = self._in_flight[key] = EventRun(key, events, self._attempts.get(key, 0))
            found.append(run)
        return found

    def _wake_delayed(self) -> None:
        now = self._clock.now()
        while self._delayed and self._delayed[0][0] <= now:
            self._ready.append(self._delayed.pop(0)[1])

    # -- giving back

    def settle(
        self, run: EventRun, left: Collection[PendingEvent] = (), delay_seconds: float = 0.0
    ) -> list[PendingEvent]:
        """End a run. The events in ``left`` are written again, before all others of the key.

        Returns the events that are done. Events of a lane that was forgotten are dropped, and not
        returned. ``delay_seconds`` is how long the key waits if events are left.
        """
        with self._changed:
            again = set(map(id, left))
            done: list[PendingEvent] = []
            back: list[PendingEvent] = []
            for event in run.events:
                if event.block.is_forgotten:
                    continue
                if id(event) in again:
                    back.append(event)
                    continue
                done.append(event)
                self._drop(event)
            del self._in_flight[run.key]
            if back:
                self._queues.setdefault(run.key, deque()).extendleft(reversed(back))
            self._attempts.pop(run.key, None)
            if run.key in self._queues:
                if back and delay_seconds > 0:
                    self._attempts[run.key] = run.attempts + 1
                    self._delayed.append((self._clock.now() + delay_seconds, run.key))
                    self._delayed.sort(key=lambda each: each[0])
                else:
                    self._ready.append(run.key)
            self._changed.notify_all()
            return done

    def _drop(self, event: PendingEvent) -> None:
        lane = event.record.lane
        held = self._held[lane] - 1
        if held:
            self._held[lane] = held
        else:
            del self._held[lane]
        self._held_bytes -= event.record.size_bytes + _OVERHEAD_BYTES

    # -- lanes

    def forget(self, lanes: Collection[Lane]) -> None:
        """Drop every event of these lanes. Requests in flight are not stopped.

        Their guards make them harmless. When they end, their events are dropped.
        """
        gone = set(lanes)
        with self._changed:
            dropped = [run.events for run in self._in_flight.values() if run.lane in gone]
            for key, queue in list(self._queues.items()):
                if queue[0].record.lane in gone:
                    dropped.append(list(self._queues.pop(key)))
            for events in dropped:
                for event in events:
                    if not event.block.is_forgotten:
                        self._held_bytes -= event.record.size_bytes + _OVERHEAD_BYTES
            for events in dropped:
                for event in events:
                    event.block.is_forgotten = True
            for lane in gone:
                self._held.pop(lane, None)
            self._changed.notify_all()

    def is_drained(self, lanes: Collection[Lane] | None = None) -> bool:
        """Whether no event of these lanes, or of all lanes, is left."""
        with self._changed:
            return not (self._held if lanes is None else self._held.keys() & set(lanes))

    def wait_drained(self, lanes: Collection[Lane] | None, seconds: float) -> bool:
        """Wait until no event of these lanes is left. Returns False if the time runs out first."""
        with self._changed:
            wanted = None if lanes is None else set(lanes)
            return self._changed.wait_for(
                lambda: not (self._held if wanted is None else self._held.keys() & wanted), seconds
            )

    def stop(self) -> None:
        """Hand out no more runs, and wake all waiting threads."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
