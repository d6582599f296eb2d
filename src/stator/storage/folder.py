"""The folder of a store: its options, its format, and the checks before it is opened.

The folder holds RocksDB's files and three of ours. FORMAT holds the version of the layout; a folder
with a newer version is refused before RocksDB touches it. LOCK_HOLDER names the process that has
the folder open. DURABLE is the high-water mark (``high_water``). Folders of format 1 may lack it;
a newer folder without a readable mark is refused, because a lost mark hides lost writes.

FORMAT is the first file of a new folder, and says "creating" until the store can acknowledge
writes. So a folder that holds anything but lacks FORMAT is never taken for a new one: it has lost a
file, and may have lost more. A folder in which a process was killed while it created the store is
opened as new, because no write to it was acknowledged.

RocksDB opens a folder that lost acknowledged writes as if nothing had happened. So the folder is
first opened to read, which changes nothing, and compared with its mark:

- The manifest names the oldest log that RocksDB still needs. Older logs are deleted. A manifest
  that lost its end names a deleted log, or an older log than when the store was opened.
- Writes are numbered without gaps, and each replayed write takes one entry in memory. So the count
  of replayed writes must match the range of their numbers. If the count is lower, a log is missing,
  lost its end, or has a hole.
- The last number must not be smaller than the last acknowledged number.

As long as the machine did not restart, the operating system has every acknowledged write, with or
without fsync, and all of these writes are required. After a restart of the machine, only fsynced
writes are required. With ``durability="process"``, these are the writes that the store held when it
was opened. The loss of later writes is logged as a warning, and the folder is opened in the state
before the first lost write.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final, TextIO

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    SliceTransform,
)

from stator.errors import (
    StorageCorrupt,
    StorageFormatUnsupported,
    StorageFull,
    StorageLocked,
)
from stator.storage import high_water
from stator.storage.failures import is_locked, storage_failure
from stator.storage.high_water import Durability, Extent, HighWater, Mark

log = logging.getLogger("stator.storage")

FORMAT_VERSION = 3
"""2: every folder has a high-water mark. 3: shards of streams follow stored partitions."""
WRITE_BUFFER_BYTES: Final = 32 * 1024 * 1024
"""After a full disk, RocksDB resumes only when this much room is free (its SstFileManager)."""
REOPEN: Final = "free some space, then open the folder again; acknowledged writes are safe"
_MARKED_SINCE: Final = 2
"""From this version on, every folder has a high-water mark."""
_FORMAT_BYTES = 32
_MIB = 1024 * 1024

# Each record of a log starts with CRC (4), length (2) and type (1), and a batch of writes with the
# number of its first write (8) and their count (4); see log_format.h and write_batch.cc of RocksDB.
_LOG_HEAD: Final = Struct("<IHBQI")

_CREATING: Final = "creating"
_ON_REQUEST: Final = "to open it with the data that is left, write 1 into its FORMAT file"
_OURS: Final = (
    "DURABLE",
    "CURRENT",
    "MANIFEST-",
    "OPTIONS-",
    "IDENTITY",
    "LOCK",
    "LOG",
    "rocksdict",
)
_NUMBERED: Final = re.compile(r"[0-9]+\.(log|sst|dbtmp)")
_HOLDER = "LOCK_HOLDER"


def _options(prefix_bytes: int, recovery: DBRecoveryMode) -> Options:
    options = Options(raw_mode=True)
    if prefix_bytes:
        # A scan within one prefix then opens only the files that hold the prefix: in a store of
        # millions of items a dozen files might.
        options.set_prefix_extractor(SliceTransform.create_fixed_prefix(prefix_bytes))
        options.set_memtable_prefix_bloom_ratio(0.05)
        options.set_memtable_whole_key_filtering(True)
    options.create_if_missing(True)
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_max_write_buffer_number(3)
    options.set_max_background_jobs(2)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_keep_log_file_num(2)
    options.set_max_total_wal_size(128 * _MIB)
    options.set_wal_recovery_mode(recovery)
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


def check_format(folder: Path) -> None:
    """Refuse a folder that a newer version wrote, or that holds files of other programs.

    This happens before RocksDB touches anything in it. RocksDB would create an empty store in a
    folder without CURRENT, and delete the table files in it.
    """
    try:
        if not folder.exists():
            return
        if not folder.is_dir():
            raise StorageCorrupt(str(folder), "it is a file, not a folder", hint=_OTHER_FOLDER)
        names = {path.name for path in folder.iterdir()}
        if not names:
            return
        if "FORMAT" not in names:
            detail = _without_format(names)
            hint = _OTHER_FOLDER if detail == _FOREIGN else None
            raise StorageCorrupt(str(folder), detail, hint=hint)
        text = (folder / "FORMAT").read_bytes()[:_FORMAT_BYTES].decode("latin-1").strip()
    except OSError as error:
        raise storage_failure(str(folder), error) from None
    if text == _CREATING or (not text and len(names) == 1):
        return
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise StorageCorrupt(str(folder), f"its FORMAT file contains {text!r} instead of a number")
    if int(text) > FORMAT_VERSION:
        raise StorageFormatUnsupported(str(folder), int(text), FORMAT_VERSION)
    if "CURRENT" not in names:
        raise StorageCorrupt(str(folder), "its CURRENT file is missing")
    if int(text) >= _MARKED_SINCE and not high_water.is_marked(folder):
        raise StorageCorrupt(
            str(folder),
            f"its {high_water.NAME} file is missing or damaged, so nobody can tell whether "
            f"acknowledged writes are missing; {_ON_REQUEST}",
        )


_OTHER_FOLDER = "name an empty folder, or one that does not exist yet; nothing was changed"
_FOREIGN = "it holds files, but none that Stator wrote"


def _without_format(names: set[str]) -> str:
    if any(name.startswith(_OURS) or _NUMBERED.fullmatch(name) for name in names):
        return (
            "its FORMAT file is missing, so nobody can tell whether other files are missing, too; "
            + _ON_REQUEST
        )
    return _FOREIGN


def _begin_format(folder: Path) -> None:
    """Write a FORMAT file that says "creating", as the first file of a new folder.

    An existing FORMAT file stays as it is.
    """
    with suppress(FileExistsError), (folder / "FORMAT").open("x") as file:
        file.write(f"{_CREATING}\n")
        _sync(file)


def write_format(folder: Path) -> None:
    """Write the current format version into FORMAT. The high-water mark must exist already."""
    marker = folder / "FORMAT"
    if not marker.exists() or marker.read_text().strip() != str(FORMAT_VERSION):
        temporary = folder / "FORMAT.new"
        with temporary.open("w") as file:
            file.write(f"{FORMAT_VERSION}\n")
            _sync(file)
        temporary.replace(marker)
        _sync_names(folder)


def _sync(file: TextIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_names(folder: Path) -> None:
    """Sync a folder to disk, so that a file renamed in it survives a power failure.

    Does nothing on systems that cannot open folders, such as Windows.
    """
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def open_to_write(path: str, prefix_bytes: int, durability: Durability) -> tuple[Rdict, HighWater]:
    """Open or create a store, and its high-water mark.

    Raises StorageCorrupt if the folder has lost acknowledged writes, and StorageLocked if another
    process has it open.
    """
    folder = Path(path)
    water = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _begin_format(folder)
        water = HighWater(folder)
        if _is_open(folder):
            raise StorageLocked(path, _holder(folder))
        if (folder / "CURRENT").exists():
            _check_complete(folder, prefix_bytes, water.found)
            # Naming the column family gives it these options. Unnamed, it would take the options in
            # its files, which have lost the filter.
            options = _options(prefix_bytes, _recovery(water.found))
            db = Rdict(path, options, {"default": options})
        else:
            db = Rdict(path, _options(prefix_bytes, _recovery(Mark())))
        (folder / _HOLDER).write_text(f"{os.getpid()}\n")
        water.begin(db, durability)
        write_format(folder)
    except Exception as error:
        if water is not None:
            water.close()
        if isinstance(error, BlockingIOError) or is_locked(error):
            raise StorageLocked(path, _holder(folder)) from None
        failure = storage_failure(path, error)
        if isinstance(failure, StorageFull):
            failure.hint = REOPEN
        raise failure from None
    return db, water


def open_to_read(path: str, prefix_bytes: int) -> Rdict:
    """Open a folder that no process has open, without changing anything in it."""
    folder = Path(path)
    if _is_open(folder):
        raise StorageLocked(path, _holder(folder))
    try:
        mark = high_water.read_mark(folder)
        _check_complete(folder, prefix_bytes, mark)
        return _read_only(folder, prefix_bytes, mark)
    except Exception as error:
        raise storage_failure(path, error) from None


def mark_copy(folder: Path, prefix_bytes: int) -> None:
    """Write FORMAT and the high-water mark into ``folder``, which holds a copy of an open store."""
    db = _read_only(folder, prefix_bytes, Mark())
    extent = Extent.of(db)
    db.close()
    high_water.write_mark(folder, extent)
    write_format(folder)


def _read_only(folder: Path, prefix_bytes: int, mark: Mark) -> Rdict:
    options = _options(prefix_bytes, _recovery(mark))
    return Rdict(str(folder), options, {"default": options}, access_type=AccessType.read_only())


def _recovery(mark: Mark) -> DBRecoveryMode:
    """Choose how RocksDB treats damage in a log.

    RocksDB drops a torn tail, whose writes were never acknowledged. Damage before the tail is an
    error. After a restart of the machine, the logs of a store without fsync may have holes, and
    RocksDB keeps only the writes before the first hole.
    """
    if mark.mode == "process" and not mark.is_same_boot:
        return DBRecoveryMode.point_in_time()
    return DBRecoveryMode.tolerate_corrupted_tail_records()


def _check_complete(folder: Path, prefix_bytes: int, mark: Mark) -> None:
    """Refuse a folder that has lost acknowledged writes; see the module's header.

    The folder is opened read-only for this check, which changes nothing. Opening it for writing
    would delete files that a shortened manifest does not name.
    """
    try:
        db = _read_only(folder, prefix_bytes, mark)
    except Exception:  # damaged, or open in another process: opening it to write says which
        return
    extent = Extent.of(db)
    db.close()
    if extent.kept_log < mark.first_log:
        raise _incomplete(folder, "the manifest was cut off: it lacks its latest entries")
    if mark.mode == "process" and not mark.is_same_boot:
        _check_after_restart(folder, mark, extent)
        return
    _check_last(folder, extent.last, mark.number)
    first = _first_in_logs(folder, mark, extent)
    if first is None:
        if mark.log >= extent.kept_log:
            raise _incomplete(folder, f"log {extent.kept_log:06d} is missing or empty")
        return
    # The last number may be ahead of the logs after a power failure, because the manifest has it.
    last = extent.last if mark.is_same_boot else mark.number
    missing = last - first + 1 - extent.unflushed
    if missing > 0:
        raise _incomplete(folder, f"{missing} of the changes {first} to {last} are missing")


def _check_after_restart(folder: Path, mark: Mark, extent: Extent) -> None:
    """Check a store without fsync after the machine restarted, and log which writes are lost."""
    _check_last(folder, extent.last, mark.floor)
    first = _first_in_logs(folder, mark, extent)
    held = extent.last if first is None else first - 1 + extent.unflushed
    if held < mark.number:
        log.warning(
            "%s: the machine restarted while the folder was open with durability='process'; "
            "the last %d of %d acknowledged changes are lost",
            folder,
            mark.number - held,
            mark.number,
        )


def _check_last(folder: Path, last: int, required: int) -> None:
    if last < required:
        missing = required - last
        raise _incomplete(folder, f"the last {missing} of {required} durable changes are missing")


def _first_in_logs(folder: Path, mark: Mark, extent: Extent) -> int | None:
    """Return the number of the oldest write that is in the logs but in no table (SST file).

    If RocksDB still needs the same logs as when the store was opened, this is the number after the
    mark's floor. Otherwise the number is read from the oldest log that the manifest requires.
    Returns None if that log is missing or empty, or if the logs hold no writes.
    """
    if extent.kept_log == mark.first_log:
        return mark.floor + 1
    if not extent.unflushed and mark.log < extent.kept_log:
        return None  # nothing was acknowledged in these logs, and nothing was found in them
    try:
        with (folder / f"{extent.kept_log:06d}.log").open("rb") as file:
            head = file.read(_LOG_HEAD.size)
    except FileNotFoundError:
        return None
    if len(head) < _LOG_HEAD.size:
        return None
    return int(_LOG_HEAD.unpack(head)[3]) or None  # a log of zeros has none


def _incomplete(folder: Path, detail: str) -> StorageCorrupt:
    return StorageCorrupt(str(folder), f"{detail}; a log or the manifest was cut off or deleted")


def _is_open(folder: Path) -> bool:
    """Whether the process that LOCK_HOLDER names still has the folder's lock file open."""
    try:
        pid = int((folder / _HOLDER).read_text())
        lock = (folder / "LOCK").resolve()
        return any(path.resolve() == lock for path in Path(f"/proc/{pid}/fd").iterdir())
    except (OSError, ValueError):  # closed, or killed
        return False


def remove_holder(folder: Path) -> None:
    (folder / _HOLDER).unlink(missing_ok=True)


def _holder(folder: Path) -> str | None:
    """Describe the process that has the folder open, or return None if it is not known.

    The text has the process id, and the command if /proc has it.
    """
    try:
        pid = int((folder / _HOLDER).read_text())
    except (OSError, ValueError):
        return None
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return f"process {pid}"
    return f"process {pid} ({command[:120]})"
