"""Readers split an input into blocks of rows, starting at any row.

CSV, Parquet and Arrow are read as columns, JSON as lines. A block has at most a few thousand rows
and is dropped once it is written, so memory does not grow with the input. Parquet and Arrow need a
seekable file. An input that is compressed, or comes from S3 or a pipe, is copied into a temporary
file first.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, Final

from stator.errors import BulkError, ConfigurationError, DataDamaged, StatorError
from stator.formats.arrow import Batches, attribute_type, python_values, read_arrow, read_parquet
from stator.formats.csv_rows import read_rows
from stator.formats.dynamodb_json import BYTE_ORDER_MARK
from stator.pipeline.bulk.load.inputs import FORMATS, Input

BLOCK_ROWS: Final = 2_000
_BLOCK_BYTES: Final = 2 << 20


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row that could not be read. ``row`` is its place in its block."""

    row: int
    content: Any
    reason: str


@dataclass(slots=True)
class RawRows:
    """Consecutive rows of an input from ``first_row`` on: columns of equal length, or lines.

    ``count`` is the number of input rows that the block covers. ``rows`` holds the place of each
    row within the block if some are blank or unreadable. The columns of a ``batch`` stay in Arrow's
    form until they are used.
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
        """Return one column as a list, without converting the others."""
        return (
            self.columns[at]
            if self.listed_columns is not None or self.batch is None
            else python_values(self.batch.column(at))
        )

    @property
    def places(self) -> Sequence[int]:
        return range(self.count) if self.rows is None else self.rows

    @property
    def to_account(self) -> int:
        """The number of rows that must become an item or a dead letter."""
        return len(self.places) + len(self.unreadable)


def read(source: Input, start_row: int = 0, delimiter: str | None = None) -> Iterator[RawRows]:
    """Yield the blocks of an input.

    Raises BulkError if the input cannot be read to its end: rows after the damage are unknown.
    """
    row = start_row
    try:
        for rows in _blocks_of(source, start_row, delimiter):
            row = rows.first_row + rows.count
            yield rows
    except DataDamaged as error:
        raise _unreadable(source, row, error.message) from error
    except StatorError:
        raise
    except Exception as error:  # pyarrow, csv and botocore each have errors of their own
        raise _unreadable(source, row, str(error)) from error


def _unreadable(source: Input, row: int, reason: str) -> StatorError:
    if row == 0 and source.format in ("parquet", "arrow"):
        return ConfigurationError(
            f"{source.name} is not {source.format}: {reason}",
            hint="name its format with --format; if the format is right, the file is damaged",
        )
    return BulkError(
        f"{source.name} cannot be read after row {row:,}: {reason}",
        hint="check that the file is complete, and name its format with --format if it has another",
    )


def _blocks_of(source: Input, start_row: int, delimiter: str | None) -> Iterator[RawRows]:
    match source.format:
        case "csv":
            return _read_csv(
                source, start_row, delimiter or ("\t" if ".tsv" in source.name.lower() else ",")
            )
        case "jsonl" | "dynamodb-json":
            return _read_lines(source, start_row)
        case "parquet" | "arrow":
            return _read_batches(source, start_row)
    raise ConfigurationError(
        f"the format of {'stdin' if source.is_stdin else source.name} is unknown",
        hint=f"name it with --format {'|'.join(FORMATS)}",
    )


# -- lines


def _read_lines(source: Input, start_row: int) -> Iterator[RawRows]:
    row = start_row
    stream, share = source.open_measured()
    with stream:
        for _ in islice(stream, start_row):
            pass
        while lines := stream.readlines(_BLOCK_BYTES):
            if row == 0:
                lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
            for at in range(0, len(lines), BLOCK_ROWS):
                part = lines[at : at + BLOCK_ROWS]
                yield _line_block(part, row, share())
                row += len(part)


def _line_block(lines: list[bytes], first_row: int, share: float) -> RawRows:
    if not any(map(bytes.isspace, lines)):
        return RawRows(first_row, len(lines), lines=lines, share=share)
    rows = [at for at, line in enumerate(lines) if not line.isspace()]
    return RawRows(first_row, len(lines), lines=[lines[at] for at in rows], rows=rows, share=share)


# -- CSV


def _read_csv(source: Input, start_row: int, delimiter: str) -> Iterator[RawRows]:
    stream, share = source.open_measured()
    with stream:
        # Bytes that are not UTF-8 are kept apart, so that they spoil their own row and no other.
        reader = read_rows(stream, delimiter, errors="surrogateescape")
        header = next(reader, None)
        if not header:
            raise ConfigurationError(
                f"{source.name} has no header line", hint="name the columns in the first line"
            )
        if len(set(header)) != len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise ConfigurationError(
                f"{source.name} has two columns named {twice!r}",
                hint="give each column a name of its own",
            )
        for _ in islice(reader, start_row):
            pass
        row = start_row
        while found := list(islice(reader, BLOCK_ROWS)):
            yield _csv_block(tuple(header), found, row, share())
            row += len(found)


def _csv_block(
    names: tuple[str, ...], found: list[list[str]], first_row: int, share: float
) -> RawRows:
    width = len(names)
    unreadable: list[UnreadableRow] = []
    rows, whole = None, found
    if not all(len(row) == width for row in found):
        rows = [at for at, row in enumerate(found) if len(row) == width]
        whole = [found[at] for at in rows]
        unreadable = [
            UnreadableRow(at, row, f"{len(row)} fields where the header has {width}")
            for at, row in enumerate(found)
            if len(row) != width
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
    )


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
