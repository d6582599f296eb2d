"""Writes items as Parquet: a column per attribute, typed as ``parquet_columns`` says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stator.errors import DataDiffers
from stator.formats.arrow import open_parquet
from stator.formats.extras import pyarrow
from stator.formats.parquet_columns import (
    ColumnFacts,
    ColumnType,
    Unfit,
    add_facts,
    inferred_types,
)
from stator.model.values import Item

Types = Mapping[str, ColumnType]


def arrow_table(items: list[Item], first: tuple[str, ...] = ()) -> Any:
    """Return a pyarrow table of items: the columns in ``first``, then the others sorted by name."""
    facts: dict[str, ColumnFacts] = {}
    add_facts(facts, items)
    return typed_table(items, inferred_types(facts, first))


def typed_table(items: list[Item], types: Types) -> Any:
    """Return a pyarrow table of items with the columns in ``types``.

    Raises Unfit, with the column's name, if a value does not fit the type of its column.
    """
    arrow = pyarrow()
    columns = []
    for name, kind in types.items():
        try:
            columns.append(arrow.array(_cells(items, name, kind), kind.arrow))
        except (arrow.ArrowException, TypeError, ValueError, ArithmeticError):
            raise Unfit(name) from None
    return arrow.table(columns, schema=_schema(types))


def _cells(items: list[Item], name: str, kind: ColumnType) -> list[Any]:
    try:
        return kind.cells(item.get(name) for item in items)
    except (Unfit, TypeError, ValueError, ArithmeticError, AttributeError):
        raise Unfit(name) from None


def _schema(types: Types) -> Any:
    arrow = pyarrow()
    return arrow.schema([(name, kind.arrow) for name, kind in types.items()])


def write_parquet(
    path: Path, groups: Iterable[list[Item]], types: Types, compression: str | None = None
) -> None:
    """Write one Parquet file with the columns in ``types``; each list of items is a row group.

    The file is compressed with zstd by default. Raises Unfit, with the column's name, if a value
    does not fit the type of its column.
    """
    parquet = pyarrow("pyarrow.parquet")
    with (
        path.open("wb") as file,
        parquet.ParquetWriter(file, _schema(types), compression=compression or "zstd") as writer,
    ):
        for items in groups:
            table = typed_table(items, types)
            writer.write_table(table, row_group_size=max(1, table.num_rows))


def check_parquet(path: Path, groups: Iterable[list[Item]], types: Types) -> None:
    """Read a Parquet file back, and compare its cells with the items in ``groups``.

    ``groups`` has the items of each row group. Raises DataDiffers if a cell or the number of row
    groups differs.
    """
    with open_parquet(str(path)) as file:
        number = 0
        for number, items in enumerate(groups, 1):
            if number > file.num_row_groups:
                break
            found = file.read_row_group(number - 1)
            for name, kind in types.items():
                if not _are_same(found[name].to_pylist(), _cells(items, name, kind)):
                    raise _differs(path, f"the column {name} of row group {number}")
        if number != file.num_row_groups:
            raise _differs(path, f"the number of row groups, {file.num_row_groups},")


def _are_same(found: list[Any], written: list[Any]) -> bool:
    return found == written or repr(found) == repr(written)  # NaN does not equal itself


def _differs(path: Path, what: str) -> DataDiffers:
    return DataDiffers(
        f"{path}: {what} is not what was written",
        hint="check the disk, then export again with --restart",
    )
