"""The app as an AWS Lambda function."""

from __future__ import annotations

import random
from typing import Any

import pytest

from stator import Db, Engine, TableSettings, connect
from stator.errors import ConfigurationError
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers.change import Change, Remove
from tests.engine.streams.reading import read_all

from .shop import Customer, Order, shop


def event_of(engine: Engine, db: Db) -> dict[str, Any]:
    """An event as Lambda sends it: records with their source, and ``principalId``."""
    [table] = [plan.name for plan in db.context.schema.plan.tables]
    arn = engine.call("DescribeTable", {"TableName": table})["Table"]["LatestStreamArn"]
    records = sorted(
        read_all(engine, arn), key=lambda record: int(record["dynamodb"]["SequenceNumber"])
    )
    for record in records:
        record["eventSourceARN"] = arn
        if "userIdentity" in record:
            record["userIdentity"] = {"principalId": "dynamodb.amazonaws.com", "type": "Service"}
    return {"Records": records}


def test_the_lowest_failed_number_is_reported_and_nothing_later_is_repeated() -> None:
    with Engine.open() as engine, connect(shop, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(shop, "function")
        told: list[str] = []
        later: list[str] = []

        @app.on.any(Order)
        def first(change: Change[Order]) -> None:
            assert change.new is not None
            if change.new.order_id in ("o3", "o5"):
                raise ValueError("cannot")
            told.append(change.new.order_id)

        @app.on.any(Order)
        def second(change: Change[Order]) -> None:
            assert change.new is not None
            later.append(change.new.order_id)

        for number in range(7):
            db.put(Order(order_id=f"o{number}"))
        event = event_of(engine, db)
        answer = app.lambda_handler(db)(event, None)
        failed = event["Records"][3]["dynamodb"]["SequenceNumber"]
        assert answer == {"batchItemFailures": [{"itemIdentifier": failed}]}
        assert later == ["o0", "o1", "o2"]
        assert told == ["o0", "o1", "o2"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "sqs": ({"Records": [{"eventSource": "aws:sqs", "body": "x"}]}, "from aws:sqs"),
    "sns": ({"Records": [{"EventSource": "aws:sns", "Sns": {}}]}, "from aws:sns"),
    "kinesis": ({"Records": [{"eventSource": "aws:kinesis", "kinesis": {}}]}, "from aws:kinesis"),
    "eventbridge": (
        {"detail-type": "x", "detail": {}},
        "no list Records; it has detail, detail-type",
    ),
    "nothing": ({}, "no list Records; it has nothing"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_event_of_another_service_is_refused(name: str) -> None:
    event, message = REFUSED[name]
    with Engine.open() as engine, connect(shop, engine) as db:
        app = StreamApp(shop, "function")
        app.on.any(Order)(lambda change: pytest.fail("it was handled"))
        with pytest.raises(ConfigurationError, match=message):
            app.lambda_handler(db)(event, None)


def test_an_event_of_another_table_is_refused() -> None:
    with Engine.open() as engine, connect(shop, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(shop, "function")
        app.on.any(Order)(lambda change: pytest.fail("it was handled"))
        db.put(Order(order_id="o1"))
        event = event_of(engine, db)
        for record in event["Records"]:
            arn = record["eventSourceARN"].replace(":table/shop/", ":table/shop-of-others/")
            record["eventSourceARN"] = arn
        with pytest.raises(ConfigurationError, match="from table shop-of-others; the design has"):
            app.lambda_handler(db)(event, None)


# What replaces a part of a record, and what the error says. The path leads to the part.
MALFORMED: dict[str, tuple[tuple[str, ...], Any, str]] = {
    "no kind": (("eventName",), None, "eventName is None"),
    "another kind": (("eventName",), "UPSERT", "eventName is 'UPSERT'"),
    "a list as kind": (("eventName",), [], "eventName is"),
    "a text as body": (("dynamodb",), "x", "dynamodb is a str"),
    "nothing as body": (("dynamodb",), None, "dynamodb is a NoneType"),
    "no number": (("dynamodb", "SequenceNumber"), None, "SequenceNumber is None"),
    "a text as number": (("dynamodb", "SequenceNumber"), "1a", "SequenceNumber is '1a'"),
    "an int as number": (("dynamodb", "SequenceNumber"), 5, "SequenceNumber is 5"),
    "no keys": (("dynamodb", "Keys"), None, "no Keys"),
    "empty keys": (("dynamodb", "Keys"), {}, "no Keys"),
    "a text as keys": (("dynamodb", "Keys"), "x", "Keys is not an item"),
    "plain keys": (("dynamodb", "Keys"), {"PK": "x"}, "Keys is not an item"),
    "a list as image": (("dynamodb", "NewImage"), [], "NewImage is not an item"),
    "a plain image": (("dynamodb", "NewImage"), {"a": 5}, "NewImage is not an item"),
    "a text as time": (("dynamodb", "ApproximateCreationDateTime"), "x", "DateTime is 'x'"),
    "a text as identity": (("userIdentity",), "x", "userIdentity"),
    "no table": (("eventSourceARN",), None, "from table"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_record_is_refused_before_anything_is_handled(name: str) -> None:
    path, value, message = MALFORMED[name]
    with Engine.open() as engine, connect(shop, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(shop, "function")
        app.on.any(Order)(lambda change: pytest.fail("it was handled"))
        for number in range(2):
            db.put(Order(order_id=f"o{number}"))
        event = event_of(engine, db)
        part = event["Records"][1]
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value
        for given in (part, None) if value is None else (part,):
            if given is None:  # a missing member is the same
                del part[path[-1]]
            with pytest.raises(ConfigurationError, match=message) as refused:
                app.lambda_handler(db)(event, None)
            assert refused.value.hint


@pytest.mark.parametrize("event", [None, [], "x", 5, {"Records": None}, {"Records": [None]}])
def test_what_is_no_event_is_refused(event: Any) -> None:
    with Engine.open() as engine, connect(shop, engine) as db:
        app = StreamApp(shop, "function")
        app.on.any(Order)(lambda change: pytest.fail("it was handled"))
        with pytest.raises(ConfigurationError):
            app.lambda_handler(db)(event, None)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_batch_in_another_order_loses_nothing(concurrency: int) -> None:
    """Lambda takes everything below the reported number as handled."""
    with Engine.open() as engine, connect(shop, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(shop, "function", concurrency=concurrency)
        told: list[str] = []

        @app.on.any(Order)
        def handle(change: Change[Order]) -> None:
            assert change.new is not None
            if change.new.order_id in ("o4", "o6"):
                raise ValueError("cannot")
            told.append(change.sequence_number)

        for number in range(9):
            db.put(Order(order_id=f"o{number}"))
        ordered = event_of(engine, db)["Records"]
        numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in ordered]
        chance = random.Random(7)
        for _ in range(20):
            told.clear()
            records = chance.sample(ordered, len(ordered))
            [failure] = app.lambda_handler(db)({"Records": records}, None)["batchItemFailures"]
            reported = int(failure["itemIdentifier"])
            assert reported == numbers[4]
            assert {each for each in numbers if each < reported} <= set(map(int, told))


def test_records_of_several_streams_are_refused() -> None:
    with Engine.open() as engine, connect(shop, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(shop, "function")
        app.on.any(Order)(lambda change: pytest.fail("it was handled"))
        for number in range(2):
            db.put(Order(order_id=f"o{number}"))
        event = event_of(engine, db)
        event["Records"][1]["eventSourceARN"] += "0"
        with pytest.raises(ConfigurationError, match="records of several streams"):
            app.lambda_handler(db)(event, None)


def test_a_batch_that_is_handled_reports_nothing() -> None:
    with Engine.open() as engine, connect(shop, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(shop, "function")
        told: list[Any] = []

        @app.on.remove(Order, expired=True)
        def expired(change: Remove[Order]) -> None:
            told.append(change.old.order_id)

        @app.on.insert(Customer)
        def customer(change: Change[Customer]) -> None:
            told.append(change.new.name if change.new else None)

        db.put(Order(order_id="old", expires=1_700_000_000))
        db.put(Customer(customer_id="c1", name="Anna"))
        engine.sweep()
        assert app.lambda_handler(db)(event_of(engine, db), None) == {"batchItemFailures": []}
        assert sorted(told) == ["Anna", "old"]
        assert app.lambda_handler(db)({"Records": []}, None) == {"batchItemFailures": []}
