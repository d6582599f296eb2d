"""DynamoDB numbers: what is stored, how large it is, and how it sorts."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.errors import ValidationFailed
from stator.model import numbers

decimals = st.builds(
    lambda digits, exponent, negative: Decimal(
        (int(negative), tuple(map(int, str(digits))), exponent)
    ),
    st.integers(0, 10**38 - 1),
    st.integers(-100, 80),
    st.booleans(),
)


@given(st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{1,19})?", fullmatch=True))
def test_what_looks_normal_is_as_its_decimal_says(text: str) -> None:
    """Numbers that need no work take a short way, which must give the same."""
    whole = Decimal(text).as_tuple()
    if len("".join(map(str, whole.digits)).strip("0")) <= 38:
        assert numbers.normalise(text) == numbers.from_decimal(Decimal(text))


@given(st.from_regex(r"[+-]?[0-9]{1,6}(\.[0-9]{0,5})?(e[0-9])?", fullmatch=True))
def test_the_size_of_what_is_normal_is_told_in_one_look_each_time(text: str) -> None:
    normal = numbers.from_decimal(Decimal(text))
    for _ in range(2):  # the second is remembered
        assert numbers.normal_size(text) == (numbers.size_bytes(normal) if text == normal else 0)


@given(decimals)
def test_normalising_keeps_the_value_and_drops_the_rest(value: Decimal) -> None:
    text = numbers.normalise(format(value, "E"))
    assert Decimal(text) == value
    assert "E" not in text
    assert not text.startswith(("+", "00", "."))
    assert numbers.normalise(text) == text
    if "." in text:
        assert not text.endswith(("0", "."))


@given(st.lists(decimals, min_size=2, max_size=20))
def test_the_encoding_sorts_as_the_numbers_do(values: list[Decimal]) -> None:
    texts = [numbers.from_decimal(value) for value in values]
    by_bytes = sorted(texts, key=numbers.encode_ordered)
    assert [Decimal(text) for text in by_bytes] == sorted(map(Decimal, texts))
    assert len({numbers.encode_ordered(text) for text in texts}) == len(set(texts))


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("+5", "5"), ("+.5", "0.5"), ("5.", "5"), ("1.e5", "100000"), ("1.5E+3", "1500"),
        ("+1e-2", "0.01"),
        ("-0", "0"), ("0042.1200", "42.12"), ("1E125", "1" + "0" * 125),
        ("1e-130", "0." + "0" * 129 + "1"),
        ("0e125", "0"), ("1" * 38 + "0" * 5, "1" * 38 + "0" * 5),
    ],
)  # fmt: skip
def test_accepted_forms(text: str, stored: str) -> None:
    assert numbers.normalise(text) == stored


@pytest.mark.parametrize(
    "text",
    [
        "",
        "e2",
        "1+2",
        "1.2.3",
        "++5",
        "+",
        "1e",
        ".",
        "0x5",
        "NaN",
        "Infinity",
        "1_000",
        " 5",
        "5 ",
        "٣",
        "½",
    ],
)
def test_refused_forms(text: str) -> None:
    with pytest.raises(ValidationFailed, match="cannot be converted to a numeric value"):
        numbers.normalise(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1e126", "overflow"), ("-1e126", "overflow"), ("1e99999999999", "overflow"),
        ("0e126", "overflow"),
        ("1e-131", "underflow"), ("0e-131", "underflow"), ("1e-99999999999", "underflow"),
        ("1" * 39, "38 significant digits"), ("0." + "1" * 39, "38 significant digits"),
    ],
)  # fmt: skip
def test_refused_magnitudes(text: str, problem: str) -> None:
    with pytest.raises(ValidationFailed, match=problem):
        numbers.normalise(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 1), ("1", 2), ("12", 2), ("123", 3), ("1234", 3), ("100", 2), ("1010", 3),
        ("0.0000001", 2), ("1.5", 3),
        ("15", 2), ("1.234", 4), ("3.14159", 5), ("100.5", 4), ("0.15", 2), ("-42", 3),
        ("1" * 38, 20),
    ],
)  # fmt: skip
def test_sizes_as_measured_on_aws(text: str, size: int) -> None:
    assert numbers.size_bytes(text) == size


def test_sums_are_exact_to_38_digits() -> None:
    assert numbers.add("9" * 37, "1") == "1" + "0" * 37
    assert numbers.subtract("0.3", "0.1") == "0.2"
    with pytest.raises(ValidationFailed, match="overflow"):
        numbers.add("1" + "0" * 50, "1")
    with pytest.raises(ValidationFailed, match="overflow"):
        numbers.add("9" + "0" * 125, "9" + "0" * 125)


@given(
    st.sampled_from(["", "-", "+"]),
    st.text("0", max_size=700),
    st.text("0123456789", min_size=1, max_size=45),
    st.text("0", max_size=700),
    st.text("0", max_size=700),
    st.text("0123456789", max_size=45),
    st.integers(-400, 400),
)
def test_long_numbers_are_read_as_their_decimal(
    sign: str, front: str, whole: str, zeros: str, inner: str, fraction: str, power: int
) -> None:
    text = f"{sign}{front}{whole}{zeros}.{inner}{fraction}{zeros}e{power}"

    def read(normalised: Callable[[], str]) -> str:
        try:
            return normalised()
        except ValidationFailed as refused:
            return refused.message

    value = Decimal(text)
    if not value:
        return  # the exponent of a zero is checked as well
    assert read(lambda: numbers.normalise(text)) == read(lambda: numbers.from_decimal(value))


def test_millions_of_digits_are_refused_without_reading_them_all() -> None:
    with pytest.raises(ValidationFailed, match="magnitude larger"):
        numbers.normalise("1" * 3_000_000)
    with pytest.raises(ValidationFailed, match="more than 38"):
        numbers.normalise("1." + "1" * 3_000_000)
    assert numbers.normalise("0." + "0" * 3_000_000) == "0"
    assert numbers.normalise("7." + "0" * 3_000_000) == "7"
