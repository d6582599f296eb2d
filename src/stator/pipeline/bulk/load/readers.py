"""Readers split an input into blocks of rows, starting at any row.

CSV, Parquet and Arrow are read as columns, JSON as lines. A block has at most a few thousand rows
and is dropped once it is written, so memory does not grow with the input. Parquet and Arrow need a
seekable file. An input that is compressed, or comes from S3 or a pipe, is copied into a temporary
file first.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, islice
from typing import Any, BinaryIO, Final

from stator.errors import BulkError, ConfigurationError, DataDamaged, StatorError
from stator.formats.arrow import Batches, attribute_type, python_values, read_arrow, read_parquet
from stator.formats.csv_rows import BadLine, CsvBlock, CsvReader, check_utf8_start
from stator.formats.dynamodb_json import BYTE_ORDER_MARK
from stator.pipeline.bulk.job.dead_letters import LetterContent
from stator.pipeline.bulk.job.pending_rows import RowPosition
from stator.pipeline.bulk.load.inputs import FORMATS, Input

BLOCK_ROWS: Final = 2_000
_BLOCK_BYTES: Final = 2 << 20


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row that could not be read, and the reason. ``row`` is its index within its block."""

    row: int
    content: Any
    reason: str


@dataclass(slots=True)
class RawRows:
    """Consecutive rows of an input from ``first_row`` on: columns of equal length, or lines.

    ``count`` is the number of input rows that the block covers. If some of these are blank or
    unreadable, ``rows`` has the index within the block of each of the others. The columns of an
    Arrow ``batch`` are converted to lists only when they are used.
    """

    first_row: int
    count: int
    names: tuple[str, ...] = ()
    listed_columns: list[list[Any]] | None = None
    kinds: tuple[str, ...] = ()
    lines: list[bytes] | None = None
    rows: list[int] | None = None
    unreadable: list[UnreadableRow] = field(default_factory=list)
    share: float = 0.0
    """How much of the input has been read after this block, from 0 to 1; 0 if unknown."""
    batch: Any = None
    end_byte: int = 0
    """The number of bytes of the input before the next block; 0 if unknown."""
    end_line: int = 0
    format: str | None = None
    """The format of these rows, if it is not the input's."""
    types: Mapping[str, str] = field(default_factory=dict)
    """The attribute types of columns that a dead letter has recorded."""

    @property
    def columns(self) -> list[list[Any]]:
        if self.listed_columns is None:
            self.listed_columns = (
                []
                if self.batch is None
                else [python_values(column) for column in self.batch.columns]
            )
        return self.listed_columns

    def column(self, at: int) -> list[Any]:
        """Return the column with the index ``at`` as a list, without converting other columns."""
        return (
            self.columns[at]
            if self.listed_columns is not None or self.batch is None
            else python_values(self.batch.column(at))
        )

    def content(
        self, values: Iterable[Any], types: Mapping[str, str] | None = None
    ) -> LetterContent:
        """Return one row in the form that a dead letter stores.

        ``values`` has one value per column. ``types`` are the column types; only CSV rows keep
        them.
        """
        is_text = "csv" in self.kinds
        row = dict(zip(self.names, values))
        if not is_text:
            # A float of 32 bits is read as text; see ``python_values``.
            row |= {
                name: Decimal(row[name])
                for name, kind in zip(self.names, self.kinds)
                if kind == "N" and isinstance(row[name], str)
            }
        return LetterContent("csv" if is_text else "values", row, types if is_text else None)

    @property
    def places(self) -> Sequence[int]:
        return range(self.count) if self.rows is None else self.rows

    @property
    def to_account(self) -> int:
        """The number of rows of this block that need an outcome: all but blank rows."""
        return len(self.places) + len(self.unreadable)


def read(
    source: Input, start: RowPosition | None = None, delimiter: str | None = None
) -> Iterator[RawRows]:
    """Yield the blocks of an input, from the position ``start`` or from the beginning.

    Raises BulkError if the input is damaged and cannot be read to its end.
    """
    start = start or RowPosition()
    row = start.row
    try:
        for rows in _blocks_of(source, start, delimiter):
            row = rows.first_row + rows.count
            yield rows
    except DataDamaged as error:
        raise _unreadable(source, row, error.message, error.hint) from error
    except StatorError:
        raise
    except Exception as error:  # pyarrow, csv and botocore each have errors of their own
        raise _unreadable(source, row, str(error)) from error


def _unreadable(source: Input, row: int, reason: str, hint: str | None = None) -> StatorError:
    if row == 0 and source.format in ("parquet", "arrow"):
        return ConfigurationError(
            f"{source.name} is not {source.format}: {reason}",
            hint="name its format with --format; if the format is right, the file is damaged",
        )
    return BulkError(
        f"{source.name} cannot be read after row {row:,}: {reason}",
        hint=hint
        or "check that the file is complete, and name its format with --format if it has another",
    )


def _blocks_of(source: Input, start: RowPosition, delimiter: str | None) -> Iterator[RawRows]:
    match source.format:
        case "csv":
            return _read_csv(
                source, start, delimiter or ("\t" if ".tsv" in source.name.lower() else ",")
            )
        case "jsonl" | "dynamodb-json" | "dead-letters":
            return _read_lines(source, start)
        case "parquet" | "arrow":
            return _read_batches(source, start.row)
    raise ConfigurationError(
        f"the format of {'stdin' if source.is_stdin else source.name} is unknown",
        hint=f"name it with --format {'|'.join(FORMATS)}",
    )


# -- lines


