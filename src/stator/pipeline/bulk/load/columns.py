"""Encodes columns as items, one column at a time.

Python code that runs for each value is slow. C functions therefore turn a whole column into JSON
(``map(orjson.dumps, column)``), and each row is formatted by one ``%`` with a template of the names
and types:

    '{"pk":{"S":%b},"total":{"N":"%b"}%b}' % (dumps(pk), dumps(total), ',"note":{"S":"..."}' or '')

(Arrow's columns need not even become Python values: ``formats.arrow_items``.)

A missing value is a missing attribute, so columns with gaps stand at the end of the template, each
with its own comma. A block with a value that does not fit is encoded row by row instead, which
finds the rows at fault. The tests compare both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any

import orjson

from stator.errors import RowRefused
from stator.formats.arrow_items import arrow_items
from stator.formats.plain import ENCODERS, NUMBER, comparable, encode_value
from stator.pipeline.bulk.job.pending_rows import Block, PendingRow
from stator.pipeline.bulk.load.readers import RawRows

Dead = Callable[[Block, int, Any, str], None]
dumps = orjson.dumps


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the input that is loaded into an attribute.

    ``at`` is its index, ``source`` its name and ``source_kind`` its type in the file. ``target``
    and ``kind`` are the name and type of the attribute; if ``kind`` is None, each value decides.
    """

    at: int
    source: str
    target: str
    kind: str | None
    source_kind: str


class ColumnEncoder:
    """Encodes blocks of rows as items, column by column. ``key`` names the key attributes."""

    def __init__(self, columns: tuple[Column, ...], key: tuple[str, ...]) -> None:
        self._columns = columns
        self._types = {
            column.target: column.kind
            for column in columns
            if column.source_kind == "csv" and column.kind is not None
        }
        self._key_columns = [next(each for each in columns if each.target == name) for name in key]

    def entries(self, rows: RawRows, block: Block, dead: Dead) -> list[PendingRow]:
        try:
            return self._by_column(rows, block)
        except (RowRefused, TypeError, ValueError, ArithmeticError):
            return self._row_by_row(rows, block, dead)

    def _by_column(self, rows: RawRows, block: Block) -> list[PendingRow]:
        items = self._listed(rows) if rows.batch is None else arrow_items(rows.batch, self._columns)
        return [
            PendingRow(key, item, at, block)
            for key, item, at in zip(self._keys(rows), items, rows.places)
        ]

    def _listed(self, rows: RawRows) -> list[bytes]:
        required, filled = [], []
        optional: list[list[bytes]] = []
        for column in self._columns:
            values = rows.columns[column.at]
            gap = "" if column.source_kind == "csv" else None
            form, encode = _form(column)
            named = b"%b:%b" % (dumps(column.target).replace(b"%", b"%%"), form)
            if gap in values:
                whole = b"," + named
                present = iter(encode([value for value in values if value != gap]))
                optional.append(
                    [b"" if value == gap else whole % next(present) for value in values]
                )
            else:
                required.append(named)
                filled.append(encode(values))
        template = b"{%b%b}" % (b",".join(required), b"%b" * len(optional))
        return [template % parts for parts in zip(*filled, *optional)]

    def _keys(self, rows: RawRows) -> Any:
        """Return the key of each row in a form in which equal keys compare equal.

        Raises RowRefused if a row lacks a key attribute.
        """
        found = []
        for column in self._key_columns:
            values = rows.column(column.at)
            if (column.source_kind == "csv" and "" in values) or None in values:
                raise RowRefused("the row lacks a key attribute")
            found.append(_comparable_keys(column, values))
        return found[0] if len(found) == 1 else zip(*found)

    def _row_by_row(self, rows: RawRows, block: Block, dead: Dead) -> list[PendingRow]:
        pending = []
        for at, values in zip(rows.places, zip(*rows.columns)):
            try:
                item = self.item(values)
                key = tuple(comparable(item[column.target]) for column in self._key_columns)
                pending.append(PendingRow(key[0] if len(key) == 1 else key, dumps(item), at, block))
            except (RowRefused, TypeError, ValueError, ArithmeticError) as error:
                dead(block, at, rows.content(values, self._types), str(error))
        return pending

    def item(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """Encode one row as an item, value by value."""
        item = {}
        for column in self._columns:
            value = values[column.at]
            if value is None or (column.source_kind == "csv" and value == ""):
                continue
            try:
                item[column.target] = (
                    encode_value(value) if column.kind is None else ENCODERS[column.kind](value)
                )
            except RowRefused as error:
                raise RowRefused(f"{column.source}: {error.message}") from None
        for column in self._key_columns:
            if column.target not in item:
                raise RowRefused(f"the key attribute {column.target} is missing")
        return item


def _comparable_keys(column: Column, values: list[Any]) -> list[Any]:
    if column.kind == "N":
        return [Decimal(value) for value in values]
    if column.kind == "S" and column.source_kind in ("S", "csv"):
        return values
    assert column.kind is not None
    encode = ENCODERS[column.kind]
    return [comparable(encode(value)) for value in values]


# -- forms

Encode = Callable[[list[Any]], list[bytes]]


def _form(column: Column) -> tuple[bytes, Encode]:
    """Return a template for a value's DynamoDB JSON, and a function that fills in the values.

    For text this is ``{"S":%b}``, and a function that turns a list of values into JSON strings.
    """
    match column.source_kind, column.kind:
        case (("S" | "csv"), "S"):
            return b'{"S":%b}', _dumped
        case "N", "N":
            return b'{"N":"%b"}', _numbers
        case "csv", "N":
            return b'{"N":"%b"}', _number_texts
        case "BOOL", "BOOL":
            return b'{"BOOL":%b}', _dumped
    encode = encode_value if column.kind is None else ENCODERS[column.kind]
    return b"%b", lambda values: [dumps(encode(value)) for value in values]


def _dumped(values: list[Any]) -> list[bytes]:
    return list(map(dumps, values))


def _numbers(values: list[Any]) -> list[bytes]:
    kind = type(values[0]) if values else int
    if kind is float:
        if not all(map(isfinite, values)):
            raise RowRefused("a number in the column is NaN or infinite: DynamoDB cannot store it")
        return list(map(dumps, values))
    if kind is int:
        return [b"%d" % value for value in values]
    return _number_texts([str(value) for value in values])


def _number_texts(values: list[str]) -> list[bytes]:
    if not all(map(NUMBER.fullmatch, values)):
        raise RowRefused("not a number")
    return [value.encode() for value in values]
