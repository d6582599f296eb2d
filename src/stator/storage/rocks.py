"""Storage on disk: RocksDB, with group commit.

The idea. A write goes to RocksDB's write-ahead log and memtable at once, unsynced, and can be read from then on.
An fsync of the log covers every commit made before it began, so that under load many writes share one.
``wait_durable`` and ``when_durable`` hold back the acknowledgement until then. Whoever asks first does the fsync itself
when the disk has been quick of late; a slow one, or one under way, is left to a background thread.

What fails, and what is left:
- the process dies (kill -9): the log was handed to the operating system at each write, so nothing acknowledged, and
  as a rule nothing at all, is lost. RocksDB replays the log on the next open;
- the machine dies: what was fsynced is there, so everything acknowledged is there. A torn tail of the log, which was
  never acknowledged, is dropped on open;
- the disk fills: the write or the fsync raises, nobody waiting is acknowledged, and the store refuses further
  writes (RocksDB stops after a background error) until it is reopened with room to spare;
- a file is damaged in the middle: checksums fail, open or read raises StorageCorrupt, and nothing is changed.

``durability="process"`` skips the fsync: acknowledged writes then survive the process, but not the machine.

A file FORMAT names the layout's version, and LOCK_HOLDER the process that has the folder open.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from rocksdict import (
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
    StorageClosed,
    StorageCorrupt,
    StorageError,
    StorageFormatUnsupported,
    StorageFull,
    StorageLocked,
)
from stator.storage.protocol import Changes, Durable

FORMAT_VERSION = 1
Durability = Literal["disk", "process"]

_MIB = 1024 * 1024

# A disk that syncs in less is synced on the thread that waits, which may be a server's event loop.
_QUICK_SECONDS = 0.001
_REMEMBERED_SYNCS = 8


def _options(prefix_bytes: int) -> Options:
    options = Options(raw_mode=True)
    if prefix_bytes:
        # A range within one prefix then looks only into files that have it: a store of millions has a dozen files that might.
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
    # A torn tail was never acknowledged; damage anywhere before it is an error, not a shorter history.
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(128 * _MIB))
    blocks.set_block_size(16 * 1024)  # a page of twenty items is in one or two blocks, not in six
    blocks.set_bloom_filter(10, False)
    # Indexes and filters stay in memory beside the cache, which is cut into shards of a megabyte: an index that does not
    # fit into one is read and unpacked again for every get (1,500 us in a table of 600,000 items).
    blocks.set_cache_index_and_filter_blocks(False)
    options.set_block_based_table_factory(blocks)
    return options


class RocksStorage:
    """``prefix_bytes`` is how many bytes keys have in common that are read together."""

    def __init__(
        self, path: str, *, durability: Durability = "disk", prefix_bytes: int = 0
    ) -> None:
        self._path = path
        self._prefix_bytes = prefix_bytes
        _check_format(Path(path))
        # raw_mode: keys and values are bytes, whatever rocksdict's own signatures allow.
        self._db: Any = _open(path, prefix_bytes)
        _write_marker(Path(path))
        self.durable_at_once = durability == "process"
        self._commit = 0
        self._durable = 0
        self._failure: BaseException | None = None
        self._closed = False
        self._state = threading.Condition()
        self._waiting: deque[tuple[int, Durable]] = deque()
        self._syncing = threading.Lock()
        self._sync_seconds = 1.0  # a moving average; the background thread finds out
        self._syncer: threading.Thread | None = None
        if not self.durable_at_once:
            self._syncer = threading.Thread(target=self._sync_loop, name="stator-sync", daemon=True)
            self._syncer.start()
        self.get = self._db.get

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._db.get(list(keys))  # type: ignore[no-any-return]

    def scan(
        self, low: bytes, high: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        bounds = self._bounds(low, high)
        if not reverse:
            yield from self._db.items(from_key=low, read_opt=bounds)
            return
        for key, value in self._db.items(backwards=True, from_key=high, read_opt=bounds):
            if key < low:
                return
            if key != high:
                yield key, value

    def values(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[bytes]:
        if reverse:
            return (value for _, value in self.scan(low, high, reverse=True))
        return self._db.values(from_key=low, read_opt=self._bounds(low, high))  # type: ignore[no-any-return]

    def _bounds(self, low: bytes, high: bytes) -> ReadOptions:
        bounds = ReadOptions()
        bounds.set_iterate_upper_bound(high)
        count = self._prefix_bytes
        if count and len(low) >= count and low[:count] == high[:count]:
            bounds.set_prefix_same_as_start(True)
        else:
            bounds.set_total_order_seek(True)
        return bounds

    def write(self, changes: Changes) -> int:
        batch = WriteBatch(raw_mode=True)
        for key, value in changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        return self._commit_batch(batch)

    def delete_range(self, low: bytes, high: bytes) -> int:
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(low, high)
        return self._commit_batch(batch)

    def _commit_batch(self, batch: WriteBatch) -> int:
        if self._closed:
            raise StorageClosed
        if self._failure is not None:
            raise self._failure
        try:
            self._db.write(batch)
        except Exception as error:
            raise self._failed(error) from error
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
            raise outcome[0]

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
        """Whether the caller syncs: handing that over costs two switches of threads, more than a quick disk takes."""
        usable = self._failure is None and not self._closed and not self.durable_at_once
        return usable and self._sync_seconds < _QUICK_SECONDS

    def _sync(self) -> None:
        commit = self._commit
        error: BaseException | None = None
        started = perf_counter()
        try:
            self._db.flush_wal(True)
        except Exception as problem:
            error = self._failed(problem)
        self._sync_seconds += (perf_counter() - started - self._sync_seconds) / _REMEMBERED_SYNCS
        self._settle(commit, error)

    def _settle(self, commit: int, error: BaseException | None) -> None:
        """Tell everyone waiting for ``commit`` or less; after an error, everyone."""
        with self._state:
            if error is None:
                self._durable = max(self._durable, commit)
            # Callers register in commit order but from several threads, so the queue is only nearly sorted.
            ready = [entry for entry in self._waiting if error is not None or entry[0] <= commit]
            if len(ready) == len(self._waiting):
                self._waiting.clear()
            else:
                self._waiting = deque(entry for entry in self._waiting if entry[0] > commit)
        for _, callback in ready:
            callback(error)

    def _failed(self, error: Exception) -> StorageError:
        if isinstance(error, StorageError):
            return error
        detail = str(error)
        failure: StorageError
        if "No space left" in detail or "IO error" in detail:
            failure = StorageFull(self._path, detail)
        else:
            failure = StorageCorrupt(self._path, detail)
        self._failure = failure
        return failure

    # -- the whole store

    def checkpoint(self, path: str) -> None:
        self._db.flush_wal(True)
        Checkpoint(self._db).create_checkpoint(path)

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
        _holder_file(Path(self._path)).unlink(missing_ok=True)

    def _close_files(self) -> None:
        if self._failure is None:
            self._db.flush_wal(True)
            self._db.close()
        else:
            # A log that could not be written cannot be closed cleanly either; what is in it is replayed on open.
            with suppress(Exception):
                self._db.close()


def _holder_file(folder: Path) -> Path:
    return folder / "LOCK_HOLDER"


def _check_format(folder: Path) -> None:
    """Refuse a folder that a newer Stator wrote, before RocksDB touches anything in it."""
    marker = folder / "FORMAT"
    if folder.exists() and not folder.is_dir():
        raise StorageCorrupt(str(folder), "it is a file, not a folder")
    if not marker.exists():
        if folder.exists() and any(folder.iterdir()) and not (folder / "CURRENT").exists():
            raise StorageCorrupt(str(folder), "it holds files, but none that Stator wrote")
        return
    text = marker.read_text().strip()
    if not text.isdecimal():
        raise StorageCorrupt(str(folder), f"its FORMAT file says {text!r}, not a number")
    if int(text) > FORMAT_VERSION:
        raise StorageFormatUnsupported(str(folder), int(text), FORMAT_VERSION)


def _write_marker(folder: Path) -> None:
    marker = folder / "FORMAT"
    if not marker.exists():
        temporary = folder / "FORMAT.new"
        temporary.write_text(f"{FORMAT_VERSION}\n")
        temporary.replace(marker)
    _holder_file(folder).write_text(f"{os.getpid()}\n")


def _open(path: str, prefix_bytes: int) -> Rdict:
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if (Path(path) / "CURRENT").exists():
            # Named, the column family gets these options; unnamed, those in its files, which have lost the filter.
            return Rdict(path, _options(prefix_bytes), {"default": _options(prefix_bytes)})
        return Rdict(path, _options(prefix_bytes))
    except Exception as error:
        detail = str(error)
        if "lock" in detail.lower():
            raise StorageLocked(path, _holder(Path(path))) from None
        if "No space left" in detail:
            raise StorageFull(path, detail) from None
        if "Corruption" in detail or "corrupt" in detail.lower():
            raise StorageCorrupt(path, detail) from None
        raise StorageError(
            f"the data folder {path} cannot be opened: {detail}",
            hint="check that it exists and may be written",
        ) from None


def _holder(folder: Path) -> str | None:
    """Who has the folder: the process id it wrote, and its command where /proc can tell."""
    try:
        pid = int(_holder_file(folder).read_text())
    except (OSError, ValueError):
        return None
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return f"process {pid}"
    return f"process {pid} ({command[:120]})"
