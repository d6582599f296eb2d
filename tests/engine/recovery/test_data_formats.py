"""Items come back from the files of exports as they went in, whatever is in them."""

from __future__ import annotations

from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.engine.recovery.data_formats import (
    InputFormat,
    ObjectContent,
    item_writer,
    read_items,
)
from stator.engine.recovery.log import pack_pair, unpack_pair
from stator.model.values import item_size, normalise_item

TEXTS = st.text(max_size=12)
NUMBERS = st.decimals(
    min_value=Decimal("-1e30"),
    max_value=Decimal("1e30"),
    allow_nan=False,
    allow_infinity=False,
    places=4,
).map(str) | st.sampled_from(
    ["1E+125", "-9.9E-130", "0", "1E-100", "12345678901234567890123456789012345678"]
)
BINARIES = st.sampled_from(["", "AA==", "aGVsbG8=", "/w=="])
SCALARS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    TEXTS.map(lambda text: {"S": text}),
    NUMBERS.map(lambda number: {"N": number}),
    BINARIES.map(lambda binary: {"B": binary}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
    st.lists(TEXTS, min_size=1, max_size=3, unique=True).map(lambda texts: {"SS": texts}),
    st.lists(st.integers(-99, 99), min_size=1, max_size=3, unique=True).map(
        lambda ints: {"NS": list(map(str, ints))}
    ),
    st.lists(BINARIES, min_size=1, max_size=3, unique=True).map(lambda each: {"BS": each}),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda members: {"L": members}),
        st.dictionaries(TEXTS, inner, max_size=3).map(lambda members: {"M": members}),
    ),
    max_leaves=6,
)
ITEMS = st.dictionaries(TEXTS.filter(bool), VALUES, min_size=1, max_size=5)


@pytest.mark.parametrize("name", ["DYNAMODB_JSON", "ION"])
@settings(max_examples=150)
@given(st.lists(ITEMS, min_size=1, max_size=3))
def test_items_come_back_from_a_file(name: str, items: list[dict[str, Any]]) -> None:
    for item in items:
        normalise_item(item)  # as every stored item is
    line = item_writer(name)
    read = list(read_items(ObjectContent(BytesIO(b"".join(map(line, items)))), InputFormat(name)))
    assert [each.problem for each in read] == [None] * len(items)
    assert [each.item for each in read] == items
    assert [each.size for each in read] == [item_size(item) for item in items]


@given(st.binary(max_size=20), st.none() | st.binary(max_size=20), st.binary(max_size=20))
def test_pairs_are_told_apart_again(first: bytes, second: bytes | None, rest: bytes) -> None:
    assert unpack_pair(pack_pair(first, second) + rest) == (first, second, rest)
