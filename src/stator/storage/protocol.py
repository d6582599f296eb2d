"""The storage protocol: what the engine needs from the store that holds its bytes.

Keys and values are bytes, and keys are ordered bytewise. A write is one atomic set of changes. Each
write gets a commit number, one higher than the last. A commit is readable at once. It becomes
*durable* some time later, and only then may the engine acknowledge the write. This delay allows
group commit: many writes share one fsync.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

# A value to store under the key, or None to delete the key. In a dict the last change to a key
# wins.
Changes = dict[bytes, bytes | None]
Durable = Callable[[BaseException | None], None]


class Storage(Protocol):
    durable_at_once: bool
    """Whether a commit is durable as soon as ``write`` returns, so that callers need not wait."""

    location: str
    """The folder, or ``memory``. For messages."""

    def get(self, key: bytes, /) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def scan(
        self, low: bytes, high: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the entries with low <= key < high, in key order or in reverse."""
        ...

    def values(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[bytes]:
        """Iterate over the values of ``scan`` without their keys.

        This is the fast way to read a page.
        """
        ...

    def write(self, changes: Changes, *, undoable: bool = False) -> int:
        """Apply all changes or none, and return the commit number.

        With ``undoable``, the caller restores the state that it keeps in memory if the write is
        refused for lack of room. Later writes are then accepted. Without it, the caller's state
        would stay ahead of storage, so all later writes are refused.
        """
        ...

    def delete_range(self, low: bytes, high: bytes) -> int:
        """Delete all keys with low <= key < high as one commit, and return the commit number."""
        ...

    def when_durable(self, commit: int, callback: Durable) -> None:
        """Call ``callback`` once the commit is durable, or once it cannot become durable.

        The callback receives None, or the error that prevents durability.
        """
        ...

    def wait_durable(self, commit: int) -> None:
        """Return once the commit is durable. Raises the error that prevents it."""
        ...

    def checkpoint(self, path: str) -> None:
        """Copy the whole store, as it is now, to a new folder. Writers are not blocked."""
        ...

    def close(self) -> None: ...


def after_prefix(prefix: bytes) -> bytes:
    """Return the first key after every key that starts with ``prefix``."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1])
