"""``ensure``: tables made and brought up to date, and nothing that loses data."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stator import (
    Db,
    Design,
    Entity,
    Get,
    Query,
    TableSettings,
    connect,
    find,
    ident,
    read,
    ttl,
)
from stator.clock import VirtualClock
from stator.design.plan.plan import Plan
from stator.engine import Engine
from stator.errors import (
    ContinuousBackupsUnavailable,
    DestructiveChange,
    ResourceNotFound,
    StatorError,
    ValidationFailed,
)
from stator.tables.lifecycle import TableSetup
from stator.tables.work import Call, Pause, Work
from stator.testing import run_schedules
from tests.targets import Target

from .shop import (
    T0,
    Product,
    Session,
    Status,
    order,
    orders_in_status,
    shop,
    user,
    user_by_id,
)


def described(db: Db) -> dict[str, Any]:
    table = db.context.schema.plan.tables[0].name
    found: dict[str, Any] = db.call("DescribeTable", {"TableName": table})["Table"]
    return found


def without_indexes(plan: Plan) -> Plan:
    [table] = plan.tables
    used = {name for name in (table.partition, table.sort) if name}
    attributes = tuple(each for each in table.attributes if each[0] in used)
    return replace(plan, tables=(replace(table, indexes=(), attributes=attributes),))


def test_tables_are_made_once(target: Target) -> None:
    db = target.connect(shop())
    assert db.ensure() == []
    table = described(db)
    assert table["TableStatus"] == "ACTIVE"
    name = str(table["TableName"])
    assert (
        db.call("DescribeTimeToLive", {"TableName": name})["TimeToLiveDescription"]["AttributeName"]
        == "expires"
    )


def test_a_missing_index_is_added_and_filled(target: Target) -> None:

    target.alone()
    design = shop()
    older = target.connect(design, plan=without_indexes(design.plan()))
    # Items already carry their index keys: a design may have been in use before its index.
    newer_items = connect(design).context.schema
    older.call(
        "PutItem",
        {
            "TableName": older.context.schema.plan.tables[0].name,
            "Item": newer_items.of_object(order(1)).item(order(1)),
        },
    )
    newer = target.connect(design)
    indexes = {each.name for each in design.plan().tables[0].indexes}
    assert {each["IndexName"] for each in described(newer)["GlobalSecondaryIndexes"]} == indexes
    assert [each.order_id for each in newer.fetch(orders_in_status(Status.PENDING, T0))] == ["o001"]


def test_settings_are_made(target: Target) -> None:
    db = target.connect(shop())
    tags = {} if target.kind == "dynamodb-local" else {"team": "shop"}  # it has no tags
    settings = TableSettings(stream="NEW_AND_OLD_IMAGES", tags=tags)
    changed = db.ensure(settings)
    assert [each.split()[0] for each in changed if "expire" not in each] == [
        described(db)["TableName"],
        *(["tagged"] if tags else []),
        db.context.schema.place.table,
        *(["tagged"] if tags else []),
    ]
    assert db.ensure(settings) == []
    table = described(db)
    assert table["StreamSpecification"] == {
        "StreamEnabled": True,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    if tags:
        found = db.call("ListTagsOfResource", {"ResourceArn": table["TableArn"]})["Tags"]
        assert found == [{"Key": "team", "Value": "shop"}]
    with pytest.raises(DestructiveChange, match="shows NEW_AND_OLD_IMAGES"):
        db.ensure(TableSettings(stream="KEYS_ONLY"))


class Other(Entity):
    other_id: int = ident()
    until: int | None = ttl(default=None)


@read()
def other(other_id: int) -> Query[Other]:
    return find(Other).where(Other.other_id == other_id)


def test_what_would_lose_data_is_refused_and_changes_nothing() -> None:
    engine = Engine.open()
    connect(Design("shop", [Other], [other], layout="table-per-entity"), engine)
    before = engine.call("ListTables", {})["TableNames"]
    db_tables = {
        name: engine.call("DescribeTable", {"TableName": name})["Table"]["KeySchema"]
        for name in before
    }
    taken = before[0]
    design = Design("shop", [Session], [], names={})
    plan = design.plan()
    moved = replace(
        plan,
        tables=(replace(plan.tables[0], name=taken),),
        entities=tuple(replace(each, table=taken) for each in plan.entities),
    )
    with pytest.raises(DestructiveChange, match="cannot be changed") as caught:
        connect(design, engine, plan=moved)
    assert caught.value.changes
    after = {
        name: engine.call("DescribeTable", {"TableName": name})["Table"]["KeySchema"]
        for name in before
    }
    assert after == db_tables


def test_another_expiry_is_refused() -> None:
    engine = Engine.open()
    db = connect(shop(), engine)
    name = db.context.schema.plan.tables[0].name
    engine.call(
        "UpdateTimeToLive",
        {
            "TableName": name,
            "TimeToLiveSpecification": {"Enabled": False, "AttributeName": "expires"},
        },
    )
    engine.call(
        "UpdateTimeToLive",
        {"TableName": name, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "other"}},
    )
    with pytest.raises(DestructiveChange, match="expire by other"):
        db.ensure()


def test_a_prefix_keeps_environments_apart() -> None:
    engine = Engine.open()
    design = shop()
    for prefix in ("dev-", "test-"):
        connect(design, engine, prefix=prefix)
    names = ["dev-shop", "dev-shop-stator", "test-shop", "test-shop-stator"]
    assert engine.call("ListTables", {})["TableNames"] == names
    dev, test = (connect(design, engine, prefix=prefix) for prefix in ("dev-", "test-"))

    dev.create(user())
    assert dev.first(user_by_id("u1")) is not None
    assert test.first(user_by_id("u1")) is None


def test_recovery_is_turned_on_and_never_off() -> None:
    with Engine.open() as engine:
        db = connect(Design("shop", [Other], [other]), engine)
        wanted = TableSettings(point_in_time_recovery=True)
        changed = db.ensure(wanted)
        assert [each.partition(" ")[0] for each in changed] == ["shop", "shop-stator"]
        assert all(each.endswith("can be restored to any second") for each in changed)
        assert db.ensure(wanted) == []
        with pytest.raises(DestructiveChange, match="deletes its history"):
            db.ensure(TableSettings(point_in_time_recovery=False))


def test_recovery_of_a_new_table_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS answers ContinuousBackupsUnavailable for a while after a table was made."""
    clock = VirtualClock()
    with Engine.open(clock=clock) as engine:
        enable = engine.recovery.enable
        refused: list[float] = []

        def later(*arguments: Any) -> Any:
            if len(refused) < 3:
                refused.append(clock.now())
                raise ContinuousBackupsUnavailable(
                    "Backups are being enabled for the table. Please retry later"
                )
            return enable(*arguments)

        monkeypatch.setattr(engine.recovery, "enable", later)
        db = connect(Design("shop", [Other], [other]), engine, clock=clock)
        assert db.ensure(TableSettings(point_in_time_recovery=True))
        assert refused == [refused[0], refused[0] + 1, refused[0] + 2]


