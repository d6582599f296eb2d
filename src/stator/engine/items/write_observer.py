"""The seam for whoever keeps a trace of changes of items. Not compiled: see docs/decisions/0006."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from stator.storage import Changes

if TYPE_CHECKING:
    from stator.engine.items.write_path import Writer


class Follower(Protocol):
    """Somebody who keeps a trace of changes of items."""

    def follow(self, writer: Writer, changes: Changes) -> None:
        """Add to the batch what is to be kept of ``writer.followed``. Called under the lock, right before the write."""
        ...
