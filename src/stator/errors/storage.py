"""Errors of the files under the embedded engine."""

from __future__ import annotations

from stator.errors.base import StatorError


class StorageError(StatorError):
    """The data folder of the embedded engine cannot be used. Subclasses name the reason."""


class StorageLocked(StorageError):
    """Another process has the folder open. ``holder`` describes that process, if it is known."""

    def __init__(self, path: str, holder: str | None) -> None:
        super().__init__(
            f"the data folder {path} is already open in {holder or 'another process'}",
            hint="stop that process, or open a different folder",
        )
        self.path = path
        self.holder = holder


class StorageFormatUnsupported(StorageError):
    """A newer version of Stator wrote the folder."""

    def __init__(self, path: str, found: int, supported: int) -> None:
        super().__init__(
            f"the data folder {path} has format {found}; "
            f"this version of Stator reads formats up to {supported}",
            hint="upgrade Stator, or open a different folder; this one was not changed",
        )
        self.path = path
        self.found = found
        self.supported = supported


class StorageFailed(StorageError):
    """RocksDB or the operating system could not read or write a file of the folder.

    ``path`` is the data folder. ``detail`` is the error text of RocksDB or the operating system.
    """

    problem = "the data folder {path} cannot be used"
    hint = "check the disk and the system log, then reopen the engine; acknowledged writes are safe"

    def __init__(self, path: str, detail: str, *, hint: str | None = None) -> None:
        super().__init__(f"{self.problem.format(path=path)}: {detail}", hint=hint)
        self.path = path
        self.detail = detail


class StorageCorrupt(StorageFailed):
    """A file of the folder is damaged, missing, or not Stator's."""

    problem = "the data folder {path} cannot be read"
    hint = "restore the folder from a backup, or open a different one; this one was not changed"


class StorageFull(StorageFailed):
    """The disk or its quota is full. The write that failed is not stored."""

    problem = "there is no space left for the data folder {path}"
    hint = (
        "free at least 40 MB; writes work again a few seconds later, and acknowledged ones are safe"
    )


class StorageDenied(StorageFailed):
    """The process may not read or write the folder, or the file system is read-only."""

    problem = "the system denies access to the data folder {path}"
    hint = "give this user read and write permission on the folder and its files, or open another"


class TooManyOpenFiles(StorageFailed):
    """The process or the machine has reached its limit of open files."""

    problem = "the data folder {path} needs more open files than the system allows"
    hint = "raise the limit (`ulimit -n`), then reopen the engine; acknowledged writes are safe"


class StorageForked(StorageError):
    """A process uses an embedded engine that its parent process opened before a fork.

    ``path`` is the data folder, or "memory".
    """

    def __init__(self, path: str) -> None:
        opened = "the engine in memory" if path == "memory" else f"the data folder {path}"
        super().__init__(
            f"{opened} was opened before this process was forked",
            hint="open the engine after the fork, in one process; several processes share tables "
            "through a server (`stator serve`)",
        )
        self.path = path


class StorageClosed(StorageError):
    """The engine was used after it was closed."""

    def __init__(self) -> None:
        super().__init__("the engine is closed", hint="open a new engine on the same folder")
