"""The high-water mark: proof, at the next opening, that no acknowledged write is missing.

RocksDB numbers its writes. If a log or the manifest has lost its end, RocksDB takes it for the
normal result of a crash. It then opens the folder with fewer writes, and reports nothing. The file
DURABLE therefore records what the folder must hold:

    boot (16 bytes) | mode (1) | floor (8) | first log (8) | CRC (4)      once per opening
    number (8) | log (8) | CRC (4)      number (8) | log (8) | CRC (4)    with each acknowledgement

- *boot* identifies the run of the operating system, *mode* is 1 for "disk" and 2 for "process".
- *floor*: all writes up to this number were in tables (SST files), and *first log* was the number
  of the first log that RocksDB still needed.
- *number* is the last write that was acknowledged, and *log* the newest log that had writes then.

The two last slots take turns, so if one is torn, the other is whole. DURABLE is fsynced when the
folder is opened, not afterwards. So after a power failure it may lag behind the log, never the
other way round. ``folder`` compares a folder with its mark before opening it.

Earlier versions wrote two slots of number (8) and CRC (4), and nothing else.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any, Final, Literal
from uuid import UUID
from zlib import crc32

try:
    import fcntl
except ImportError:  # not a Unix system: RocksDB's own lock has to do
    fcntl = None  # type: ignore[assignment]

Durability = Literal["disk", "process"]

NAME: Final = "DURABLE"
_MODES: Final[dict[int, Durability]] = {1: "disk", 2: "process"}
_CHECK: Final = Struct(">I")
_OPENING: Final = Struct(">16sBQQ")
_ACKNOWLEDGED: Final = Struct(">QQ")
_OLD: Final = Struct(">Q")
_SLOTS: Final = _OPENING.size + _CHECK.size
_SLOT: Final = Struct(">QQI")
_SLOT_BYTES: Final = _SLOT.size
_BOTH_SLOTS: Final = _SLOTS + _SLOTS + _SLOT_BYTES
_BYTES: Final = _SLOTS + 2 * _SLOT_BYTES
_OLD_BYTES: Final = 2 * (_OLD.size + _CHECK.size)
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_UNKNOWN_BOOT: Final = bytes(16)

_SUPER_VERSION: Final = "rocksdb.current-super-version-number"
_KEPT_LOG: Final = "rocksdb.min-log-number-to-keep"
_UNFLUSHED: Final = (
    "rocksdb.num-entries-active-mem-table",
    "rocksdb.num-entries-imm-mem-tables",
)


@dataclass(frozen=True, slots=True)
class Mark:
    """The content of DURABLE. A folder without this file has the default values."""

    number: int = 0
    log: int = 0
    floor: int = 0
    first_log: int = 0
    mode: Durability = "disk"
    boot: bytes = _UNKNOWN_BOOT

    @property
    def is_same_boot(self) -> bool:
        """Whether the operating system has run without a restart since the mark was made.

        If so, the system still has every acknowledged write, fsynced or not. False if the system
        has no boot identity.
        """
        return self.boot == boot_id() != _UNKNOWN_BOOT


@dataclass(frozen=True, slots=True)
class Extent:
    """The range of writes that an open RocksDB database holds."""

    last: int
    """The number of the database's last write."""
    unflushed: int
    """How many writes are in memory. In a database just opened, they were read from its logs."""
    kept_log: int
    """The number of the oldest log that the database still needs."""

    @classmethod
    def of(cls, db: Any) -> Extent:
        return cls(
            db.latest_sequence_number(),
            sum(db.property_int_value(name) for name in _UNFLUSHED),
            db.property_int_value(_KEPT_LOG),
        )


