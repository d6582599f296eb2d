"""Quantities in words: exact enough, without exponents, and never "$0.00" for a small sum."""

from __future__ import annotations

from decimal import Decimal

import pytest

from stator.model.quantities import (
    about_dollars,
    amount,
    cents,
    dollars,
    duration,
    plural,
    signed_dollars,
    size,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (0.0625, "0.0625"), (1.5, "1.5"), (12.345, "12.3"), (100.4, "100"),
     (3e7, "30,000,000")],
)  # fmt: skip
def test_an_amount_has_three_significant_digits(number: float, text: str) -> None:
    assert amount(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(12.345, "12.35"), (999.94, "999.9"), (12345.6, "12,346")]
)
def test_an_amount_can_have_more_digits(number: float, text: str) -> None:
    assert amount(number, digits=4) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1024, "1 KB"),
        (1536, "1.5 KB"),
        (400 * 1024, "400 KB"),
        (1023.5 * 1024, "1,023.5 KB"),
        (12.34 * 1024**2, "12.3 MB"),
        (5 * 1024**3, "5 GB"),
        (3000 * 1024**4, "3,000 TB"),
    ],
)
def test_a_size_is_in_the_largest_unit_it_fills(size_bytes: float, text: str) -> None:
    assert size(size_bytes) == text


def test_a_small_sum_is_not_shown_as_nothing() -> None:
    assert dollars(0) == "$0.00"
    assert dollars(0.004) == dollars(Decimal("0.004")) == "< $0.01"
    assert dollars(Decimal("1234.567")) == "$1,234.57"


def test_an_estimate_from_a_thousand_dollars_on_has_no_cents() -> None:
    assert about_dollars(999.99) == "$999.99"
    assert about_dollars(1234.56) == "$1,235"


def test_a_difference_has_a_sign() -> None:
    assert signed_dollars(1.2) == "+$1.20"
    assert signed_dollars(Decimal(-3)) == "-$3.00"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(4.21, "4.2 s"), (59.7, "1 min 0 s"), (192, "3 min 12 s"), (7500, "2 h 5 min")],
)
def test_a_duration_is_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "word", "text"),
    [
        (1, "entity", "1 entity"),
        (3, "entity", "3 entities"),
        (0, "index", "0 indexes"),
        (2, "day", "2 days"),
        (1500, "row", "1,500 rows"),
    ],
)
def test_a_count_agrees_with_its_noun(number: int, word: str, text: str) -> None:
    assert plural(number, word) == text


@pytest.mark.parametrize("value", [3.285, Decimal("3.285"), 3.2850000000001, Decimal("3.2850")])
def test_half_a_cent_is_rounded_up_for_floats_and_decimals_alike(value: float | Decimal) -> None:
    assert (cents(value), dollars(value)) == ("3.29", "$3.29")
