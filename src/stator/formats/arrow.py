"""Reads Parquet and Arrow files as record batches, starting at any row, with pyarrow.

pyarrow is an extra (``pip install 'stator[arrow]'``). Both formats keep their index at the end, so
they need a path or a file that can seek. One batch is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from stator.errors import DataDamaged
from stator.formats.extras import pyarrow

Batches = Iterator[tuple[int, int, Any]]
"""Batches: the number of the first row, the rows in the file (0: unknown), the batch."""


def open_parquet(place: str | BinaryIO) -> Any:
    """Open a ParquetFile. Raises DataDamaged if the file is not Parquet or is truncated."""
    arrow, parquet = pyarrow(), pyarrow("pyarrow.parquet")
    try:
        # With pre_buffer Arrow keeps the bytes of every row group until the last one is read.
        return parquet.ParquetFile(place, pre_buffer=False)
    except arrow.ArrowInvalid as error:
        raise DataDamaged(f"the file is not Parquet, or is truncated: {error}") from None


def read_parquet(place: str | BinaryIO, start_row: int, batch_rows: int) -> Batches:
    """Yield the record batches of a Parquet file from row ``start_row`` on.

    Yields tuples: the number of the batch's first row, the number of rows in the file, the batch.
    Earlier row groups are not read.
    """
    with open_parquet(place) as file:
        groups, row = list(range(file.num_row_groups)), 0
        while groups and row + file.metadata.row_group(groups[0]).num_rows <= start_row:
            row += file.metadata.row_group(groups.pop(0)).num_rows
        batches = file.iter_batches(batch_size=batch_rows, row_groups=groups, use_threads=False)
        yield from _from_row(batches, row, start_row, batch_rows, file.metadata.num_rows)


def read_arrow(place: str | BinaryIO, start_row: int, batch_rows: int) -> Batches:
    """Yield the record batches of an Arrow IPC file or stream from row ``start_row`` on.

    Yields tuples: the number of the batch's first row, 0 (the length of the file is unknown), and
    the batch.
    """
    arrow, ipc = pyarrow(), pyarrow("pyarrow.ipc")
    with arrow.memory_map(place) if isinstance(place, str) else arrow.PythonFile(place) as file:
        try:
            opened = ipc.open_file(file)
            batches = (opened.get_batch(at) for at in range(opened.num_record_batches))
        except arrow.ArrowInvalid:
            file.seek(0)
            batches = _open_stream(file)
        yield from _from_row(batches, 0, start_row, batch_rows, 0)


def _open_stream(file: Any) -> Any:
    arrow, ipc = pyarrow(), pyarrow("pyarrow.ipc")
    try:
        return ipc.open_stream(file)
    except arrow.ArrowInvalid as error:
        raise DataDamaged(f"the file is not Arrow, or is truncated: {error}") from None


def _from_row(batches: Any, row: int, start_row: int, batch_rows: int, total: int) -> Batches:
    for whole in batches:
        for at in range(0, whole.num_rows, batch_rows):
            batch = whole.slice(at, batch_rows)
            first, row = row, row + batch.num_rows
            if row <= start_row:
                continue
            if first < start_row:
                batch, first = batch.slice(start_row - first), start_row
            yield first, total, batch


def python_values(column: Any) -> list[Any]:
    """Return the values of an Arrow column as a list of Python values.

    Floats of 16 and 32 bits become text, which has just the digits of the file: a float32 ``0.1``
    would be 0.10000000149011612 in 64 bits. Times are cut to microseconds, the finest unit of
    Python's datetime.
    """
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


def attribute_type(arrow_type: Any) -> str:
    """Return the DynamoDB type for an Arrow type: S, N, B or BOOL.

    Returns ``any`` for other types, such as times and lists, whose values are encoded one by one.
    """
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
