"""Lists that need few fields: an index holds just those, and serves them alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stator import (
    Design,
    Engine,
    Entity,
    Only,
    Query,
    connect,
    find,
    ident,
    per,
    read,
    soft_delete,
    ttl,
)
from stator.design.plan.lock_file import read_lock, write_lock
from stator.tables.db import Db


class Customer(Entity):
    customer_id: str = ident()


class Order(Entity):
    order_id: str = ident()
    customer_id: str
    placed_at: datetime
    title: str
    body: str
    expires_at: datetime | None = ttl(default=None)
    deleted_at: datetime | None = soft_delete()


@read(rps=200, returns=20)
def titles(customer_id: str) -> Only[tuple[str, str]]:
    return (
        find(Order)
        .where(Order.customer_id == customer_id)
        .newest_first(Order.placed_at)
        .limit(20)
        .only(Order.order_id, Order.title)
    )


@read(rps=200, returns=20)
def whole(customer_id: str) -> Query[Order]:
    return (
        find(Order).where(Order.customer_id == customer_id).newest_first(Order.placed_at).limit(20)
    )


def design(*patterns: Any) -> Design:
    return Design(
        "orders",
        [Customer, Order],
        patterns,
        volumes={Customer: 10_000, Order: per(Customer, 50)},
        writes={Order: 20},
        sizes={Order: 3_000},
    )


def test_the_index_holds_the_fields_of_the_list_and_no_more() -> None:
    plan = design(titles).plan()
    [index] = plan.tables[0].indexes
    assert index.projection == "INCLUDE"
    assert {"order_id", "title"} <= {*index.included, *index.partition, *index.sort}
    assert "body" not in index.included
    [step] = plan.pattern("titles").steps
    assert not step.fetch
    assert plan.dollars_per_month < design(whole).plan().dollars_per_month * 0.7


def filled(db: Db) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    db.write_many(
        [
            Order(
                order_id=f"o{number:02}",
                customer_id="c1",
                placed_at=at + timedelta(minutes=number),
                title=f"order {number}",
                body="x" * 500,
                expires_at=at if number == 3 else None,
            )
            for number in range(8)
        ]
    )
    db.delete(Order, order_id="o05")


def test_the_list_is_read_from_the_index_alone() -> None:
    with Engine.open() as engine, connect(design(titles), engine, measure=True) as db:
        filled(db)
        expected = [(f"o{n:02}", f"order {n}") for n in (7, 6, 4, 2, 1, 0)]
        assert db.all(titles("c1")) == expected
        page = db.page(titles("c1"), limit=2)
        assert page.items == expected[:2]
        assert db.page(titles("c1"), limit=2, cursor=page.cursor).items == expected[2:4]


def test_a_lock_keeps_the_index(tmp_path: Any) -> None:
    first = design(titles).plan()
    path = tmp_path / "orders.lock.json"
    write_lock(path, first)
    again = design(titles).plan(read_lock(path))
    assert again.tables == first.tables


@pytest.mark.parametrize("layout", ["single-table", "table-per-entity"])
def test_two_lists_of_one_path_share_an_index_or_pay_for_two(layout: Any) -> None:
    @read(rps=50, returns=20)
    def bodies(customer_id: str) -> Only[tuple[str]]:
        return find(Order).where(Order.customer_id == customer_id).only(Order.body)

    planned = Design(
        "orders",
        [Customer, Order],
        [titles, bodies],
        volumes={Customer: 10_000, Order: per(Customer, 50)},
        sizes={Order: 3_000},
        layout=layout,
    )
    with Engine.open() as engine, connect(planned, engine) as db:
        filled(db)
        assert len(db.all(titles("c1"))) == 6
        assert {len(body) for (body,) in db.fetch(bodies("c1"))} == {500}
