"""Handlers in real threads on the embedded engine: delivery, failures, and sharing of work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stator import Db, Design, Engine, Entity, TableSettings, connect, ident
from stator.errors import DesignError, StreamError, StreamMissing, TryLater
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers.change import Change, Insert, Modify, Remove
from stator.pipeline.workers.handlers.parked_retry import ParkedRetry
from stator.pipeline.workers.options import WorkerOptions
from stator.pipeline.workers.shards.leases import LeaseTable

from .shop import Customer, Order, order, shop

QUICK = WorkerOptions(
    start="oldest",
    idle_seconds=0.02,
    retry_seconds=0.01,
    longest_retry_seconds=0.02,
    max_attempts=3,
)


@pytest.fixture
def db(engine: Engine) -> Iterator[Db]:
    with connect(shop, engine) as opened:
        opened.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        yield opened


@pytest.fixture
def app() -> StreamApp:
    return StreamApp(shop, "billing")


def work(app: StreamApp, db: Db, options: WorkerOptions = QUICK) -> None:
    """Until everything there is has been handled."""
    with app.start(db, options) as running:
        running.catch_up()


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_handlers_get_entities_by_kind(app: StreamApp, db: Db) -> None:
    told: list[Any] = []

    @app.on.insert(Order)
    def inserted(change: Insert[Order]) -> None:
        told.append(("insert", change.new.order_id, change.new.total))

    @app.on.modify(Order)
    def modified(change: Modify[Order]) -> None:
        told.append(("modify", change.old.total, change.new.total))

    @app.on.remove(Order)
    def removed(change: Remove[Order]) -> None:
        told.append(("remove", change.old.total, change.expired))

    db.put(Order(order_id="o1", total=1))
    db.put(Order(order_id="o1", total=2))
    db.put(Customer(customer_id="c1", name="Anna"))
    db.delete(Order, order_id="o1")
    work(app, db)
    assert told == [("insert", "o1", 1), ("modify", 1, 2), ("remove", 2, False)]


def test_any_hears_of_everything_and_changed_says_what(app: StreamApp, db: Db) -> None:
    told: list[Any] = []

    @app.on.any
    def everything(change: Change[Any]) -> None:
        told.append((change.entity, change.kind))

    @app.on.any(Customer)
    def customers(change: Change[Customer]) -> None:
        told.append(change.new.name if change.new else None)

    @app.on.modify(Order, when_changed=Order.status)
    def status_changed(change: Modify[Order]) -> None:
        told.append(("status", change.new.status, change.changed))

    db.put(Order(order_id="o1"))
    db.put(Order(order_id="o1", total=5))
    db.put(Order(order_id="o1", total=5, status="paid"))
    db.put(Customer(customer_id="c1", name="Anna"))
    work(app, db)
    assert told.count(("Order", "MODIFY")) == 2
    assert ("Customer", "INSERT") in told and "Anna" in told
    assert [each for each in told if each[0] == "status"] == [
        ("status", "paid", frozenset({"status"}))
    ]


def test_expired_items_are_told_from_deleted_ones(app: StreamApp, db: Db, engine: Engine) -> None:
    told: list[Any] = []

    @app.on.remove(Order, expired=True)
    def archived(change: Remove[Order]) -> None:
        told.append(("expired", change.old.order_id))

    @app.on.remove(Order, expired=False)
    def deleted(change: Remove[Order]) -> None:
        told.append(("deleted", change.old.order_id))

    db.put(Order(order_id="old", expires=int(time.time()) - 10))
    db.put(Order(order_id="gone"))
    db.delete(Order, order_id="gone")
    engine.sweep()
    work(app, db)
    assert sorted(told) == [("deleted", "gone"), ("expired", "old")]


def test_asynchronous_handlers_are_awaited(app: StreamApp, db: Db) -> None:
    import asyncio

    told: list[str] = []

    @app.on.insert(Order)
    async def inserted(change: Insert[Order]) -> None:
        await asyncio.sleep(0)
        told.append(change.new.order_id)

    db.put(Order(order_id="o1"))
    work(app, db)
    assert told == ["o1"]


def test_a_batch_is_halved_down_to_the_item_at_fault(app: StreamApp, db: Db) -> None:
    sizes: list[int] = []
    seen: dict[str, list[int]] = {}

    @app.on.batch(Order)
    def batch(changes: list[Change[Order]]) -> None:
        sizes.append(len(changes))
        if any(change.new and change.new.order_id == "bad" for change in changes):
            raise ValueError("bad")
        for change in changes:
            assert change.new is not None
            seen.setdefault(change.new.order_id, []).append(change.new.total)

    for total in range(1, 4):
        for number in range(20):
            db.put(Order(order_id=f"o{number}", total=total))
    db.put(Order(order_id="bad"))
    work(app, db)
    assert max(sizes) > 5
    assert seen == {f"o{number}": [1, 2, 3] for number in range(20)}
    [parked] = db.run(ParkedRetry(db.context, app).parking.keys())
    assert "bad" in parked.key and parked.handler == "batch"


def test_a_batch_may_wait_to_fill(app: StreamApp, db: Db) -> None:
    sizes: list[int] = []

    @app.on.batch(Order)
    def batch(changes: list[Change[Order]]) -> None:
        sizes.append(len(changes))

    options = WorkerOptions(
        start="oldest", idle_seconds=0.02, window_seconds=30.0, batch_records=40
    )
    with app.start(db, options) as running:
        eventually(lambda: len(running.worker.consumers) == 4)
        for number in range(39):  # all of one item, so all of one shard
            db.put(Order(order_id="o1", total=number + 1))
            time.sleep(0.01)
        assert sizes == []
        db.put(Order(order_id="o1", total=99))
        eventually(lambda: sizes == [40])


def test_a_change_that_fails_is_tried_again(app: StreamApp, db: Db) -> None:
    attempts: list[str] = []

    @app.on.insert(Order)
    def inserted(change: Insert[Order]) -> None:
        attempts.append(change.new.order_id)
        if attempts.count("o1") < 3 and change.new.order_id == "o1":
            raise ValueError("not yet")

    db.put(Order(order_id="o1"))
    db.put(Order(order_id="o2"))
    work(app, db)
    assert attempts.count("o1") == 3
    assert attempts.count("o2") == 1
    assert db.run(ParkedRetry(db.context, app).parking.keys()) == []


def test_what_needs_something_that_is_away_is_never_parked(app: StreamApp, db: Db) -> None:
    attempts: list[str] = []

    @app.on.insert(Order)
    def inserted(change: Insert[Order]) -> None:
        attempts.append(change.new.order_id)
        if len(attempts) < 12:
            raise TryLater("the mail server does not answer")

    db.put(Order(order_id="o1"))
    work(app, db)
    assert len(attempts) == 12
    assert db.run(ParkedRetry(db.context, app).parking.keys()) == []


def test_a_poisoned_item_is_parked_with_its_later_changes_and_the_rest_goes_on(
    app: StreamApp, db: Db
) -> None:
    told: list[tuple[str, int]] = []
    other: list[tuple[str, int]] = []
    broken = True

    @app.on.any(Order)
    def first(change: Change[Order]) -> None:
        assert change.new is not None
        other.append((change.new.order_id, change.new.total))

    @app.on.any(Order)
    def second(change: Change[Order]) -> None:
        assert change.new is not None
        if broken and change.new.order_id == "bad" and change.new.total >= 2:
            raise ValueError("cannot")
        told.append((change.new.order_id, change.new.total))

    for total in (1, 2, 3):
        db.put(Order(order_id="bad", total=total))
        db.put(Order(order_id="good", total=total))
    work(app, db)
    db.put(Order(order_id="bad", total=4))
    db.put(Order(order_id="good", total=4))
    work(app, db)
    assert [total for key, total in told if key == "good"] == [1, 2, 3, 4]
    assert [total for key, total in told if key == "bad"] == [1]
    retrying = ParkedRetry(db.context, app)
    [parked] = db.run(retrying.parking.keys())
    assert parked.count == 3 and "ValueError: cannot" in parked.error and parked.handler == "second"

    still = db.run(retrying.retry(parked.mark))
    assert still is not None and still.error == "ValueError: cannot" and still.handled == 0
    broken = False
    done = db.run(retrying.retry(parked.mark))
    assert done is not None and done.error is None and done.handled == 3
    assert [total for key, total in told if key == "bad"] == [1, 2, 3, 4]
    # The first handler had seen 1, 2 and 3 before the second failed, and gets each but once.
    assert [total for key, total in other if key == "bad"] == [1, 2, 3, 4]
    db.put(Order(order_id="bad", total=5))
    work(app, db)
    assert [total for key, total in told if key == "bad"] == [1, 2, 3, 4, 5]
    assert db.run(retrying.parking.keys()) == []
    assert db.run(retrying.retry(parked.mark)) is None


def test_parked_changes_can_be_dropped(app: StreamApp, db: Db) -> None:
    told: list[int] = []

    @app.on.any(Order)
    def handler(change: Change[Order]) -> None:
        assert change.new is not None
        if change.new.total == 1:
            raise ValueError("cannot")
        told.append(change.new.total)

    db.put(Order(order_id="bad", total=1))
    work(app, db)
    retrying = ParkedRetry(db.context, app)
    [parked] = db.run(retrying.parking.keys())
    dropped = db.run(retrying.drop(parked.mark))
    assert dropped is not None and dropped.handled == 1
    db.put(Order(order_id="bad", total=2))
    work(app, db)
    assert told == [2]


def test_a_parked_change_may_be_larger_than_an_item(app: StreamApp, db: Db) -> None:
    """Two images of nearly 400 KB each, that do not compress."""
    import random

    @app.on.any(Order)
    def handler(change: Change[Order]) -> None:
        raise ValueError("cannot")

    noise = random.Random(1)
    for _ in range(2):
        db.put(
            Order(
                order_id="large",
                status="".join(chr(noise.randrange(33, 127)) for _ in range(390_000)),
            )
        )
    work(app, db)
    retrying = ParkedRetry(db.context, app)
    [parked] = db.run(retrying.parking.keys())
    records = db.run(retrying.parking.records(parked.mark))
    stored = db.get(Order, order_id="large")
    assert stored is not None
    assert (records[-1].record.new or {})["status"] == {"S": stored.status}
    assert len(records) == 2


def test_latest_begins_with_what_happens_from_now_on(app: StreamApp, db: Db) -> None:
    told: list[str] = []

    @app.on.insert(Order)
    def inserted(change: Insert[Order]) -> None:
        told.append(change.new.order_id)

    db.put(Order(order_id="before"))
    time.sleep(1.1)  # records tell the second they were made in
    options = WorkerOptions(start="latest", idle_seconds=0.02)
    with app.start(db, options) as running:
        running.catch_up()
        db.put(Order(order_id="after"))
        running.catch_up()
    assert told == ["after"]
    db.put(Order(order_id="between"))
    work(app, db, options)
    assert told == ["after", "between"]


def test_a_snapshot_begins_with_every_item_and_then_the_changes(
    app: StreamApp, db: Db, engine: Engine
) -> None:
    told: dict[str, list[Any]] = {}

    @app.on.any(Order)
    def handler(change: Change[Order]) -> None:
        entity = change.new or change.old
        assert entity is not None
        told.setdefault(entity.order_id, []).append((change.is_snapshot, change.kind, entity.total))

    db.write_many([Order(order_id=f"o{number}", total=1) for number in range(300)])
    [table] = [plan.name for plan in db.context.schema.plan.tables]
    engine.streams.roll(
        engine.call("DescribeTable", {"TableName": table})["Table"]["LatestStreamArn"]
    )
    time.sleep(1.1)
    options = WorkerOptions(start="snapshot", idle_seconds=0.02, batch_records=50)
    with app.start(db, options) as running:
        eventually(lambda: len(told) > 100)
        db.put(Order(order_id="o5", total=2))
        db.put(Order(order_id="new", total=2))
        db.delete(Order, order_id="o6")
        running.catch_up()
    assert len(told) == 301
    assert told["o1"] == [(True, "INSERT", 1)]
    assert told["o5"][-1][1:] == ("MODIFY", 2)
    assert told["o6"][-1][1:] == ("REMOVE", 1)
    assert told["new"][-1] == (False, "INSERT", 2)


def test_groups_get_every_change_each_and_share_one_table(db: Db) -> None:
    told: list[tuple[str, str]] = []
    for name in ("billing", "search"):
        app = StreamApp(shop, name)

        @app.on.insert(Order)
        def inserted(change: Insert[Order], name: str = name) -> None:
            told.append((name, change.new.order_id))

        if name == "billing":
            db.put(Order(order_id="o1"))
        work(app, db)
    assert sorted(told) == [("billing", "o1"), ("search", "o1")]


def test_workers_share_the_shards_and_hand_them_over(app: StreamApp, db: Db) -> None:
    told: dict[str, list[int]] = {}
    lock = threading.Lock()

    @app.on.any(Order)
    def handler(change: Change[Order]) -> None:
        assert change.new is not None
        with lock:
            told.setdefault(change.new.order_id, []).append(change.new.total)

    options = WorkerOptions(start="oldest", idle_seconds=0.02, lease_seconds=3.0)
    with app.start(db, options) as one:
        eventually(lambda: len(one.worker.consumers) == 4)
        with app.start(db, options) as two:
            eventually(lambda: len(two.worker.consumers) == 2 and len(one.worker.consumers) == 2)
            for total in range(1, 20):
                for number in range(20):
                    db.put(Order(order_id=f"o{number}", total=total))
            one.stop()
            eventually(lambda: len(two.worker.consumers) == 4)
            two.catch_up()
    assert told == {f"o{number}": list(range(1, 20)) for number in range(20)}


def test_catching_up_waits_for_the_shards_of_a_worker_that_died(app: StreamApp, db: Db) -> None:
    told: list[str] = []

    @app.on.insert(Order)
    def handler(change: Insert[Order]) -> None:
        told.append(change.new.order_id)

    options = WorkerOptions(start="oldest", idle_seconds=0.02, lease_seconds=2.0)
    with app.start(db, options) as running:
        running.catch_up()
    table = LeaseTable(db.context, "billing", 2.0, 1.0)
    leases = list(db.run(table.load()).leases.values())
    assert len(leases) == 4
    for lease in leases:
        assert db.run(table.take(lease, "somebody who dies at once")) is not None
    db.write_many([Order(order_id=f"o{number}") for number in range(20)])
    work(app, db, options)
    assert len(told) == 20


def test_shards_that_roll_and_split_are_followed(app: StreamApp, db: Db, engine: Engine) -> None:
    told: dict[str, list[int]] = {}

    @app.on.any(Order)
    def handler(change: Change[Order]) -> None:
        assert change.new is not None
        told.setdefault(change.new.order_id, []).append(change.new.total)

    [table] = [plan.name for plan in db.context.schema.plan.tables]
    arn = engine.call("DescribeTable", {"TableName": table})["Table"]["LatestStreamArn"]
    with app.start(db, QUICK) as running:
        for total in range(1, 7):
            for number in range(12):
                db.put(Order(order_id=f"o{number}", total=total))
            if total % 2:
                engine.streams.roll(arn)
            else:
                open_now = engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"][
                    "Shards"
                ]
                engine.streams.split(arn, open_now[-1]["ShardId"])
        running.catch_up()
    assert told == {f"o{number}": list(range(1, 7)) for number in range(12)}


def test_items_of_a_shard_run_side_by_side_where_asked_for(db: Db) -> None:
    app = StreamApp(shop, "parallel", concurrency=4)
    meeting = threading.Barrier(2, timeout=20)
    met: list[str] = []

    @app.on.insert(Order)
    def handler(change: Change[Order]) -> None:
        meeting.wait()
        met.append("met")

    db.write_many([Order(order_id=f"o{number}") for number in range(40)])
    with app.start(db, QUICK):
        eventually(lambda: len(met) >= 20)


def test_a_table_without_a_stream_is_told_of(app: StreamApp, engine: Engine) -> None:
    @app.on.any
    def handler(change: Change[Any]) -> None: ...

    with connect(Design("plain", [Order], [order]), engine) as db:
        plain = StreamApp(Design("plain", [Order], [order]), "x")
        plain.on.any(handler)
        running = plain.start(db, QUICK)
        with pytest.raises(StreamMissing, match="has no stream"):
            running.catch_up()
        with pytest.raises(StreamError):
            running.catch_up()


def test_what_makes_no_sense_is_refused(app: StreamApp, db: Db) -> None:
    class Stranger(Entity):
        stranger_id: str = ident()

    def handler(change: Any) -> None: ...

    with pytest.raises(DesignError, match="Stranger is not in the design"):
        app.on.insert(Stranger)
    with pytest.raises(DesignError, match="is not a field of Order"):
        app.on.modify(Order, when_changed=Customer.name)
    app.on.insert(Order)(handler)
    with pytest.raises(DesignError, match="two handlers named handler"):
        app.on.remove(Order)(handler)
    with pytest.raises(DesignError, match="cannot name"):
        StreamApp(shop, "a#b")
    with pytest.raises(Exception, match="has no handlers"):
        StreamApp(shop, "empty").start(db)


def test_waiting_is_no_attempt_also_beside_one_that_fails(app: StreamApp, db: Db) -> None:
    tries: dict[str, int] = {}

    @app.on.insert(Order)
    def sometimes(change: Insert[Order]) -> None:
        name = change.new.order_id
        tries[name] = tries.get(name, 0) + 1
        if name.startswith("bad"):
            raise ValueError("bad")
        if tries[name] < 8:
            raise TryLater("not yet")

    bad, waiting = (
        [f"{kind}{number}" for number in range(12)] for kind in ("bad", "waits")
    )  # in the same shards
    for name in [*bad, *waiting]:
        db.put(Order(order_id=name))
    work(app, db)
    assert tries == {**dict.fromkeys(bad, QUICK.max_attempts), **dict.fromkeys(waiting, 8)}
    parked = db.run(ParkedRetry(db.context, app).parking.keys())
    assert len(parked) == len(bad) and all("bad" in each.key for each in parked)


def test_each_change_of_an_item_has_attempts_of_its_own(app: StreamApp, db: Db) -> None:
    tries: dict[int, int] = {}

    @app.on.any(Order)
    def twice(change: Change[Order]) -> None:
        assert change.new is not None
        tries[change.new.total] = tries.get(change.new.total, 0) + 1
        if tries[change.new.total] < QUICK.max_attempts:
            raise ValueError("again")

    for total in range(3):
        db.put(Order(order_id="o1", total=total))
    work(app, db)
    assert tries == dict.fromkeys(range(3), QUICK.max_attempts)
    assert not db.run(ParkedRetry(db.context, app).parking.keys())


def test_stopping_says_which_threads_outlive_it(
    app: StreamApp, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    entered, released = threading.Event(), threading.Event()

    @app.on.insert(Order)
    def hangs(change: Insert[Order]) -> None:
        entered.set()
        released.wait()

    db.put(Order(order_id="o1", total=1))
    running = app.start(db, QUICK)
    assert entered.wait(30)
    with pytest.raises(StreamError, match=r"within 0\.1 seconds; still running: stator-"):
        running.stop(timeout_seconds=0.1)
    assert "did not stop within" in caplog.text
    released.set()
    running.stop()
