"""What the engine does by itself, in the background: expired items, streams that roll and are trimmed, history
that nobody can ask for any more.

On the system's clock a thread does it, from the moment there is anything to do. Under a virtual clock nothing happens by itself: ``sweep`` does
it all at once, at a moment the test or simulation chooses.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from stator.clock import SystemClock
from stator.engine.database import Database
from stator.engine.expiry import BATCH_ITEMS, ITEMS_PER_SECOND, Expiry
from stator.engine.recovery import Recovery
from stator.engine.streams.streams import Streams

log = logging.getLogger("stator.engine")

_IDLE_SECONDS: Final = 1.0
_BUSY_SECONDS: Final = BATCH_ITEMS / ITEMS_PER_SECOND
_STREAMS_EVERY_SECONDS: Final = 60.0
_AFTER_FAILURE_SECONDS: Final = 10.0


class Housekeeping:
    def __init__(
        self, database: Database, expiry: Expiry, streams: Streams, recovery: Recovery
    ) -> None:
        self._database = database
        self._expiry = expiry
        self._streams = streams
        self._recovery = recovery
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._streams_due = 0.0

    def wake(self) -> None:
        """Called when a table gets something to be kept: the thread starts at the first."""
        if self._thread is not None or not isinstance(self._database.clock, SystemClock):
            return
        if self._expiry.tables() or self._streams.any() or self._recovery.any():
            self._thread = threading.Thread(
                target=self._run, name="stator-housekeeping", daemon=True
            )
            self._thread.start()

    def sweep(self) -> int:
        """Everything that is due by now; the number of items looked at."""
        done = 0
        while count := self._expiry.step():
            done += count
        self._settle()
        return done

    def _settle(self) -> None:
        with self._database.lock:
            self._streams.settle_all()
            self._recovery.forget_old()

    def _run(self) -> None:
        pause = _IDLE_SECONDS
        while not self._stopping.wait(pause):
            try:
                pause = _BUSY_SECONDS if self._expiry.step() else _IDLE_SECONDS
                now = self._database.clock.now()
                if now >= self._streams_due:
                    self._streams_due = now + _STREAMS_EVERY_SECONDS
                    self._settle()
            except (
                Exception
            ):  # a full disk, say: what is due stays due, and the next round tries again
                if self._stopping.is_set():
                    return
                log.exception(
                    "housekeeping failed, and is tried again in %s seconds", _AFTER_FAILURE_SECONDS
                )
                pause = _AFTER_FAILURE_SECONDS

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