def test_two_may_give_a_table_its_stream_at_once() -> None:
    """Whoever comes second finds it there, and is content if it shows the same."""
    given: list[tuple[Any, bool]] = [("NEW_AND_OLD_IMAGES", True), ("KEYS_ONLY", False)]
    for theirs, is_same in given:
        with connect(shop()) as db:
            db.ensure()
            mine = TableSetup(db.context, TableSettings(stream="NEW_AND_OLD_IMAGES")).run()
            wish = next(mine)
            while not (isinstance(wish, Call) and wish.operation == "UpdateTable"):
                wish = (
                    mine.send(db.call(wish.operation, wish.request))
                    if isinstance(wish, Call)
                    else mine.send(None)
                )
            db.ensure(TableSettings(stream=theirs))
            if is_same:
                db.run(_continued(mine, wish))
            else:
                with pytest.raises(ValidationFailed):
                    db.run(_continued(mine, wish))


def _continued(work: Work[Any], wish: Any) -> Work[Any]:
    """Work that was begun elsewhere, from what it waits for."""
    while True:
        try:
            answer = yield wish
        except StatorError as error:
            wish = work.throw(error)
            continue
        try:
            wish = work.send(answer)
        except StopIteration as done:
            return done.value


def test_a_first_time_to_live_can_be_added_later() -> None:
    engine = Engine.open()
    connect(Design("later", [Product]), engine)
    db = connect(Design("later", [Product, Session]), engine)
    assert db.ensure(TableSettings(deletion_protection=True))
    assert db.ensure(TableSettings(deletion_protection=True)) == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda db: db.get(Other, other_id=1),
        lambda db: db.put(Other(other_id=1)),
        lambda db: db.get_many(Other, [{"other_id": 1}, {"other_id": 2}]),
        lambda db: db.snapshot(Get(Other, other_id=1)),
    ],
)
def test_a_missing_table_is_named(ask: Callable[[Any], Any]) -> None:
    with Engine.open() as engine:
        db = connect(Design("shop", [Other], [other]), engine)
        for name in engine.call("ListTables", {})["TableNames"]:
            engine.call("DeleteTable", {"TableName": name})
        with pytest.raises(ResourceNotFound) as caught:
            ask(db)
        assert "shop" in str(caught.value.hint)
        assert "db.ensure()" in str(caught.value.hint)


