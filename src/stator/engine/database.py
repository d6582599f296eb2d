"""The state that all parts of an engine share: storage, clock, lock, catalogue, and the commit.

``Engine`` builds one ``Database`` and hands it to streams, recovery, expiry, the table lifecycle
and housekeeping. None of them knows the engine itself. Operations use the database through
``RequestContext``.

Hold ``lock`` while reading more than one key or writing anything: each operation then sees and
leaves a consistent state.
"""

from __future__ import annotations

import threading

from stator.clock import Clock
from stator.engine.items.stale_reader import EntryReader, ReadLag, StaleReader
from stator.engine.items.transaction_locks import TransactionLocks
from stator.engine.items.write_observer import WriteObserver
from stator.engine.items.write_path import Writer
from stator.engine.partitions.capacity_meter import CapacityMeter
from stator.engine.partitions.traffic_log import TrafficLog
from stator.engine.tables.catalog import Catalog
from stator.model.heat.limits import INITIAL_BURST_SECONDS
from stator.storage import Storage


class Database:
    """Holds one engine's storage, clock, lock, catalogue and observers, and commits writes."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        transaction_seconds: float = 0.0,
        throughput: str = "off",
        initial_burst_seconds: float = INITIAL_BURST_SECONDS,
    ) -> None:
        self.storage = storage
        self.clock = clock
        self.lock = threading.RLock()
        self.catalog = Catalog(storage)
        self.transaction_locks = TransactionLocks(clock, transaction_seconds)
        self.meter = CapacityMeter(storage, clock, throughput, initial_burst_seconds)
        self.lag = ReadLag(storage, clock)
        # Called in this order before each batch of items is written. The engine adds them.
        self.observers: list[WriteObserver] = []
        # The last commit that changed items. A stream reader waits until it is durable, because
        # nothing can take back the effects of a record that has left the engine.
        self.last_commit: int | None = None
        # What requests do, for metrics. None if the engine keeps no metrics.
        self.traffic: TrafficLog | None = None

    def record_traffic(self, log: TrafficLog) -> None:
        """Note the traffic of requests from now on."""
        self.traffic = log
        self.meter.counts_units = True
        self.meter.is_needed = True
        self.meter.watch_keys(self.catalog.all())

    def reader(self, consistent: bool) -> EntryReader:
        """Return what one request reads from: storage, or a ``StaleReader`` in front of it.

        Consistent reads always read storage itself. Eventually consistent reads are stale only if a
        test has set ``lag.seconds``.
        """
        if consistent or not self.lag.seconds:
            return self.storage
        return StaleReader(self.storage, self.lag.former_values())

    def commit(self, writer: Writer) -> int | None:
        """Write the changes that ``writer`` collected as one batch, and return the commit number.

        Returns None if there is nothing to write. If storage refuses the batch, the counts of
        tables and indexes are restored.
        """
        if not writer.changes:
            return None
        changes = writer.finish()
        try:
            if writer.item_changes:
                for observer in self.observers:
                    observer.observe(writer, changes)
            if self.lag.seconds:
                self.lag.note(changes)
            commit = self.storage.write(changes, undoable=True)
        except BaseException:
            writer.undo()
            raise
        self.last_commit = commit
        return commit
