"""Readers: an input as blocks of rows, from any row on. Columns where the format has columns, lines where it has lines.

A block has some thousand rows at most and is let go once it is written, so memory does not grow with the input. Parquet and Arrow need
pyarrow (``pip install 'stator[arrow]'``) and an input that can be sought in: what comes from S3, a pipe or a compressed file is put into a
temporary file first.
"""

from __future__ import annotations

import csv
import importlib
import io
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final

from stator.errors import BulkError, ConfigurationError, StatorError
from stator.pipeline.bulk.load.inputs import FORMATS, Input

BLOCK_ROWS: Final = 2_000
_BLOCK_BYTES: Final = 2 << 20
_FIELD_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that could not even be read; ``row`` counts within its block."""

    row: int
    content: Any
    reason: str


@dataclass(slots=True)
class RawRows:
    """Rows that follow each other, from ``first_row`` of their input on: ``columns`` (lists of equal length) or ``lines``.

    ``count`` is how many of the input they are; ``rows`` has the place of each among those, where some are blank or were refused.
    ``batch`` is where columns come from that are still Arrow's; they become lists when somebody asks for them.
    """

    first_row: int
    count: int
    names: tuple[str, ...] = ()
    made_columns: list[list[Any]] | None = None
    kinds: tuple[str, ...] = ()
    lines: list[bytes] | None = None
    rows: list[int] | None = None
    refused: list[Refused] = field(default_factory=list)
    share: float = 0.0
    """How much of the input is read with these, from 0 to 1; 0 where nobody knows."""
    batch: Any = None

    @property
    def columns(self) -> list[list[Any]]:
        if self.made_columns is None:
            self.made_columns = (
                [] if self.batch is None else [listed(column) for column in self.batch.columns]
            )
        return self.made_columns

    def column(self, at: int) -> list[Any]:
        """One of them, without making the others."""
        return (
            self.columns[at]
            if self.made_columns is not None or self.batch is None
            else listed(self.batch.column(at))
        )

    @property
    def places(self) -> Sequence[int]:
        return range(self.count) if self.rows is None else self.rows

    @property
    def to_account(self) -> int:
        """Rows of which something has to become."""
        return len(self.places) + len(self.refused)


def read(source: Input, start_row: int = 0, delimiter: str | None = None) -> Iterator[RawRows]:
    """Its blocks. An input that cannot be read any further is an error: what is behind the damage is not known."""
    row = start_row
    try:
        for rows in _blocks_of(source, start_row, delimiter):
            row = rows.first_row + rows.count
            yield rows
    except StatorError:
        raise
    except Exception as error:  # each library has its own ways to say that a file is damaged
        raise BulkError(
            f"{source.name} cannot be read behind row {row:,}: {error}",
            hint="is the file whole? --format says what is in it",
        ) from error


def _blocks_of(source: Input, start_row: int, delimiter: str | None) -> Iterator[RawRows]:
    match source.format:
        case "csv":
            return _read_csv(
                source, start_row, delimiter or ("\t" if ".tsv" in source.name.lower() else ",")
            )
        case "jsonl" | "dynamodb-json":
            return _read_lines(source, start_row)
        case "parquet":
            return _read_parquet(source, start_row)
        case "arrow":
            return _read_arrow(source, start_row)
    raise ConfigurationError(
        f"nothing says what is in {'stdin' if source.is_stdin else source.name}",
        hint=f"--format {'|'.join(FORMATS)}",
    )


# --- lines --------------------------------------------------------------------------------------------------


def _read_lines(source: Input, start_row: int) -> Iterator[RawRows]:
    row = start_row
    stream, share = source.open_measured()
    with stream:
        for _ in islice(stream, start_row):
            pass
        while lines := stream.readlines(_BLOCK_BYTES):
            for at in range(0, len(lines), BLOCK_ROWS):
                part = lines[at : at + BLOCK_ROWS]
                yield _line_block(part, row, share())
                row += len(part)


def _line_block(lines: list[bytes], first_row: int, share: float) -> RawRows:
    if not any(map(bytes.isspace, lines)):
        return RawRows(first_row, len(lines), lines=lines, share=share)
    rows = [at for at, line in enumerate(lines) if not line.isspace()]
    return RawRows(first_row, len(lines), lines=[lines[at] for at in rows], rows=rows, share=share)


def _read_csv(source: Input, start_row: int, delimiter: str) -> Iterator[RawRows]:
    csv.field_size_limit(_FIELD_BYTES)
    stream, share = source.open_measured()
    with stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
        reader = csv.reader(text, delimiter=delimiter)
        header = next(reader, None)
        if not header:
            raise ConfigurationError(
                f"{source.name} has no header line", hint="the first line names the columns"
            )
        if len(set(header)) != len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise ConfigurationError(
                f"{source.name} has two columns {twice!r}", hint="give each a name of its own"
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
    refused: list[Refused] = []
    rows = None
    if not all(len(row) == width for row in found):
        rows = [at for at, row in enumerate(found) if len(row) == width]
        for at, row in enumerate(found):
            if len(row) != width:
                refused.append(Refused(at, row, f"{len(row)} fields where the header has {width}"))
        kept = [row for row in found if len(row) == width]
    else:
        kept = found
    columns: list[list[Any]] = (
        [list(column) for column in zip(*kept)] if kept else [[] for _ in names]
    )
    # An empty field is a missing one: who encodes the columns knows by the kind ``csv``.
    return RawRows(
        first_row,
        len(found),
        names,
        columns,
        ("csv",) * width,
        rows=rows,
        refused=refused,
        share=share,
    )


# --- columns ------------------------------------------------------------------------------------------------


def pyarrow(module: str = "pyarrow") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConfigurationError(
            "pyarrow is not installed", hint="pip install 'stator[arrow]'"
        ) from None


def _seekable(source: Input, stack: list[Any]) -> Any:
    """A path, or a file that can be sought in."""
    if source.is_local and source.compression is None:
        return source.name
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the reader
    stack.append(file)
    with source.open() as stream:
        shutil.copyfileobj(stream, file, 1 << 20)
    file.seek(0)
    return file


def _read_parquet(source: Input, start_row: int) -> Iterator[RawRows]:
    parquet = pyarrow("pyarrow.parquet")
    opened: list[Any] = []
    try:
        # With pre_buffer Arrow keeps the bytes of all row groups until the last one is read: the whole file, in the end.
        open_it = partial(parquet.ParquetFile, pre_buffer=False)
        with _readable(open_it, _seekable(source, opened), source) as file:
            groups, behind = list(range(file.num_row_groups)), 0
            while groups and behind + file.metadata.row_group(groups[0]).num_rows <= start_row:
                behind += file.metadata.row_group(groups.pop(0)).num_rows
            batches = file.iter_batches(batch_size=BLOCK_ROWS, row_groups=groups, use_threads=False)
            yield from _blocks(batches, behind, start_row, file.metadata.num_rows)
    finally:
        for file in opened:
            file.close()


def _read_arrow(source: Input, start_row: int) -> Iterator[RawRows]:
    arrow, ipc = pyarrow(), pyarrow("pyarrow.ipc")
    opened: list[Any] = []
    place = _seekable(source, opened)
    try:
        stream = arrow.memory_map(place) if isinstance(place, str) else arrow.PythonFile(place)
        try:
            file = ipc.open_file(stream)
            batches = (file.get_batch(at) for at in range(file.num_record_batches))
        except arrow.ArrowInvalid:
            stream.seek(0)
            batches = _readable(ipc.open_stream, stream, source)
        yield from _blocks(batches, 0, start_row, 0)
        stream.close()
    finally:
        for each in opened:
            each.close()


def _readable(open_it: Any, place: Any, source: Input) -> Any:
    arrow = pyarrow()
    try:
        return open_it(place)
    except arrow.ArrowInvalid as error:
        raise ConfigurationError(
            f"{source.name} is not {source.format}: {error}", hint="--format says what it is"
        ) from None


def _blocks(batches: Any, row: int, start_row: int, total: int) -> Iterator[RawRows]:
    for whole in batches:
        for at in range(0, whole.num_rows, BLOCK_ROWS):
            batch = whole.slice(at, BLOCK_ROWS)
            behind, row = row, row + batch.num_rows
            if row <= start_row:
                continue
            if behind < start_row:
                batch, behind = batch.slice(start_row - behind), start_row
            names = tuple(batch.schema.names)
            kinds = tuple(_kind(each.type) for each in batch.schema)
            share = row / total if total else 0.0
            yield RawRows(behind, batch.num_rows, names, kinds=kinds, share=share, batch=batch)


def listed(column: Any) -> list[Any]:
    """Python values. What Python has no exact form for goes by its text: floats of 32 bits, times finer than a microsecond."""
    arrow, types = pyarrow(), pyarrow("pyarrow.types")
    kind = column.type
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if types.is_float32(kind) or types.is_float16(kind):
        column = column.cast(arrow.string())
    elif types.is_timestamp(kind) and kind.unit == "ns":
        column = column.cast(arrow.timestamp("us", kind.tz), safe=False)
    elif types.is_map(kind):
        return [None if pairs is None else dict(pairs) for pairs in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def _kind(arrow_type: Any) -> str:
    """What the values of a column are: a type of DynamoDB's for the simple ones, ``any`` for the rest."""
    types = pyarrow("pyarrow.types")
    if types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if types.is_string(arrow_type) or types.is_large_string(arrow_type):
        return "S"
    if types.is_boolean(arrow_type):
        return "BOOL"
    if (
        types.is_integer(arrow_type)
        or types.is_floating(arrow_type)
        or types.is_decimal(arrow_type)
    ):
        return "N"
    return "B" if types.is_binary(arrow_type) or types.is_large_binary(arrow_type) else "any"
