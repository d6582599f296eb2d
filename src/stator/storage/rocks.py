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
  acknowledged. RocksDB refuses writes until there is room. It checks every few seconds, then starts
  a new log and accepts writes again. Each refused write raises its own error. Item writes are
  ``undoable``, so later writes are accepted as soon as RocksDB accepts them. A refused write of
  anything else (a table's definition, a step of a backup) leaves memory ahead of the disk. The
  store then refuses all writes until it is reopened.
- The system refuses a file, or an fsync fails for another reason. The store refuses further writes
  until it is reopened: after such a failure nobody knows what the log contains.
- A log, or the manifest of a closed folder, loses its end or is deleted. RocksDB cannot tell this
  from a crash; the high-water mark can (``high_water``), and open raises StorageCorrupt.
- A file is damaged in the middle. Checksums fail, and open, get and scan raise StorageCorrupt. A
  scan never ends early in silence: at its last entry it asks RocksDB whether there was an error.

``durability="process"`` skips the fsync: acknowledged writes then survive a crash of the process,
but not of the machine.

The folder holds RocksDB's files and two of ours. FORMAT holds the version of the layout; a folder
with a newer version is refused before RocksDB touches it. LOCK_HOLDER names the process that has
the folder open.
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
from typing import Any, Literal

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    ReadOptions,
    SliceTransform,
    WriteBatch,
)

from stator.errors import (
    ConfigurationError,
    StorageClosed,
    StorageCorrupt,
    StorageError,
    StorageFormatUnsupported,
    StorageFull,
    StorageLocked,
)
from stator.storage import high_water
from stator.storage.failures import is_follow_on, is_locked, storage_failure
from stator.storage.high_water import HighWater
from stator.storage.protocol import Changes, Durable

FORMAT_VERSION = 1
Durability = Literal["disk", "process"]

_MIB = 1024 * 1024
_REOPEN = "free some space, then reopen the engine; acknowledged writes are safe"

# Below this average, an fsync runs on the thread that waits, which may be a server's event loop.
_QUICK_SECONDS = 0.001
_FORMAT_BYTES = 32
_TIGHT_BYTES = 256 * _MIB
_NO_LOCK = nullcontext()
_REMEMBERED_SYNCS = 8


def _options(prefix_bytes: int) -> Options:
    options = Options(raw_mode=True)
    if prefix_bytes:
        # A scan within one prefix then opens only the files that hold the prefix: in a store of
        # millions of items a dozen files might.
        options.set_prefix_extractor(SliceTransform.create_fixed_prefix(prefix_bytes))
        options.set_memtable_prefix_bloom_ratio(0.05)
        options.set_memtable_whole_key_filtering(True)
    options.create_if_missing(True)
    options.set_write_buffer_size(32 * _MIB)
    options.set_max_write_buffer_number(3)
    options.set_max_background_jobs(2)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_keep_log_file_num(2)
    options.set_max_total_wal_size(128 * _MIB)
    # A torn tail was never acknowledged. Damage before it is an error, not a shorter history.
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(128 * _MIB))
    blocks.set_block_size(16 * 1024)  # a page of twenty items takes one or two blocks, not six
    blocks.set_bloom_filter(10, False)
    # Indexes and filters stay in memory, outside the cache. The cache has shards of one megabyte,
    # and an index larger than a shard is read and unpacked again for every get: 1,500 us in a table
    # of 600,000 items.
    blocks.set_cache_index_and_filter_blocks(False)
    options.set_block_based_table_factory(blocks)
    return options


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
        _check_format(Path(path))
        # In raw mode keys and values are bytes, whatever rocksdict's own signatures allow.
        self._db: Any = (_open_to_read if read_only else _open)(path, prefix_bytes)
        self._high_water = None if read_only else HighWater(Path(path))
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
        """Whether the caller itself runs the fsync.

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
        """Sync the log, and return the error if that fails.

        After a write failed because the disk is full, its log is not synced: a sync would turn
        RocksDB's error into one that RocksDB does not recover from. The next write that succeeds
        goes to a new log.
        """
        if self._full is not None:
            return copy(self._full)
        try:
            number = self._db.latest_sequence_number()
            self._db.flush_wal(True)
            if self._high_water is not None:
                self._high_water.advance(number)
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

        With ``may_go_on``, the store still accepts writes after a full disk. An error that only
        follows from an earlier one changes nothing.
        """
        failure = storage_failure(self._path, error)
        if is_follow_on(error):
            # An earlier error of the same log is the cause. It was reported, and decided there.
            return failure
        if isinstance(failure, StorageFull):
            self._full = failure
            if may_go_on:
                return failure
            failure = StorageFull(self._path, failure.detail, hint=_REOPEN)
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
            _write_format(Path(path))
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
            self._high_water.advance(self._db.latest_sequence_number())
        with suppress(Exception):
            self._db.close()
        self._high_water.close()
        _holder_file(Path(self._path)).unlink(missing_ok=True)