def set_up_in_any_order(
    seed: int, works: list[Work[list[str]]], clock: VirtualClock, call: Callable[..., Any]
) -> None:
    """Run several works to their ends. The seed decides whose next call is sent."""
    chance = random.Random(seed)
    waiting = {at: (0.0, next(work)) for at, work in enumerate(works)}
    while waiting:
        due = [at for at, (wake_at, _) in waiting.items() if wake_at <= clock.now()]
        if not due:
            clock.advance(min(wake_at for wake_at, _ in waiting.values()) - clock.now())
            continue
        at = chance.choice(due)
        _, effect = waiting.pop(at)
        try:
            if isinstance(effect, Call):
                try:
                    reply = call(effect.operation, effect.request)
                except StatorError as error:
                    effect = works[at].throw(error)
                else:
                    effect = works[at].send(reply)
            else:
                effect = works[at].send(None)
        except StopIteration:
            continue
        pause = effect.seconds if isinstance(effect, Pause) else 0.0
        waiting[at] = (clock.now() + pause, effect)


def drop_tables(engine: Engine, clock: VirtualClock) -> None:
    """Delete what ``connect`` has created: it sets up the tables of an embedded engine."""
    for name in engine.call("ListTables", {})["TableNames"]:
        engine.call("DeleteTable", {"TableName": name})
    clock.advance(10)
    assert engine.call("ListTables", {})["TableNames"] == []


def test_a_change_that_another_process_made_first_does_not_stop_the_others() -> None:
    clock = VirtualClock(T0.timestamp())
    with Engine.open(clock=clock) as engine:
        db = connect(shop(), engine, clock=clock)
        drop_tables(engine, clock)
        connect(shop(), engine, clock=clock, plan=without_indexes(shop().plan())).ensure()
        wanted = {index.name for index in shop().plan().tables[0].indexes}
        assert len(wanted) > 1
        doubled: list[str] = []

        def call(operation: str, request: Any) -> Any:
            if operation == "UpdateTable" and not doubled:  # the other process is a moment earlier
                doubled.append(operation)
                engine.call(operation, request)
                raise ValidationFailed("the index exists")
            return engine.call(operation, request)

        work = TableSetup(db.context, TableSettings()).run()
        set_up_in_any_order(1, [work], clock, call)
        assert doubled
        assert {each["IndexName"] for each in described(db)["GlobalSecondaryIndexes"]} == wanted


@pytest.mark.parametrize("is_new", [True, False])
def test_several_processes_set_up_the_same_tables_at_once(is_new: bool) -> None:
    def schedule(seed: int) -> None:
        clock = VirtualClock(T0.timestamp())
        with Engine.open(clock=clock, status_delay_seconds=1.5) as engine:
            dbs = [connect(shop(), engine, clock=clock) for _ in range(3)]
            drop_tables(engine, clock)
            if not is_new:
                bare = connect(shop(), engine, clock=clock, plan=without_indexes(shop().plan()))
                bare.ensure()
            settings = TableSettings(
                stream="NEW_AND_OLD_IMAGES", deletion_protection=True, tags={"team": "shop"}
            )
            setups = [TableSetup(db.context, settings) for db in dbs]
            set_up_in_any_order(seed, [each.run() for each in setups], clock, engine.call)
            clock.advance(10)
            assert dbs[0].ensure(settings) == []
            done = [text for setup in setups for text in setup.done]
            once = [text for text in done if "stream" in text or "added" in text]
            assert len(once) == len(set(once))  # one of them made it; the others saw it

    run_schedules(schedule, 60)
