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
from stator.engine.items.transaction_locks import TransactionLocks
from stator.engine.items.write_observer import WriteObserver
from stator.engine.items.write_path import Writer
from stator.engine.tables.catalog import Catalog
from stator.storage import Storage


class Database:
    """The state that the parts of one engine share; see the module's header."""

    def __init__(self, storage: Storage, clock: Clock, transaction_seconds: float = 0.0) -> None:
        self.storage = storage
        self.clock = clock
        self.lock = threading.RLock()
        self.catalog = Catalog(storage)
        self.transaction_locks = TransactionLocks(clock, transaction_seconds)
        # Called in this order before each batch of items is written. The engine adds them.
        self.observers: list[WriteObserver] = []
        # The last commit that changed items. A stream reader waits until it is durable, because
        # nothing can take back the effects of a record that has left the engine.
        self.last_commit: int | None = None

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
            commit = self.storage.write(changes, undoable=True)
        except BaseException:
            writer.undo()
            raise
        self.last_commit = commit
        return commit
