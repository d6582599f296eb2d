"""Identities that are shorter than the table's key: items are found by them, and exist once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stator import Count, Delete, Design, Entity, Query, find, ident, read, ttl
from stator.errors import ItemExists, ItemNotFound, RequestRefused
from stator.patterns import UniqueAudit
from stator.tables.db import Db
from tests.targets import Target

T0 = datetime(2026, 1, 1, tzinfo=UTC)


class Order(Entity, key=("SHOP#{shop}", "AT#{at}#{region}#{order_id}")):
    """Its key holds more than its identity, and the index by region projects keys only."""

    region: str = ident()
    order_id: str = ident()
    shop: str
    at: datetime = T0
    status: str = "open"
    note: str = ""


class Visit(Entity, key=("PAGE#{page}", "VISIT#{visit_id}")):
    """A second entity in the same table, found through the same index."""

    visit_id: str = ident()
    page: str
    region: str
    ends: datetime | None = ttl(hours=1, default=None)


@read(rps=100, returns=1000)
def orders_in(region: str) -> Count[Order]:
    return find(Order).where(Order.region == region).count()


@read(rps=100, returns=10)
def orders_of(status: str, shop: str) -> Query[Order]:
    return find(Order).where(Order.status == status, Order.shop == shop)


@read(rps=100, returns=1000)
def visit_by_id(visit_id: str) -> Query[Visit]:
    return find(Visit).where(Visit.visit_id == visit_id)


def design() -> Design:
    return Design(
        "identities",
        [Order, Visit],
        [orders_in, orders_of, visit_by_id],
        volumes={Order: 1_000_000, Visit: 1_000_000},
        sizes={Order: 3000},
    )


def order(number: int, **more: Any) -> Order:
    return Order(**({"region": "eu", "order_id": f"o{number}", "shop": f"s{number}"} | more))


@pytest.fixture
def db(target: Target) -> Db:
    return target.connect(design())


def guards(db: Db) -> list[str]:
    found = db.call("Scan", {"TableName": db.context.schema.place.table})["Items"]
    return sorted(item["PK"]["S"] for item in found)


# -- found by the identity


def test_the_index_by_part_of_the_identity_projects_keys_only(db: Db) -> None:
    of = db.context.schema.of(Order)
    [index] = [each for each in of.table.indexes if "orders_in" in each.patterns]
    assert (index.projection, of.plan.is_guarded) == ("KEYS_ONLY", True)


def test_an_item_is_found_through_an_index_that_does_not_project_its_identity(db: Db) -> None:
    for number in range(3):
        db.create(order(number))
    assert db.get(Order, region="eu", order_id="o1") == order(1)
    assert db.get(Order, region="eu", order_id="o9") is None
    found = db.get_many(Order, [{"region": "eu", "order_id": f"o{n}"} for n in (2, 9, 0)])
    assert found == [order(2), None, order(0)]


def test_such_an_item_is_updated_and_deleted(db: Db) -> None:
    for number in range(2):
        db.create(order(number))
    with db.update(Order, region="eu", order_id="o1") as changed:
        changed.note = "new"
    assert db.get(Order, region="eu", order_id="o1") == order(1, note="new")
    db.delete(Order, region="eu", order_id="o1", must_exist=True)
    with pytest.raises(ItemNotFound):
        db.delete(Order, region="eu", order_id="o1", must_exist=True)
    assert db.get(Order, region="eu", order_id="o0") == order(0)


def test_an_update_knows_the_fields_of_the_key_that_it_looked_up(db: Db) -> None:
    """The index of orders_of is keyed by shop and status, and the base key holds the shop."""
    db.create(order(1))
    with db.update(Order, region="eu", order_id="o1") as changed:
        changed.status = "done"
    assert list(db.fetch(orders_of("done", "s1"))) == [order(1, status="done")]
    assert list(db.fetch(orders_of("open", "s1"))) == []


# -- exists once


def test_an_identity_is_created_once_whatever_else_its_key_holds(db: Db) -> None:
    db.create(order(1))
    for other in (order(1, shop="elsewhere"), order(1, at=T0 + timedelta(hours=1))):
        with pytest.raises(ItemExists, match=r"Order\(region='eu', order_id='o1'\) exists already"):
            db.create(other)
    with pytest.raises(ItemExists):
        db.create(order(1))
    assert db.count(orders_in("eu")) == 1


def test_put_and_upsert_do_not_store_an_identity_under_a_second_key(db: Db) -> None:
    db.put(order(1))
    db.put(order(1, note="again"))
    db.upsert(order(1, note="third"))
    for write in (db.put, db.upsert):
        with pytest.raises(ItemExists, match="under another key"):
            write(order(1, shop="elsewhere"))
    assert db.get(Order, region="eu", order_id="o1") == order(1, note="third")


def test_an_update_that_creates_reserves_the_identity(db: Db) -> None:
    for note in ("first", "second"):
        with db.update(Order, or_create=True, region="eu", order_id="o1", shop="s1", at=T0) as one:
            one.note, one.status = note, "open"
    assert db.get(Order, region="eu", order_id="o1") == order(1, note="second")
    with pytest.raises(ItemExists):
        db.create(order(1, shop="elsewhere"))


def test_a_deleted_identity_is_free_again(db: Db) -> None:
    db.create(order(1))
    db.delete(Order, region="eu", order_id="o1")
    assert guards(db) == []
    db.create(order(1, shop="elsewhere"))
    assert guards(db) == ["UNIQUE#Order#ident()#eu#o1"]


def test_an_item_moves_to_another_key_in_one_transaction(db: Db) -> None:
    db.create(order(1))
    with db.transaction() as tx:
        tx.delete(order(1))
        tx.create(order(1, shop="elsewhere"))
    assert db.get(Order, region="eu", order_id="o1") == order(1, shop="elsewhere")
    with pytest.raises(ItemExists):
        db.create(order(1))


def test_two_creates_of_one_identity_in_a_transaction_are_refused(db: Db) -> None:
    with pytest.raises(RequestRefused, match="identity"), db.transaction() as tx:
        tx.create(order(1))
        tx.create(order(1, shop="elsewhere"))
    assert db.count(orders_in("eu")) == 0


def test_batches_name_the_second_item_of_an_identity(db: Db) -> None:
    result = db.write_many([order(1), order(2), order(1, shop="elsewhere")], on_error="collect")
    assert (result.written, [type(each.error) for each in result.failures]) == (2, [ItemExists])
    assert db.write_many([Delete(Order, region="eu", order_id="o1")]).ok
    assert db.write_many([order(1, shop="elsewhere")]).ok


def test_an_expired_item_frees_its_identity(db: Db) -> None:
    past = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    db.create(Visit(visit_id="v1", page="a", region="eu", ends=past))
    db.create(Visit(visit_id="v1", page="b", region="eu"))
    with pytest.raises(ItemExists):
        db.create(Visit(visit_id="v1", page="c", region="eu"))


def test_a_changed_expiry_moves_the_guard_with_the_item(db: Db) -> None:
    visit = db.create(Visit(visit_id="v1", page="a", region="eu"))
    past = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    with db.update(visit) as changed:
        changed.ends = past
    db.create(Visit(visit_id="v1", page="b", region="eu"))


def test_an_identity_that_is_the_whole_key_has_no_guard(target: Target) -> None:
    class Plain(Entity):
        plain_id: str = ident()

    @read(rps=1)
    def plain_by_id(plain_id: str) -> Query[Plain]:
        return find(Plain).where(Plain.plain_id == plain_id)

    db = target.connect(Design("plain", [Plain], [plain_by_id]))
    db.create(Plain(plain_id="p"))
    assert not db.context.schema.of(Plain).is_written_alone
    assert guards(db) == []


def test_the_audit_finds_identities_without_a_guard(db: Db) -> None:
    of = db.context.schema.of(Order)
    for one in (order(1), order(2)):
        db.call("PutItem", {"TableName": of.table.name, "Item": of.item(one)})
    db.create(order(3))
    audit = UniqueAudit(db, Order)
    assert [finding.kind for finding in audit.audit().findings] == ["missing", "missing"]
    assert len(audit.repair().repaired) == 2
    with pytest.raises(ItemExists):
        db.create(order(2, shop="elsewhere"))
    db.call("PutItem", {"TableName": of.table.name, "Item": of.item(order(3, shop="x"))})
    assert [finding.kind for finding in audit.audit().findings] == ["duplicate"]
