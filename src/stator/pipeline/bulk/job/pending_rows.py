"""Rows on their way into a table: entries, the blocks they came in, and what became of them.

A reader hands rows out in blocks of some thousand, in the order of the input. Entries of a block are written in any order. A block is
through when every row of it is: written, given up as a dead letter, or replaced by a later row of the same key. The position up to which
all blocks are through is what a journal may safely remember (``Watermark``): whoever starts there again repeats at most the rows that
were in memory, and a put that is repeated changes nothing.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stator.model.limits import WRITE_UNIT_BYTES

# Of every attribute on the wire, about so much is not counted by DynamoDB: quotes, braces and the letter of its type.
_WIRE_SHARE = 0.93


@dataclass(frozen=True, slots=True)
class RowPosition:
    """Everything before row ``row`` of input ``source`` is behind; rows and inputs are counted from nought."""

    source: int = 0
    row: int = 0


@dataclass(slots=True)
class Counts:
    """What became of rows so far."""

    read: int = 0
    written: int = 0
    already_there: int = 0
    failed: int = 0
    consumed_units: float = 0.0
    bytes_sent: int = 0

    def add(self, other: Counts) -> None:
        for name in ("read", "written", "already_there", "failed", "consumed_units", "bytes_sent"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row that is not in the table, and why. ``row`` counts from 1, as people do."""

    source: str
    row: int
    content: Any
    reason: str

    def to_data(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "row": self.row,
            "content": self.content,
            "reason": self.reason,
        }


@dataclass(slots=True)
class Block:
    """Some rows that follow each other; ``end`` is the position behind them, and ``lane`` says in which of several orders."""

    source: str
    first_row: int
    end: Any
    left: int
    lane: int = 0
    counts: Counts = field(default_factory=Counts)
    dead: list[DeadLetter] = field(default_factory=list)
    note: Any = None


class PendingRow:
    """One item to put. ``item`` is its JSON; ``key`` compares as the table's key does; ``row`` is its place in its block.

    There is one for every row, so it is small and quickly made.
    """

    __slots__ = ("at", "block", "item", "key", "row")

    at: int
    """Its place in a window; set by that."""

    def __init__(self, key: Any, item: bytes, row: int, block: Block) -> None:
        self.key = key
        self.item = item
        self.row = row
        self.block = block

    def swap(self, other: PendingRow) -> None:
        """Hold what the other holds, which is of the same key, and the other way round."""
        self.item, other.item = other.item, self.item
        self.row, other.row = other.row, self.row
        self.block, other.block = other.block, self.block

    @property
    def units(self) -> int:
        """About what writing it takes; what it really took, DynamoDB says afterwards."""
        return int(len(self.item) * _WIRE_SHARE) // WRITE_UNIT_BYTES + 1


class PendingEntity(PendingRow):
    """One that the data layer has to write by itself: an entity with unique fields, versions or large values."""

    __slots__ = ("entity",)

    def __init__(self, key: Any, item: bytes, row: int, block: Block, entity: Any) -> None:
        super().__init__(key, item, row, block)
        self.entity = entity

    def swap(self, other: PendingRow) -> None:
        assert isinstance(other, PendingEntity)
        super().swap(other)
        self.entity, other.entity = other.entity, self.entity


class Watermark:
    """How far everything is through, in each lane. ``passed`` is called with each block as it is, in the order of its lane."""

    def __init__(
        self, start: Mapping[int, Any], counts: Counts, passed: Callable[[Block], None]
    ) -> None:
        self.positions = dict(start)
        self.counts = counts
        self._passed = passed
        self._lanes: defaultdict[int, deque[Block]] = defaultdict(deque)
        self._lock = threading.Lock()
        self.first_reason = ""
        self.live = replace(counts)
        """Counts of everything known so far, also of blocks that are not through: for whoever watches."""

    def opened(self, block: Block) -> None:
        with self._lock:
            self._lanes[block.lane].append(block)
            block.counts.read += block.left
            self.live.read += block.left
            self._advance(block.lane)

    def written(
        self, entries: list[PendingRow], consumed_units: float = 0.0, *, already: bool = False
    ) -> None:
        with self._lock:
            for entry in entries:
                counts = entry.block.counts
                counts.written += 1
                counts.bytes_sent += len(entry.item)
                entry.block.left -= 1
                self.live.bytes_sent += len(entry.item)
            self.live.written += len(entries)
            if already:
                self.live.already_there += len(entries)
                for entry in entries:
                    entry.block.counts.already_there += 1
            if entries:  # a request has rows of many blocks; the first may as well answer for it
                entries[0].block.counts.consumed_units += consumed_units
            self.live.consumed_units += consumed_units
            for lane in {entry.block.lane for entry in entries}:
                self._advance(lane)

    def dead(self, block: Block, row: int, content: Any, reason: str) -> None:
        with self._lock:
            block.dead.append(DeadLetter(block.source, block.first_row + row + 1, content, reason))
            block.counts.failed += 1
            block.left -= 1
            self.live.failed += 1
            self.first_reason = self.first_reason or reason
            self._advance(block.lane)

    def snapshot(self, length: Callable[[], int]) -> tuple[dict[int, Any], Counts, int]:
        """The positions, and the counts and the length of what ``passed`` has written at them."""
        with self._lock:
            return dict(self.positions), replace(self.counts), length()

    def _advance(self, lane: int) -> None:
        blocks = self._lanes[lane]
        while blocks and blocks[0].left == 0:
            block = blocks.popleft()
            self.positions[lane] = block.end
            self.counts.add(block.counts)
            self._passed(block)
