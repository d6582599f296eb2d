"""The high-water mark: proof, at the next opening, that no durable write is missing.

RocksDB numbers its writes. It cannot tell a log or a manifest that lost its end from one that a
crash cut off, so it opens such a folder with fewer writes and reports nothing. The file DURABLE
therefore holds the number of the last write that was made durable:

    number (8 bytes) | CRC (4)    number (8 bytes) | CRC (4)

After each fsync of the log, the number of the last write it covers goes into one of the two slots,
which take turns. DURABLE itself is not fsynced. So it may lag behind the log, never the other way
round, and if one slot is torn, the other is still whole. A folder whose last write has a smaller
number than DURABLE holds has lost durable writes and is refused.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

_NAME: Final = "DURABLE"
_NUMBER: Final = Struct(">Q")
_SLOT: Final = Struct(">QI")


class HighWater:
    """The open DURABLE file of one store."""

    def __init__(self, folder: Path) -> None:
        path = folder / _NAME
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(2 * _SLOT.size)
        self._map = mmap.mmap(self._file.fileno(), 2 * _SLOT.size)
        self._slot = 0

    def advance(self, number: int) -> None:
        """Record that all writes up to ``number`` are durable."""
        _SLOT.pack_into(self._map, self._slot * _SLOT.size, number, crc32(_NUMBER.pack(number)))
        self._slot = 1 - self._slot

    def close(self) -> None:
        self._map.close()
        self._file.close()


def last_durable(folder: Path) -> int:
    """Return the number of the last write known to be durable, or 0 if none was recorded."""
    try:
        content = (folder / _NAME).read_bytes()
    except OSError:
        return 0
    numbers = [0]
    for at in range(0, len(content) - _SLOT.size + 1, _SLOT.size):
        number, check = _SLOT.unpack_from(content, at)
        if check == crc32(_NUMBER.pack(number)):
            numbers.append(number)
    return max(numbers)
