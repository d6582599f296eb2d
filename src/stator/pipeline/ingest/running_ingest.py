"""Runs an ingest in threads of this process: one reads and commits, several write.

with app.start(db, KafkaOptions("localhost:9092")) as running:
    running.catch_up()
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Final

from stator.errors import StatorError, StreamError
from stator.model.seconds import check_seconds
from stator.pipeline.ingest.dead_records import DeadRecords, DeadRecordTable
from stator.pipeline.ingest.intake import IngestProgress, Intake
from stator.pipeline.ingest.kafka_source import (
    GroupView,
    KafkaOptions,
    KafkaSource,
    LaneCallbacks,
)
from stator.pipeline.ingest.options import IngestOptions
from stator.pipeline.ingest.source_record import Lane
from stator.pipeline.ingest.topic_identity import check_topic_ids
from stator.tables.db import Db

if TYPE_CHECKING:
    from stator.pipeline.ingest.app import Ingest

log = logging.getLogger("stator.ingest")

_POLL_SECONDS: Final = 0.1
_HALF: Final = 0.5


class RunningIngest:
    """An ingest that runs in threads, with methods to watch and stop it."""

    def __init__(
        self,
        app: Ingest,
        db: Db,
        kafka: KafkaOptions,
        options: IngestOptions | None = None,
        dead_letters: DeadRecords | None = None,
    ) -> None:
        self._options = options or IngestOptions()
        app.check(db)
        self.group = kafka.group or app.name
        self._kafka, self._topics = kafka, app.topics
        self._letters = dead_letters or DeadRecordTable(db, app.name)
        self.intake = Intake(
            app.name, app.declared(), db.context, db.runner, self._letters, self._options
        )
        callbacks = LaneCallbacks(self._assigned, self._revoked, self._lost)
        self._source = KafkaSource(kafka, app.topics, self.group, self._options.start, callbacks)
        self._source.check()
        check_topic_ids(db, app.name, app.declared(), self._source.topic_ids())
        self._source.join()
        self._stopping = threading.Event()
        self._over = threading.Event()
        self._hurry = threading.Event()
        self._unread: int | None = None
        self.error: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._write, name=f"stator-ingest-write-{at}", daemon=True)
            for at in range(self._options.writers)
        ]
        self._reader = threading.Thread(target=self._read, name="stator-ingest-read", daemon=True)
        for thread in (*self._threads, self._reader):
            thread.start()

    def __enter__(self) -> RunningIngest:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- threads

    def _write(self) -> None:
        try:
            while not self._over.is_set():
                self.intake.write_once(_POLL_SECONDS)
        except Exception as error:  # a thread has no caller to raise to
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self.error = self.error or error
        self._stopping.set()
        self.intake.stop()

    def _read(self) -> None:
        commit_at = time.monotonic() + self._options.commit_seconds
        try:
            while not self._stopping.is_set():
                records = self._source.read(_POLL_SECONDS)
                if records:
                    self.intake.take_in(records)
                self._balance()
                if self._hurry.is_set() or time.monotonic() >= commit_at:
                    self._commit()
                    self._unread = self._source.unread(self.intake.positions())
                    commit_at = time.monotonic() + self._options.commit_seconds
            if self.error is None:
                self._drain(None)
                self._commit()
        except Exception as error:  # a thread has no caller to raise to
            self._fail(error)
        finally:
            self._end()

    def _end(self) -> None:
        self._over.set()
        self.intake.stop()
        try:
            self._source.close()
            self._letters.close()
        except Exception as error:
            self.error = self.error or error

    def _balance(self) -> None:
        """Pause the source while the window is full, and resume it when it is half empty."""
        share = self.intake.window.share
        if share >= 1.0:
            self._source.pause()
        elif share <= _HALF and self._source.is_paused:
            self._source.resume()

    def _commit(self) -> None:
        marks = self.intake.uncommitted()
        if marks and self._source.commit(marks):
            self.intake.marks.committed(marks)

    def _drain(self, lanes: Sequence[Lane] | None) -> None:
        """Give the writers time to write the records read from these lanes."""
        self.intake.window.wait_drained(lanes, self._options.drain_seconds)

    # -- callbacks of the source, in the reading thread

    def _assigned(self, lanes: Sequence[Lane], starts: Mapping[Lane, int]) -> None:
        log.info("assigned %s", ", ".join(map(str, lanes)) or "nothing")
        self.intake.start(starts)

    def _revoked(self, lanes: Sequence[Lane]) -> None:
        log.info("gives back %s", ", ".join(map(str, lanes)))
        if self.error is None:
            self._drain(lanes)
            self._commit()
        self.intake.forget(lanes)

    def _lost(self, lanes: Sequence[Lane]) -> None:
        log.warning("lost %s: this process did not answer in time", ", ".join(map(str, lanes)))
        self.intake.forget(lanes)

    # -- from outside

    def progress(self) -> IngestProgress:
        """Return the counts of records read, written and waiting, and the lag."""
        progress = self.intake.progress()
        unread = self._unread
        lag = progress.lag_seconds
        if lag is None and unread == 0:
            lag = 0.0
        return replace(
            progress,
            partitions=len(self._source.lanes),
            lag_records=unread,
            lag_seconds=lag,
            lost=self._source.lost,
        )

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the ingest is told to stop or fails. Returns False if the time runs out first.

        Raises the error that ended the ingest, if there was one.
        """
        if timeout_seconds is not None:
            check_seconds("wait", or_zero=True, timeout_seconds=timeout_seconds)
        over = self._stopping.wait(timeout_seconds)
        self._raise()
        return over

    def catch_up(self, timeout_seconds: float | None = 120.0) -> None:
        """Wait until the group has written and committed every record produced before this call.

        ``timeout_seconds=None`` waits without a limit.
        """
        if timeout_seconds is not None:
            check_seconds("catch_up", or_zero=True, timeout_seconds=timeout_seconds)
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        view = GroupView(self._kafka, self._topics, self.group)
        self._hurry.set()
        try:
            ends = view.ends()
            while ends:
                done = view.committed(ends)
                ends = {lane: end for lane, end in ends.items() if done.get(lane, -1) < end}
                if not ends:
                    return
                if self.wait(_POLL_SECONDS):
                    raise StreamError(
                        "the ingest was stopped before it caught up",
                        hint="start it again; it continues from the committed offsets",
                    )
                if deadline is not None and time.monotonic() > deadline:
                    raise StreamError(
                        f"the ingest did not catch up within {timeout_seconds:g} seconds",
                        hint=self.progress().trouble or "wait longer, or add workers",
                    )
        finally:
            self._hurry.clear()
            view.close()

    def tell_to_stop(self) -> None:
        """Tell the ingest to read no more. Returns at once; ``stop`` waits for the end."""
        self._stopping.set()

    def stop(self, timeout_seconds: float = 60.0) -> None:
        """Write the records that were read, commit them, and leave the group.

        The writes take at most ``drain_seconds``. Raises the error that ended the ingest, if there
        was one.
        """
        check_seconds("stop", or_zero=True, timeout_seconds=timeout_seconds)
        self.tell_to_stop()
        deadline = time.monotonic() + timeout_seconds
        for thread in (self._reader, *self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))
        self._raise()
        if any(thread.is_alive() for thread in (self._reader, *self._threads)):
            raise StreamError(
                f"the ingest did not stop within {timeout_seconds:g} seconds",
                hint="a handler or a request hangs: call stop again to wait longer, or end the"
                " process; what it has read arrives again",
            )

    def _raise(self) -> None:
        if self.error is None:
            return
        if isinstance(self.error, StatorError):
            raise self.error
        raise StreamError(
            f"an unexpected error ended the ingest: {type(self.error).__name__}: {self.error}"
        ) from self.error
