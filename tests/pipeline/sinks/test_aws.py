"""SQS, SNS and Kinesis sinks, against moto's server.

All three speak their real protocols to it, and it can be stopped and started with its content.
(kinesalite would serve for Kinesis, but does not refuse a record that is too large.) Partial
failures, which moto does not produce, are injected on the way to it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import botocore.session
import pytest

from stator import Db
from stator.errors import ConfigurationError
from stator.pipeline import StreamApp
from stator.pipeline.sinks.aws import AwsSink
from stator.pipeline.sinks.kinesis import KinesisSink
from stator.pipeline.sinks.sqs_sns import SnsSink, SqsSink

from ...ports import free_port
from ..shop import Order
from .worker_steps import (
    ORDERS,
    QUICK,
    ROUNDS,
    WRITTEN,
    Crashing,
    eventually,
    first_of_each,
    parked,
    totals,
    work,
    write_orders,
)

moto_server = pytest.importorskip("moto.server", reason="moto is not installed")


class Moto:
    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._server: Any = None

    def start(self) -> None:
        self._server = moto_server.ThreadedMotoServer("127.0.0.1", self.port, verbose=False)
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def client(self, service: str) -> Any:
        from botocore.config import Config

        return botocore.session.get_session().create_client(
            service,
            region_name="eu-west-1",
            endpoint_url=self.url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"max_attempts": 1}, connect_timeout=2, read_timeout=10),
        )


@pytest.fixture(scope="module")
def moto() -> Iterator[Moto]:
    server = Moto()
    server.start()
    yield server
    server.stop()


@dataclass
class Target:
    """A sink, the messages received so far, and the client it uses."""

    sink: AwsSink
    read: Callable[[], list[Any]]
    client: Any
    operation: str


def queue(moto: Moto, name: str) -> tuple[Any, str, Callable[[], list[Any]]]:
    client = moto.client("sqs")
    attributes = (
        {"FifoQueue": "true", "VisibilityTimeout": "600"}
        if name.endswith(".fifo")
        else {"VisibilityTimeout": "600"}
    )
    url = client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    found: list[Any] = []

    def read() -> list[Any]:
        while True:
            reply = client.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
            )
            if not reply.get("Messages"):
                return found
            found.extend(json.loads(message["Body"]) for message in reply["Messages"])
            for message in reply["Messages"]:
                client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    return client, url, read


def sqs(moto: Moto, suffix: str) -> Target:
    client, url, read = queue(moto, f"q{uuid4().hex[:8]}{suffix}")
    return Target(SqsSink("out", url, client=client), read, client, "send_message_batch")


def sns(moto: Moto, suffix: str) -> Target:
    """A topic, read through a queue that subscribes to it."""
    client, url, read = queue(moto, f"s{uuid4().hex[:8]}{suffix}")
    topics = moto.client("sns")
    attributes = {"FifoTopic": "true"} if suffix else {}
    arn = topics.create_topic(Name=f"t{uuid4().hex[:8]}{suffix}", Attributes=attributes)["TopicArn"]
    queue_arn = client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])[
        "Attributes"
    ]["QueueArn"]
    topics.subscribe(
        TopicArn=arn, Protocol="sqs", Endpoint=queue_arn, Attributes={"RawMessageDelivery": "true"}
    )
    return Target(SnsSink("out", arn, client=topics), read, topics, "publish_batch")


def kinesis(moto: Moto, suffix: str) -> Target:
    client = moto.client("kinesis")
    name = f"k{uuid4().hex[:8]}"
    client.create_stream(StreamName=name, ShardCount=2)

    def read() -> list[Any]:
        found: list[Any] = []
        for shard in client.list_shards(StreamName=name)["Shards"]:
            iterator = client.get_shard_iterator(
                StreamName=name, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            while records := (reply := client.get_records(ShardIterator=iterator))["Records"]:
                found += [json.loads(record["Data"]) for record in records]
                iterator = reply["NextShardIterator"]
        return found

    return Target(KinesisSink("out", name, client=client), read, client, "put_records")


MAKERS = {
    "sqs": (sqs, ""),
    "sqs-fifo": (sqs, ".fifo"),
    "sns": (sns, ""),
    "sns-fifo": (sns, ".fifo"),
    "kinesis": (kinesis, ""),
}
ORDERED = ("sqs-fifo", "sns-fifo", "kinesis")


@pytest.fixture
def target(moto: Moto, request: pytest.FixtureRequest) -> Target:
    maker, suffix = MAKERS[request.param]
    return maker(moto, suffix)


everywhere = pytest.mark.parametrize("target", MAKERS, indirect=True)
where_there_is_order = pytest.mark.parametrize("target", ORDERED, indirect=True)


def in_any_order(found: dict[str, list[int]]) -> dict[str, list[int]]:
    return {name: sorted(each) for name, each in found.items()}


@everywhere
def test_all_changes_arrive_and_in_order_if_the_target_keeps_one(
    app: StreamApp, db: Db, target: Target
) -> None:
    app.add(target.sink)
    write_orders(db)
    work(app, db)
    found = target.read()
    assert len(found) == ORDERS * ROUNDS
    ordered = not isinstance(target.sink, (SqsSink, SnsSink)) or target.sink.is_fifo
    assert (totals(found) if ordered else in_any_order(totals(found))) == WRITTEN


class Unreliable:
    """A client of which some entries fail at random, as the services allow."""

    def __init__(self, client: Any, operation: str) -> None:
        self._client = client
        self._operation = operation
        self._random = random.Random(7)
        self.failed = 0

    def __getattr__(self, name: str) -> Any:
        return self._call if name == self._operation else getattr(self._client, name)

    def _call(self, **request: Any) -> Any:
        [(name, entries)] = [each for each in request.items() if isinstance(each[1], list)]
        lucky = [entry for entry in entries if self._random.random() < 0.6]
        self.failed += len(entries) - len(lucky)
        reply = (
            getattr(self._client, self._operation)(**{**request, name: lucky})
            if lucky
            else {"Records": []}
        )
        if self._operation != "put_records":
            unlucky = [entry for entry in entries if entry not in lucky]
            failed = [
                {"Id": entry["Id"], "SenderFault": False, "Code": "InternalError"}
                for entry in unlucky
            ]
            return {**reply, "Failed": failed}
        results = iter(reply["Records"])
        throttled = {
            "ErrorCode": "ProvisionedThroughputExceededException",
            "ErrorMessage": "Rate exceeded",
        }
        return {"Records": [next(results) if entry in lucky else throttled for entry in entries]}


@where_there_is_order
def test_partial_failures_neither_lose_nor_reorder_changes(
    app: StreamApp, db: Db, target: Target
) -> None:
    unreliable = Unreliable(target.client, target.operation)
    target.sink.connect(None, None, unreliable)
    app.add(target.sink)
    write_orders(db)
    work(app, db)
    assert unreliable.failed > 4
    assert totals(target.read()) == WRITTEN
    assert parked(app, db) == []


@pytest.mark.parametrize("target", ["sns", "kinesis"], indirect=True)
def test_a_message_that_is_too_large_is_parked(app: StreamApp, db: Db, target: Target) -> None:
    big = 300_000
    target.sink.max_bytes = min(target.sink.max_bytes, 250_000)
    app.add(target.sink)
    write_orders(db)
    db.put(Order(order_id="bad", total=1))
    db.put(Order(order_id="bad", total=2, status="x" * big))
    db.put(Order(order_id="bad", total=3))
    work(app, db)
    assert in_any_order(totals(target.read())) == {**WRITTEN, "bad": [1]}
    [key] = parked(app, db)
    assert key.count == 2 and "SinkRefused" in key.error


@pytest.mark.parametrize("target", ["sqs", "kinesis"], indirect=True)
def test_a_message_that_the_service_refuses_is_parked(
    app: StreamApp, db: Db, target: Target
) -> None:
    """The message is within the sink's own limit, but larger than this queue or stream accepts."""
    is_queue = isinstance(target.sink, SqsSink)
    app.add(target.sink)
    write_orders(db)
    if is_queue:
        limit = {"MaximumMessageSize": "4096"}
        target.client.set_queue_attributes(QueueUrl=target.sink.target, Attributes=limit)
        db.put(Order(order_id="bad", status="x" * 5000))
    else:
        for total in (1, 2, 3):
            db.put(Order(order_id="bad", total=total, status="x" * 390_000))
        target.sink._transform = lambda change: {
            "new": {"order_id": change.new.order_id, "total": change.new.total},
            "x": change.new.status * 3,
        }
    work(app, db)
    assert in_any_order(totals(target.read())) == WRITTEN
    [key] = parked(app, db)
    assert "bad" in key.key and "SinkRefused" in key.error


