"""Items that a subscriber cannot handle are set aside for it, retried, and at last parked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from stator import Db, Engine, TableSettings, connect
from stator.errors import StreamError, TryLater
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers import batch_delivery
from stator.pipeline.workers.handlers.change import Change, key_mark
from stator.pipeline.workers.handlers.parked_retry import ParkedRetry
from stator.pipeline.workers.handlers.parking import ParkedKey
from stator.pipeline.workers.options import WorkerOptions
from stator.tables.runner import Runner
from tests.targets import Target

from .shop import Order, shop
from .simulation import Applying, Faults, Reading, Simulation, check_order, is_complete
from .test_workers import QUICK, work

pytestmark = pytest.mark.usefixtures("quiet")
CALM = Faults(0.0, 0.0, 0.0, 0.0, 0.0)


class OutageSimulation(Simulation):
    """A handler that fails for some keys until a moment, next to a subscriber that never does."""

    def __init__(self, seed: int, error: type[Exception], **options: Any) -> None:
        super().__init__(seed, CALM, **options)
        self.error = error
        self.failing: Callable[[str], bool] = lambda key: True
        self.until = float("inf")
        self.attempts: dict[str, list[float]] = {}
        self.handled: dict[str, list[int]] = {}

    def app(self) -> StreamApp:
        app = StreamApp(self.design, "group")
        app.on.any(Reading, name="flaky")(self._handle)
        app.add(Applying(self))
        return app

    def _handle(self, change: Change[Reading]) -> None:
        key = self.key_of(change.record.keys)
        if self.failing(key) and self.clock.now() < self.until:
            self.attempts.setdefault(key, []).append(self.clock.now())
            raise self.error("the dependency does not answer")
        self.handled.setdefault(key, []).append(int(change.sequence_number))

    def run(self, work: Any) -> Any:
        return Runner(self.transport, self.clock).run(work)

    def heads(self) -> list[ParkedKey]:
        heads: list[ParkedKey] = self.run(ParkedRetry(self.context, self.app()).parking.keys())
        return heads

    def put(self, key: str, times: int = 1) -> None:
        for number in range(times):
            item = {**self.key(key), "sensor": {"S": key}, "value": {"N": str(number)}}
            self.engine.call("PutItem", {"TableName": self.table, "Item": item})


@pytest.mark.parametrize("error", [ValueError, ConnectionError, TryLater])
@pytest.mark.parametrize("outage_seconds", [2.0, 15.0])
def test_an_outage_of_seconds_parks_nothing(error: type[Exception], outage_seconds: float) -> None:
    world = OutageSimulation(1, error)
    world.until = world.clock.now() + outage_seconds
    world.write(60)
    world.start_worker()
    written = world.written()
    world.settle(lambda: is_complete(world.handled, written))
    check_order(world.handled, written)
    assert sum(map(len, world.handled.values())) == sum(map(len, written.values()))
    world.settle(lambda: world.heads() == [])
    world.close()


def test_other_items_and_other_subscribers_go_on_meanwhile() -> None:
    world = OutageSimulation(2, ValueError)
    world.failing = lambda key: key == "SENSOR#k1"
    world.put("k1", 3)
    world.start_worker()
    world.settle(lambda: len(world.heads()) == 1)
    for _ in range(3):  # before and while it is retried
        world.put("k1")
        world.write(10)
        written = world.written()
        others = {key: each for key, each in written.items() if key != "SENSOR#k1"}
        world.settle(
            lambda others=others, written=written: (
                is_complete(world.handled, others)  # type: ignore[misc]
                and is_complete(world.applied.by_key, written)
            )
        )
    check_order(world.applied.by_key, written)
    assert "SENSOR#k1" not in world.handled
    [head] = world.heads()
    assert (head.subscriber, head.handler, head.is_set_aside) == ("handlers", "flaky", True)
    world.until = 0.0
    world.settle(lambda: is_complete(world.handled, written))
    check_order(world.handled, written)
    world.close()


def test_attempts_are_spread_over_tens_of_seconds_with_growing_waits() -> None:
    world = OutageSimulation(3, ValueError)
    world.failing = lambda key: key == "SENSOR#k1"
    world.put("k1", 2)
    world.start_worker()
    world.settle(lambda: any(not head.is_set_aside for head in world.heads()))
    attempts = world.attempts["SENSOR#k1"]
    waits = [later - earlier for earlier, later in pairwise(attempts)]
    assert len(attempts) == WorkerOptions().max_attempts
    assert 20.0 < sum(waits) < 120.0
    assert waits[-1] > 4 * waits[0]
    [head] = world.heads()
    assert (head.count, head.attempts, head.retry_at) == (2, len(attempts), None)
    for _ in range(2000):  # a parked item is not retried by itself
        world.step()
    assert world.attempts["SENSOR#k1"] == attempts
    world.close()


@pytest.mark.parametrize("stops", [False, True])
def test_the_shard_waits_when_too_many_items_fail(
    monkeypatch: pytest.MonkeyPatch, stops: bool
) -> None:
    """Setting aside costs writes: in an outage of everything, only some items are set aside."""
    monkeypatch.setattr(batch_delivery, "_MOST_SET_ASIDE", 3)
    world = OutageSimulation(4, ConnectionError, max_attempts=1000)
    keys = [f"k{number}" for number in range(60)]
    for key in keys:
        world.put(key)
    name = world.start_worker()
    world.calm = True
    for _ in range(3000):
        world.step()
    assert 3 < len(world.heads()) <= 4 * 3  # four shards
    assert len(world.attempts) == 60
    if stops:
        world.workers[name].stop()
        world.settle(lambda: not any(task.worker == name for task in world.tasks))
        world.crash(name)
        # Everything was stored, so the next worker repeats nothing.
        assert len(world.heads()) == 60
    world.until = 0.0
    world.put("k1")
    written = world.written()
    world.settle(lambda: is_complete(world.handled, written))
    check_order(world.handled, written)
    assert sum(map(len, world.handled.values())) == sum(map(len, written.values()))
    world.close()


@pytest.mark.parametrize("seed", range(12))
def test_an_item_keeps_its_order_when_its_shard_ends_while_it_is_set_aside(seed: int) -> None:
    world = OutageSimulation(seed, ValueError)
    world.failing = lambda key: key in ("SENSOR#k1", "SENSOR#k2")
    world.until = world.clock.now() + 12.0
    world.start_worker()
    for _ in range(4):
        world.write(12)
        for _ in range(150):
            world.step()
        if seed % 2:
            world.roll()
        else:
            world.split()
    written = world.written()
    world.settle(lambda: is_complete(world.handled, written))
    check_order(world.handled, written)
    check_order(world.applied.by_key, written)
    world.close()


# -- on every target


def test_a_failing_item_waits_for_its_subscriber_alone_on_every_target(target: Target) -> None:
    db = target.connect(shop)
    app = StreamApp(shop, "billing")
    told: list[tuple[str, str]] = []
    batches: list[str] = []
    broken = {"o1", "o2"}
    failures = {"o2": 2}

    @app.on.insert(Order)
    def first(change: Change[Order]) -> None:
        told.append(("first", str(change.identity["order_id"])))

    @app.on.any(Order)
    def second(change: Change[Order]) -> None:
        key = str(change.identity["order_id"])
        if key in broken:
            failures[key] = failures.get(key, 100) - 1
            if failures[key] >= 0:
                raise ValueError("cannot")
        told.append(("second", key))

    @app.on.batch(Order)
    def batch(changes: list[Change[Order]]) -> None:
        batches.extend(str(change.identity["order_id"]) for change in changes)

    app.ensure(db)
    for number in range(4):
        db.put(Order(order_id=f"o{number}"))
    db.put(Order(order_id="o1", total=1))
    work(app, db)
    assert sorted(batches) == ["o0", "o1", "o1", "o2", "o3"]
    assert sorted(told) == [
        *(("first", f"o{number}") for number in range(4)),
        *(("second", f"o{number}") for number in (0, 2, 3)),
    ]
    retrying = ParkedRetry(db.context, app)
    [parked] = db.run(retrying.parking.keys())
    assert (parked.subscriber, parked.handler, parked.count) == ("handlers", "second", 2)
    broken.clear()
    outcome = db.run(retrying.retry(parked.mark))
    assert outcome is not None and (outcome.error, outcome.handled) == (None, 2)
    assert told[-2:] == [("second", "o1"), ("second", "o1")]  # not first: it had handled it
    assert told.count(("first", "o1")) == 1


def test_a_retry_that_was_killed_gives_its_item_up_after_a_minute() -> None:
    world = OutageSimulation(5, ValueError)
    world.put("k1", times=3)
    world.start_worker()
    world.settle(lambda: any(not head.is_set_aside for head in world.heads()))
    [head] = world.heads()
    retrying = ParkedRetry(world.context, world.app())
    assert world.run(retrying.parking.claim(head.mark)) is not None  # and then it is killed
    world.until = 0.0
    for asked in (retrying.retry(head.mark), retrying.drop(head.mark)):
        refused = world.run(asked)
        assert refused is not None and "another process is retrying it" in str(refused.error)
    world.clock.advance(90)
    done = world.run(retrying.retry(head.mark))
    assert done is not None and (done.error, done.handled) == (None, 3)
    world.close()


# -- on the embedded engine


@pytest.fixture
def db(engine: Engine) -> Any:
    with connect(shop, engine) as opened:
        opened.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        yield opened


def test_an_item_of_a_snapshot_is_parked_and_retried(db: Db) -> None:
    app = StreamApp(shop, "billing")
    told: list[tuple[bool, str]] = []
    broken = ["yes"]

    @app.on.insert(Order)
    def handler(change: Change[Order]) -> None:
        if broken:
            raise ValueError("cannot")
        told.append((change.is_snapshot, str(change.identity["order_id"])))

    db.put(Order(order_id="o1"))
    options = WorkerOptions(start="snapshot", idle_seconds=0.02, retry_seconds=0.01, max_attempts=2)
    with app.start(db, options) as running:
        running.catch_up()
    retrying = ParkedRetry(db.context, app)
    [parked] = db.run(retrying.parking.keys())
    broken.clear()
    outcome = db.run(retrying.retry(parked.mark))
    assert outcome is not None and outcome.error is None
    assert told[0] == (True, "o1")


def test_an_item_that_version_1_parked_stays_blocked_for_all_subscribers(db: Db) -> None:
    """Its head has no subscriber. New changes join it until it is retried."""
    app = StreamApp(shop, "billing")
    told: list[tuple[str, int]] = []

    @app.on.any(Order)
    def single(change: Change[Order]) -> None:
        assert change.new is not None
        told.append(("single", change.new.total))

    @app.on.batch(Order)
    def batch(changes: list[Change[Order]]) -> None:
        told.extend(("batch", change.new.total) for change in changes if change.new)

    place = db.context.schema.place
    key = db.context.schema.of(Order).key_from({"order_id": "o1"})
    text = '{"PK":{"S":"ORDER#o1"},"SK":{"S":"ORDER"}}'
    assert set(key) == {"PK", "SK"}
    head = {
        **place.key("WORK#billing#PARKED", key_mark("shop", text)),
        "table": {"S": "shop"},
        "key": {"S": text},
        "handler": {"S": "single"},
        "error": {"S": "ValueError: cannot"},
        "since": {"N": "1763251200.5"},
        "first": {"S": "1"},
        "last": {"S": "1"},
        "count": {"N": "0"},
        "_format": {"N": "1"},
    }
    db.call("PutItem", {"TableName": place.table, "Item": head})
    for total in (1, 2):
        db.put(Order(order_id="o1", total=total))
    db.put(Order(order_id="o2", total=3))
    work(app, db)
    assert sorted(told) == [("batch", 3), ("single", 3)]
    retrying = ParkedRetry(db.context, app)
    [parked] = db.run(retrying.parking.keys())
    assert (parked.subscriber, parked.count, parked.is_set_aside) == (None, 2, False)
    told.clear()
    outcome = db.run(retrying.retry(parked.mark))
    assert outcome is not None and (outcome.error, outcome.handled) == (None, 2)
    assert told == [("single", 1), ("batch", 1), ("single", 2), ("batch", 2)]
    db.put(Order(order_id="o1", total=4))
    work(app, db)
    assert sorted(told[4:]) == [("batch", 4), ("single", 4)]


def test_an_item_that_waits_for_a_subscriber_that_is_gone_is_explained(db: Db) -> None:
    app = StreamApp(shop, "billing")

    @app.on.batch(Order, name="old_name")
    def batch(changes: list[Change[Order]]) -> None:
        raise ValueError("cannot")

    db.put(Order(order_id="o1"))
    work(app, db)
    renamed = StreamApp(shop, "billing")
    renamed.on.batch(Order, name="new_name")(lambda changes: None)
    retrying = ParkedRetry(db.context, renamed)
    [parked] = db.run(retrying.parking.keys())
    with pytest.raises(StreamError, match="for old_name, which the app billing does not have"):
        db.run(retrying.retry(parked.mark))
    dropped = db.run(retrying.drop(parked.mark))  # it is not held by the retry that was refused
    assert dropped is not None and dropped.handled == 1
    assert QUICK.max_attempts == parked.attempts
