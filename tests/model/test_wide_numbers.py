"""Sums in pieces: whatever the number, the pieces are Numbers, and add up to it."""

from __future__ import annotations

from decimal import Decimal, localcontext

from hypothesis import given
from hypothesis import strategies as st

from stator.model.values import Item
from stator.model.wide_numbers import is_wide, pieces, wide_attributes, wide_number

NUMBERS = st.builds(
    lambda sign, digits, exponent: Decimal((sign, tuple(digits), exponent)),
    st.integers(0, 1),
    st.lists(st.integers(0, 9), min_size=1, max_size=38),
    st.integers(-120, 80),
)


@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_the_pieces_of_a_sum_are_numbers_and_add_up_to_it(numbers: list[Decimal]) -> None:
    with localcontext(prec=300):
        total = sum(numbers, Decimal(0))
        found = pieces(total)
        assert sum(found, Decimal(0)) == total
    for piece in found:
        normal = piece.normalize()
        assert len(normal.as_tuple().digits) <= 38
        assert not piece or -130 <= normal.adjusted() <= 125


@given(NUMBERS, NUMBERS)
def test_what_is_stored_in_pieces_is_read_whole(one: Decimal, other: Decimal) -> None:
    with localcontext(prec=300):
        total = one + other
    item: Item = {"other": {"N": "1"}, **wide_attributes("total", total)}
    assert wide_number(item, "total") == total
    assert is_wide(total) == (len(item) > 2)


def test_a_sum_past_the_largest_number_is_in_pieces_too() -> None:
    assert is_wide(Decimal("1e126")) and sum(pieces(Decimal("2.5e126"))) == Decimal("2.5e126")
    assert not is_wide(0) and pieces(Decimal(0)) == [0]
