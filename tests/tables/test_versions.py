"""Entities that change shape: items of every earlier version are read and written as current."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import (
    Delete,
    Design,
    Entity,
    Only,
    Query,
    adapt,
    connect,
    find,
    ident,
    read,
    unique,
    upcast,
)
from stator import version as revision
from stator.design.plan.lock_file import compare
from stator.errors import (
    ConditionFailed,
    DesignError,
    ItemMismatch,
    ItemNotFound,
    NewerVersion,
    UniqueTaken,
)
from stator.model.values import Item
from stator.tables.db import Db
from tests.targets import Target

KEY = ("ORDER#{order_id}", "ORDER")
T0 = datetime(2026, 1, 1, tzinfo=UTC)


class Status(Enum):
    OPEN = "open"
    DONE = "done"


# The same entity as three deployments declare it. Each writes to the same table.


class OrderV1(Entity, name="Order", key=KEY):
    order_id: str = ident()
    total: Decimal
    state: str = "open"


class OrderV2(Entity, name="Order", key=KEY, version=2):
    order_id: str = ident()
    total_cents: int
    state: str = "open"


@upcast(OrderV2, 1)
def cents(fields: dict[str, Any]) -> dict[str, Any]:
    fields["total_cents"] = int(fields.pop("total") * 100)
    return fields


class OrderV3(
    Entity,
    name="Order",
    key=KEY,
    index={"ByStatus": ("STATUS#{status}", "{order_id}")},
    version=3,
):
    order_id: str = ident()
    total_cents: int
    status: Status
    placed_at: datetime
    note: str | None = None


upcast(OrderV3, 1)(cents)


@upcast(OrderV3, 2)
def with_status(fields: dict[str, Any]) -> dict[str, Any]:
    return fields | {"status": Status(fields.pop("state")), "placed_at": T0}


@read(rps=1)
def orders_in(status: Status) -> Query[OrderV3]:
    return find(OrderV3).where(OrderV3.status == status)


class Tolerant(Entity, name="Order", key=KEY, version=2, on_newer="ignore_unknown"):
    """The second deployment, if it had been written to read later versions."""

    order_id: str = ident()
    total_cents: int
    state: str = "open"


upcast(Tolerant, 1)(cents)


def design(order: type[Any]) -> Design:
    return Design("orders", [order], [orders_in] if order is OrderV3 else [])


@pytest.fixture
def new(target: Target) -> Db:
    """The newest deployment, which creates the table with its index."""
    return target.connect(design(OrderV3))


def older(target: Target, order: type[Any]) -> Db:
    """Another deployment, connected to the same table."""
    return target.connect(design(order))


def stored(db: Db, order_id: str = "o1") -> Item | None:
    of = next(iter(db.context.schema.maps.values()))
    key = of.key_from({"order_id": order_id})
    found: Item | None = db.call("GetItem", {"TableName": of.table.name, "Key": key}).get("Item")
    return found


def current(**more: Any) -> OrderV3:
    values: dict[str, Any] = {
        "order_id": "o1", "total_cents": 1250, "status": Status.OPEN, "placed_at": T0,
    }  # fmt: skip
    return OrderV3(**(values | more))


V1 = OrderV1(order_id="o1", total=Decimal("12.50"))
V2 = OrderV2(order_id="o1", total_cents=1250)


# -- reading


@pytest.mark.parametrize("written", [V1, V2, current()], ids=["1", "2", "3"])
def test_every_stored_version_reads_as_the_newest(target: Target, new: Db, written: Any) -> None:
    older(target, type(written)).create(written)
    assert new.get(OrderV3, order_id="o1") == current()
    assert list(new.scan(OrderV3, allow=True)) == [current()]


def test_only_later_versions_are_stored_in_the_item(target: Target, new: Db) -> None:
    for written, version in ((V1, None), (V2, {"N": "2"}), (current(), {"N": "3"})):
        db = older(target, type(written))
        db.put(written)
        assert (stored(db) or {}).get("_v") == version


def test_an_item_of_a_later_version_raises(target: Target, new: Db) -> None:
    new.create(current())
    for order, known in ((OrderV1, 1), (OrderV2, 2)):
        with pytest.raises(NewerVersion, match=r"Order\(order_id='o1'\)") as raised:
            older(target, order).get(order, order_id="o1")
        assert (raised.value.found, raised.value.known) == (3, known)


def test_a_class_can_ignore_what_later_versions_added(target: Target, new: Db) -> None:
    new.create(current(note="kept"))
    db = older(target, Tolerant)
    read = db.get(Tolerant, order_id="o1")
    assert read == Tolerant(order_id="o1", total_cents=1250)
    assert read is not None
    read.total_cents = 99
    db.put(read)
    assert new.get(OrderV3, order_id="o1") == current(note="kept", total_cents=99)


def test_a_missing_upcast_is_named(target: Target) -> None:
    class Gap(Entity, name="Order", key=KEY, version=3):
        order_id: str = ident()
        total_cents: int = 0

    upcast(Gap, 1)(cents)
    target.connect(design(OrderV1)).create(V1)
    with pytest.raises(ItemMismatch, match=r"no upcast leads from version 2 to 3.*o1"):
        older(target, Gap).get(Gap, order_id="o1")


def test_an_upcast_that_fails_names_itself_and_the_item(target: Target) -> None:
    class Wrong(Entity, name="Order", key=KEY, version=2):
        order_id: str = ident()

    @upcast(Wrong, 1)
    def broken(fields: dict[str, Any]) -> dict[str, Any]:
        return {"order_id": fields["nothing"]}

    target.connect(design(OrderV1)).create(V1)
    with pytest.raises(ItemMismatch, match=r"broken failed \(KeyError.*order_id='o1'"):
        older(target, Wrong).get(Wrong, order_id="o1")


def test_an_item_that_does_not_fit_is_named_by_a_scan(target: Target) -> None:
    class Grown(Entity, name="Order", key=KEY):
        order_id: str = ident()
        total: Decimal
        buyer: str

    db = target.connect(design(OrderV1))
    db.create(V1)
    with pytest.raises(ItemMismatch, match=r"buyer.*Order\(order_id='o1'\)") as raised:
        list(older(target, Grown).scan(Grown, allow=True))
    assert raised.value.identity == "Order(order_id='o1')"


def test_a_new_field_with_a_default_needs_no_version(target: Target) -> None:
    class Grown(Entity, name="Order", key=KEY):
        order_id: str = ident()
        total: Decimal
        state: str = "open"
        tags: list[str] = dataclasses.field(default_factory=list)
        note: str | None = None

    target.connect(design(OrderV1)).create(V1)
    read = older(target, Grown).get(Grown, order_id="o1")
    assert read == Grown(order_id="o1", total=Decimal("12.50"))


# -- writing


def test_an_update_of_an_old_item_upgrades_it_first(target: Target, new: Db) -> None:
    older(target, OrderV1).create(V1)
    with new.update(OrderV3, order_id="o1") as order:
        order.note = "new"
    assert new.get(OrderV3, order_id="o1") == current(note="new")
    item = stored(new) or {}
    assert item["_v"] == {"N": "3"}
    assert not {"total", "state"} & item.keys()
    assert list(new.fetch(orders_in(Status.OPEN))) == [current(note="new")]


@pytest.mark.parametrize("written", [V1, V2], ids=["1", "2"])
def test_updates_compute_with_the_current_shape(target: Target, new: Db, written: Any) -> None:
    older(target, type(written)).create(written)
    with new.update(OrderV3, when=OrderV3.total_cents == 1250, order_id="o1") as order:
        order.total_cents += 50
    assert new.get(OrderV3, order_id="o1") == current(total_cents=1300)


def test_an_update_with_an_object_upgrades_too(target: Target, new: Db) -> None:
    older(target, OrderV2).create(V2)
    read = new.get(OrderV3, order_id="o1")
    assert read is not None
    with new.update(read) as order:
        order.status = Status.DONE
    assert read == current(status=Status.DONE) == new.get(OrderV3, order_id="o1")


def test_an_update_that_may_create_does_not_mark_an_old_item_as_new(
    target: Target, new: Db
) -> None:
    older(target, OrderV1).create(V1)
    for order_id in ("o1", "o2"):
        with new.update(OrderV3, or_create=True, order_id=order_id) as order:
            order.status, order.placed_at, order.total_cents = Status.DONE, T0, 7
    for order_id in ("o1", "o2"):
        wanted = current(order_id=order_id, status=Status.DONE, total_cents=7)
        assert new.get(OrderV3, order_id=order_id) == wanted
        assert (stored(new, order_id) or {})["_v"] == {"N": "3"}
    assert "total" not in (stored(new) or {})


def test_conditions_name_fields_of_the_current_shape(target: Target, new: Db) -> None:
    old = older(target, OrderV1)
    holds, fails = OrderV3.total_cents == 1250, OrderV3.total_cents == 1
    old.put(V1)
    with pytest.raises(ConditionFailed):
        new.put(current(note="x"), when=fails)
    old.put(V1)
    new.put(current(note="x"), when=holds)
    old.put(V1)
    new.upsert(current(note="y"), when=holds)
    old.put(V1)
    with new.transaction() as tx:
        tx.check(OrderV3, order_id="o1", when=holds)
        tx.create(current(order_id="o2"))
    old.put(V1)
    with pytest.raises(ConditionFailed):
        new.delete(OrderV3, order_id="o1", when=fails)
    new.delete(OrderV3, order_id="o1", when=holds)
    assert new.get(OrderV3, order_id="o1") is None


def test_a_transaction_updates_items_of_every_version(target: Target, new: Db) -> None:
    older(target, OrderV1).create(V1)
    older(target, OrderV2).create(OrderV2(order_id="o2", total_cents=2))
    new.create(current(order_id="o3", total_cents=3))
    with new.transaction() as tx:
        for order_id in ("o1", "o2", "o3"):
            with tx.update(OrderV3, order_id=order_id) as order:
                order.total_cents += 1
    found = new.get_many(OrderV3, ["o1", "o2", "o3"])
    assert [each.total_cents for each in found if each] == [1251, 3, 4]


def test_an_update_of_a_later_version_follows_the_rule(target: Target, new: Db) -> None:
    new.create(current())
    strict = older(target, OrderV2)
    with pytest.raises(NewerVersion), strict.update(OrderV2, order_id="o1") as order:
        order.total_cents = 1
    with pytest.raises(NewerVersion):
        strict.upsert(V2)
    tolerant = older(target, Tolerant)
    with tolerant.update(Tolerant, order_id="o1") as changed:
        changed.total_cents = 5
    assert new.get(OrderV3, order_id="o1") == current(total_cents=5)
    tolerant.upsert(Tolerant(order_id="o1", total_cents=6))
    assert new.get(OrderV3, order_id="o1") == current(total_cents=6)


def test_code_without_a_version_notices_items_of_later_versions(target: Target, new: Db) -> None:
    new.create(current())
    first = older(target, OrderV1)
    with pytest.raises(NewerVersion), first.update(OrderV1, order_id="o1") as order:
        order.total = Decimal(1)
    with pytest.raises(NewerVersion), first.update(OrderV1, or_create=True, order_id="o1") as order:
        order.total = Decimal(1)
    with pytest.raises(NewerVersion):
        first.upsert(V1)
    with pytest.raises(NewerVersion):
        first.put(V1, when=OrderV1.total > 1)
    with (
        pytest.raises(NewerVersion),
        first.transaction() as tx,
        tx.update(OrderV1, order_id="o1") as order,
    ):
        order.total = Decimal(1)
    assert new.get(OrderV3, order_id="o1") == current()


def test_updates_of_missing_items_still_say_so(new: Db) -> None:
    with pytest.raises(ItemNotFound), new.update(OrderV3, order_id="o9") as order:
        order.note = "x"


def test_batches_upserts_and_transactions_carry_the_version(target: Target, new: Db) -> None:
    older(target, OrderV1).create(V1)
    new.write_many([current(order_id=f"b{number}") for number in range(3)])
    new.upsert(current())
    with new.transaction() as tx:
        tx.put(current(order_id="t1"))
    for order_id in ("b0", "b2", "o1", "t1"):
        assert (stored(new, order_id) or {})["_v"] == {"N": "3"}
    assert new.get(OrderV3, order_id="o1") == current()
    new.write_many([Delete(OrderV3, order_id="o1")])
    assert new.get(OrderV3, order_id="o1") is None


def test_an_upgrade_moves_the_guard_of_a_changed_unique_value(target: Target) -> None:
    class UserV1(Entity, name="User", key=("USER#{user_id}", "USER")):
        user_id: str = ident()
        email: str = unique()
        rev: int = revision()

    class UserV2(Entity, name="User", key=("USER#{user_id}", "USER"), version=2):
        user_id: str = ident()
        email: str = unique()
        rev: int = revision()
        name: str = ""

    @upcast(UserV2, 1)
    def lower(fields: dict[str, Any]) -> dict[str, Any]:
        return fields | {"email": fields["email"].lower()}

    target.connect(design(UserV1)).create(UserV1(user_id="u1", email="Ann@x"))
    db = older(target, UserV2)
    with db.update(UserV2, user_id="u1") as user:
        user.name = "Ann"
    with pytest.raises(UniqueTaken):
        db.create(UserV2(user_id="u2", email="ann@x"))
    db.create(UserV2(user_id="u2", email="Ann@x"))


# -- a rolling deployment: two versions of the program share the items


class Before(Entity, name="Order", key=KEY):
    order_id: str = ident()
    total: int = 0


class After(Entity, name="Order", key=KEY):
    order_id: str = ident()
    total: int = 0
    note: str | None = None
    tags: set[str] = dataclasses.field(default_factory=set)


def test_put_writes_back_what_a_newer_program_added(target: Target) -> None:
    before = target.connect(design(Before))
    after = older(target, After)
    after.create(After(order_id="o1", note="keep", tags={"a"}))
    for number in range(1, 4):
        read = before.get(Before, order_id="o1")
        assert read == Before(order_id="o1", total=number - 1)
        assert read is not None
        read.total = number
        if number == 2:
            before.write_many([read])
        elif number == 3:
            with before.transaction() as tx:
                tx.put(read)
        else:
            before.put(read)
        found = after.get(After, order_id="o1")
        assert found == After(order_id="o1", total=number, note="keep", tags={"a"})


def test_upsert_keeps_unknown_attributes_and_a_fresh_put_replaces_them(target: Target) -> None:
    before = target.connect(design(Before))
    after = older(target, After)
    after.create(After(order_id="o1", note="keep"))
    before.upsert(Before(order_id="o1", total=1))
    assert after.get(After, order_id="o1") == After(order_id="o1", total=1, note="keep")
    read = before.get(Before, order_id="o1")
    assert read is not None
    with after.update(After, order_id="o1") as changed:
        changed.note = "newer"
    before.upsert(read)
    assert after.get(After, order_id="o1") == After(order_id="o1", total=1, note="newer")
    before.put(Before(order_id="o1", total=2))
    assert after.get(After, order_id="o1") == After(order_id="o1", total=2)


def test_two_deployments_alternate_on_the_same_items(target: Target, new: Db) -> None:
    """The second deployment tolerates the third; neither loses what the other wrote."""
    second = older(target, Tolerant)
    older(target, OrderV1).create(V1)
    with second.update(Tolerant, order_id="o1") as early:
        early.total_cents += 1
    with new.update(OrderV3, order_id="o1") as late:
        late.note = "from the third"
    with second.update(Tolerant, order_id="o1") as early:
        early.total_cents += 1
    read = second.get(Tolerant, order_id="o1")
    assert read is not None
    read.total_cents += 1
    second.put(read)
    assert new.get(OrderV3, order_id="o1") == current(total_cents=1253, note="from the third")


# -- any chain, any values

_VALUES = st.one_of(
    st.text(max_size=5), st.integers(-9, 9), st.booleans(), st.binary(max_size=4), st.none(),
    st.lists(st.integers(-9, 9), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(-9, 9), max_size=3),
    st.frozensets(st.text(min_size=1, max_size=3), min_size=1, max_size=3),
    st.decimals(-9, 9, places=2), st.uuids(), st.sampled_from(Status),
)  # fmt: skip


@given(stored_version=st.integers(1, 5), newest=st.integers(1, 5), value=_VALUES)
@settings(max_examples=80, deadline=None)
def test_any_stored_version_reads_through_every_upcast_that_leads_to_the_newest(
    stored_version: int, newest: int, value: Any
) -> None:
    class Any1(Entity, name="Thing", key=("T#{thing_id}",), version=newest):
        thing_id: str = ident()
        steps: list[int] = dataclasses.field(default_factory=list)
        value: Any = None

    for version in range(1, newest):
        upcast(Any1, version)(
            lambda fields, at=version: fields | {"steps": [*fields.get("steps", []), at]}
        )
    with connect(design(Any1)) as db:
        of = db.context.schema.of(Any1)
        plain = str(value) if isinstance(value, (UUID, Status)) else value
        made = Any1(thing_id="t", value=None if isinstance(plain, frozenset) else plain)
        item = of.item(made)
        item.pop("_v", None)
        if stored_version > 1:
            item["_v"] = {"N": str(stored_version)}
        unknown: Item = {"zz": {"L": [{"NULL": True}, {"N": "1"}]}}
        if isinstance(plain, frozenset):
            unknown["zs"] = {"SS": sorted(plain)}
        db.call("PutItem", {"TableName": of.table.name, "Item": item | unknown})
        if stored_version > newest:
            with pytest.raises(NewerVersion):
                db.get(Any1, thing_id="t")
            return
        read = db.get(Any1, thing_id="t")
        assert read is not None
        assert read.steps == list(range(stored_version, newest))
        assert read.value == made.value
        db.put(read)
        again = db.call("GetItem", {"TableName": of.table.name, "Key": of.stored_key(item)})["Item"]
        assert {name: again[name] for name in unknown} == unknown
        assert db.get(Any1, thing_id="t") == read


# -- declarations


def test_a_version_and_an_upcast_are_checked_when_they_are_declared() -> None:
    with pytest.raises(DesignError, match="version=0 is not a version"):

        class Zero(Entity, version=0):
            zero_id: str = ident()

    with pytest.raises(DesignError, match="is not a rule for newer items"):

        class Rule(Entity, on_newer="skip"):  # type: ignore[arg-type]
            rule_id: str = ident()

    with pytest.raises(DesignError, match="Order has version 2"):
        upcast(OrderV2, 2)(cents)
    with pytest.raises(DesignError, match="two upcasts from version 1"):
        upcast(OrderV2, 1)(with_status)

    class Reserved(Entity):
        reserved_id: str = ident()
        _v: int = 0

    with pytest.raises(DesignError, match="reserved for the version"):
        Design("reserved", [Reserved]).plan()


def test_adapted_models_have_versions(target: Target) -> None:
    pydantic = pytest.importorskip("pydantic")
    msgspec = pytest.importorskip("msgspec")

    class Model(pydantic.BaseModel):  # type: ignore[name-defined]
        order_id: str
        total_cents: int

    class Struct(msgspec.Struct):  # type: ignore[name-defined]
        order_id: str
        total_cents: int

    db = target.connect(design(OrderV1))
    extra = {"TableName": db.context.schema.of(OrderV1).table.name}
    models: list[type[Any]] = [Model, Struct]
    for model in models:
        handle: Any = adapt(model, ident="order_id", name="Order", key=KEY, version=2)
        upcast(handle, 1)(cents)
        db.put(V1)
        item = (stored(db) or {}) | {"extra": {"S": "x"}}
        db.call("PutItem", extra | {"Item": item})
        mine = older(target, handle)
        read = mine.get(handle, order_id="o1")
        assert read == model(order_id="o1", total_cents=1250)
        mine.put(read)
        item = stored(mine) or {}
        assert item["_v"] == {"N": "2"}
        # A Struct has no place for attributes that it does not know.
        assert ("extra" in item) is (model is Model)


# -- reads of some fields


class TaskV1(Entity, name="Task", key=("LIST#{list_id}", "TASK#{task_id}")):
    list_id: str = ident()
    task_id: str = ident()
    hours: Decimal
    state: str = "open"


class TaskV2(Entity, name="Task", key=("LIST#{list_id}", "TASK#{task_id}"), version=2):
    list_id: str = ident()
    task_id: str = ident()
    minutes: int = 0
    state: str = "open"


@upcast(TaskV2, 1)
def in_minutes(fields: dict[str, Any]) -> dict[str, Any]:
    fields["minutes"] = int(fields.pop("hours") * 60)
    return fields


@read(rps=1)
def tasks_of(list_id: str) -> Query[TaskV2]:
    return find(TaskV2).where(TaskV2.list_id == list_id)


@read(rps=3000, returns=200)
def minutes_in(state: str) -> Only[tuple[str, int]]:
    return find(TaskV2).where(TaskV2.state == state).only(TaskV2.task_id, TaskV2.minutes)


@read(rps=3000, returns=200)
def hours_in(state: str) -> Only[tuple[str, Decimal]]:
    return find(TaskV1).where(TaskV1.state == state).only(TaskV1.task_id, TaskV1.hours)


@read(rps=1)
def old_tasks_of(list_id: str) -> Query[TaskV1]:
    return find(TaskV1).where(TaskV1.list_id == list_id)


def tasks_design() -> Design:
    return Design(
        "tasks", [TaskV2], [tasks_of, minutes_in], volumes={TaskV2: 1_000_000}, sizes={TaskV2: 3000}
    )


def with_old_and_new_tasks(target: Target) -> tuple[Db, Db]:
    """Return connections of the current and the former deployment, with two items of each."""
    db = target.connect(tasks_design())
    former = target.connect(Design("tasks", [TaskV1], [old_tasks_of]))
    for number in ("2", "4"):
        db.put(TaskV2(list_id="a", task_id=number, minutes=int(number)))
    for number in ("1", "3"):
        former.put(TaskV1(list_id="a", task_id=number, hours=Decimal(number)))
    return db, former


MINUTES = [("1", 60), ("2", 2), ("3", 180), ("4", 4)]


def test_a_read_of_some_fields_upcasts_old_items(target: Target) -> None:
    db, _ = with_old_and_new_tasks(target)
    some = tasks_of("a").only(TaskV2.task_id, TaskV2.minutes)
    assert db.all(some) == MINUTES
    assert list(db.fetch(some)) == MINUTES
    first = db.page(some, limit=3)
    assert first.items == MINUTES[:3]
    assert db.page(some, limit=3, cursor=first.cursor).items == MINUTES[3:]


def test_an_index_of_some_fields_shows_the_version_of_its_entries(target: Target) -> None:
    db, _ = with_old_and_new_tasks(target)
    [index] = db.context.schema.plan.tables[0].indexes
    assert index.projection == "INCLUDE" and "_v" in index.included
    assert sorted(db.all(minutes_in("open"))) == MINUTES


def test_a_read_of_some_fields_notices_newer_items(target: Target) -> None:
    _, former = with_old_and_new_tasks(target)
    with pytest.raises(NewerVersion):
        former.all(old_tasks_of("a").only(TaskV1.task_id, TaskV1.state))


def test_entries_that_do_not_show_their_version_are_fetched(target: Target) -> None:
    """A handwritten index, and one that was planned before the version was raised, lack it."""
    planned = tasks_design().plan()
    [table] = planned.tables
    [index] = table.indexes
    bare = dataclasses.replace(index, included=tuple(set(index.included) - {"_v"}))
    without = dataclasses.replace(planned, tables=(dataclasses.replace(table, indexes=(bare,)),))
    db = target.connect(tasks_design(), plan=without)
    former = target.connect(Design("tasks", [TaskV1], [old_tasks_of]))
    former.put(TaskV1(list_id="a", task_id="1", hours=Decimal(1)))
    db.put(TaskV2(list_id="a", task_id="2", minutes=2))
    assert sorted(db.all(minutes_in("open"))) == [("1", 60), ("2", 2)]


def test_raising_the_version_needs_an_index_that_shows_it() -> None:
    former = Design(
        "tasks", [TaskV1], [hours_in], volumes={TaskV1: 1_000_000}, sizes={TaskV1: 3000}
    ).plan()
    current = tasks_design().plan(former)
    [index] = current.tables[0].indexes
    assert index.name == "GSI2" and "_v" in index.included
    found = {each.subject: each.what for each in compare(former, current)}
    assert "no longer needed" in found["index GSI1 of tasks"]
    assert "filling it" in found["index GSI2 of tasks"]


class NoteV1(Entity, name="Note", key=("NOTE#{note_id}", "NOTE")):
    note_id: str = ident()
    text: str
    state: str = "open"


class NoteV2(Entity, name="Note", key=("NOTE#{note_id}", "NOTE"), version=2):
    note_id: str = ident()
    text: str
    state: str = "open"


def test_an_index_of_the_same_fields_is_made_again_when_the_version_is_raised() -> None:
    def planned(entity: type[Any], previous: Any = None) -> Any:
        @read(rps=3000, returns=200)
        def texts(state: str) -> Only[Any]:
            return find(entity).where(entity.state == state).only(entity.note_id, entity.text)

        design = Design("notes", [entity], [texts], volumes={entity: 10**6}, sizes={entity: 3000})
        return design.plan(previous)

    former = planned(NoteV1)
    [change] = [
        each for each in compare(former, planned(NoteV2, former)) if each.risk == "backfill"
    ]
    assert change.subject == "index GSI1 of notes"
    assert change.what.endswith("INCLUDE note_id, text and would be INCLUDE note_id, text, _v")
