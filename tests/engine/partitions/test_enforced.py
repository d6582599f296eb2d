"""What an engine with enforced throughput refuses, and how it says so, operation by operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import botocore.exceptions
import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    ConditionFailed,
    ItemCollectionTooLarge,
    RequestLimitExceeded,
    SlowDown,
    Throttled,
    ThroughputExceeded,
    TransactionCanceled,
)
from stator.testing import boto3_client, heat, set_collection_limit, set_quota, throttle

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/tab"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_790_000_000.0)


@pytest.fixture
def engine(clock: VirtualClock) -> Iterator[Engine]:
    with Engine.open(clock=clock, throughput="enforced") as opened:
        yield opened


def create(
    engine: Engine, units: tuple[int, int] | None = None, index: tuple[int, int] | None = None,
    **options: Any,
) -> None:  # fmt: skip
    request: dict[str, Any] = {
        "TableName": "tab",
        "KeySchema": [
            {"AttributeName": "p", "KeyType": "HASH"},
            {"AttributeName": "s", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": "p", "AttributeType": "S"},
            {"AttributeName": "s", "AttributeType": "S"},
        ],
        "BillingMode": "PAY_PER_REQUEST" if units is None else "PROVISIONED",
        **options,
    }
    if units is not None:
        request["ProvisionedThroughput"] = _units(units)
    if index is not None:
        request["AttributeDefinitions"].append({"AttributeName": "g", "AttributeType": "S"})
        request["GlobalSecondaryIndexes"] = [
            {
                "IndexName": "by-g",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
                "ProvisionedThroughput": _units(index),
            }
        ]
    engine.call("CreateTable", request)


def _units(units: tuple[int, int]) -> dict[str, int]:
    return {"ReadCapacityUnits": units[0], "WriteCapacityUnits": units[1]}


def item(p: str, s: str = "0", **more: str) -> dict[str, Any]:
    return {name: {"S": value} for name, value in {"p": p, "s": s, **more}.items()}


def put(engine: Engine, p: str, s: str = "0", **more: str) -> None:
    engine.call("PutItem", {"TableName": "tab", "Item": item(p, s, **more)})


def drain(engine: Engine, count: int = 400) -> int:
    """Write until the table refuses, and return how many writes passed."""
    for number in range(count):
        try:
            put(engine, f"drain{number}")
        except SlowDown:
            return number
    return count


# -- the acceptance cases, through the engine


def test_burst_of_five_minutes_then_the_rate(engine: Engine, clock: VirtualClock) -> None:
    create(engine, (3, 3))
    clock.advance(300)
    passed, reasons = [], []
    for _ in range(4):
        count = 0
        for number in range(2048):  # steps of a power of two are exact in floats
            try:
                put(engine, f"k{number}")
                count += 1
            except ThroughputExceeded as error:
                reasons.append(error.throttling_reasons)
            clock.advance(1 / 2048)
        passed.append(count)
    assert passed == [903, 3, 3, 3]
    assert {str(each) for each in reasons} == {
        str([{"reason": "TableWriteProvisionedThroughputExceeded", "resource": ARN}])
    }


def test_one_key_takes_a_partition_at_most(engine: Engine, clock: VirtualClock) -> None:
    create(engine, (10, 10_000))
    for _ in range(1000):
        put(engine, "hot")
    for _ in range(500):
        with pytest.raises(ThroughputExceeded) as caught:
            put(engine, "hot")
        assert caught.value.throttling_reasons == [
            {"reason": "TableWriteKeyRangeThroughputExceeded", "resource": ARN}
        ]
    assert heat(engine, "tab").refused == {"TableWriteKeyRangeThroughputExceeded": 500}


def test_an_on_demand_table_throttles_a_hot_key_with_another_class(engine: Engine) -> None:
    create(engine)
    with pytest.raises(Throttled) as caught:
        for _ in range(1001):
            put(engine, "hot")
    assert caught.value.code == "ThrottlingException"
    assert "check if you have a hot key" in caught.value.message
    assert caught.value.wire()["__type"] == "com.amazon.coral.availability#ThrottlingException"
    assert caught.value.wire()["throttlingReasons"] == [
        {"reason": "TableWriteKeyRangeThroughputExceeded", "resource": ARN}
    ]


def test_an_index_without_units_refuses_writes_of_the_table(
    engine: Engine, clock: VirtualClock
) -> None:
    create(engine, (1000, 1000), (1, 1))
    put(engine, "a", g="x")
    with pytest.raises(ThroughputExceeded) as caught:
        put(engine, "b", g="x")
    assert caught.value.throttling_reasons == [
        {"reason": "IndexWriteProvisionedThroughputExceeded", "resource": f"{ARN}/index/by-g"}
    ]
    assert "global secondary indexes" in caught.value.message
    put(engine, "c")
    found = engine.call("Scan", {"TableName": "tab"})
    assert sorted(each["p"]["S"] for each in found["Items"]) == ["a", "c"]
    assert heat(engine, "tab", index="by-g").refused == {
        "IndexWriteProvisionedThroughputExceeded": 1
    }
    assert heat(engine, "tab").refused == {}


def test_a_maximum_refuses_until_it_is_removed(engine: Engine) -> None:
    create(engine, OnDemandThroughput={"MaxWriteRequestUnits": 100})
    assert drain(engine) == 100
    with pytest.raises(Throttled) as caught:
        put(engine, "a")
    assert caught.value.throttling_reasons[0]["reason"] == (
        "TableWriteMaxOnDemandThroughputExceeded"
    )
    assert caught.value.message == (
        "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
    )
    engine.call(
        "UpdateTable", {"TableName": "tab", "OnDemandThroughput": {"MaxWriteRequestUnits": -1}}
    )
    assert drain(engine) == 400


def test_a_maximum_set_on_a_warm_table_refuses_and_minus_one_removes_it(
    engine: Engine, clock: VirtualClock
) -> None:
    create(engine)
    assert drain(engine) == 400
    for maximum, passed in ((100, 100), (-1, 400)):
        clock.advance(1.0)
        engine.call(
            "UpdateTable",
            {"TableName": "tab", "OnDemandThroughput": {"MaxWriteRequestUnits": maximum}},
        )
        engine.call("DescribeTable", {"TableName": "tab"})
        assert drain(engine) == passed
    assert heat(engine, "tab").refused == {"TableWriteMaxOnDemandThroughputExceeded": 1}


def test_a_quota_of_the_account(engine: Engine) -> None:
    create(engine)
    set_quota(engine, read_units=10, write_units=10)
    assert drain(engine) == 10
    with pytest.raises(RequestLimitExceeded) as caught:
        put(engine, "a")
    assert caught.value.throttling_reasons[0]["reason"] == "TableWriteAccountLimitExceeded"


def test_a_large_item_passes_a_small_table_and_leaves_a_debt(
    engine: Engine, clock: VirtualClock
) -> None:
    create(engine, (1, 1))
    written = []
    for second in range(900):
        try:
            put(engine, "a", t="x" * (409_600 - len("pas0t")))  # 400 KB: 400 units
            written.append(second)
        except ThroughputExceeded:
            pass
        clock.advance(1.0)
    assert written == [0, 400, 800]


# -- nothing happens when refused


def test_a_refused_write_changes_and_charges_nothing(engine: Engine, clock: VirtualClock) -> None:
    create(engine, (100, 5), StreamSpecification={
        "StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})  # fmt: skip
    passed = drain(engine)
    assert passed == 5
    for operation, request in (
        ("PutItem", {"Item": item("new")}),
        ("DeleteItem", {"Key": item("drain0")}),
        (
            "UpdateItem",
            {
                "Key": item("drain0"),
                "UpdateExpression": "SET x = :x",
                "ExpressionAttributeValues": {":x": {"S": "y"}},
            },
        ),
    ):
        with pytest.raises(ThroughputExceeded):
            engine.call(operation, {"TableName": "tab", **request})
    found = engine.call("Scan", {"TableName": "tab"})["Items"]
    assert sorted(each["p"]["S"] for each in found) == [f"drain{n}" for n in range(5)]
    assert all("x" not in each for each in found)
    clock.advance(1.0)
    assert drain(engine) == 5, "refused writes left no debt"


def test_a_failed_condition_is_charged(engine: Engine, clock: VirtualClock) -> None:
    create(engine, (100, 5))
    put(engine, "a")
    request = {
        "TableName": "tab",
        "Item": item("a"),
        "ConditionExpression": "attribute_not_exists(p)",
    }
    for _ in range(4):
        with pytest.raises(ConditionFailed):
            engine.call("PutItem", request)
    with pytest.raises(ThroughputExceeded):
        engine.call("PutItem", request)


# -- reads


def test_reads_have_limits_of_their_own(engine: Engine) -> None:
    create(engine, (4, 100))
    put(engine, "a")
    request = {"TableName": "tab", "Key": item("a"), "ConsistentRead": True}
    for _ in range(4):
        engine.call("GetItem", request)
    with pytest.raises(ThroughputExceeded) as caught:
        engine.call("GetItem", request)
    assert caught.value.throttling_reasons == [
        {"reason": "TableReadProvisionedThroughputExceeded", "resource": ARN}
    ]
    put(engine, "b")


@pytest.mark.parametrize(
    ("operation", "request_of"),
    [
        (
            "Query",
            {
                "KeyConditionExpression": "p = :p",
                "ExpressionAttributeValues": {":p": {"S": "a"}},
            },
        ),
        ("Scan", {}),
        ("ExecuteStatement", {"Statement": "SELECT * FROM tab WHERE p = 'a'"}),
        ("ExecuteStatement", {"Statement": "SELECT * FROM tab"}),
    ],
)
def test_pages_are_charged_for_what_they_read(
    engine: Engine, operation: str, request_of: dict[str, Any]
) -> None:
    create(engine, (8, 1000))
    for number in range(10):
        put(engine, "a", f"{number}", t="x" * 4000)
    request = dict(request_of) if "Statement" in request_of else {"TableName": "tab", **request_of}
    engine.call(operation, request)  # 40 KB: five units
    engine.call(operation, request)  # leaves a debt of two
    with pytest.raises(ThroughputExceeded) as caught:
        engine.call(operation, request)
    assert caught.value.throttling_reasons[0]["reason"].startswith("TableReadProvisioned")


def test_a_page_over_several_partitions_charges_each(engine: Engine) -> None:
    create(engine)
    for number in range(60):
        put(engine, f"k{number}", t="x" * 3000)
    before = [each.read_units for each in heat(engine, "tab").partitions]
    engine.call("Scan", {"TableName": "tab"})
    charged = [
        each.read_units - units for each, units in zip(heat(engine, "tab").partitions, before)
    ]
    assert len(charged) == 4
    assert all(units > 0 for units in charged)
    assert sum(charged) == pytest.approx(22.5)  # 180 KB, eventually consistent


def test_a_query_of_an_index_names_the_index(engine: Engine) -> None:
    create(engine, (1000, 1000), (1, 1000))
    put(engine, "a", g="x")
    request = {
        "TableName": "tab",
        "IndexName": "by-g",
        "KeyConditionExpression": "g = :g",
        "ExpressionAttributeValues": {":g": {"S": "x"}},
    }
    engine.call("Query", request)
    engine.call("Query", request)
    with pytest.raises(ThroughputExceeded) as caught:
        engine.call("Query", request)
    assert caught.value.throttling_reasons == [
        {"reason": "IndexReadProvisionedThroughputExceeded", "resource": f"{ARN}/index/by-g"}
    ]


# -- batches and transactions


def batch(engine: Engine, count: int) -> dict[str, Any]:
    puts = [{"PutRequest": {"Item": item(f"b{number}")}} for number in range(count)]
    return engine.call("BatchWriteItem", {"RequestItems": {"tab": puts}})


def test_a_batch_returns_what_it_could_not_write(engine: Engine) -> None:
    create(engine, (100, 10))
    answer = batch(engine, 25)
    left = answer["UnprocessedItems"]["tab"]
    assert len(left) == 15
    assert left[0]["PutRequest"]["Item"] == item("b10")
    assert engine.call("Scan", {"TableName": "tab", "Select": "COUNT"})["Count"] == 10
    with pytest.raises(ThroughputExceeded):
        batch(engine, 25)


def test_a_batch_of_reads_returns_the_keys_it_could_not_read(engine: Engine) -> None:
    create(engine, (5, 100))
    for number in range(20):
        put(engine, f"k{number}")
    keys = [item(f"k{number}") for number in range(20)]
    request = {"RequestItems": {"tab": {"Keys": keys, "ConsistentRead": True}}}
    answer = engine.call("BatchGetItem", request)
    assert len(answer["Responses"]["tab"]) == 5
    assert answer["UnprocessedKeys"]["tab"] == {"Keys": keys[5:], "ConsistentRead": True}
    with pytest.raises(ThroughputExceeded):
        engine.call("BatchGetItem", request)


def test_a_transaction_is_cancelled_with_a_reason_for_each_action(
    engine: Engine, clock: VirtualClock
) -> None:
    create(engine, (100, 4))
    puts = [{"Put": {"TableName": "tab", "Item": item(f"t{number}")}} for number in range(3)]
    with pytest.raises(TransactionCanceled) as caught:
        engine.call("TransactWriteItems", {"TransactItems": puts})
    codes = [reason["Code"] for reason in caught.value.reasons]
    assert codes == ["None", "None", "ProvisionedThroughputExceeded"]
    assert engine.call("Scan", {"TableName": "tab", "Select": "COUNT"})["Count"] == 0
    engine.call("TransactWriteItems", {"TransactItems": puts[:2]})
    with pytest.raises(TransactionCanceled):
        engine.call("TransactWriteItems", {"TransactItems": puts[:1]})


def test_a_transaction_on_demand_says_throttling_error(engine: Engine) -> None:
    create(engine)
    throttle(engine, "tab", requests=1)
    puts = [{"Put": {"TableName": "tab", "Item": item(f"t{number}")}} for number in range(2)]
    with pytest.raises(TransactionCanceled) as caught:
        engine.call("TransactWriteItems", {"TransactItems": puts})
    assert [reason["Code"] for reason in caught.value.reasons] == ["ThrottlingError", "None"]
    engine.call("TransactWriteItems", {"TransactItems": puts})


def test_statements_of_a_batch_are_refused_one_by_one(engine: Engine) -> None:
    create(engine, (100, 2))
    statements = [
        {"Statement": f"INSERT INTO tab VALUE {{'p': 'b{number}', 's': '0'}}"}
        for number in range(4)
    ]
    answers = engine.call("BatchExecuteStatement", {"Statements": statements})["Responses"]
    codes = [answer.get("Error", {}).get("Code") for answer in answers]
    assert codes == [None, None, "ProvisionedThroughputExceeded", "ProvisionedThroughputExceeded"]
    assert engine.call("Scan", {"TableName": "tab", "Select": "COUNT"})["Count"] == 2


def test_a_reading_transaction_is_cancelled(engine: Engine) -> None:
    create(engine, (3, 100))
    put(engine, "a")
    gets = [{"Get": {"TableName": "tab", "Key": item(key)}} for key in ("a", "b", "c")]
    with pytest.raises(TransactionCanceled) as caught:
        engine.call("TransactGetItems", {"TransactItems": gets})
    codes = [reason["Code"] for reason in caught.value.reasons]
    assert codes == ["None", "None", "ProvisionedThroughputExceeded"]
    engine.call("TransactGetItems", {"TransactItems": gets[:1]})


def test_an_executed_transaction_is_cancelled_with_a_reason_for_each_statement(
    engine: Engine,
) -> None:
    create(engine, (5, 4))
    statements = [
        {"Statement": f"INSERT INTO tab VALUE {{'p': 't{number}', 's': '0'}}"}
        for number in range(3)
    ]
    with pytest.raises(TransactionCanceled) as caught:
        engine.call("ExecuteTransaction", {"TransactStatements": statements})
    codes = [reason["Code"] for reason in caught.value.reasons]
    assert codes == ["None", "None", "ProvisionedThroughputExceeded"]
    assert engine.call("Scan", {"TableName": "tab", "Select": "COUNT"})["Count"] == 0
    engine.call("ExecuteTransaction", {"TransactStatements": statements[:2]})
    reads = [{"Statement": f"SELECT * FROM tab WHERE p = 't{n}' AND s = '0'"} for n in range(4)]
    with pytest.raises(TransactionCanceled) as caught:
        engine.call("ExecuteTransaction", {"TransactStatements": reads})
    codes = [reason["Code"] for reason in caught.value.reasons]
    assert codes == ["None", "None", "None", "ProvisionedThroughputExceeded"]


def test_a_batch_refused_for_the_account_answers_with_throttling(engine: Engine) -> None:
    """BatchWriteItem names just two classes for a batch of which nothing passed."""
    create(engine)
    set_quota(engine, read_units=2, write_units=10)
    answer = batch(engine, 25)
    assert len(answer["UnprocessedItems"]["tab"]) == 15
    with pytest.raises(Throttled) as caught:
        batch(engine, 25)
    assert type(caught.value) is Throttled
    assert caught.value.throttling_reasons == [
        {"reason": "TableWriteAccountLimitExceeded", "resource": ARN}
    ]
    keys = [item(f"b{number}") for number in range(3)]
    request = {"RequestItems": {"tab": {"Keys": keys, "ConsistentRead": True}}}
    assert engine.call("BatchGetItem", request)["UnprocessedKeys"]["tab"]["Keys"] == keys[2:]
    with pytest.raises(Throttled) as caught:
        engine.call("BatchGetItem", request)
    assert type(caught.value) is Throttled
    assert caught.value.throttling_reasons[0]["reason"] == "TableReadAccountLimitExceeded"


# -- indexes of tables on demand


def on_demand_index(engine: Engine, **options: Any) -> None:
    index = {
        "IndexName": "by-g",
        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
        **options,
    }
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in "psg"]
    create(engine, AttributeDefinitions=attributes, GlobalSecondaryIndexes=[index])


def put_everywhere(engine: Engine, count: int, **more: str) -> int:
    """Write items with partition keys of their own, and return how many passed."""
    for number in range(count):
        try:
            put(engine, f"k{number}", **more)
        except SlowDown:
            return number
    return count


def test_a_hot_key_of_an_index_refuses_writes_of_the_table(engine: Engine) -> None:
    on_demand_index(engine)
    assert put_everywhere(engine, 1_100, g="hot") == 1_000
    with pytest.raises(Throttled) as caught:
        put(engine, "other", g="hot")
    assert caught.value.throttling_reasons == [
        {"reason": "IndexWriteKeyRangeThroughputExceeded", "resource": f"{ARN}/index/by-g"}
    ]
    assert "current capacity for one or more global secondary indexes" in caught.value.message
    assert heat(engine, "tab").refused == {}
    put(engine, "other", g="cold")
    put(engine, "without")


def test_a_maximum_of_an_index_refuses_writes_of_the_table(engine: Engine) -> None:
    on_demand_index(engine, OnDemandThroughput={"MaxWriteRequestUnits": 100})
    assert put_everywhere(engine, 300, g="any") == 100
    with pytest.raises(Throttled) as caught:
        put(engine, "other", g="x")
    assert caught.value.throttling_reasons == [
        {"reason": "IndexWriteMaxOnDemandThroughputExceeded", "resource": f"{ARN}/index/by-g"}
    ]
    put(engine, "without")


# -- collections of tables with local indexes


def test_a_collection_of_a_table_with_a_local_index_has_a_largest_size(engine: Engine) -> None:
    request: dict[str, Any] = {
        "TableName": "tab",
        "KeySchema": [
            {"AttributeName": "p", "KeyType": "HASH"},
            {"AttributeName": "s", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("p", "s", "l")
        ],
        "BillingMode": "PAY_PER_REQUEST",
        "LocalSecondaryIndexes": [
            {
                "IndexName": "by-l",
                "KeySchema": [
                    {"AttributeName": "p", "KeyType": "HASH"},
                    {"AttributeName": "l", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    }
    engine.call("CreateTable", request)
    set_collection_limit(engine, 5_000)
    put(engine, "a", "1", l="x", t="x" * 1_900)  # counts twice: in the table and in the index
    put(engine, "b", "1", t="x" * 3_000)
    with pytest.raises(ItemCollectionTooLarge) as caught:
        put(engine, "a", "2", t="x" * 1_500)
    assert caught.value.code == "ItemCollectionSizeLimitExceededException"
    puts = [{"Put": {"TableName": "tab", "Item": item(p, "2", t="x" * 1_500)}} for p in "ba"]
    with pytest.raises(TransactionCanceled) as cancelled:
        engine.call("TransactWriteItems", {"TransactItems": puts})
    codes = [reason["Code"] for reason in cancelled.value.reasons]
    assert codes == ["None", "ItemCollectionSizeLimitExceeded"]
    put(engine, "b", "2", t="x" * 1_500)
    put(engine, "a", "1", l="x", t="y" * 1_900)  # grows by nothing
    engine.call("DeleteItem", {"TableName": "tab", "Key": item("a", "1")})
    put(engine, "a", "2", t="x" * 1_500)


# -- the outside view


def test_boto3_shows_the_reasons(engine: Engine) -> None:
    create(engine, (1, 1))
    client = boto3_client(engine)
    throttle(engine, "tab", reason="TableWriteProvisionedThroughputExceeded", requests=100)
    with pytest.raises(client.exceptions.ProvisionedThroughputExceededException) as caught:
        client.put_item(TableName="tab", Item=item("a"))
    assert caught.value.response["ThrottlingReasons"] == [
        {"reason": "TableWriteProvisionedThroughputExceeded", "resource": ARN}
    ]


def test_boto3_shows_the_reasons_of_an_on_demand_table(engine: Engine) -> None:
    create(engine)
    client = boto3_client(engine)
    throttle(engine, "tab", requests=100)
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        client.put_item(TableName="tab", Item=item("a"))
    assert caught.value.response["Error"]["Code"] == "ThrottlingException"
    assert caught.value.response["throttlingReasons"] == [
        {"reason": "TableWriteKeyRangeThroughputExceeded", "resource": ARN}
    ]


def test_observed_refuses_nothing_and_counts_what_it_would_refuse(clock: VirtualClock) -> None:
    with Engine.open(clock=clock, throughput="observed") as engine:
        create(engine, (3, 3))
        assert drain(engine) == 400
        assert heat(engine, "tab").refused == {"TableWriteProvisionedThroughputExceeded": 397}


def test_off_refuses_and_counts_nothing(clock: VirtualClock) -> None:
    with Engine.open(clock=clock) as engine:
        create(engine, (3, 3))
        assert drain(engine) == 400
        assert heat(engine, "tab").refused == {}
