"""Items as other tools want them: plain JSON, text for CSV, columns for Parquet.

Sets become lists and binary values base64 text in JSON, which has neither. Numbers keep every digit: they are written into JSON as they stand, and
a Parquet column of numbers is int64 where all are whole and fit, double where that loses nothing, decimal where that is needed. Maps and lists are
JSON text in CSV and Parquet, for rows of one table need not agree on what is in them. So is an attribute that has values of several types.
"""

from __future__ import annotations

from base64 import b64decode
from decimal import Decimal
from typing import Any

import orjson

from stator.model.values import Item, Value

_INT64 = 1 << 63
_EXACT_FLOAT = 1 << 53
"""Above this a float does not hold every whole number."""


def plain_item(item: Item) -> dict[str, Any]:
    """For ``orjson.dumps``: numbers are fragments of their own digits."""
    return {name: plain_value(value) for name, value in item.items()}


def plain_value(value: Value) -> Any:
    [(kind, content)] = value.items()
    match kind:
        case "S" | "B" | "BOOL" | "SS" | "BS":
            return content
        case "N":
            return orjson.Fragment(content)
        case "M":
            return plain_item(content)
        case "L":
            return [plain_value(each) for each in content]
        case "NS":
            return [orjson.Fragment(each) for each in content]
    return None


def text_of(value: Value | None) -> str:
    """A cell of CSV; a missing attribute is an empty cell."""
    if value is None:
        return ""
    [(kind, content)] = value.items()
    if kind in ("S", "N", "B"):
        return str(content)
    return "" if kind == "NULL" else orjson.dumps(plain_value(value)).decode()


# --- columns ------------------------------------------------------------------------------------------------


def arrow_table(items: list[Item], arrow: Any, first: tuple[str, ...] = ()) -> Any:
    """A table of pyarrow's with a column for every attribute: those named ``first``, then by name."""
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
        [None if value is None else text_of(value) for value in values], arrow.string()
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
    if max(digits, 1) + scale <= 38:
        return arrow.array(numbers, arrow.decimal128(38, scale))
    return arrow.array(texts, arrow.string())
