"""Commit marks: for each lane, the offset up to which every record is done.

Records are read in blocks and done in any order. An offset may be committed when all records before
it are done.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable, Mapping

from stator.pipeline.ingest.source_record import Lane, RecordBlock


class CommitMarks:
    """Tracks the blocks of each lane. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: dict[Lane, deque[RecordBlock]] = {}
        self._marks: dict[Lane, int] = {}
        self._committed: dict[Lane, int] = {}

    def started(self, starts: Mapping[Lane, int]) -> None:
        """Set the offsets at which lanes begin.

        They are committed, too, so that a group that starts at the latest record does so only once.
        """
        with self._lock:
            self._marks |= starts

    def opened(self, block: RecordBlock) -> None:
        """Add a block that was read after all earlier blocks of its lane."""
        with self._lock:
            self._blocks.setdefault(block.lane, deque()).append(block)
            self._advance(block.lane)

    def done(self, blocks: Iterable[RecordBlock]) -> None:
        """Count one event of each block as done. A block occurs once for each of its events."""
        with self._lock:
            lanes = set()
            for block in blocks:
                block.left -= 1
                lanes.add(block.lane)
            for lane in lanes:
                self._advance(lane)

    def _advance(self, lane: Lane) -> None:
        blocks = self._blocks.get(lane)
        while blocks and blocks[0].left == 0:
            self._marks[lane] = blocks.popleft().next_offset

    def uncommitted(self) -> dict[Lane, int]:
        """Return the offsets that may be committed and have not been: the next ones to read."""
        with self._lock:
            return {
                lane: mark
                for lane, mark in self._marks.items()
                if self._committed.get(lane, -1) < mark
            }

    def committed(self, marks: dict[Lane, int]) -> None:
        with self._lock:
            for lane, mark in marks.items():
                if lane in self._marks:
                    self._committed[lane] = mark

    def forget(self, lanes: Collection[Lane]) -> None:
        """Forget lanes that another consumer reads from now on."""
        with self._lock:
            for lane in lanes:
                self._blocks.pop(lane, None)
                self._marks.pop(lane, None)
                self._committed.pop(lane, None)

    def oldest_at(self) -> float | None:
        """Return the time of the oldest record that is not done, or None if all are done."""
        with self._lock:
            return min((blocks[0].at for blocks in self._blocks.values() if blocks), default=None)
