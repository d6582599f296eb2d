"""Whatever handlers an app has, and whichever of them fail, each item keeps its order."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import Engine, TableSettings, connect
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers.parked_retry import ParkedRetry
from stator.tables.runner import Runner

from .shop import Order, shop
from .simulated_handlers import HandlerCall, HandlerLog, HandlerSimulation
from .simulation import Faults, check_order, is_complete
from .test_lambda import event_of

pytestmark = pytest.mark.usefixtures("quiet")


def run_schedule(seed: int, faults: Faults | None = None, **options: Any) -> HandlerSimulation:
    world = HandlerSimulation(seed, faults, **options)
    for _ in range(world.chance.randrange(1, 4)):
        world.start_worker()
    for _ in range(world.chance.randrange(100, 400)):
        world.step()
        world.happen()
    return world


@pytest.mark.parametrize("seed", range(60))
def test_a_change_is_handled_after_all_earlier_ones_of_its_item(seed: int) -> None:
    world = run_schedule(seed)
    world.start_worker()
    changes, written = world.kinds_written(), world.written()
    world.settle(
        lambda: world.log.is_complete(changes) and is_complete(world.applied.by_key, written)
    )
    world.log.check(changes)
    check_order(world.applied.by_key, written)
    world.close()


@pytest.mark.parametrize("seed", range(300, 320))
def test_items_that_are_parked_come_back_in_order(seed: int) -> None:
    """One handler never handles one item: the others wait with it, other subscribers do not."""
    world = run_schedule(seed, Faults(crash_in_handler=0.0), max_attempts=4)
    world.cursed = {(name, "SENSOR#k1") for name, _ in world.log.handlers[1:]}
    world.write(40)
    world.start_worker()
    changes, written = world.kinds_written(), world.written()
    retrying = ParkedRetry(world.context, world.app())

    def run(work: Any) -> Any:
        return Runner(world.transport, world.clock).run(work)

    def is_done() -> bool:
        others = {key: each for key, each in changes.items() if key != "SENSOR#k1"}
        is_waiting = any(key.retry_at is not None for key in run(retrying.parking.keys()))
        return (
            world.log.is_complete(others)
            and is_complete(world.applied.by_key, written)
            and not is_waiting
        )

    world.settle(is_done)
    world.log.check(changes)
    check_order(world.applied.by_key, written)
    world.cursed, world.failing = set(), 0.0
    world._failures.clear()
    for parked in run(retrying.parking.keys()):
        outcome = run(retrying.retry(parked.mark))
        assert outcome is not None and outcome.error is None
    assert run(retrying.parking.keys()) == []
    assert world.log.is_complete(changes)
    world.log.check(changes)
    world.close()


@settings(max_examples=60, deadline=None)
@given(
    decorators=st.lists(
        st.sampled_from(["insert", "modify", "remove", "any"]), min_size=2, max_size=4
    ),
    writes=st.lists(
        st.tuples(st.sampled_from(["o1", "o2"]), st.booleans()), min_size=1, max_size=15
    ),
    seed=st.integers(0, 10_000),
)
def test_lambda_keeps_the_order_and_repeats_from_the_lowest_failed_change(
    decorators: list[str], writes: list[tuple[str, bool]], seed: int
) -> None:
    chance = random.Random(seed)
    log = HandlerLog([(f"h{number}", each) for number, each in enumerate(decorators)])
    app = StreamApp(shop, "function")
    failed: set[tuple[str, int]] = set()

    def register(name: str, decorator: str) -> None:
        def handler(change: Any) -> None:
            sequence = int(change.sequence_number)
            fails = chance.random() < 0.2 and (name, sequence) not in failed
            log.calls.append(HandlerCall(name, change.record.key, sequence, not fails))
            if fails:
                failed.add((name, sequence))
                raise ValueError("cannot")

        getattr(app.on, decorator)(Order, name=name)(handler)

    for name, decorator in log.handlers:
        register(name, decorator)
    with Engine.open() as engine, connect(shop, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        for number, (key, is_delete) in enumerate(writes):
            if is_delete:
                db.delete(Order, order_id=key)
            else:
                db.put(Order(order_id=key, total=number))
        records = event_of(engine, db)["Records"]
        changes: dict[str, list[tuple[int, str]]] = {}
        handle = app.lambda_handler(db)
        while records:
            answer = handle({"Records": records}, None)["batchItemFailures"]
            lowest = int(answer[0]["itemIdentifier"]) if answer else None
            records = [
                record
                for record in records
                if lowest is not None and int(record["dynamodb"]["SequenceNumber"]) >= lowest
            ]
        for record in event_of(engine, db)["Records"]:
            body = record["dynamodb"]
            [key_text] = {
                call.key for call in log.calls if call.sequence == int(body["SequenceNumber"])
            } or [str(body["Keys"])]
            changes.setdefault(key_text, []).append(
                (int(body["SequenceNumber"]), record["eventName"])
            )
        log.check(changes)
        wanted = {
            key: [each for each in found if log.wanting(each[1])] for key, found in changes.items()
        }
        assert log.is_complete(wanted)
