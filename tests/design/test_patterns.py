"""Access patterns: called they ask, traced they say what they always ask."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from stator.design.design import Design, per
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.param import Param
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Count, Query, find, together
from stator.design.patterns.write_pattern import creates, deletes, updates, write
from stator.errors import DesignError

from .shop import (
    Order,
    Status,
    User,
    orders_of_user,
    pending_count,
    place_order,
    profile_page,
    shop,
    user_by_id,
)


def test_a_trace_has_parameters_in_place_of_values() -> None:
    ask = orders_of_user.trace()
    assert ask.targets == (Order,)
    assert [(test.field.name, test.operator) for test in ask.tests] == [
        ("user_id", "="),
        ("placed_at", ">="),
    ]
    assert all(isinstance(test.values[0], Param) for test in ask.tests)
    assert (ask.descending, ask.limit, ask.order is not None) == (True, 25, True)
    assert orders_of_user.trace() is ask


def test_a_call_has_the_values_and_knows_its_pattern() -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    query = orders_of_user("u1", since)
    assert query.arguments == {"user_id": "u1", "since": since}
    assert query.pattern is orders_of_user
    assert orders_of_user.parameters == {"user_id": str, "since": datetime}


def test_constants_counts_and_bundles() -> None:
    ask = pending_count.trace()
    assert (ask.tests[0].values, ask.is_count) == ((Status.PENDING,), True)
    assert isinstance(pending_count(), Count)
    assert profile_page.trace().targets == (User, Order)
    assert user_by_id.traffic.rps == 200


def test_what_keys_cannot_serve_becomes_a_filter() -> None:
    @read()
    def odd(user_id: str) -> Query[Order]:
        return (
            find(Order)
            .where((Order.user_id == user_id) & (Order.total != 0), Order.channel == "web")
            .filter(Order.total > 1)
        )

    ask = odd.trace()
    assert [test.field.name for test in ask.tests] == ["user_id", "channel"]
    assert len(ask.filters) == 2


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        (
            lambda flag: find(Order).where(Order.user_id == ("a" if flag else "b")),
            "cannot depend on the value of 'flag'",
        ),
        (
            lambda name: find(Order).where(Order.user_id == name.upper()),
            "does more with its arguments than compare them",
        ),
        (lambda name: find(Order).where(User.name == name), "User.name is not a field of Order"),
        (lambda name: name, "not a query"),
        (lambda name: find(Order).where(name == "x"), "cannot depend on the value of 'name'"),
        (lambda name: find(Order).where(name), "is not a condition"),
        (lambda name: find(Order).limit(0), "returns nothing"),
    ],
)
def test_patterns_that_are_refused_say_where_and_why(pattern: Any, problem: str) -> None:
    with pytest.raises(DesignError) as caught:
        read()(pattern).trace()
    assert problem in caught.value.message
    assert "test_patterns.py:" in caught.value.message
    assert caught.value.hint


def test_writes_say_what_they_change() -> None:
    assert [(change.kind, change.entity, change.fields) for change in place_order.trace()] == [
        ("create", Order, ()),
        ("update", User, ("name",)),
    ]
    assert shop.changes() == [(change, 30.0) for change in place_order.trace()]
    with pytest.raises(DesignError, match="fields of one entity"):
        updates(Order.status, User.name)

    @write()
    def nothing() -> object:
        return None

    with pytest.raises(DesignError, match="does not declare what it writes"):
        nothing.trace()


def test_volumes_are_worked_out() -> None:
    assert (shop.volume(User), shop.volume(Order)) == (2_000_000, 24_000_000)
    with pytest.raises(DesignError, match="the volumes depend on each other"):
        Design("x", [User, Order], volumes={User: per(Order, 1), Order: per(User, 2)})


def test_a_design_refuses_what_does_not_belong_together() -> None:
    with pytest.raises(DesignError, match="Order, which is not in the design"):
        Design("x", [User], [orders_of_user])
    with pytest.raises(DesignError, match="two patterns have the name user_by_id"):
        Design("x", [User], [user_by_id, user_by_id])
    with pytest.raises(DesignError, match="is not an access pattern"):
        Design("x", [User], [print])  # type: ignore[list-item]  # wrong on purpose
    with pytest.raises(DesignError, match="unknown layout"):
        Design("x", [User], layout="heap")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(DesignError, match="has a volume, rate or size but is not in the design"):
        Design("x", [User], volumes={Order: 1})
    with pytest.raises(DesignError, match="two or more different entities"):
        together(User, User)
    assert creates(Order, 3).times == 3
    assert deletes(Order).kind == "delete"


def test_what_a_pattern_asks_is_not_changed_by_its_caller() -> None:
    asked = user_by_id("u1")
    for change in (
        lambda: asked.limit(5),
        lambda: asked.newest_first(User.name),
        lambda: asked.count(),
    ):
        with pytest.raises(DesignError, match="cannot change its query") as caught:
            change()
        assert "limit=5" in str(caught.value.hint)


# --- within= --------------------------------------------------------------------------------------


class Reading(Entity):
    sensor: str = ident()
    at: datetime = ident()
    kind: str
    value: float


def plan_within(within: float, *, limit: int | None = None, returns: float = 100_000) -> Any:
    @read(rps=1, returns=returns, within=within)
    def readings(sensor: str) -> Query[Reading]:
        query = find(Reading).where(Reading.sensor == sensor)
        return query if limit is None else query.limit(limit)

    design = Design("fleet", [Reading], [readings], volumes={Reading: 10_000_000})
    return design.plan().pattern("readings")


def test_a_pattern_that_cannot_answer_within_its_time_is_warned_about() -> None:
    [warning] = plan_within(50).warnings
    assert "within=50 is too short: expect about" in warning
    assert "pages of 1 MB in sequence" in warning
    assert "add a limit()" in warning
    assert "within=50" in str(plan_within(50).warnings)


def test_a_pattern_that_is_fast_enough_is_not_warned_about() -> None:
    assert plan_within(50, limit=10).warnings == ()
    assert plan_within(60_000).warnings == ()


def test_no_request_is_expected_in_less_than_some_milliseconds() -> None:
    [warning] = plan_within(1, limit=10).warnings
    assert "(one request)" in warning and "cache" in warning


def test_within_does_not_change_keys_or_requests() -> None:
    fast, slow = plan_within(1), plan_within(60_000)
    assert fast.steps == slow.steps


@pytest.mark.parametrize("within", [0, -5])
def test_within_must_be_positive(within: float) -> None:
    with pytest.raises(DesignError, match="must be a positive number"):
        read(within=within)
