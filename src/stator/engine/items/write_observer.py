"""The interface of observers, which record item changes in the batch that makes them.

mypyc does not compile this module: see docs/decisions/0006.
"""

from __future__ import annotations

from typing import Protocol

from stator.engine.items.write_path import Writer
from stator.storage import Changes


class WriteObserver(Protocol):
    """Observes item changes and adds its own records to the same write batch."""

    def observe(self, writer: Writer, changes: Changes) -> None:
        """Add this observer's own records about ``writer.item_changes`` to ``changes``.

        Called with the engine's lock held, right before the batch is written.
        """
        ...
