"""A write is billed for the size of the item in its state, not for the average size."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import pytest

from stator.design.design import Design
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import creates, deletes, updates, write
from stator.design.value_facts import distinct, share
from stator.verification.verifier import verify


class Review(Entity):
    review_id: str = ident()
    product: str
    user: str
    at: datetime
    stars: int
    state: Literal["pending", "published", "rejected"] = "pending"


@read(rps=600, returns=10)
def newest(product: str) -> Query[Review]:
    shown = find(Review).where(Review.product == product, Review.state == "published")
    return shown.newest_first(Review.at).limit(10)


@read(rps=600, returns=8)
def with_stars(product: str, stars: int) -> Query[Review]:
    shown = find(Review).where(
        Review.product == product, Review.state == "published", Review.stars == stars
    )
    return shown.newest_first(Review.at).limit(10)


@read(rps=1, returns=50)
def to_moderate() -> Query[Review]:
    return find(Review).where(Review.state == "pending").oldest_first(Review.at).limit(50)


@write(rps=15)
def submit() -> object:
    return creates(Review)


@write(rps=14)
def publish() -> object:
    return updates(
        Review.state, before=Review.state == "pending", after=Review.state == "published"
    )


@write(rps=1)
def take_back() -> object:
    return deletes(Review, before=Review.state == "pending")


def reviews(item_bytes: int) -> Design:
    return Design(
        "reviews",
        [Review],
        [newest, with_stars, to_moderate, submit, publish, take_back],
        volumes={Review: 120_000},
        sizes={Review: item_bytes},
        facts=[
            share(Review.state == "pending", 0.002),
            share(Review.state == "published", 0.95),
            distinct(Review.product, values=3_000),
            distinct(Review.stars, values=5),
        ],
    )


@pytest.mark.parametrize("item_bytes", [700, 820, 850, 900])
def test_units_of_writes_are_those_of_the_state(item_bytes: int) -> None:
    """With the keys of all states, a new review had 1.05 KB and cost 5 units; it costs 3."""
    report = verify(reviews(item_bytes))
    writes = [each for each in report.rows if each.kind == "write"]
    assert len(writes) == 3
    for row in writes:
        assert row.estimated_units == pytest.approx(row.measured_units, rel=0.02), row.pattern


def test_an_entry_of_one_state_has_no_keys_of_another() -> None:
    """The list of pending reviews reads entries without the keys of published ones."""
    report = verify(reviews(820))
    [row] = [each for each in report.rows if each.pattern == "to_moderate"]
    assert row.estimated_units == pytest.approx(row.measured_units, rel=0.02)
