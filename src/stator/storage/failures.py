"""Translates RocksDB's exceptions into errors that name the reason.

rocksdict raises a bare ``Exception`` with RocksDB's status as text, or an ``OSError``. RocksDB ends
an I/O status with the operating system's own text for the error number (``IOError`` in its
``env/io_posix.cc``). These texts show the reason. The prefix "IO error" does not: a full
disk, a missing permission and a lock held by another process all have it.
"""

from __future__ import annotations

import errno
import os

from stator.errors import (
    StorageCorrupt,
    StorageDenied,
    StorageError,
    StorageFailed,
    StorageFull,
    TooManyOpenFiles,
)

_BY_ERROR_NUMBER: dict[int, type[StorageFailed]] = {
    errno.ENOSPC: StorageFull,
    errno.EDQUOT: StorageFull,
    errno.EACCES: StorageDenied,
    errno.EPERM: StorageDenied,
    errno.EROFS: StorageDenied,
    errno.EMFILE: TooManyOpenFiles,
    errno.ENFILE: TooManyOpenFiles,
    errno.ENOENT: StorageCorrupt,
}
_BY_TEXT = {os.strerror(number): cls for number, cls in _BY_ERROR_NUMBER.items()}

# "lock" alone would match "block checksum mismatch", and any folder with "lock" in its name.
_LOCKED = ("lock hold by current process", "While lock file: ")


def is_locked(error: Exception) -> bool:
    """Whether RocksDB could not take the folder's lock because another process holds it."""
    return any(text in str(error) for text in _LOCKED)


def is_follow_on(error: Exception) -> bool:
    """Whether RocksDB refused a write because an earlier write to the same log had failed.

    The threads that write and sync both meet the earlier failure. Only the first thread gets an
    error that names its reason.
    """
    return "Writer has previous error" in str(error)


def storage_failure(path: str, error: Exception) -> StorageError:
    """Return the error of ``stator.errors`` for rocksdict's exception about the folder ``path``."""
    if isinstance(error, StorageError):
        return error
    detail = str(error)
    if isinstance(error, OSError) and error.errno in _BY_ERROR_NUMBER:
        return _BY_ERROR_NUMBER[error.errno](path, detail)
    for text, cls in _BY_TEXT.items():
        if text in detail:
            return cls(path, detail)
    return (StorageCorrupt if "Corruption" in detail else StorageFailed)(path, detail)
