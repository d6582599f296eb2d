"""Facts about values: what they say, and which of them are refused."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, Literal, cast

import pytest

from stator import Design, Entity, attr, distinct, ident, largest, share, unique
from stator.design.value_facts import Fact
from stator.errors import DesignError


class State(Enum):
    OPEN = "open"
    DONE = "done"


class Ride(Entity):
    ride_id: str = ident()
    plate: str = unique()
    driver_id: str
    day: str
    state: State
    paid: bool
    size: Literal["s", "m", "l"] | None


class Other(Entity):
    other_id: str = ident()


def facts(*declared: Fact) -> Any:
    return Design("rides", [Ride], volumes={Ride: 1_000}, facts=declared).facts


def test_facts_are_found_by_entity_and_fields() -> None:
    found = facts(
        distinct(Ride.driver_id, values=50),
        distinct(Ride.driver_id, Ride.day, values=900),
        share(Ride.state == State.OPEN, 0.001),
        share(attr(Ride.day).is_in(["1", "2"]) & (Ride.paid == True), 0.25),  # noqa: E712
        largest(Ride.driver_id, 0.3),
    )
    assert found.distinct(Ride, ["driver_id"]) == 50
    assert found.distinct(Ride, ["day", "driver_id"]) == 900
    assert found.distinct(Ride, ["day"]) is None
    assert found.share(Ride, attr(Ride.state).is_in([State.OPEN])) is None
    assert found.share(Ride, Ride.state == State.OPEN) == 0.001
    swapped: Any = (Ride.paid == True) & attr(Ride.day).is_in(["1", "2"])  # noqa: E712
    assert found.share(Ride, swapped) == 0.25
    assert found.largest(Ride, "driver_id") == 0.3
    assert found.largest(Ride, "state") == 0.001
    assert found.largest(Ride, "day") is None


def test_a_fact_says_where_it_was_declared() -> None:
    found = distinct(Ride.day, values=7)
    assert "test_value_facts.py:" in found.where
    assert str(found) == "distinct(Ride.day, values=7)"
    assert str(share(Ride.state == State.OPEN, 0.5)) == "share(Ride.state == 'open', 0.5)"
    assert str(largest(Ride.day, 0.5)) == "largest(Ride.day, 0.5)"


@pytest.mark.parametrize("number", [-1, math.nan, math.inf, "many", None, True])
def test_numbers_of_facts_are_quantities(number: Any) -> None:
    with pytest.raises(DesignError, match="not a quantity"):
        distinct(Ride.day, values=number)
    with pytest.raises(DesignError, match="not a quantity"):
        share(Ride.day == "1", number)
    with pytest.raises(DesignError, match="not a quantity"):
        largest(Ride.day, number)


def test_a_fact_names_fields_of_one_entity() -> None:
    with pytest.raises(DesignError, match=r"test_value_facts.*fields of one entity"):
        distinct(Ride.day, Other.other_id, values=5)
    with pytest.raises(DesignError, match="no field"):
        distinct(values=5)
    with pytest.raises(DesignError, match="names a field twice"):
        distinct(Ride.day, Ride.day, values=5)
    with pytest.raises(DesignError, match="is not a field"):
        distinct("day", values=5)
    with pytest.raises(DesignError, match="is not a field"):
        largest("day", 0.5)
    with pytest.raises(DesignError, match="constant values"):
        share(Ride.day == Ride.driver_id, 0.5)
    with pytest.raises(DesignError, match="is not a condition"):
        share(True, 0.5)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (lambda: [distinct(Other.other_id, values=5)], "Other, which is not in the design"),
        (lambda: ["many"], "not a fact"),
        (lambda: [distinct(Ride.day, values=0.5)], "values must be 1 or more"),
        (lambda: [distinct(Ride.day, values=2_000)], "more values than Ride has items"),
        (lambda: [distinct(Ride.plate, values=10)], "unique to each of 1,000"),
        (lambda: [distinct(Ride.ride_id, values=10)], "unique to each of 1,000"),
        (lambda: [distinct(Ride.state, values=3)], "the type of Ride.state has 2 values"),
        (lambda: [distinct(Ride.size, values=4)], "the type of Ride.size has 3 values"),
        (lambda: [distinct(Ride.paid, values=3)], "the type of Ride.paid has 2 values"),
        (
            lambda: [distinct(Ride.day, values=9), distinct(Ride.day, Ride.paid, values=5)],
            r"fewer values than distinct\(Ride.day, values=9\)",
        ),
        (lambda: [distinct(Ride.state, Ride.paid, values=5)], "combinations, which is 4"),
        (lambda: [distinct(Ride.day, values=5), distinct(Ride.day, values=6)], "contradicts"),
        (lambda: [share(Ride.state == State.OPEN, 1.5)], r"above 1.*\n?.*"),
        (lambda: [share(Ride.day == "1", 0.6), share(Ride.day == "2", 0.6)], "add up to 1.2"),
        (lambda: [share(Ride.day == "1", 0.6), largest(Ride.day, 0.5)], "contradicts largest"),
        (lambda: [largest(Ride.state, 0.4)], "less than an equal share of 2 values"),
        (lambda: [largest(Ride.day, 0)], "must be above 0"),
        (lambda: [share(cast("Any", Ride.size) == "xl", 0.4)], "Ride.size cannot be 'xl'"),
    ],
)
def test_a_fact_that_cannot_be_true_is_refused(declared: Any, message: str) -> None:
    with pytest.raises(DesignError, match=message):
        facts(*declared())


def test_a_repeated_fact_is_one_fact() -> None:
    found = facts(distinct(Ride.day, values=5), distinct(Ride.day, values=5))
    assert found.distinct(Ride, ["day"]) == 5


def test_facts_are_a_list() -> None:
    with pytest.raises(DesignError, match="facts must be a list, not DistinctFact"):
        Design("rides", [Ride], facts=distinct(Ride.day, values=5))  # type: ignore[arg-type]
