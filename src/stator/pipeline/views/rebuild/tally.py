"""Computes the base of a rebuild: what each item contributed to the view when the rebuild started.

Items keep changing meanwhile. ``rebuild`` explains why the result is exact all the same.
"""

from __future__ import annotations

import logging
from array import array
from collections import deque
from collections.abc import Sequence
from typing import Any

from stator.errors import DesignError
from stator.model.values import Item, Value, content_of
from stator.pipeline.views.layout import ViewGroup
from stator.pipeline.views.metrics import Number, add
from stator.pipeline.views.sources import ItemShare, ViewSource

log = logging.getLogger("stator.views")


def digests(items: list[Item], key_names: Sequence[str]) -> list[int]:
    """Return a hash of eight bytes for each item's key.

    Another process computes different hashes, so they must not be stored.
    """
    first = key_names[0]
    if len(key_names) == 1:
        return [hash(_content(item[first])) for item in items]
    second = key_names[1]
    return [hash((_content(item[first]), _content(item[second]))) for item in items]


def _content(value: Value) -> Any:
    text = value.get("S")
    return content_of(value) if text is None else text


class BaseTally:
    """Adds up all items of a view's entity as they were when a rebuild started.

    ``unreadable`` is the number of items that do not decode and are left out. The rebuild adds the
    items whose rank rows are refused. ``changed`` is the number of keys that changed during the
    scan. Such a key counts with its image before the first change.
    """

    def __init__(self, name: str, source: ViewSource) -> None:
        self._name = name
        self._source = source
        self.sums: dict[ViewGroup, dict[str, Number]] = {}
        self.unreadable = 0
        self._dirty: dict[int, ItemShare | None] = {}
        self._counted = array("q")
        self._held: deque[tuple[float, list[int], list[ItemShare | None]]] = deque()

    @property
    def changed(self) -> int:
        return len(self._dirty)

    def take(
        self, items: Sequence[Item], keys: list[int], marks: Sequence[str], read_at: float
    ) -> list[ItemShare | None]:
        """Hold a page of the scan until ``count`` counts it. Return each item's contribution.

        A page may be counted once the stream has shown every change that was made before the page
        was read, at ``read_at``. ``keys`` are the hashes of the items' keys. ``marks`` identifies
        each item in the keys of its rank rows; it is empty if the view has no rank rows.
        """
        taken: list[ItemShare | None] = []
        for at, item in enumerate(items):
            taken.append(self._counts(item, marks[at] if marks else "", read_at))
        self._held.append((read_at, keys, taken))
        return taken

    def see(self, key: int, before: Item | None, mark: str, now: float) -> None:
        """Record that a key changed, and so is dirty: it counts with the image before this change.

        Later changes to the same key are ignored.
        """
        if key not in self._dirty:
            self._dirty[key] = self._counts(before, mark, now)

    def count(self, read_before: float) -> None:
        """Count the items of the pages that were read before ``read_before``, except dirty keys."""
        while self._held and self._held[0][0] <= read_before:
            _, keys, taken = self._held.popleft()
            if self._dirty:
                clean = [at for at, key in enumerate(keys) if key not in self._dirty]
                keys = [keys[at] for at in clean]
                taken = [taken[at] for at in clean]
            self._counted.extend(keys)
            for counted in taken:
                if counted is not None:
                    self._add(counted)

    def count_dirty(self) -> None:
        """Count the dirty keys that were not counted yet, with the image before their first change.

        Call it once, at the end of the rebuild.
        """
        counted = {key for key in self._counted if key in self._dirty}
        for key, first in self._dirty.items():
            if first is not None and key not in counted:
                self._add(first)

    def _add(self, counted: ItemShare) -> None:
        sums = self.sums.get(counted.group)
        if sums is None:
            sums = self.sums[counted.group] = {}
        add(sums, counted.sums)

    def _counts(self, item: Item | None, mark: str, now: float) -> ItemShare | None:
        try:
            return self._source.counted(item, mark, now)
        except DesignError as error:
            log.warning("view %s leaves out an item: %s", self._name, error)
            self.unreadable += 1
            return None