def _free_bytes(path: str) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _holder_file(folder: Path) -> Path:
    return folder / "LOCK_HOLDER"


def _check_format(folder: Path) -> None:
    """Refuse a folder that a newer version wrote, or that holds files of other programs.

    This happens before RocksDB touches anything in it.
    """
    marker = folder / "FORMAT"
    try:
        if folder.exists() and not folder.is_dir():
            raise StorageCorrupt(str(folder), "it is a file, not a folder")
        if not marker.exists():
            if folder.exists() and any(folder.iterdir()) and not (folder / "CURRENT").exists():
                raise StorageCorrupt(str(folder), "it holds files, but none that Stator wrote")
            return
        text = marker.read_bytes()[:_FORMAT_BYTES].decode("latin-1").strip()
    except OSError as error:
        raise storage_failure(str(folder), error) from None
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise StorageCorrupt(str(folder), f"its FORMAT file contains {text!r} instead of a number")
    if int(text) > FORMAT_VERSION:
        raise StorageFormatUnsupported(str(folder), int(text), FORMAT_VERSION)


def _write_format(folder: Path) -> None:
    marker = folder / "FORMAT"
    if not marker.exists():
        temporary = folder / "FORMAT.new"
        temporary.write_text(f"{FORMAT_VERSION}\n")
        temporary.replace(marker)


def _open(path: str, prefix_bytes: int) -> Rdict:
    folder = Path(path)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        if (folder / "CURRENT").exists():
            _check_durable(folder, prefix_bytes)
            # Naming the column family gives it these options. Unnamed, it would take the options in
            # its files, which have lost the filter.
            db = Rdict(path, _options(prefix_bytes), {"default": _options(prefix_bytes)})
        else:
            db = Rdict(path, _options(prefix_bytes))
        _write_format(folder)
        _holder_file(folder).write_text(f"{os.getpid()}\n")
    except Exception as error:
        if is_locked(error):
            raise StorageLocked(path, _holder(folder)) from None
        raise storage_failure(path, error) from None
    return db


def _open_to_read(path: str, prefix_bytes: int) -> Rdict:
    """Open a folder that no process has open, without changing anything in it."""
    folder = Path(path)
    if _is_open(folder):
        raise StorageLocked(path, _holder(folder))
    try:
        _check_durable(folder, prefix_bytes)
        return _read_only(path, prefix_bytes)
    except Exception as error:
        raise storage_failure(path, error) from None


def _read_only(path: str, prefix_bytes: int) -> Rdict:
    options = {"default": _options(prefix_bytes)}
    return Rdict(path, _options(prefix_bytes), options, access_type=AccessType.read_only())


def _check_durable(folder: Path, prefix_bytes: int) -> None:
    """Refuse a folder that has lost durable writes.

    The folder is opened read-only for this check, which takes milliseconds and changes nothing.
    Opening it for writing would delete files that a shortened manifest does not name.
    """
    durable = high_water.last_durable(folder)
    if not durable:
        return
    try:
        db = _read_only(str(folder), prefix_bytes)
    except Exception:  # damaged, or open in another process: opening it to write says which
        return
    found = db.latest_sequence_number()
    db.close()
    if found < durable:
        raise StorageCorrupt(
            str(folder),
            f"the last {durable - found} of {durable} durable changes are missing; a log or the "
            "manifest was cut off or deleted",
        )


def _is_open(folder: Path) -> bool:
    """Whether the process that LOCK_HOLDER names still has the folder's lock file open."""
    try:
        pid = int(_holder_file(folder).read_text())
        lock = (folder / "LOCK").resolve()
        return any(path.resolve() == lock for path in Path(f"/proc/{pid}/fd").iterdir())
    except (OSError, ValueError):  # closed, or killed
        return False


def _holder(folder: Path) -> str | None:
    """Describe the process that has the folder open, or return None if it is not known.

    The text has the process id, and the command if /proc has it.
    """
    try:
        pid = int(_holder_file(folder).read_text())
    except (OSError, ValueError):
        return None
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return f"process {pid}"
    return f"process {pid} ({command[:120]})"
