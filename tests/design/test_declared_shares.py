"""A share of one value also decides the other values: x != c, is_in(), and the rest of an Enum."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from stator.design.design import Design
from stator.design.entities.conditions import attr
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.planner.declared_shares import condition_share
from stator.design.planner.estimates import Estimates
from stator.design.value_facts import Fact, distinct, share
from stator.verification import verify


class Visit(Entity):
    visit_id: str = ident()
    doctor: str
    city: str
    state: Literal["booked", "arrived", "done", "cancelled"] = "booked"
    paid: bool = False
    kind: Literal["a", "b"] | None = None


FACTS: list[Fact] = [
    distinct(Visit.doctor, values=1_000),
    share(Visit.state == "cancelled", 0.08),
    share(Visit.state == "done", 0.8),
    share(Visit.paid == True, 0.9),  # noqa: E712
    share(Visit.city == "Rome", 0.3),
    share(Visit.kind == "a", 0.2),
    share(attr(Visit.kind).exists(), 0.5),
]


def design(*patterns: Any) -> Design:
    return Design(
        "visits", [Visit], patterns, volumes={Visit: 10_000_000}, sizes={Visit: 400}, facts=FACTS
    )


@pytest.mark.parametrize(
    ("condition", "wanted", "guesses"),
    [
        (Visit.state != "cancelled", 0.92, 0),
        (~(Visit.state == "cancelled"), 0.92, 0),
        (attr(Visit.state).is_in(["cancelled", "done"]), 0.88, 0),
        (Visit.state == "booked", 0.06, 1),  # half of the rest
        (Visit.state != "booked", 0.94, 1),
        (Visit.paid == False, 0.1, 0),  # noqa: E712 - the only other value
        (Visit.paid != True, 0.1, 0),  # noqa: E712
        (Visit.city != "Rome", 0.7, 0),
        (Visit.city == "Oslo", None, 0),  # there may be any number of other cities
        (attr(Visit.city).is_in(["Rome", "Oslo"]), None, 0),
        (Visit.kind == "b", 0.3, 0),  # half of the items have none
    ],
)
def test_shares_follow_from_each_other(condition: Any, wanted: float | None, guesses: int) -> None:
    found, guessed = condition_share(Visit, condition, Estimates(design()))
    assert found == (None if wanted is None else pytest.approx(wanted))
    assert len(guessed) == guesses


@read(rps=10)
def of_doctor(doctor: str) -> Query[Visit]:
    return find(Visit).where(Visit.doctor == doctor).filter(Visit.state != "booked")


@read(rps=10)
def booked_of(doctor: str) -> Query[Visit]:
    return find(Visit).where(Visit.doctor == doctor, Visit.state == "booked")


@read(rps=10)
def unpaid_of(doctor: str) -> Query[Visit]:
    return find(Visit).where(Visit.doctor == doctor, Visit.paid == False)  # noqa: E712


def test_the_plan_lists_what_it_assumes_of_the_rest_and_measures_the_same() -> None:
    found = design(of_doctor, booked_of, unpaid_of)
    plan = found.plan()
    for name in ("of_doctor", "booked_of"):
        [guess] = [each for each in plan.pattern(name).guesses if "equal part" in each]
        assert "share(Visit.state == 'booked', ...)" in guess
    assert plan.pattern("unpaid_of").guesses == ()
    assert verify(found, most_items=30_000).ok
