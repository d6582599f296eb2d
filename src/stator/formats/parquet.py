"""Writes items as Parquet: a column per attribute, in the narrowest type that keeps every value.

A column of numbers is int64 if all numbers are integers in its range. Otherwise it is double if
that loses nothing, else decimal if that has enough digits, else text. An attribute whose values
have several types, or are maps or lists, is JSON text.
"""

from __future__ import annotations

import io
from base64 import b64decode
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from stator.errors import DataDiffers
from stator.formats.arrow import open_parquet
from stator.formats.extras import pyarrow
from stator.formats.plain import cell_text
from stator.model.values import Item, Value

_INT64 = 1 << 63
_EXACT_FLOAT = 1 << 53
"""Above this a float does not hold every whole number."""
_DECIMAL_DIGITS = 38


def encode_parquet(
    items: list[Item], first: tuple[str, ...] = (), compression: str | None = None
) -> bytes:
    """Return a Parquet file with these items, compressed with zstd by default.

    ``first`` names the columns to put before the others.
    """
    buffer = io.BytesIO()
    table = arrow_table(items, first)
    pyarrow("pyarrow.parquet").write_table(table, buffer, compression=compression or "zstd")
    return buffer.getvalue()


def arrow_table(items: list[Item], first: tuple[str, ...] = ()) -> Any:
    """Return a pyarrow table of items: the columns in ``first``, then the others sorted by name."""
    arrow = pyarrow()
    names = {name for item in items for name in item}
    ordered = [name for name in first if name in names] + sorted(names - set(first))
    return arrow.table(
        {name: _column([item.get(name) for item in items], arrow) for name in ordered}
    )


def _column(values: list[Value | None], arrow: Any) -> Any:
    kinds = {kind for value in values if value is not None for kind in value} - {"NULL"}
    contents = [
        None if value is None or "NULL" in value else next(iter(value.values())) for value in values
    ]
    match sorted(kinds):
        case ["S"] | []:
            return arrow.array(contents, arrow.string())
        case ["BOOL"]:
            return arrow.array(contents, arrow.bool_())
        case ["N"]:
            return _number_column(contents, arrow)
        case ["B"]:
            return arrow.array(
                [None if each is None else b64decode(each) for each in contents], arrow.binary()
            )
        case ["SS"]:
            return arrow.array(contents, arrow.list_(arrow.string()))
    return arrow.array(
        [None if value is None else cell_text(value) for value in values], arrow.string()
    )


def _number_column(texts: list[str | None], arrow: Any) -> Any:
    numbers = [None if text is None else Decimal(text) for text in texts]
    present = [number for number in numbers if number is not None]
    if all(
        number == number.to_integral_value() and -_INT64 <= number < _INT64 for number in present
    ):
        return arrow.array(
            [None if number is None else int(number) for number in numbers], arrow.int64()
        )
    if all(
        abs(number) < _EXACT_FLOAT and Decimal(repr(float(number))) == number for number in present
    ):
        return arrow.array(
            [None if number is None else float(number) for number in numbers], arrow.float64()
        )
    scale = max(max(0, -int(number.as_tuple().exponent)) for number in present)
    digits = max(number.adjusted() + 1 for number in present)
    if max(digits, 1) + scale <= _DECIMAL_DIGITS:
        return arrow.array(numbers, arrow.decimal128(_DECIMAL_DIGITS, scale))
    return arrow.array(texts, arrow.string())


def join_parquet(parts: Sequence[Path], joined: Path, columns: Sequence[str] = ()) -> None:
    """Write the rows of several Parquet files into one.

    A column that is integer in one part and has fractions in another takes the wider type. Raises
    DataDiffers if no single type can hold a column's values from all parts. If ``parts`` is empty,
    the file has no rows, and a text column for each name in ``columns``.
    """
    arrow, parquet = pyarrow(), pyarrow("pyarrow.parquet")
    schema = (
        _unified(arrow, [parquet.read_schema(part) for part in parts])
        if parts
        else arrow.schema([(name, arrow.string()) for name in columns])
    )
    with (
        joined.open("wb") as file,
        parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for part in parts:
            with open_parquet(str(part)) as source:
                for group in range(source.num_row_groups):
                    writer.write_table(_widened(arrow, source.read_row_group(group), schema))


def _widened(arrow: Any, table: Any, schema: Any) -> Any:
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else arrow.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return arrow.table(columns, schema=schema)


def _unified(arrow: Any, schemas: list[Any]) -> Any:
    try:
        return arrow.unify_schemas(schemas, promote_options="permissive")
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise DataDiffers(
            f"the parts cannot be joined into one file: {error}",
            hint="export to a folder: its files may have different columns",
        ) from None
