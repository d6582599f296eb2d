"""The stream handler: the same results from a worker and from Lambda, and from repeated changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import stream_handler
from stream_handler import Mail, Order, Parcel, Status, app_for, mails_of, shop

from stator import Db, Engine, connect
from stator.pipeline import WorkerOptions
from stator.testing import Fault, faulty
from tests.targets import Target

from .stream_events import event_of

CONFIRMED, SHIPPED = "We have your order of 19.90.", "Your order is shipped."


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open() as engine:
        yield engine


@pytest.fixture
def db(engine: Engine) -> Iterator[Db]:
    with connect(shop, engine) as db:
        app_for(db).ensure(db)
        yield db


def sell(db: Db) -> None:
    """One order is shipped, one is changed in another field, and one is deleted."""
    for number in range(3):
        db.create(Order(order_id=f"o{number}", email=f"{number}@example.com", cents=1990))
    with db.update(Order, order_id="o0") as order:
        order.status = Status.SHIPPED
    with db.update(Order, order_id="o1") as order:
        order.email = "other@example.com"
    db.delete(Order, order_id="o2")


def results(db: Db) -> tuple[dict[str, list[str]], list[str]]:
    """The mails of each order, and the orders that have a parcel."""
    mails = {
        f"o{number}": sorted(mail.text for mail in db.fetch(mails_of(f"o{number}")))
        for number in range(3)
    }
    return mails, sorted(each.order_id for each in db.scan(Parcel, allow=True))


EXPECTED = ({"o0": [CONFIRMED, SHIPPED], "o1": [CONFIRMED], "o2": [CONFIRMED]}, ["o0", "o1"])


def test_a_worker_handles_every_change(target: Target) -> None:
    db = target.connect(shop)
    app = app_for(db)
    app.ensure(db)
    with app.start(db, WorkerOptions(start="oldest")) as worker:
        sell(db)
        worker.catch_up()
    assert results(db) == EXPECTED


def test_lambda_handles_every_change_and_a_repeated_event_changes_nothing(
    engine: Engine, db: Db
) -> None:
    sell(db)
    event = event_of(engine, db)
    handler = app_for(db).lambda_handler(db)
    for _ in range(3):
        assert handler(event, None) == {"batchItemFailures": []}
        assert results(db) == EXPECTED
    assert sum(1 for _ in db.scan(Mail, allow=True)) == 4


def test_a_batch_that_fails_in_the_middle_is_finished_by_its_repetition(
    engine: Engine, db: Db
) -> None:
    sell(db)
    event = event_of(engine, db)
    handler = app_for(db).lambda_handler(db)
    with faulty(db, lambda call: Fault("lost answer") if call.number == 3 else None):
        [failed] = handler(event, None)["batchItemFailures"]
    sequence_numbers = [each["dynamodb"]["SequenceNumber"] for each in event["Records"]]
    again = sequence_numbers.index(failed["itemIdentifier"])
    assert again > 0
    assert handler({"Records": event["Records"][again:]}, None) == {"batchItemFailures": []}
    assert results(db) == EXPECTED


def test_the_lambda_function_connects_to_the_region_of_its_environment(
    engine: Engine, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    sell(db)
    connected = []

    def connect_to(design: object, address: str) -> Db:
        connected.append((design, address))
        return db

    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setattr(stream_handler, "connect", connect_to)
    stream_handler.lambda_handler.cache_clear()
    try:
        for _ in range(2):
            event = event_of(engine, db)
            assert stream_handler.handler(event, None) == {"batchItemFailures": []}
    finally:
        stream_handler.lambda_handler.cache_clear()
    assert connected == [(shop, "aws://eu-west-1")]
    assert results(db) == EXPECTED
