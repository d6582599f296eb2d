"""The rows after the watermark that are written already: a resumed load skips them.

Rows are written in random order, so at most times many rows after the watermark are done. The
journal holds a bitmap of them for each input, compressed. Rows that became dead letters are not
among them, because their letters are written when the watermark passes.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any

from stator.pipeline.bulk.job.pending_rows import RowPosition


class RowsAhead:
    """Written rows by input."""

    def __init__(self, data: dict[str, Any] | None = None) -> None:
        self._rows: dict[int, set[int]] = {}
        for source, (first, packed) in (data or {}).items():
            self.add(int(source), first, zlib.decompress(b64decode(packed)))

    def add(self, source: int, first_row: int, flags: bytes) -> None:
        """Add the rows whose flag is 1; the first flag is that of ``first_row``."""
        rows = self._rows.setdefault(source, set())
        rows.update(first_row + at for at, flag in enumerate(flags) if flag)

    def __contains__(self, place: tuple[int, int]) -> bool:
        rows = self._rows.get(place[0])
        return rows is not None and place[1] in rows

    def __bool__(self) -> bool:
        return any(self._rows.values())

    def to_data(
        self, position: RowPosition, more: Iterable[tuple[int, int, bytes]]
    ) -> dict[str, Any]:
        """Return the rows after a position, and more of them, as data for the journal."""
        whole = RowsAhead()
        for source, rows in self._rows.items():
            if source >= position.source:
                whole._rows[source] = set(rows)
        for source, first_row, flags in more:
            whole.add(source, first_row, flags)
        here = whole._rows.get(position.source, set())
        whole._rows[position.source] = {row for row in here if row >= position.row}
        return {str(source): _packed(rows) for source, rows in whole._rows.items() if rows}


def _packed(rows: set[int]) -> list[Any]:
    first = min(rows)
    flags = bytearray(max(rows) - first + 1)
    for row in rows:
        flags[row - first] = 1
    return [first, b64encode(zlib.compress(bytes(flags), 1)).decode()]
