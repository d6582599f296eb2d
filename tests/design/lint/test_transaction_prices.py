"""Findings about money count a write in a transaction twice, as the bill does."""

from __future__ import annotations

import pytest

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.design import Design
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.lint.finding import Finding
from stator.design.patterns.write_pattern import creates, updates, write
from stator.design.unit_prices import WRITE_UNIT_DOLLARS


class Issue(Entity):
    issue_id: str = ident()
    title: str


class Comment(Entity):
    comment_id: str = ident()
    text: str


@write(rps=30)
def open_issue() -> object:
    return creates(Issue)


@write(rps=120)
def comment() -> object:
    return creates(Comment), updates(Issue.title)


def found(code: str, item_bytes: int) -> Finding:
    design = Design(
        "code",
        [Issue, Comment],
        [open_issue, comment],
        volumes={Issue: 1_000_000, Comment: 1_000_000},
        sizes={Issue: item_bytes, Comment: 300},
    )
    [one] = [
        each for each in design.check().findings if (each.code, each.subject) == (code, "Issue")
    ]
    return one


def monthly(units: float) -> float:
    return units * MONTH_SECONDS * WRITE_UNIT_DOLLARS


def test_the_price_of_large_items_counts_transactions_twice() -> None:
    """Items of 4 units: 30 x 4 alone, and 120 x 4 x 2 in transactions."""
    finding = found("ST201", 3_060)
    assert finding.dollars == pytest.approx(monthly((30 + 120 * 2) * 3))


def test_the_price_of_one_more_unit_counts_transactions_twice() -> None:
    finding = found("ST208", 2_000)
    assert finding.dollars == pytest.approx(monthly(30 + 120 * 2))
