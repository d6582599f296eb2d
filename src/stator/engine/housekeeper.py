"""The engine's background work: deletes expired items, trims streams and logs, and ends minutes.

With the system's clock a thread does this work. It starts as soon as there is something to do. With
a virtual clock nothing happens by itself: the test or simulation calls ``sweep``, which does all of
it.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from stator.clock import SystemClock
from stator.engine.companions.lazy_companions import LazyCompanions
from stator.engine.database import Database
from stator.engine.expiry import BATCH_ITEMS, ITEMS_PER_SECOND, Expiry
from stator.engine.recovery import Recovery
from stator.engine.streams.streams import Streams
from stator.errors import StorageError

log = logging.getLogger("stator.engine")

_IDLE_SECONDS: Final = 1.0
_BUSY_SECONDS: Final = BATCH_ITEMS / ITEMS_PER_SECOND
_STREAMS_EVERY_SECONDS: Final = 60.0
_AFTER_FAILURE_SECONDS: Final = 10.0


class Housekeeper:
    """Runs the background work, in a thread or when ``sweep`` is called."""

    def __init__(
        self,
        database: Database,
        expiry: Expiry,
        streams: Streams,
        recovery: Recovery,
        companions: LazyCompanions,
    ) -> None:
        self._database = database
        self._expiry = expiry
        self._streams = streams
        self._recovery = recovery
        self._companions = companions
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._streams_due = 0.0
        self._reported = ""

    def wake(self) -> None:
        """Start the thread if there is background work to do.

        Call it whenever a table changes. With a virtual clock it does nothing.
        """
        if self._thread is not None or not isinstance(self._database.clock, SystemClock):
            return
        metered = self._database.meter.is_on or self._companions.are_open
        if metered or self._expiry.tables() or self._streams.any() or self._recovery.any():
            self._thread = threading.Thread(
                target=self._run, name="stator-housekeeping", daemon=True
            )
            self._thread.start()

    def sweep(self) -> int:
        """Do all work that is due now. Return the number of items examined."""
        done = 0
        while count := self._expiry.step():
            done += count
        self._settle()
        self._companions.settle()
        return done

    def _settle(self) -> None:
        with self._database.lock:
            self._database.meter.settle_all()
            self._streams.settle_all()
            self._recovery.forget_old()

    def _run(self) -> None:
        pause = _IDLE_SECONDS
        while not self._stopping.wait(pause):
            try:
                pause = _BUSY_SECONDS if self._expiry.step() else _IDLE_SECONDS
                self._companions.settle()
                now = self._database.clock.now()
                if now >= self._streams_due:
                    self._streams_due = now + _STREAMS_EVERY_SECONDS
                    self._settle()
            except Exception as error:  # for example a full disk: what is due is done later
                if self._stopping.is_set():
                    return
                self._report(error)
                pause = _AFTER_FAILURE_SECONDS
            else:
                self._reported = ""

    def _report(self, error: Exception) -> None:
        """Log a failure, unless the previous attempt failed with the same error."""
        if str(error) != self._reported:
            self._reported = str(error)
            known = isinstance(error, StorageError)
            log.error("housekeeping failed and is retried: %s", error, exc_info=not known)

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
