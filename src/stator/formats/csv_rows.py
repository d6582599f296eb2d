"""CSV: reads rows of text from a byte stream, and writes rows of text.

The header is treated as an ordinary row; callers interpret it. ``plain.cell_text`` turns attribute
values into text. A byte order mark is dropped, and line ends inside quotes belong to the value.

A quote that opens by mistake would swallow the rows after it, up to the next quote or the end of
the file. Reading is therefore strict: only a delimiter or a line end may follow a closing quote,
and a row has at most ``ROW_BYTES``. The line with which an invalid row begins becomes a
``BadLine``, and the next line begins a new row. So every line is in a row or is a bad line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import BinaryIO, Final

from stator.errors import DataDamaged
from stator.formats.dynamodb_json import BYTE_ORDER_MARK

ROW_BYTES: Final = 16 << 20
"""The size of the longest row that is read."""
LINE_BYTES: Final = 32 << 20
"""The size of the longest line that is read. A file that is not CSV may be one endless line."""
BLOCK_ROWS: Final = 2_000
_BLOCK_BYTES: Final = 2 << 20
_HEAD_BYTES: Final = 32 << 20
"""The size of the first block, which is large: callers infer column types from its rows."""
_READ_BYTES: Final = 128 << 10
_MOST_OPEN_QUOTES: Final = 100
"""How many quotes may stay open before reading ends: each may cost a scan of ROW_BYTES."""
_OPEN: Final = "unexpected end of data"
"""The error of Python's reader for a quote that is open at the end."""
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line at which no valid row begins, and the reason. ``line`` is its number, from 1."""

    line: int
    text: str
    reason: str


@dataclass(slots=True)
class CsvBlock:
    """Consecutive rows. A blank line and a bad line each appear in ``rows`` as an empty row.

    ``bad`` maps indexes of ``rows`` to bad lines. ``end_byte`` and ``end_line`` are the numbers of
    bytes and lines in the file before the next block.
    """

    rows: list[list[str]] = field(default_factory=list)
    bad: dict[int, BadLine] = field(default_factory=dict)
    end_byte: int = 0
    end_line: int = 0


class CsvReader:
    """Reads CSV in blocks of some thousand rows. The header is an ordinary row.

    ``errors`` says how to treat bytes that are not UTF-8, as in ``bytes.decode``. If the stream
    begins in the middle of a file, ``first_byte`` and ``first_line`` are the numbers of bytes and
    lines before it.
    """

    def __init__(
        self,
        stream: BinaryIO,
        delimiter: str = ",",
        *,
        errors: str = "strict",
        first_byte: int = 0,
        first_line: int = 0,
    ) -> None:
        # The limit belongs to the process. It is only raised, because other threads may read too.
        if csv.field_size_limit() < ROW_BYTES:
            csv.field_size_limit(ROW_BYTES)
        self._stream = stream
        self._delimiter = delimiter
        self._errors = errors
        self._byte = first_byte
        self._line = first_line
        self._open_quotes = 0
        self._is_start = first_byte == 0

    def blocks(self) -> Iterator[CsvBlock]:
        """Yield the rows of the stream in blocks.

        Raises UnicodeDecodeError (one of ``DAMAGE``) for bytes that are not UTF-8, if ``errors`` is
        "strict". Raises DataDamaged for UTF-16, for a line of more than ``LINE_BYTES``, and if too
        many quotes do not close.
        """
        block, size, held, limit = CsvBlock(), 0, b"", _HEAD_BYTES
        while True:
            # A row that is not complete is read to the end of the line in which it gets too long.
            fresh = self._read(min(max(_READ_BYTES, len(held)), ROW_BYTES - len(held)))
            data = held + fresh
            held = self._parse(data, block, is_last=not fresh)
            size += len(data) - len(held)
            self._byte += len(data) - len(held)
            is_full = len(block.rows) >= BLOCK_ROWS or size >= limit
            if (is_full or not fresh) and block.rows:
                block.end_byte, block.end_line = self._byte, self._line
                yield block
                block, size, limit = CsvBlock(), 0, _BLOCK_BYTES
            if not fresh:
                return

    def _read(self, size: int) -> bytes:
        """Read about ``size`` bytes, up to the end of a line."""
        data = self._stream.read(size)
        if not data.endswith(b"\n"):
            rest = self._stream.readline(LINE_BYTES)
            if len(rest) == LINE_BYTES and not rest.endswith(b"\n"):
                before = self._line + data.count(b"\n")
                raise DataDamaged(
                    f"a line after line {before:,} is longer than {LINE_BYTES:,} bytes",
                    hint="check that the file is CSV, and that a line feed ends each line",
                )
            data += rest
        if self._is_start:
            self._is_start = False
            check_utf8_start(data)
            if data.startswith(BYTE_ORDER_MARK):
                self._byte = len(BYTE_ORDER_MARK)
                data = data.removeprefix(BYTE_ORDER_MARK)
        return data

    def _parse(self, data: bytes, block: CsvBlock, *, is_last: bool) -> bytes:
        """Add the rows in ``data`` to the block. Return the bytes of an incomplete last row.

        If ``is_last``, no data follows, and an incomplete row is a bad line instead.
        """
        lines = list(io.StringIO(data.decode("utf-8", self._errors), newline=""))
        while lines:
            used = 0
            reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
            append = block.rows.append
            try:
                for row in reader:
                    append(row)
                    used = reader.line_num
            except csv.Error as error:
                rest = lines[used:]
                self._line += used
                is_open = str(error) == _OPEN
                if is_open and not is_last:
                    held = "".join(rest).encode("utf-8", self._errors)
                    if len(held) < ROW_BYTES:
                        return held
                self._add_bad(block, rest[0], str(error), reader.line_num - used)
                lines = rest[1:]
            else:
                self._line += used
                break
        return b""

    def _add_bad(self, block: CsvBlock, text: str, error: str, lines: int) -> None:
        self._line += 1
        if error == _OPEN:
            self._open_quotes += 1
            if self._open_quotes > _MOST_OPEN_QUOTES:
                raise DataDamaged(
                    f"{self._open_quotes} lines have a quote that does not close, the last of them"
                    f" line {self._line}",
                    hint='check the delimiter, and write a value that contains quotes as "a ""b"""',
                )
        reason = _reason(error, self._line, self._line + lines - 1)
        block.bad[len(block.rows)] = BadLine(self._line, text, reason)
        block.rows.append([])


def check_utf8_start(data: bytes) -> None:
    """Raise DataDamaged if a text begins with the byte order mark of UTF-16."""
    if data.startswith(_UTF_16):
        raise DataDamaged(
            "the text is UTF-16, and must be UTF-8",
            hint="convert it, for example with iconv -f UTF-16 -t UTF-8",
        )


def _reason(error: str, first: int, last: int) -> str:
    if error == _OPEN:
        return f"a quote of the row that begins in line {first} does not close"
    if "expected after" in error:
        row = f"line {first}" if first == last else f"the row of lines {first} to {last}"
        return f"text follows a closing quote in {row}"
    return f"the row that begins in line {first} cannot be read: {error}"


DAMAGE: Final = (csv.Error, UnicodeDecodeError)
"""The errors that reading raises for data that is not CSV or not UTF-8."""


def write_rows(header: Sequence[str], rows: Iterable[Iterable[str]]) -> bytes:
    """Return CSV with a header line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    # Python quotes a value for the characters of its line end only, but readers end lines at CR.
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in chain((header,), map(tuple, rows)):
        (quoting if any("\r" in cell for cell in row) else writer).writerow(row)
    return text.getvalue().encode()
