"""A job that writes, from start to end: readers, window, writers, governor, journal, dead letters.

Readers and writers are threads. The caller's thread waits for them, reports progress, and writes
the journal every second. An error in any of them, too many dead letters, or Ctrl-C in the caller
ends the job: no request is started, requests in flight are drained, the journal is written, and the
error is raised.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stator.clock import Clock
from stator.errors import BulkError, TooManyErrors
from stator.formats.plain import comparable
from stator.model.limits import BATCH_WRITE_ITEMS
from stator.model.values import Item
from stator.pipeline.bulk.job.daily_hours import Gate
from stator.pipeline.bulk.job.dead_letters import DeadLetterFile
from stator.pipeline.bulk.job.governor import Governor
from stator.pipeline.bulk.job.interrupted_threads import end_threads
from stator.pipeline.bulk.job.journal import Journal, JournalState
from stator.pipeline.bulk.job.key_paces import KeyPaces
from stator.pipeline.bulk.job.pending_rows import Block, PendingRow, RowCounts, Watermark
from stator.pipeline.bulk.job.row_condition import RowCondition
from stator.pipeline.bulk.job.rows_ahead import RowsAhead
from stator.pipeline.bulk.job.window import Window
from stator.pipeline.bulk.job.writers import Writers
from stator.pipeline.bulk.targets import BulkTarget
from stator.transport import Transport

_CHECKPOINT_SECONDS = 1.0
# The first checkpoints follow each other faster, for a job that is killed soon after each start.
_FIRST_CHECKPOINT_SECONDS = 0.1
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class WriteSettings:
    rate: float | None
    writers: int | None
    window_rows: int
    window_bytes: int
    dead_letters: str | Path | None
    max_errors: int | None


class WriteJob:
    """Runs one job that writes.

    ``start`` maps each lane (an input, or a segment of a Scan) to the position where it begins.
    ``place_of`` turns the positions of all lanes into the journal's ``place``. ``passed`` is called
    with every finished block, in the lane's order. ``gate`` makes the job wait outside of its daily
    hours. ``ahead`` has the rows after ``start`` that earlier runs finished. The caller must not
    send these rows; the journal keeps recording them. The caller also deletes the journal at the
    end.
    """

    def __init__(
        self,
        target: BulkTarget,
        key_names: tuple[str, ...],
        journal: Journal,
        settings: WriteSettings,
        state: JournalState,
        start: Mapping[int, Any],
        place_of: Callable[[dict[int, Any]], dict[str, Any]],
        *,
        clock: Clock,
        chance: random.Random,
        condition: RowCondition | None = None,
        passed: Callable[[Block], None] | None = None,
        gate: Gate | None = None,
        ahead: RowsAhead | None = None,
    ) -> None:
        self._owned_transport = target.owned_transport
        self._ahead = ahead
        self._settings = settings
        self._journal = journal
        self._place_of = place_of
        self._passed = passed
        self._count = settings.writers or target.default_writers
        self.letters = DeadLetterFile(
            None if settings.dead_letters is None else Path(settings.dead_letters), state.dead_bytes
        )
        try:
            counts = RowCounts(**state.counts)
        except TypeError:
            raise journal.damaged() from None
        reasons = () if ahead is None else ahead.reasons
        self.watermark = Watermark(start, counts, self._finished, reasons)
        self.window = Window(settings.window_rows, settings.window_bytes, chance, KeyPaces(clock))
        self.governor = Governor(clock, settings.rate, gate=gate)
        self._writers = Writers(
            target.transport,
            target.table,
            lambda item: key_of(item, key_names),
            self.window,
            self.watermark,
            self.governor,
            clock,
            chance,
            condition=condition,
            key_names=key_names,
            shape=None if target.entity is None else target.entity.attributes,
            entities=target.entity_writer,
            rows=_request_rows(settings.rate),
        )
        self.state = state
        self._lost_letters = False
        self._readers_left = 0
        self._lock = threading.Lock()
        self._started = time.monotonic()

    # -- for readers

    def add(self, entries: list[PendingRow]) -> None:
        self.window.add(entries)

    def dead(self, block: Block, row: int, content: Any, reason: str) -> None:
        self.watermark.dead(block, row, content, reason)

    def stopping(self) -> bool:
        return self._writers.is_stopping

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    # -- from start to end

    def run(
        self,
        readers: Sequence[Callable[[], None]],
        watch: Callable[[], None],
        *,
        source: Transport | None = None,
    ) -> None:
        """Run the readers and the writers until all rows are written, or until an error.

        ``watch`` is called from time to time to show the progress. ``source`` is the transport that
        only the readers use, if they read from a table; an interrupted job closes it.
        """
        self._readers_left = len(readers)
        self.checkpoint()  # from now on there is a run to resume
        threads = [
            threading.Thread(target=self._reader, args=(each,), daemon=True) for each in readers
        ]
        threads += [
            threading.Thread(target=self._writers.run, daemon=True) for _ in range(self._count)
        ]
        for thread in threads:
            thread.start()
        try:
            self._wait(threads, watch)
        except BaseException:
            self._writers.stop()
            end_threads(threads, source, self._owned_transport)
            raise
        finally:
            try:
                self.checkpoint()
            finally:
                self.letters.close()
        if self._writers.error is not None:
            raise self._writers.error

    def _reader(self, read: Callable[[], None]) -> None:
        try:
            read()
        except BaseException as error:  # the waiting thread raises it
            self._writers.stop(error)
        with self._lock:
            self._readers_left -= 1
            if not self._readers_left:
                self.window.complete()

    def _wait(self, threads: list[threading.Thread], watch: Callable[[], None]) -> None:
        checkpointed, wait = time.monotonic(), _FIRST_CHECKPOINT_SECONDS
        while any(thread.is_alive() for thread in threads):
            next(thread for thread in threads if thread.is_alive()).join(_LOOK_SECONDS)
            self._check_errors()
            watch()
            if time.monotonic() - checkpointed >= min(wait, _CHECKPOINT_SECONDS):
                self.checkpoint()
                checkpointed, wait = time.monotonic(), wait * 2
        self._check_errors()
        watch()

    def _check_errors(self) -> None:
        allowed, failed = self._settings.max_errors, self.watermark.live.failed
        if allowed is not None and failed > allowed:
            self._writers.stop(TooManyErrors(failed, allowed, self.watermark.first_reason))

    def checkpoint(self) -> None:
        if self._lost_letters:  # a resumed job starts where all letters are in the file
            return
        now = self.watermark.snapshot(lambda: self.letters.length, self._place_of)
        self.letters.flush()
        ahead = {}
        if self._ahead is not None:
            ahead = self._ahead.to_data(now.positions[0], now.ahead, now.reasons)
        self.state = JournalState(now.place, asdict(now.counts), now.dead_bytes, ahead)
        self._journal.write(self.state)

    def _finished(self, block: Block) -> None:
        """Write the dead letters of a finished block, and pass the block on.

        If the letters cannot be written, the job is stopped with the error. The error is not raised
        here, because the writer that calls this would take it for a refusal of its own rows.
        """
        try:
            self.letters.add(block.dead)
        except BulkError as error:
            self._lost_letters = True
            self._writers.stop(error)
        if self._passed is not None:
            self._passed(block)


def _request_rows(rate: float | None) -> int:
    """Return how many rows to put in one request: fewer at a low rate, so that waits are short."""
    return BATCH_WRITE_ITEMS if rate is None else max(1, min(BATCH_WRITE_ITEMS, int(rate)))


def key_of(item: Item, names: tuple[str, ...]) -> Any:
    """Return an item's key in a form in which equal keys compare equal (``PendingRow.key``).

    ``names`` are the table's key attributes.
    """
    found = tuple(comparable(item[name]) for name in names)
    return found[0] if len(found) == 1 else found
