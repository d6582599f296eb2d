"""Single items: written, read, changed and deleted, the same on every target."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from stator import Design, Entity, Query, connect, find, ident, if_not_exists, read
from stator.clock import VirtualClock
from stator.design.design import Layout
from stator.errors import (
    ConditionFailed,
    DesignError,
    ItemExists,
    ItemMismatch,
    ItemNotFound,
    PathMissing,
    RequestRefused,
    TransactionFailed,
    UniqueTaken,
    UpdateRefused,
    VersionConflict,
)
from tests.targets import Target

from .shop import Address, Order, Product, Session, Status, User, order, shop, user


def test_an_item_comes_back_as_it_was_written(target: Target) -> None:
    db = target.connect(shop())
    written = order(1, tags={"a", "b"}, lines=["x"], extra={"n": 1}, note="hello")
    db.put(written)
    found = db.get(
        Order, order_id="o001", user_id="u1", placed_at=written.placed_at, consistent=True
    )
    assert found == written
    assert db.get(Order, order_id="nobody", user_id="u1", placed_at=written.placed_at) is None


def test_create_fails_where_there_is_an_item(target: Target) -> None:
    db = target.connect(shop())
    db.create(Product(sku="s1", stock=3))
    with pytest.raises(ItemExists) as caught:
        db.create(Product(sku="s1", stock=9))
    assert caught.value.entity == Product(sku="s1", stock=3)
    assert db.get(Product, sku="s1") == Product(sku="s1", stock=3)


def test_put_returns_the_entity_or_the_one_it_replaces(target: Target) -> None:
    db = target.connect(shop())
    assert db.put(Product(sku="s1", stock=1), returns="old") is None
    assert db.put(Product(sku="s1", stock=2), returns="old") == Product(sku="s1", stock=1)
    assert db.put(Product(sku="s1", stock=3)) == Product(sku="s1", stock=3)


def test_a_condition_is_kept_and_its_failure_carries_the_item(target: Target) -> None:
    db = target.connect(shop())
    db.put(Product(sku="s1", stock=1))
    db.put(Product(sku="s1", stock=2), when=Product.stock == 1)
    with pytest.raises(ConditionFailed) as caught:
        db.put(Product(sku="s1", stock=3), when=(Product.stock == 1) | (Product.price > Decimal(5)))
    assert caught.value.entity == Product(sku="s1", stock=2)
    with pytest.raises(ConditionFailed):
        db.delete(Product, sku="s1", when=Product.stock < 2)
    assert db.delete(Product, sku="s1", when=Product.stock == 2, returns="old") == Product(
        sku="s1", stock=2
    )
    assert not db.exists(Product, sku="s1")


def test_deleting_nothing_is_fine_unless_it_must_exist(target: Target) -> None:
    db = target.connect(shop())
    assert db.delete(Product, sku="none") is None
    with pytest.raises(ItemNotFound):
        db.delete(Product, sku="none", must_exist=True)


def test_many_are_read_in_the_order_asked_for(target: Target) -> None:
    db = target.connect(shop())
    db.write_many(Product(sku=f"s{n}", stock=n) for n in range(230))
    asked = [f"s{n}" for n in range(229, -1, -1)] + ["none", "s5", "s5"]
    found = db.get_many(Product, asked)
    assert [None if each is None else each.stock for each in found] == [
        *range(229, -1, -1),
        None,
        5,
        5,
    ]


# --- updates ---


def test_an_update_changes_only_what_it_says(target: Target) -> None:
    db = target.connect(shop())
    there = order(1, tags={"a", "b"}, lines=["x"], extra={"n": 1}, note="hello")
    db.put(there)
    key: dict[str, Any] = {"order_id": "o001", "user_id": "u1", "placed_at": there.placed_at}
    with db.update(Order, **key) as o:
        o.total += Decimal("2.50")
        o.tags.add("c")
        o.lines.append("y")
        o.lines.append("z")
        o.extra["m"] = 2
        o.note = None
    found = db.get(Order, **key, consistent=True)
    assert found is not None
    assert (found.total, found.tags, found.lines) == (
        Decimal("3.50"),
        {"a", "b", "c"},
        ["x", "y", "z"],
    )
    assert (found.extra, found.note, found.status) == ({"n": 1, "m": 2}, None, Status.PENDING)
    with db.update(Order, **key) as o:
        o.tags.discard("a")
        o.lines.insert(0, "w")
        o.note = if_not_exists(o.note, "new")
        del o.extra["n"]
    found = db.get(Order, **key, consistent=True)
    assert found is not None
    assert (found.tags, found.lines, found.note, found.extra) == (
        {"b", "c"},
        ["w", "x", "y", "z"],
        "new",
        {"m": 2},
    )


def test_an_update_returns_old_or_new(target: Target) -> None:
    db = target.connect(shop())
    db.put(Product(sku="s1", stock=5))
    change = db.update(Product, sku="s1", returns="new")
    with change as p:
        p.stock -= 2
        p.stock -= 1
    assert change.result == Product(sku="s1", stock=2)
    change = db.update(Product, sku="s1", returns="old")
    with change as p:
        p.stock = 9
    assert change.result == Product(sku="s1", stock=2)


def test_a_number_that_is_not_there_counts_from_its_default(target: Target) -> None:
    db = target.connect(shop())
    db.put(Product(sku="s1", stock=5))
    db.call(
        "UpdateItem",
        {
            "TableName": db.context.schema.of(Product).table.name,
            "Key": db.context.schema.of(Product).key_from({"sku": "s1"}),
            "UpdateExpression": "REMOVE stock",
        },
    )
    with db.update(Product, sku="s1") as p:
        p.stock += 3
    assert db.get(Product, sku="s1") == Product(sku="s1", stock=3)


def test_nested_fields_are_updated(target: Target) -> None:
    db = target.connect(shop())
    made = user()
    made.address = Address("Main", "Bern")
    db.create(made)
    with db.update(User, user_id="u1") as u:
        assert u.address is not None
        u.address.city = "Basel"
        u.address.floor = 3
    found = db.get(User, user_id="u1", consistent=True)
    assert found is not None and found.address == Address("Main", "Basel", 3)


def test_an_update_inside_of_what_is_not_there_names_entity_and_path(target: Target) -> None:
    db = target.connect(shop())
    db.create(user())
    db.create(order(1, extra={"a": 1}))
    with (
        pytest.raises(PathMissing, match=r"User\.address\.city is inside") as inside,
        db.update(User, user_id="u1") as u,
    ):
        assert u.address is not None
        u.address.city = "Basel"
    assert (inside.value.entity, inside.value.paths) == ("User", ("User.address.city",))
    assert "set the whole field" in str(inside.value.hint)
    with pytest.raises(PathMissing) as added, db.update(Order, order_id="o001") as o:
        o.extra["b"] += 1
    assert added.value.entity == "Order"
    assert added.value.paths == ("Order.extra.b",)
    assert "Order.extra.b does not exist, so nothing can be added to it" in added.value.message
    assert "if_not_exists" in str(added.value.hint)
    with pytest.raises(PathMissing) as several, db.update(Order, order_id="o001") as o:
        o.extra["b"] += 1
        o.extra["a"] -= 1
    assert several.value.paths == ("Order.extra.b", "Order.extra.a")
    found = db.get(Order, order_id="o001", consistent=True)
    assert found is not None and found.extra == {"a": 1}


def test_it_is_named_in_transactions_too(target: Target) -> None:
    db = target.connect(shop())
    db.create(user())
    db.create(order(1, extra={"a": 1}))
    with pytest.raises(TransactionFailed) as caught, db.transaction() as tx:
        with tx.update(Order, order_id="o001") as o:
            o.extra["b"] += 1
        tx.check(User, user_id="u1")
    [(at, _, error)] = caught.value.failures
    assert at == 0 and isinstance(error, PathMissing) and error.paths == ("Order.extra.b",)
    with (
        pytest.raises(PathMissing),
        db.update(User, user_id="u1") as u,
    ):  # with a guard, a transaction of its own
        u.email = "other@example.com"
        assert u.address is not None
        u.address.city = "Basel"


def test_a_number_inside_is_started_where_there_is_none(target: Target) -> None:
    db = target.connect(shop())
    db.create(order(1, extra={"a": 1}))
    for _ in range(2):
        with db.update(Order, order_id="o001") as o:
            o.extra["b"] = if_not_exists(o.extra["b"], 10) + 2
            o.extra["a"] = if_not_exists(o.extra["a"], 10) - 2
    found = db.get(Order, order_id="o001", consistent=True)
    assert found is not None and found.extra == {"a": -3, "b": 14}
    with (
        pytest.raises(RequestRefused, match="computed from its own value"),
        db.update(Order, order_id="o001") as o,
    ):
        o.extra["b"] = if_not_exists(o.extra["a"], 10) + 2
    with (
        pytest.raises(RequestRefused, match="is not a number"),
        db.update(Order, order_id="o001") as o,
    ):
        ten: Any = if_not_exists(o.extra["b"], 10)
        o.extra["b"] = ten + "x"


def test_an_update_of_nothing_is_an_error_unless_it_may_create(target: Target) -> None:
    db = target.connect(shop())
    with pytest.raises(ItemNotFound), db.update(Product, sku="none") as p:
        p.stock = 1
    for _ in range(2):
        with db.update(Product, sku="none", or_create=True) as p:
            p.stock += 1
    assert db.get(Product, sku="none", consistent=True) == Product(sku="none", stock=2)
    assert list(db.scan(Product, allow=True)) == [Product(sku="none", stock=2)]
    with (
        pytest.raises(UpdateRefused, match="without email"),
        db.update(User, user_id="u", or_create=True) as u,
    ):
        u.name = "x"


def test_an_exception_in_the_block_sends_nothing(target: Target) -> None:
    db = target.connect(shop())
    db.put(Product(sku="s1", stock=5))
    with pytest.raises(ZeroDivisionError), db.update(Product, sku="s1") as p:
        p.stock = 0
        raise ZeroDivisionError
    assert db.get(Product, sku="s1") == Product(sku="s1", stock=5)


def test_index_keys_follow_an_update(target: Target) -> None:
    from .shop import T0, orders_in_status

    db = target.connect(shop())
    there = order(1)
    db.put(there)
    with db.update(there) as o:
        o.status = Status.SHIPPED
    assert there.status is Status.SHIPPED
    assert [each.order_id for each in db.fetch(orders_in_status(Status.SHIPPED, T0))] == ["o001"]
    assert list(db.fetch(orders_in_status(Status.PENDING, T0))) == []


# --- versions, times and expiry ---


def test_versions_count_up_and_catch_lost_updates(target: Target) -> None:
    db = target.connect(shop())
    mine = user()
    db.create(mine)
    assert mine.rev == 1
    theirs = db.get(User, user_id="u1", consistent=True)
    assert theirs == mine
    assert theirs is not None
    theirs.name = "Theirs"
    db.put(theirs)
    assert theirs.rev == 2
    mine.name = "Mine"
    with pytest.raises(VersionConflict) as caught:
        db.put(mine)
    assert (mine.rev, caught.value.expected, caught.value.entity) == (1, 1, theirs)
    with pytest.raises(VersionConflict), db.update(mine) as u:
        u.name = "Mine"
    with pytest.raises(VersionConflict):
        db.delete(mine)
    db.delete(theirs)
    assert db.get(User, user_id="u1", consistent=True) is None
    with pytest.raises(VersionConflict, match="does not exist any more"):
        db.put(theirs)


def test_times_are_stamped(target: Target) -> None:
    clock = VirtualClock(1_700_000_000.0)
    db = target.connect(shop(), clock=clock)
    there = order(1)
    db.put(there)
    first = datetime.fromtimestamp(1_700_000_000, UTC)
    assert (there.made, there.seen) == (first, first)
    clock.advance(60)
    with db.update(there) as o:
        o.note = "later"
    assert (there.made, there.seen) == (first, first + timedelta(seconds=60))
    clock.advance(60)
    db.put(there)
    assert (there.made, there.seen) == (first, first + timedelta(seconds=120))


def test_upsert_creates_then_changes_and_keeps_the_time_of_creation(target: Target) -> None:
    clock = VirtualClock(1_700_000_000.0)
    db = target.connect(shop(), clock=clock)
    first = db.upsert(order(1, note="one"))
    clock.advance(60)
    second = db.upsert(order(1, total=Decimal(7)))
    assert first.made == second.made
    assert (second.total, second.note) == (Decimal(7), None)
    assert second.seen == first.seen + timedelta(seconds=60)


def test_what_has_expired_is_hidden_before_it_is_deleted(target: Target) -> None:
    from .shop import profile, sessions_of

    clock = VirtualClock(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
    db = target.connect(shop(), clock=clock)
    there = Session(session_id="x", user_id="u1")
    db.create(there)
    assert there.expires == datetime.fromtimestamp(clock.now() + 3600, UTC)
    assert db.get(Session, session_id="x", user_id="u1") == there
    clock.advance(3601)
    assert db.get(Session, session_id="x", user_id="u1") is None
    assert db.get(Session, session_id="x", user_id="u1", include_expired=True) == there
    assert list(db.fetch(sessions_of("u1"))) == []
    assert list(db.fetch(profile("u1"))) == []
    assert list(db.fetch(sessions_of("u1"), include_expired=True)) == [there]
    assert db.count(sessions_of("u1"), include_expired=True) == 1
    assert list(db.scan(Session, allow=True)) == []
    again = Session(session_id="x", user_id="u1")
    db.create(again)  # what has expired is not in the way
    assert db.get(Session, session_id="x", user_id="u1") == again


# --- unique ---


@pytest.mark.parametrize("layout", ["single-table", "table-per-entity"])
def test_a_unique_value_belongs_to_one_item(target: Target, layout: Layout) -> None:
    db = target.connect(shop(layout))
    one, two = user(1), user(2)
    db.create(one)
    two.email = one.email
    for attempt in (db.create, db.put, db.upsert):
        with pytest.raises(UniqueTaken) as caught:
            attempt(two)
        assert (caught.value.field, caught.value.value) == ("email", one.email)
    assert db.get(User, user_id="u2") is None
    two.email = "two@example.com"
    db.create(two)
    with pytest.raises(UniqueTaken), db.update(User, user_id="u2") as u:
        u.email = "u1@example.com"
    with db.update(User, user_id="u1") as u:
        u.email = "new@example.com"
    stored = db.get(User, user_id="u2", consistent=True)
    assert stored is not None
    with db.update(stored) as u:
        u.email = "u1@example.com"  # free again
    assert stored.email == "u1@example.com"
    db.delete(User, user_id="u1")
    three = user(3)
    three.email = "new@example.com"
    db.create(three)  # free again


def test_a_unique_value_that_stays_is_no_obstacle(target: Target) -> None:
    db = target.connect(shop())
    one = user(1)
    db.create(one)
    one.name = "Other"
    db.put(one)
    assert db.upsert(one).name == "Other"
    with db.update(one) as u:
        u.email = "u1@example.com"
        u.name = "Third"
    assert one.name == "Third"


# --- refused before anything is sent ---


def test_what_cannot_be_right_is_refused(target: Target) -> None:
    if target.kind != "memory":
        pytest.skip("nothing is sent")
    db = target.connect(shop())
    db.put(Product(sku="s1", stock=1))
    with pytest.raises(DesignError, match="no field 'nope'"):
        db.get(Product, nope=1)
    with pytest.raises(DesignError, match="not in the design"):
        db.get(Address, street="x")  # type: ignore[type-var]  # wrong on purpose
    with pytest.raises(ItemMismatch, match=r"Product\.sku: expected str"):
        db.get(Product, sku=5)
    with pytest.raises(ItemMismatch, match="stock"), db.update(Product, sku="s1") as p:
        p.stock = "many"  # type: ignore[assignment]  # wrong on purpose
    with (
        pytest.raises(UpdateRefused, match="part of the item's key"),
        db.update(Product, sku="s1") as p,
    ):
        p.sku = "s2"
    with pytest.raises(UpdateRefused, match="set by Stator"), db.update(User, user_id="u1") as u:
        u.rev = 7
    with pytest.raises(RequestRefused, match="changes nothing"), db.update(Product, sku="s1"):
        pass
    with (
        pytest.raises(RequestRefused, match="records changes and does not read"),
        db.update(Product, sku="s1") as p,
    ):
        if p.stock > 3:
            p.stock = 0
    with pytest.raises(RequestRefused, match="no field 'stok'"), db.update(Product, sku="s1") as p:
        p.stok = 1  # type: ignore[attr-defined]  # wrong on purpose
    with pytest.raises(RequestRefused, match="has its own identity"):
        db.update(Product(sku="s1"), sku="s1")  # type: ignore[call-overload]  # wrong on purpose
    with pytest.raises(DesignError, match="not a field of Product"):
        db.put(Product(sku="s1"), when=Order.total > 3)
    assert db.get(Product, sku="s1") == Product(sku="s1", stock=1)


class Task(Entity):
    task_id: str = ident()
    owner: str
    state: str
    due: int


@read(rps=100)
def tasks(task_id: str) -> Query[Task]:
    return find(Task).where(Task.task_id == task_id)


@read(rps=100, returns=10)
def tasks_of(owner: str, state: str) -> Query[Task]:
    return find(Task).where(Task.owner == owner, Task.state == state).order_by(Task.due)


def test_an_update_that_lacks_a_key_field_says_which() -> None:
    design = Design("tasks", [Task], [tasks, tasks_of], names={"GSI1PK": "by_owner"})
    db = connect(design)
    there = Task(task_id="t1", owner="ann", state="open", due=3)
    db.create(there)
    keys = [key for key in db.context.schema.of(Task).plan.keys if key.index is not None]
    if all(key.template.native for key in keys):
        with db.update(Task, task_id="t1") as task:
            task.state = "done"
    else:
        with (
            pytest.raises(UpdateRefused, match="also made of") as caught,
            db.update(Task, task_id="t1") as task,
        ):
            task.state = "done"
        assert "owner" in caught.value.missing
        with db.update(there) as task:
            task.state = "done"
    assert [each.task_id for each in db.fetch(tasks_of("ann", "done"))] == ["t1"]
    assert list(db.fetch(tasks_of("ann", "open"))) == []
