"""Branches that a traced pattern would silently take one way are refused with their line."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from stator.design.design import Design
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.errors import DesignError


class Order(Entity):
    order_id: str = ident()
    user_id: str
    status: str


def is_not_none(user_id: str, status: str) -> Query[Order]:
    query = find(Order).where(Order.user_id == user_id, Order.status == status)
    if status is not None:  # here
        query = query.limit(5)
    return query


def is_none_expression(user_id: str, status: str) -> Query[Order]:
    own = find(Order).where(Order.user_id == user_id, Order.status == status)
    return own if user_id is None else own.limit(3)  # here


def is_another(user_id: str, status: str) -> Query[Order]:
    same = user_id is status  # here
    return find(Order).where(Order.user_id == user_id, Order.status == status).limit(1 + same)


def is_instance(user_id: str, status: str) -> Query[Order]:
    own = find(Order).where(Order.user_id == user_id)
    if isinstance(status, list):  # here
        return own
    return own.where(Order.status == status)


def has_type(user_id: str, status: str) -> Query[Order]:
    count = 5 if type(status) is str else 6  # here
    return find(Order).where(Order.user_id == user_id, Order.status == status).limit(count)


def tries(user_id: str, status: str) -> Query[Order]:
    try:
        shown = status.lower()
    except Exception:  # here
        shown = status
    return find(Order).where(Order.user_id == user_id, Order.status == shown)


def tries_all(user_id: str, status: str) -> Query[Order]:
    try:
        shown = status.lower()
    except:  # noqa: E722 # here
        shown = status
    return find(Order).where(Order.user_id == user_id, Order.status == shown)


def matches(user_id: str, status: Any) -> Query[Order]:
    own = find(Order).where(Order.user_id == user_id, Order.status == status)
    match status:
        case [_, *_]:  # here
            return own.limit(2)
    return own


@pytest.mark.parametrize(
    "function",
    [
        is_not_none, is_none_expression, is_another, is_instance, has_type, tries, tries_all,
        matches,
    ],
)  # fmt: skip
def test_a_branch_on_an_argument_is_refused_with_its_line(
    function: Callable[..., Query[Order]],
) -> None:
    code = function.__code__
    with open(code.co_filename) as source:
        lines = source.read().splitlines()
    line = next(
        at for at, text in enumerate(lines, 1) if at > code.co_firstlineno and "# here" in text
    )
    with pytest.raises(DesignError, match=rf"test_hidden_branches.py:({line}|{line - 1}): ") as got:
        Design("shop", [Order], [read(rps=1)(function)]).plan()
    assert "one pattern for each case" in str(got.value.hint)


def test_branches_on_constants_and_comprehensions_are_accepted() -> None:
    flag: Any = None

    @read(rps=1)
    def orders(user_id: str) -> Query[Order]:
        tests = [each == user_id for each in (Order.user_id,)]
        with contextlib.nullcontext():
            found = find(Order).where(*tests)
        return found if flag is None else found.limit(1)

    assert Design("shop", [Order], [orders]).plan().pattern("orders")