class HighWater:
    """The DURABLE file of one store.

    An instance locks the file until ``begin`` returns, so that two processes cannot open the store
    at the same time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        path = folder / NAME
        self._file = path.open("r+b" if path.exists() else "w+b")
        try:
            if fcntl is not None:
                # Two processes that open the store at once must not read each other's steps.
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.found = read_mark(folder)
            self._slot = _SLOTS
            self._version = -1
            self._log = 0
            self._map: mmap.mmap | None = None
        except BaseException:
            self._file.close()
            raise

    def begin(self, db: Any, mode: Durability) -> None:
        """Write the opening part of the mark: the writes that the database holds now.

        All of these writes must be on disk. Afterwards, other processes may lock the file.
        """
        if self._map is None:
            if self._file.seek(0, os.SEEK_END) != _BYTES:
                # Bytes that are written have room on the disk. A store to a hole in a mapped file
                # would end the process if the disk is full.
                self._file.seek(0)
                self._file.write(bytes(_BYTES))
                self._file.flush()
                self._file.truncate(_BYTES)
            self._map = mmap.mmap(self._file.fileno(), _BYTES)
        extent = Extent.of(db)
        self._version, self._log = -1, 0
        opening = _opening(extent, mode)
        # The slots first: a floor is never ahead of the number.
        for _ in range(2):
            self.advance(extent.last, 0)
        self._map[:_SLOTS] = opening
        self._map.flush()
        if fcntl is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def position(self, db: Any) -> tuple[int, int]:
        """Return the number of the last write, and the number of the newest log that has writes.

        The folder is listed only if RocksDB's super version has changed, because a new log comes
        with a new super version.
        """
        number = db.latest_sequence_number()
        version = db.property_int_value(_SUPER_VERSION)
        if version != self._version:
            sizes = _log_sizes(self._folder)
            self._log = max((log for log, size in sizes.items() if size), default=0)
            # An empty log is about to be used, and that does not change the version.
            self._version = version if self._log == max(sizes, default=0) else -1
        return number, self._log

    def advance(self, number: int, log: int) -> None:
        """Record that all writes up to ``number`` may be acknowledged.

        ``log`` is the number of the newest log that has one of these writes.
        """
        assert self._map is not None
        at = self._slot
        check = crc32(_ACKNOWLEDGED.pack(number, log))
        _SLOT.pack_into(self._map, at, number, log, check)
        self._slot = _BOTH_SLOTS - at

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
        self._file.close()


def write_mark(folder: Path, extent: Extent) -> None:
    """Write DURABLE into a folder that no process has open.

    All writes in ``extent`` must be on disk.
    """
    content = _ACKNOWLEDGED.pack(extent.last, 0)
    slot = content + _CHECK.pack(crc32(content))
    (folder / NAME).write_bytes(_opening(extent, "disk") + slot + slot)


def read_mark(folder: Path) -> Mark:
    """Return the mark of a folder. A torn slot counts as absent, as does a missing file."""
    try:
        content = (folder / NAME).read_bytes()
    except FileNotFoundError:
        return Mark()
    if len(content) == _OLD_BYTES:
        numbers = [found[0] for at in (0, 12) if (found := _unpack(_OLD, content, at))]
        return Mark(max(numbers, default=0))
    slots = (_unpack(_ACKNOWLEDGED, content, _SLOTS + at) for at in (0, _SLOT_BYTES))
    number, log = max((slot for slot in slots if slot), default=(0, 0))
    opening = _unpack(_OPENING, content, 0)
    if opening is None:
        return Mark(number, log)
    boot, mode, floor, first_log = opening
    return Mark(number, log, floor, first_log, _MODES.get(mode, "disk"), boot)


def is_marked(folder: Path) -> bool:
    """Whether a folder has a mark that can be read: one of the two slots is whole."""
    try:
        content = (folder / NAME).read_bytes()
    except OSError:
        return False
    if len(content) == _OLD_BYTES:
        return any(_unpack(_OLD, content, at) for at in (0, 12))
    return any(_unpack(_ACKNOWLEDGED, content, _SLOTS + at) for at in (0, _SLOT_BYTES))


def boot_id() -> bytes:
    """Identify this run of the operating system, or return zeros if it has no identity."""
    try:
        return UUID(_BOOT_ID.read_text().strip()).bytes
    except (OSError, ValueError):
        return _UNKNOWN_BOOT


def _log_sizes(folder: Path) -> dict[int, int]:
    """Return the size of each of RocksDB's logs by its number."""
    sizes = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            stem, _, extension = entry.name.partition(".")
            if extension == "log" and stem.isdecimal():
                with suppress(FileNotFoundError):  # RocksDB has deleted it meanwhile
                    sizes[int(stem)] = entry.stat().st_size
    return sizes


def _opening(extent: Extent, mode: Durability) -> bytes:
    number = next(number for number, name in _MODES.items() if name == mode)
    floor = extent.last - extent.unflushed
    content = _OPENING.pack(boot_id(), number, floor, extent.kept_log)
    return content + _CHECK.pack(crc32(content))


def _unpack(layout: Struct, content: bytes, at: int) -> tuple[Any, ...] | None:
    """Read a slot, or return None if its CRC is wrong."""
    end = at + layout.size
    if len(content) < end + _CHECK.size:
        return None
    whole = _CHECK.unpack_from(content, end)[0] == crc32(content[at:end])
    return layout.unpack_from(content, at) if whole else None
