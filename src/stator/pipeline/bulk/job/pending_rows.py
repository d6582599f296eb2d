"""Rows on their way into a table, the blocks they came in, and their outcomes.

A reader hands out rows in blocks of a few thousand, in the order of the input. The rows of a block
are written in any order. A row is done when it is written or stored as a dead letter. A block is
done when all its rows are. The ``Watermark`` is the position up to which every block is done. A
resumed job begins at the watermark. A load also records which rows after the watermark are done
(``rows_ahead``), and does not repeat these rows. Otherwise a load that is repeatedly killed before
its oldest rows are done would never make progress.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from stator.model.limits import WRITE_UNIT_BYTES

# The share of an item's JSON that DynamoDB counts: not the quotes, the braces and the types.
_WIRE_SHARE = 0.93
# Flags of rows; ``rows_ahead`` explains them.
WRITTEN: Final = 1
FIRST_REASON: Final = 2
LOST_REASON: Final = 255


@dataclass(frozen=True, slots=True)
class RowPosition:
    """A position in the inputs: just before row ``row`` of input ``source``. Both count from 0.

    ``byte`` and ``line`` are the numbers of bytes and lines of the input before this position, or 0
    if unknown.
    """

    source: int = 0
    row: int = 0
    byte: int = 0
    line: int = 0


@dataclass(slots=True)
class RowCounts:
    """How many rows a job has read so far, and how many had each outcome."""

    read: int = 0
    written: int = 0
    already_there: int = 0
    failed: int = 0
    consumed_units: float = 0.0
    bytes_sent: int = 0

    def add(self, other: RowCounts) -> None:
        for name in ("read", "written", "already_there", "failed", "consumed_units", "bytes_sent"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def per_second(count: int, count_before: int, seconds: float) -> float:
    """Return the rate of this run. ``count_before`` of ``count`` are from earlier runs."""
    return (count - count_before) / seconds if seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row that could not be written, and the reason.

    ``source`` names the input, and ``row`` counts its rows from 1. ``content`` is the row as it was
    read (``LetterContent``), or the item that was refused in DynamoDB JSON.
    """

    source: str
    row: int
    content: Any
    reason: str


@dataclass(slots=True)
class Block:
    """Consecutive rows of one lane; a lane is an input or a segment of a Scan.

    ``end`` is the position after the last row. ``left`` is the number of rows that are neither
    written nor dead letters yet. ``done`` has a flag for each row (``rows_ahead``), or is empty if
    the job keeps no flags.
    """

    source: str
    first_row: int
    end: Any
    left: int
    lane: int = 0
    done: bytearray = field(default_factory=bytearray)
    counts: RowCounts = field(default_factory=RowCounts)
    dead: list[DeadLetter] = field(default_factory=list)
    note: Any = None


class PendingRow:
    """A row that is to be put as an item.

    ``item`` is the item's JSON, and ``row`` is the index of the row in its block. Two rows have
    equal ``key`` values if and only if their items have the same key in the table. There is one
    object for every row, so objects must be small and cheap.
    """

    __slots__ = ("at", "block", "item", "key", "row")

    at: int
    """The row's place in the window. The window sets it."""

    def __init__(self, key: Any, item: bytes, row: int, block: Block) -> None:
        self.key = key
        self.item = item
        self.row = row
        self.block = block

    @property
    def units(self) -> int:
        """The estimated write units of a put. DynamoDB's reply says how many were consumed."""
        return int(len(self.item) * _WIRE_SHARE) // WRITE_UNIT_BYTES + 1


class PendingEntity(PendingRow):
    """A row that must be written as the object ``entity``, through a ``Db``.

    The class of the entity has unique fields, a version or large values.
    """

    __slots__ = ("entity",)

    def __init__(self, key: Any, item: bytes, row: int, block: Block, entity: Any) -> None:
        super().__init__(key, item, row, block)
        self.entity = entity


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """The state of a job at one moment: what a checkpoint writes to the journal.

    ``place`` holds the positions as the journal stores them. ``ahead`` has the input, the first row
    and the flags (``Block.done``) of each block after the watermark.
    """

    positions: dict[int, Any]
    place: dict[str, Any]
    counts: RowCounts
    dead_bytes: int
    ahead: list[tuple[int, int, bytes]]
    reasons: list[str]


