"""Storage on disk: RocksDB, with group commit.

The idea. A write goes to RocksDB's write-ahead log and memtable at once, unsynced, and is readable
from then on. An fsync of the log covers every commit made before it began, so many writes share one
fsync under load. ``wait_durable`` and ``when_durable`` hold back the acknowledgement until that
fsync. If recent fsyncs were quick, the first caller to ask runs it on its own thread. A background
thread runs slow ones, and serves the callers that arrive while an fsync is in flight.

What fails, and what is left:

- The process dies (kill -9). The operating system already has the log, so no acknowledged write is
  lost. Usually the other writes survive, too. RocksDB replays the log on the next open.
- The machine dies. Every fsynced write survives, and with it every acknowledged one. A torn tail of
  the log was never acknowledged and is dropped on open.
- The disk fills up. The write or the fsync raises StorageFull, and no waiting write is
  acknowledged. RocksDB refuses writes until there is room for a write buffer. It checks every few
  seconds, then starts a new log and accepts writes again. Each refused write raises its own error.
  Item writes are ``undoable``, so later ones are accepted as soon as RocksDB accepts them. A
  refused write of anything else (a table's definition, a step of a backup) leaves memory ahead of
  the disk: these changes are made in memory first, in a dozen places of the engine. The store then
  refuses all writes until it is reopened, which reads them back from the disk.
- The system refuses a file, or an fsync fails for another reason. The store refuses further writes
  until it is reopened: after such a failure nobody knows what the log contains.
- A log or the manifest loses its end or is deleted. RocksDB cannot tell this from a crash; the
  high-water mark can (``high_water``), and open raises StorageCorrupt.
- A file is damaged in the middle. Checksums fail, and open, get and scan raise StorageCorrupt. A
  scan never ends early in silence: at its last entry it asks RocksDB whether there was an error.

``durability="process"`` skips the fsync: acknowledged writes then survive a crash of the process,
but not of the machine.

``folder`` opens the folder, and says what is in it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from pathlib import Path
from time import perf_counter
from typing import Any

from rocksdict import Checkpoint, ReadOptions, WriteBatch

from stator.errors import ConfigurationError, StorageClosed, StorageError, StorageFull
from stator.storage.failures import is_follow_on, storage_failure
from stator.storage.folder import (
    REOPEN,
    check_format,
    mark_copy,
    open_to_read,
    open_to_write,
    remove_holder,
)
from stator.storage.high_water import Durability, HighWater
from stator.storage.protocol import Changes, Durable

_MIB = 1024 * 1024

# Below this average, an fsync runs on the thread that waits, which may be a server's event loop.
_QUICK_SECONDS = 0.001
_TIGHT_BYTES = 256 * _MIB
_NO_LOCK = nullcontext()
_REMEMBERED_SYNCS = 8


class RocksStorage:
    """Storage in a RocksDB folder.

    ``prefix_bytes`` is the length of the prefix shared by keys that are read together.
    """

    def __init__(
        self,
        path: str,
        *,
        durability: Durability = "disk",
        prefix_bytes: int = 0,
        read_only: bool = False,
    ) -> None:
        self._path = self.location = path
        self._prefix_bytes = prefix_bytes
        check_format(Path(path))
        # In raw mode keys and values are bytes, whatever rocksdict's own signatures allow.
        self._db: Any
        self._high_water: HighWater | None = None
        if read_only:
            self._db = open_to_read(path, prefix_bytes)
        else:
            self._db, self._high_water = open_to_write(path, prefix_bytes, durability)
        self.durable_at_once = durability == "process" or read_only
        self._commit = 0
        self._durable = 0
        self._failure: BaseException | None = None
        # The last write was refused for lack of room.
        self._full: StorageFull | None = None
        # While little room is left, writes and syncs take turns, so that a write that fails is
        # known before the next sync. At other times this would make writes wait for fsyncs.
        self._is_tight = _free_bytes(path) < _TIGHT_BYTES
        self._log = threading.Lock()
        self._closed = False
        self._state = threading.Condition()
        self._waiting: deque[tuple[int, Durable]] = deque()
        self._syncing = threading.Lock()
        self._sync_seconds = 1.0  # a moving average; the background thread measures first
        self._syncer: threading.Thread | None = None
        if not self.durable_at_once:
            self._syncer = threading.Thread(target=self._sync_loop, name="stator-sync", daemon=True)
            self._syncer.start()

    def get(self, key: bytes, /) -> bytes | None:
        try:
            return self._db.get(key)  # type: ignore[no-any-return]
        except Exception as error:
            raise storage_failure(self._path, error) from error

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        try:
            return self._db.get(list(keys))  # type: ignore[no-any-return]
        except Exception as error:
            raise storage_failure(self._path, error) from error

    def scan(
        self, low: bytes, high: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        if reverse:
            yield from self._scan_back(low, high)
            return
        entries = self._db.iter(self._bounds(low, high))
        entries.seek(low)
        key, value, step = entries.key, entries.value, entries.next
        while (found := key()) is not None:
            yield found, value()
            step()
        self._check_end(entries)

    def values(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[bytes]:
        if reverse:
            for _, record in self._scan_back(low, high):
                yield record
            return
        entries = self._db.iter(self._bounds(low, high))
        entries.seek(low)
        value, step = entries.value, entries.next
        while (found := value()) is not None:
            yield found
            step()
        self._check_end(entries)

    def _scan_back(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
        entries = self._db.iter(self._bounds(low, high))
        entries.seek_for_prev(high)
        if entries.key() == high:
            entries.prev()
        key, value, step = entries.key, entries.value, entries.prev
        # The lower bound is checked here: rocksdict sets a second bound in place of the upper one.
        while (found := key()) is not None and found >= low:
            yield found, value()
            step()
        self._check_end(entries)

    def _bounds(self, low: bytes, high: bytes) -> ReadOptions:
        bounds = ReadOptions()
        bounds.set_iterate_upper_bound(high)
        count = self._prefix_bytes
        if count and len(low) >= count and low[:count] == high[:count]:
            bounds.set_prefix_same_as_start(True)
        else:
            bounds.set_total_order_seek(True)
        return bounds

    def _check_end(self, entries: Any) -> None:
        """Raise an error if a scan stopped at an error instead of the end of its range.

        An iterator's key and value are None in both cases. Scans use RocksDB's iterator so that
        they can check this. rocksdict's own ``items()`` and ``values()`` stop at a damaged block as
        if it were the end.
        """
        try:
            entries.status()
        except Exception as error:
            raise storage_failure(self._path, error) from error

    def write(self, changes: Changes, *, undoable: bool = False) -> int:
        batch = WriteBatch(raw_mode=True)
        for key, value in changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        return self._commit_batch(batch, undoable)

    def delete_range(self, low: bytes, high: bytes) -> int:
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(low, high)
        return self._commit_batch(batch, undoable=False)

    def _commit_batch(self, batch: WriteBatch, undoable: bool) -> int:
        if self._closed:
            raise StorageClosed
        if self._failure is not None:
            raise copy(self._failure)
        with self._log if self._is_tight else _NO_LOCK:
            try:
                self._db.write(batch)
            except Exception as error:
                raise self._failed(error, may_go_on=undoable) from error
            self._full = None
        self._commit += 1
        if self.durable_at_once:
            self._durable = self._commit
            if self._high_water is not None:
                self._high_water.advance(*self._high_water.position(self._db))
        return self._commit

    # -- durability

    def when_durable(self, commit: int, callback: Durable) -> None:
        if commit > self._durable and self._is_quick() and self._syncing.acquire(blocking=False):
            try:
                self._sync()
            finally:
                self._syncing.release()
        with self._state:
            if commit > self._durable and self._failure is None and not self.durable_at_once:
                self._waiting.append((commit, callback))
                self._state.notify_all()
                return
            failure = self._failure if commit > self._durable else None
        callback(failure)

    def wait_durable(self, commit: int) -> None:
        if commit <= self._durable:
            return
        done = threading.Event()
        outcome: list[BaseException | None] = []

        def settled(error: BaseException | None) -> None:
            outcome.append(error)
            done.set()

        self.when_durable(commit, settled)
        done.wait()
        if outcome[0] is not None:
            # Several callers may wait for one fsync. An error that is raised again and again grows
            # by a traceback each time.
            raise copy(outcome[0])

    def _sync_loop(self) -> None:
        while True:
            with self._state:
                while not self._waiting and not self._closed:
                    self._state.wait()
                if not self._waiting:
                    return
            with self._syncing:
                self._sync()

    def _is_quick(self) -> bool:
        """Whether recent fsyncs were so quick that the caller should run the next one itself.

        On a quick disk an fsync takes less time than two thread switches.
        """
        usable = self._failure is None and not self._closed and not self.durable_at_once
        return usable and self._sync_seconds < _QUICK_SECONDS

    def _sync(self) -> None:
        commit = self._commit
        started = perf_counter()
        self._is_tight = _free_bytes(self._path) < _TIGHT_BYTES
        with self._log if self._is_tight else _NO_LOCK:
            error = self._synced()
        self._sync_seconds += (perf_counter() - started - self._sync_seconds) / _REMEMBERED_SYNCS
        self._settle(commit, error)

    def _synced(self) -> BaseException | None:
        """Sync the log. Return None, or the error if the sync fails.

        After a write has failed because the disk is full, return that error and do not sync: a sync
        would turn RocksDB's error into one that RocksDB does not recover from. The next write that
        succeeds goes to a new log.
        """
        if self._full is not None:
            return copy(self._full)
        try:
            water = self._high_water
            position = water.position(self._db) if water is not None else None
            self._db.flush_wal(True)
            if water is not None and position is not None:
                water.advance(*position)
        except Exception as problem:
            # The commits are in RocksDB's memory, and are written when there is room again.
            return self._failed(problem, may_go_on=True)
        return None

    def _settle(self, commit: int, error: BaseException | None) -> None:
        """Run the callbacks that wait for ``commit`` or an earlier one. After an error, run all."""
        with self._state:
            if error is None:
                self._durable = max(self._durable, commit)
            # Callers register in commit order but from several threads: it is nearly sorted.
            ready = [entry for entry in self._waiting if error is not None or entry[0] <= commit]
            if len(ready) == len(self._waiting):
                self._waiting.clear()
            else:
                self._waiting = deque(entry for entry in self._waiting if entry[0] > commit)
        for _, callback in ready:
            callback(error)

    def _failed(self, error: Exception, *, may_go_on: bool) -> StorageError:
        """Return the error to raise, and make the store refuse all later writes.

        There are two exceptions. With ``may_go_on``, a full disk does not end the writes. If
        ``error`` only follows from an earlier failure, the earlier one has already decided.
        """
        failure = storage_failure(self._path, error)
        if is_follow_on(error):
            # An earlier error of the same log is the cause. That error was raised, and decided
            # whether the store accepts further writes.
            return failure
        if isinstance(failure, StorageFull):
            self._full = failure
            if may_go_on:
                return failure
            failure = StorageFull(self._path, failure.detail, hint=REOPEN)
        self._failure = failure
        return failure

    # -- the whole store

    def checkpoint(self, path: str) -> None:
        if Path(path).exists():
            raise ConfigurationError(
                f"the checkpoint folder {path} already exists",
                hint="choose a folder that does not exist yet",
            )
        try:
            self._db.flush_wal(True)
            Checkpoint(self._db).create_checkpoint(path)
            mark_copy(Path(path), self._prefix_bytes)
        except Exception as error:
            raise storage_failure(path, error) from error

    def close(self) -> None:
        with self._state:
            if self._closed:
                return
            self._closed = True
            self._state.notify_all()
        if self._syncer is not None:
            self._syncer.join()
        with self._syncing:
            self._close_files()

    def _close_files(self) -> None:
        if self._high_water is None:  # opened to read
            self._db.close()
            return
        # A log that cannot be written cannot be closed cleanly either; open replays it.
        with suppress(Exception):
            self._db.flush_wal(True)
            self._db.flush()
            self._high_water.begin(self._db, "disk")
        with suppress(Exception):
            self._db.close()
        self._high_water.close()
        remove_holder(Path(self._path))


def _free_bytes(path: str) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize
