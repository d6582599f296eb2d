"""Columns of Parquet hold every value exactly, and files that changed are found."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.errors import DataDiffers
from stator.formats.parquet import arrow_table, check_parquet, typed_table, write_parquet
from stator.formats.parquet_columns import (
    ColumnFacts,
    Unfit,
    add_facts,
    inferred_types,
    merged_facts,
)

NUMBERS = st.decimals(allow_nan=False, allow_infinity=False).filter(
    lambda number: abs(number.adjusted()) <= 125 and len(number.as_tuple().digits) <= 38
)


def numbers(*texts: str) -> list[Any]:
    return [{"n": {"N": text}} for text in texts]


@given(st.lists(NUMBERS | st.integers(-(10**37), 10**37), min_size=1))
def test_a_column_of_numbers_keeps_every_digit(values: list[Decimal | int]) -> None:
    found = arrow_table(numbers(*map(str, values)))["n"]
    is_double = pa.types.is_floating(found.type)
    cells = found.to_pylist()
    assert [Decimal(repr(each) if is_double else str(each)) for each in cells] == [
        Decimal(str(value)) for value in values
    ]


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["1", "-9223372036854775808"], "int64"),
        (["1", "9223372036854775808"], "decimal128(38, 0)"),
        (["5", "0.1"], "double"),
        (["12345678901234567890123456789.123456789", "0.1"], "decimal128(38, 9)"),
        (["12345678901234567890123456789", "1E-30"], "decimal256(76, 30)"),
        (["1E+100", "1E-30"], "string"),
    ],
)
def test_the_type_of_numbers_is_the_narrowest_that_holds_all(texts: list[str], wanted: str) -> None:
    assert str(arrow_table(numbers(*texts))["n"].type) == wanted


@given(st.lists(NUMBERS, min_size=1), st.lists(NUMBERS, min_size=1))
def test_facts_of_parts_are_the_facts_of_the_whole(one: Any, other: Any) -> None:
    found: list[dict[str, ColumnFacts]] = [{}, {}, {}]
    add_facts(found[0], numbers(*map(str, one)))
    add_facts(found[1], numbers(*map(str, other)))
    add_facts(found[2], numbers(*map(str, [*one, *other])))
    stored = json.loads(json.dumps(found[1]["n"].to_data()))
    assert merged_facts(found[0], {"n": ColumnFacts.from_data(stored)}) == found[2]


def test_a_value_is_never_rounded_to_fit() -> None:
    facts: dict[str, ColumnFacts] = {}
    add_facts(facts, numbers("0.1"))
    types = inferred_types(facts)
    with pytest.raises(Unfit, match="n"):
        typed_table(numbers("0.10000000000000000000000001"), types)


def test_a_file_with_another_value_is_found(tmp_path: Path) -> None:
    items = numbers("12345678901234567890123456789.123456789", "0.1")
    facts: dict[str, ColumnFacts] = {}
    add_facts(facts, items)
    types, path = inferred_types(facts), tmp_path / "x.parquet"
    write_parquet(path, [items, items], types)
    check_parquet(path, [items, items], types)
    for groups in ([items], [items, items, items], [items, numbers("1", "0.1")]):
        with pytest.raises(DataDiffers, match="not what was written"):
            check_parquet(path, groups, types)
    lossy = pa.schema([("n", pa.float64())])
    pq.write_table(pa.table({"n": [12345678901234567890123456789.123, 0.1]}, schema=lossy), path)
    with pytest.raises(DataDiffers, match="the column n of row group 1"):
        check_parquet(path, [items], types)
