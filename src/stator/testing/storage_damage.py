"""Damaged storage: flips bytes in an engine's folder on disk, chosen at random from a seed.

The engine promises to find damage: a read returns what was written, or raises StorageError. With
this module, you can test how a program reacts to that error, for example by restoring a backup.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stator.errors import ConfigurationError, StorageLocked

DATA_FILES: Final = ("*.sst", "*.blob", "*.log", "MANIFEST-*")
"""The files that hold data: tables, large values, the write-ahead log, and the list of files."""


@dataclass(frozen=True, slots=True)
class FlippedByte:
    """A byte that changed: its file, its offset, and its value before and after."""

    file: Path
    offset: int
    before: int
    after: int


def damage(
    folder: str | os.PathLike[str],
    seed: int,
    *,
    flips: int = 1,
    files: Sequence[str] = DATA_FILES,
) -> list[FlippedByte]:
    """Flip bytes in the data files of an engine's folder, and return the flipped bytes.

    The engine must be closed. ``files`` are glob patterns of file names. Every byte of those files
    is equally likely. For the same files, the same seed flips the same bytes.
    """
    where = Path(folder)
    _check_closed(where)
    found = sorted({path for pattern in files for path in where.glob(pattern)})
    sizes = [path.stat().st_size for path in found]
    if not sum(sizes):
        raise ConfigurationError(
            f"the folder {where} has no data in files named {', '.join(files)}",
            hint="name the folder of an engine that was opened there and written to",
        )
    chance = random.Random(seed)  # noqa: S311 - it must repeat itself
    return [_flip(chance, found, sizes) for _ in range(flips)]


def _flip(chance: random.Random, files: list[Path], sizes: list[int]) -> FlippedByte:
    [file] = chance.choices(files, sizes)
    offset = chance.randrange(sizes[files.index(file)])
    with file.open("r+b") as content:
        content.seek(offset)
        before = content.read(1)[0]
        after = before ^ chance.randrange(1, 256)
        content.seek(offset)
        content.write(bytes([after]))
    return FlippedByte(file, offset, before, after)


def repair(flipped: Sequence[FlippedByte]) -> None:
    """Restore the bytes that ``damage`` flipped, so that the next seed finds undamaged files."""
    for byte in reversed(flipped):
        _check_closed(byte.file.parent)
        with byte.file.open("r+b") as content:
            content.seek(byte.offset)
            content.write(bytes([byte.before]))


def _check_closed(folder: Path) -> None:
    """Raise StorageLocked if a living process, this one included, has the folder open."""
    try:
        holder = int((folder / "LOCK_HOLDER").read_text())
    except (OSError, ValueError):
        return
    try:
        os.kill(holder, 0)
    except PermissionError:
        pass  # a living process of another user
    except OSError:
        return
    raise StorageLocked(str(folder), f"process {holder}")