class Watermark:
    """Tracks up to which position each lane (an input or a segment of a Scan) is done.

    ``passed`` is called with each finished block, in the lane's order. ``reasons`` lists why the
    table refused rows in earlier runs.
    """

    def __init__(
        self,
        start: Mapping[int, Any],
        counts: RowCounts,
        passed: Callable[[Block], None],
        reasons: Sequence[str] = (),
    ) -> None:
        self.positions = dict(start)
        self.counts = counts
        self._passed = passed
        self._lanes: defaultdict[int, deque[Block]] = defaultdict(deque)
        self._reasons = {reason: FIRST_REASON + at for at, reason in enumerate(reasons)}
        self._lock = threading.Lock()
        self.first_reason = ""
        self.live = replace(counts)
        """Counts of all rows so far, unfinished blocks included: for progress displays."""
        self.written_before = counts.written
        """How many of the rows counted as written were written by earlier runs."""

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
                if entry.block.done:
                    entry.block.done[entry.row] = WRITTEN
                self.live.bytes_sent += len(entry.item)
            self.live.written += len(entries)
            if already:
                self.live.already_there += len(entries)
                for entry in entries:
                    entry.block.counts.already_there += 1
            if entries:  # a request has rows of many blocks; its units count for the first one's
                entries[0].block.counts.consumed_units += consumed_units
            self.live.consumed_units += consumed_units
            for lane in {entry.block.lane for entry in entries}:
                self._advance(lane)

    def skipped(self, entries: list[PendingRow]) -> None:
        """Count rows that an earlier run wrote, and that this run does not send, as written."""
        with self._lock:
            for entry in entries:
                entry.block.counts.written += 1
                entry.block.left -= 1
            self.live.written += len(entries)
            self.written_before += len(entries)
            for lane in {entry.block.lane for entry in entries}:
                self._advance(lane)

    def dead(self, block: Block, row: int, content: Any, reason: str) -> None:
        """Make a dead letter of a row that cannot be read or encoded, and count it as failed."""
        with self._lock:
            self._bury(block, row, content, reason)

    def refused(self, entry: PendingRow, content: Any, reason: str) -> None:
        """Make a dead letter of a row that the table refused, and count it as failed."""
        with self._lock:
            if entry.block.done:
                if len(self._reasons) < LOST_REASON - FIRST_REASON:
                    self._reasons.setdefault(reason, FIRST_REASON + len(self._reasons))
                entry.block.done[entry.row] = self._reasons.get(reason, LOST_REASON)
            self._bury(entry.block, entry.row, content, reason)

    def _bury(self, block: Block, row: int, content: Any, reason: str) -> None:
        block.dead.append(DeadLetter(block.source, block.first_row + row + 1, content, reason))
        block.counts.failed += 1
        block.left -= 1
        self.live.failed += 1
        self.first_reason = self.first_reason or reason
        self._advance(block.lane)

    def snapshot(
        self, length: Callable[[], int], place_of: Callable[[dict[int, Any]], dict[str, Any]]
    ) -> JobSnapshot:
        """Return the state of the job as of one moment, for the journal.

        ``length`` returns the length of the dead-letter file. ``place_of`` turns positions into the
        journal's form. No block can finish while they are called. Most counts include only rows
        before the watermark. Consumed units, bytes sent and rows already in the table include the
        rows after it too, because a resumed job does not write those again.
        """
        with self._lock:
            counts = replace(
                self.counts,
                already_there=self.live.already_there,
                consumed_units=self.live.consumed_units,
                bytes_sent=self.live.bytes_sent,
            )
            ahead = [
                (block.end.source, block.first_row, bytes(block.done))
                for blocks in self._lanes.values()
                for block in blocks
                if block.done
            ]
            positions = dict(self.positions)
            return JobSnapshot(
                positions, place_of(positions), counts, length(), ahead, list(self._reasons)
            )

    def _advance(self, lane: int) -> None:
        blocks = self._lanes[lane]
        while blocks and blocks[0].left == 0:
            block = blocks.popleft()
            self.positions[lane] = block.end
            self.counts.add(block.counts)
            self._passed(block)