@pytest.mark.parametrize("target", ["sqs", "sns-fifo", "kinesis"], indirect=True)
def test_after_a_crash_only_the_same_events_are_repeated(
    app: StreamApp, db: Db, target: Target
) -> None:
    app.add(Crashing(target.sink, crashes=1))
    write_orders(db)
    work(app, db)
    found = target.read()
    assert len(found) >= ORDERS * ROUNDS
    assert in_any_order(totals(first_of_each(found))) == WRITTEN


@pytest.mark.parametrize("target", ["sqs-fifo", "sns", "kinesis"], indirect=True)
def test_the_sink_waits_during_an_outage(
    app: StreamApp, db: Db, moto: Moto, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    app.add(target.sink)
    moto.stop()
    try:
        with app.start(db, QUICK) as running:
            write_orders(db)
            eventually(lambda: "does not respond" in caplog.text)
            moto.start()
            running.catch_up()
    except BaseException:
        moto.stop()
        moto.start()
        raise
    assert in_any_order(totals(first_of_each(target.read()))) == WRITTEN
    assert parked(app, db) == []


def test_a_missing_queue_parks_nothing(
    app: StreamApp, db: Db, moto: Moto, caplog: pytest.LogCaptureFixture
) -> None:
    client = moto.client("sqs")
    app.add(SqsSink("out", f"{moto.url}/123456789012/later", client=client))
    with app.start(db, QUICK) as running:
        db.put(Order(order_id="o1"))
        eventually(lambda: caplog.text.count("TryLater") > 4)
        url = client.create_queue(QueueName="later")["QueueUrl"]
        running.catch_up()
    assert len(client.receive_message(QueueUrl=url)["Messages"]) == 1
    assert parked(app, db) == []


def test_messages_have_attributes_and_groups(app: StreamApp, db: Db, moto: Moto) -> None:
    client, url, _ = queue(moto, f"a{uuid4().hex[:8]}.fifo")
    app.add(SqsSink("out", url, client=client))
    db.put(Order(order_id="o1"))
    db.delete(Order, order_id="o1")
    work(app, db)
    first, second = [
        client.receive_message(
            QueueUrl=url,
            MessageAttributeNames=["All"],
            AttributeNames=["All"],
            MaxNumberOfMessages=1,
        )["Messages"][0]
        for _ in range(1)
    ] + client.receive_message(QueueUrl=url, AttributeNames=["All"], MaxNumberOfMessages=1).get(
        "Messages", [None]
    )
    event = json.loads(first["Body"])
    assert (
        first["MessageAttributes"]["id"]["StringValue"]
        == event["id"]
        == first["Attributes"]["MessageDeduplicationId"]
    )
    assert first["MessageAttributes"]["kind"]["StringValue"] == "INSERT"
    assert second is None  # the same group: held back until the first is deleted


def test_invalid_arguments_are_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="not the URL of a queue"):
        SqsSink("out", "changes")
    with pytest.raises(ConfigurationError, match="not the ARN of a topic"):
        SnsSink("out", "changes")
    with pytest.raises(ConfigurationError, match="max_bytes"):
        SnsSink("out", "arn:aws:sns:eu-west-1:123456789012:changes", max_bytes=10)
