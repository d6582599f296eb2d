"""The rows after the watermark that are done already: a resumed load does not send them again.

Rows are written in random order, so usually many rows after the watermark are done. The journal
holds one byte for each row after the watermark, its flag. The flags are compressed:

- 0: the row is not done, or it is too far after the watermark.
- 1: the row is written. A resumed load skips it.
- 2 to 254: the table refused the row, for reason number 0 to 252 of ``reasons``. A resumed load
  makes it a dead letter. It does not try again: a later row with the same key may be in the table.
- 255: the table refused the row, and there are too many different reasons to keep this one.

A row is known by its input and its number. Both stay the same, because a journal is refused if an
input has changed.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any, Final

from stator.pipeline.bulk.job.pending_rows import FIRST_REASON, LOST_REASON, RowPosition

MOST_ROWS: Final = 1_000_000
"""At most this many rows of an input have flags.

More rows are ahead only if one row is throttled for minutes.
"""
_LOST = "the table refused the row before the load was resumed; the reason is not known any more"


class RowsAhead:
    """The flags that earlier runs recorded for the rows after the watermark, for each input.

    A flag says whether the row was written, or why the table refused it. ``data`` is the result of
    ``to_data``, or None without an earlier run. Raises ValueError if the flags in ``data`` are
    damaged.
    """

    def __init__(self, data: dict[str, Any] | None = None) -> None:
        self._flags: dict[int, tuple[int, bytes]] = {}
        self.reasons: list[str] = list((data or {}).get("reasons", ()))
        for source, (first, packed) in (data or {}).get("flags", {}).items():
            try:
                self._flags[int(source)] = (int(first), zlib.decompress(b64decode(packed)))
            except zlib.error as error:
                raise ValueError(str(error)) from None

    def flags(self, source: int, first_row: int, count: int) -> bytearray:
        """Return the flags of ``count`` rows of an input; 0 for rows without a recorded flag."""
        found = bytearray(count)
        if source in self._flags:
            first, flags = self._flags[source]
            start, end = max(first, first_row), min(first + len(flags), first_row + count)
            if start < end:
                found[start - first_row : end - first_row] = flags[start - first : end - first]
        return found

    def reason(self, flag: int) -> str:
        """Return the text of the reason why the table refused a row with this flag."""
        if flag == LOST_REASON or flag - FIRST_REASON >= len(self.reasons):
            return _LOST
        return self.reasons[flag - FIRST_REASON]

    def to_data(
        self,
        position: RowPosition,
        blocks: Iterable[tuple[int, int, bytes]],
        reasons: list[str],
    ) -> dict[str, Any]:
        """Return the flags of the rows after ``position`` as data for the journal.

        ``blocks`` has the input, the first row and the flags of each block after the watermark that
        this run has read. These flags replace those that earlier runs recorded for the same rows.
        ``reasons`` lists the reasons of earlier runs first, then those of this run. The result is
        empty if no flag is set.
        """
        parts: dict[int, list[tuple[int, bytes]]] = {}
        for source, part in self._flags.items():
            parts[source] = [part]
        for source, first_row, flags in blocks:
            parts.setdefault(source, []).append((first_row, flags))
        found: dict[str, Any] = {}
        for source, each in parts.items():
            if source >= position.source:
                start = position.row if source == position.source else 0
                flags = _joined(start, each).rstrip(b"\0")
                if flags:
                    found[str(source)] = [start, b64encode(zlib.compress(flags, 1)).decode()]
        return {"flags": found, "reasons": reasons} if found else {}


def _joined(start: int, parts: list[tuple[int, bytes]]) -> bytes:
    """Join the flags in ``parts``. Return those of up to ``MOST_ROWS`` rows from row ``start`` on.

    Each part has the number of its first row, and its flags. Where parts overlap, the later part
    wins.
    """
    end = min(start + MOST_ROWS, max(first + len(flags) for first, flags in parts))
    joined = bytearray(max(0, end - start))
    for first, flags in parts:
        begin, stop = max(first, start), min(first + len(flags), end)
        if begin < stop:
            joined[begin - start : stop - start] = flags[begin - first : stop - first]
    return bytes(joined)