def _read_lines(source: Input, start: RowPosition) -> Iterator[RawRows]:
    row, byte = start.row, start.byte
    stream, share = source.open_measured()
    with stream:
        if byte and source.can_seek:
            stream.seek(byte)
        else:
            byte = sum(map(len, islice(stream, start.row)))
        while lines := stream.readlines(_BLOCK_BYTES):
            for at in range(0, len(lines), BLOCK_ROWS):
                part = lines[at : at + BLOCK_ROWS]
                byte += sum(map(len, part))
                if row == 0:
                    check_utf8_start(part[0])
                    part[0] = part[0].removeprefix(BYTE_ORDER_MARK)
                yield _line_block(part, row, byte, share())
                row += len(part)


def _line_block(lines: list[bytes], first_row: int, end_byte: int, share: float) -> RawRows:
    block = RawRows(first_row, len(lines), lines=lines, share=share, end_byte=end_byte)
    if any(map(bytes.isspace, lines)):
        block.rows = [at for at, line in enumerate(lines) if not line.isspace()]
        block.lines = [lines[at] for at in block.rows]
    return block


# -- CSV


def _read_csv(source: Input, start: RowPosition, delimiter: str) -> Iterator[RawRows]:
    stream, share = source.open_measured()
    with stream:
        # Bytes that are not UTF-8 are kept apart, so that they spoil their own row and no other.
        blocks = CsvReader(stream, delimiter, errors="surrogateescape").blocks()
        head = _without_blank_start(blocks)
        names, row = _header(source, head), 0
        assert head is not None
        if start.byte and source.can_seek:
            stream.seek(start.byte)
            row = start.row
            blocks = CsvReader(
                stream,
                delimiter,
                errors="surrogateescape",
                first_byte=start.byte,
                first_line=start.line,
            ).blocks()
        else:
            blocks = chain((_without(head, 1),), blocks)
        for block in blocks:
            skipped = min(max(0, start.row - row), len(block.rows))
            row += skipped
            if skipped < len(block.rows):
                found = _csv_block(names, _without(block, skipped), row, share())
                yield found
                row += found.count


def _without_blank_start(blocks: Iterator[CsvBlock]) -> CsvBlock | None:
    """Skip leading blank lines. Return the rest of the block that has the first other line.

    Returns None if all lines are blank.
    """
    for block in blocks:
        for at, row in enumerate(block.rows):
            if row or at in block.bad:
                return _without(block, at)
    return None


def _header(source: Input, head: CsvBlock | None) -> tuple[str, ...]:
    if head is None:
        raise ConfigurationError(
            f"{source.name} has no header line", hint="name the columns in the first line"
        )
    if 0 in head.bad:
        raise ConfigurationError(
            f"the header line of {source.name} cannot be read: {head.bad[0].reason}",
            hint="correct the first line, or name the format with --format if it is not CSV",
        )
    names = tuple(head.rows[0])
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise ConfigurationError(
            f"{source.name} has two columns named {twice!r}",
            hint="give each column a name of its own",
        )
    if not all(map(_is_utf8, names)):
        raise ConfigurationError(
            f"the header line of {source.name} is not UTF-8",
            hint="convert the file, for example with iconv -f LATIN1 -t UTF-8",
        )
    return names


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


def _without(block: CsvBlock, count: int) -> CsvBlock:
    """Return a block without its first ``count`` rows."""
    if not count:
        return block
    bad = {at - count: line for at, line in block.bad.items() if at >= count}
    return CsvBlock(block.rows[count:], bad, block.end_byte, block.end_line)


def _csv_block(names: tuple[str, ...], block: CsvBlock, first_row: int, share: float) -> RawRows:
    width, found = len(names), block.rows
    unreadable: list[UnreadableRow] = []
    rows, whole = None, found
    if not all(len(row) == width for row in found):
        rows = [at for at, row in enumerate(found) if len(row) == width]
        whole = [found[at] for at in rows]
        unreadable = [
            _unreadable_row(at, row, width, block.bad.get(at))
            for at, row in enumerate(found)
            if len(row) != width and (row or at in block.bad)  # a blank line is no row
        ]
    columns: list[list[Any]] = (
        [list(column) for column in zip(*whole)] if whole else [[] for _ in names]
    )
    # An empty field is a missing one; the encoders know that by the kind ``csv``.
    return RawRows(
        first_row,
        len(found),
        names,
        columns,
        ("csv",) * width,
        rows=rows,
        unreadable=unreadable,
        share=share,
        end_byte=block.end_byte,
        end_line=block.end_line,
    )


def _unreadable_row(at: int, row: list[str], width: int, bad: BadLine | None) -> UnreadableRow:
    if bad is not None:
        return UnreadableRow(at, LetterContent("csv", bad.text.rstrip("\r\n")), bad.reason)
    reason = f"{len(row)} fields where the header has {width}"
    return UnreadableRow(at, LetterContent("csv", row), reason)


# -- Parquet and Arrow


def _read_batches(source: Input, start_row: int) -> Iterator[RawRows]:
    if source.is_local and source.compression is None:
        yield from _batch_blocks(_batches(source, source.name, start_row))
        return
    with tempfile.TemporaryFile() as file:
        with source.open() as stream:
            shutil.copyfileobj(stream, file, 1 << 20)
        file.seek(0)
        yield from _batch_blocks(_batches(source, file, start_row))


def _batches(source: Input, place: str | BinaryIO, start_row: int) -> Batches:
    read_format = read_parquet if source.format == "parquet" else read_arrow
    return read_format(place, start_row, BLOCK_ROWS)


def _batch_blocks(batches: Batches) -> Iterator[RawRows]:
    for row, total, batch in batches:
        names = tuple(batch.schema.names)
        kinds = tuple(attribute_type(each.type) for each in batch.schema)
        share = (row + batch.num_rows) / total if total else 0.0
        yield RawRows(row, batch.num_rows, names, kinds=kinds, share=share, batch=batch)
