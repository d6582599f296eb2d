"""Key text sorts as the values do, whatever they are."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.design.entities.shapes import shape_of
from stator.design.plan import key_text as keys
from stator.errors import DesignError

_ZONES = st.sampled_from(
    [UTC, timezone(timedelta(hours=9)), timezone(-timedelta(hours=5, minutes=30))]
)
_TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
_DECIMALS = st.decimals(allow_nan=False, allow_infinity=False)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": st.one_of(_TEXT, st.text(alphabet="a#$% !\x00\x7f", max_size=6)),
    "int": st.one_of(st.integers(), st.integers(-200, 200), st.integers(min_value=10**40)),
    "decimal": st.one_of(_DECIMALS, st.decimals(-20, 20, places=2), st.integers().map(Decimal)),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "bytes": st.binary(max_size=8),
    "datetime": st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=_ZONES),
    "date": st.dates(),
    "time": st.times(),
    "uuid": st.uuids(),
}
TURNABLE = sorted(VALUES.keys() - {"str", "bytes", "bool"})


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, Any, Any]:
    name = draw(st.sampled_from(sorted(VALUES)))
    first = draw(VALUES[name])
    second = draw(st.one_of(VALUES[name], st.just(first)))
    return name, first, second


@given(pairs())
def test_text_sorts_as_the_values_and_differs_when_they_differ(pair: tuple[str, Any, Any]) -> None:
    name, first, second = pair
    left, right = keys.encode(name, first), keys.encode(name, second)
    assert (left.encode() < right.encode(), left == right) == (first < second, first == second)
    assert all(character > keys.SEPARATOR for character in left)


@given(pairs())
def test_values_come_back(pair: tuple[str, Any, Any]) -> None:
    name, value, _ = pair
    assert keys.decode(name, keys.encode(name, value)) == value


@given(st.data(), st.sampled_from(TURNABLE))
def test_inverted_text_sorts_the_other_way_round(data: st.DataObject, name: str) -> None:
    first, second = data.draw(VALUES[name]), data.draw(VALUES[name])
    left, right = keys.encode(name, first, inverted=True), keys.encode(name, second, inverted=True)
    assert (left < right, left == right) == (first > second, first == second)
    assert keys.decode(name, left, inverted=True) == first


@given(st.data(), st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
def test_joined_values_sort_as_tuples(data: st.DataObject, names: list[str]) -> None:
    first = tuple(data.draw(VALUES[name]) for name in names)
    second = tuple(
        data.draw(st.one_of(VALUES[name], st.just(value))) for name, value in zip(names, first)
    )
    left, right = keys.join(names, first), keys.join(names, second)
    assert (left.encode() < right.encode(), left == right) == (first < second, first == second)
    assert keys.split(names, left) == first


@given(VALUES["str"], VALUES["str"])
def test_a_prefix_of_the_value_is_a_prefix_of_the_text(value: str, prefix: str) -> None:
    assert keys.encode("str", value).startswith(keys.encode("str", prefix)) == value.startswith(
        prefix
    )
    assert keys.encode("str", prefix + value).startswith(keys.encode("str", prefix))


@given(pairs(), VALUES["str"])
def test_bounds_hold_exactly_the_keys_with_that_part(pair: tuple[str, Any, Any], tail: str) -> None:
    name, bound, value = pair
    low = keys.encode(name, bound)
    for key in (
        keys.encode(name, value),
        keys.encode(name, value) + keys.SEPARATOR + keys.escape(tail),
    ):
        assert (low.encode() <= key.encode() <= (low + keys.AFTER).encode()) == (value == bound)
        assert (key.encode() > (low + keys.AFTER).encode()) == (value > bound)


class Level(Enum):
    LOW = 1
    HIGH = 20


def test_examples_from_the_module() -> None:
    assert keys.encode("str", "a b#") == "a$20b$23"
    assert [keys.encode("int", n) for n in (0, 42, -42, 10**10)] == [
        "a10",
        "a242",
        "Z757",
        "b1110000000000",
    ]
    assert keys.encode("decimal", Decimal("1.50")) == keys.encode("float", 1.5) == "pa1115"
    moment = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert keys.encode("datetime", moment) == "2026-03-01T10:00:00.000000Z"
    assert keys.encode("datetime", moment, inverted=True) == "7973-96-98T89:99:99.999999Z"
    assert keys.encode("date", date(2026, 3, 1)) == "2026-03-01"
    assert keys.encode("int", Level.HIGH) == "a220"
    assert keys.encode("bytes", b"\x01\xff") == "01ff"


def test_every_scalar_has_an_encoding_and_containers_have_none() -> None:
    named = {
        shape: (found.name, found.native)
        for shape in (
            str,
            int,
            float,
            Decimal,
            bool,
            bytes,
            datetime,
            date,
            time,
            UUID,
            Level,
            Literal["a"],
            str | None,
        )
        if (found := keys.encoding_of(shape_of(shape, "x")))
    }
    assert (
        named[Level] == ("int", "N")
        and named[Literal["a"]] == ("str", "S")
        and named[str | None] == ("str", "S")
    )
    assert named[bool] == ("bool", None) and named[time] == ("time", None)
    assert len(named) == 13
    assert keys.encoding_of(shape_of(list[str], "x")) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("str", 5),
        ("int", "5"),
        ("int", True),
        ("decimal", Decimal("NaN")),
        ("float", float("inf")),
        ("datetime", datetime(2026, 1, 1)),
        ("date", datetime(2026, 1, 1, tzinfo=UTC)),
        ("time", time(1, tzinfo=UTC)),
        ("uuid", "x"),
        ("bool", 1),
        ("bytes", "x"),
    ],
)
def test_values_of_other_types_are_refused(name: str, value: Any) -> None:
    with pytest.raises(DesignError, match="a key needs"):
        keys.encode(name, value)


def test_text_of_no_fixed_width_cannot_be_inverted() -> None:
    with pytest.raises(DesignError, match="inverted"):
        keys.encode("str", "a", inverted=True)
    with pytest.raises(DesignError, match="inverted"):
        keys.decode("bytes", "00", inverted=True)
