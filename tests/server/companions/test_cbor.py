"""CBOR: values come back as they went in, and botocore's own codec agrees."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.server.companions.cbor import EpochSeconds, decode, encode

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(VALUES)
def test_values_come_back(value: Any) -> None:
    assert decode(encode(value)) == value


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        decode(data)
    except ValueError:
        return


@pytest.mark.parametrize(
    ("data", "value"),
    [  # the examples of RFC 8949, appendix A
        ("1818", 24),
        ("3903e7", -1000),
        ("f93e00", 1.5),
        ("fa47c35000", 100000.0),
        ("c11a514b67b0", 1363896240),
        ("5f42010243030405ff", b"\1\2\3\4\5"),
        ("7f657374726561646d696e67ff", "streaming"),
        ("9f018202039f0405ffff", [1, [2, 3], [4, 5]]),
        ("bf61610161629f0203ffff", {"a": 1, "b": [2, 3]}),
        ("f7", None),
    ],
)
def test_examples_of_the_standard(data: str, value: Any) -> None:
    assert decode(bytes.fromhex(data)) == value


@pytest.mark.parametrize(
    "data", ["", "18", "61", "ff", "9f", "a101", "1c", "0000", "f800", "82ff01"]
)
def test_malformed_bytes_are_refused(data: str) -> None:
    with pytest.raises(ValueError, match="CBOR"):
        decode(bytes.fromhex(data))


def test_nesting_is_limited() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        decode(b"\x81" * 100 + b"\x01")


def test_a_time_has_tag_1() -> None:
    assert encode(EpochSeconds(1.5)).hex() == "c1fb3ff8000000000000"
    assert math.isclose(decode(encode(EpochSeconds(1.5))), 1.5)
