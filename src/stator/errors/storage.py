"""The disk under the embedded engine."""

from __future__ import annotations

from stator.errors.base import StatorError


class StorageError(StatorError):
    """Something is wrong with the files under the embedded engine."""


class StorageLocked(StorageError):
    """``holder`` names the process that has the folder open, as far as it can be told."""

    def __init__(self, path: str, holder: str | None) -> None:
        who = holder or "another process"
        super().__init__(
            f"the data folder {path} is already open in {who}",
            hint="stop that process, or point this one at a folder of its own",
        )
        self.path = path
        self.holder = holder


class StorageFormatUnsupported(StorageError):
    def __init__(self, path: str, found: int, supported: int) -> None:
        super().__init__(
            f"the data folder {path} has format {found}; this Stator reads up to format {supported}",
            hint="open it with the newer Stator that wrote it",
        )
        self.found = found
        self.supported = supported


class StorageCorrupt(StorageError):
    def __init__(self, path: str, detail: str) -> None:
        super().__init__(
            f"the data folder {path} cannot be read: {detail}",
            hint="restore the folder from a copy; nothing in it was changed by this attempt to open it",
        )
        self.path = path
        self.detail = detail


class StorageFull(StorageError):
    def __init__(self, path: str, detail: str) -> None:
        super().__init__(
            f"no write can be made to {path}: {detail}",
            hint="free some space and start again; every acknowledged write is safe",
        )
        self.path = path
        self.detail = detail


class StorageClosed(StorageError):
    def __init__(self) -> None:
        super().__init__("the engine is closed", hint="open a new engine on the same folder")
