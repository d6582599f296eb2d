"""Items: written, read, counted and charged, in memory and on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    ConditionFailed,
    IdempotentParameterMismatch,
    ResourceNotFound,
    SerializationFailed,
    TransactionCanceled,
    TransactionConflict,
    UnknownOperation,
    ValidationFailed,
)

SCHEMA: dict[str, Any] = {
    "TableName": "things",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
        {"AttributeName": "l", "AttributeType": "B"},
        *({"AttributeName": name, "AttributeType": "S"} for name in ("g1", "g2", "r1", "r2")),
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "LocalSecondaryIndexes": [
        {
            "IndexName": "local",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "l", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "many",
            "KeySchema": [
                {"AttributeName": "g1", "KeyType": "HASH"},
                {"AttributeName": "g2", "KeyType": "HASH"},
                {"AttributeName": "r1", "KeyType": "RANGE"},
                {"AttributeName": "r2", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v"]},
        }
    ],
}


@pytest.fixture(params=["memory", "disk"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(
        None if request.param == "memory" else str(tmp_path / "data"), clock=VirtualClock()
    ) as opened:
        opened.call("CreateTable", SCHEMA)
        yield opened


def key(pk: str, sk: int) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"N": str(sk)}}


def put(engine: Engine, pk: str, sk: int, **rest: Any) -> None:
    engine.call("PutItem", {"TableName": "things", "Item": {**key(pk, sk), **rest}})


def query(engine: Engine, text: str, values: dict[str, Any], **options: Any) -> dict[str, Any]:
    request = {
        "TableName": "things",
        "KeyConditionExpression": text,
        "ExpressionAttributeValues": values,
        **options,
    }
    return engine.call("Query", request)


def sort_keys(page: dict[str, Any]) -> list[str]:
    return [item["sk"]["N"] for item in page["Items"]]


def test_an_item_that_was_put_can_be_read(engine: Engine) -> None:
    item = {
        **key("a", 1),
        "n": {"N": "1.50"},
        "ns": {"NS": ["2", "1.0"]},
        "m": {"M": {"b": {"B": "AAE="}}},
    }
    engine.call("PutItem", {"TableName": "things", "Item": item})
    got = engine.call("GetItem", {"TableName": "things", "Key": key("a", 1)})["Item"]
    assert got == {**item, "n": {"N": "1.5"}, "ns": {"NS": ["1", "2"]}}
    assert engine.call("GetItem", {"TableName": "things", "Key": key("a", 2)}) == {}


def test_the_request_is_left_as_it_was(engine: Engine) -> None:
    request = {"TableName": "things", "Item": {**key("a", 1), "n": {"N": "01.50"}}}
    engine.call("PutItem", request)
    assert request["Item"] == {**key("a", 1), "n": {"N": "01.50"}}


def test_numbers_sort_as_numbers_and_both_ways(engine: Engine) -> None:
    for number in (10, 9, -3, 100, 0, -20):
        put(engine, "a", number)
    values = {":p": {"S": "a"}}
    assert sort_keys(query(engine, "pk = :p", values)) == ["-20", "-3", "0", "9", "10", "100"]
    assert sort_keys(query(engine, "pk = :p", values, ScanIndexForward=False, Limit=2)) == [
        "100",
        "10",
    ]
    bounded = query(
        engine,
        "pk = :p AND sk BETWEEN :low AND :high",
        {**values, ":low": {"N": "-3"}, ":high": {"N": "10"}},
    )
    assert sort_keys(bounded) == ["-3", "0", "9", "10"]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 5, 7])
def test_pages_follow_each_other_without_gap_or_overlap(
    engine: Engine, forward: bool, limit: int
) -> None:
    for number in range(7):
        put(engine, "a", number, l={"B": "AAAA"})
    for index in (None, "local"):
        found: list[str] = []
        options: dict[str, Any] = {"Limit": limit, "ScanIndexForward": forward}
        if index:
            options["IndexName"] = index
        while True:
            page = query(engine, "pk = :p", {":p": {"S": "a"}}, **options)
            found += sort_keys(page)
            if "LastEvaluatedKey" not in page:
                break
            options["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        expected = [str(number) for number in range(7)]
        assert found == (expected if forward else expected[::-1])


def test_a_page_ends_at_one_megabyte_and_when_the_limit_is_met(engine: Engine) -> None:
    for number in range(6):
        put(engine, "a", number, text={"S": "x" * 300_000})
    page = query(engine, "pk = :p", {":p": {"S": "a"}})
    assert (page["Count"], sort_keys(page)) == (4, ["0", "1", "2", "3"])
    assert page["LastEvaluatedKey"] == key("a", 3)
    exact = query(
        engine,
        "pk = :p",
        {":p": {"S": "a"}},
        Limit=2,
        Select="COUNT",
        ExclusiveStartKey=key("a", 3),
    )
    assert exact == {"Count": 2, "ScannedCount": 2, "LastEvaluatedKey": key("a", 5)}


@pytest.mark.parametrize("total", [1, 2, 3, 7, 64])
def test_parallel_segments_partition_the_table_and_the_index(engine: Engine, total: int) -> None:
    for number in range(60):
        put(
            engine,
            f"p{number}",
            number,
            g1={"S": f"g{number}"},
            g2={"S": "x"},
            r1={"S": "1"},
            r2={"S": "2"},
        )
    for index in ({}, {"IndexName": "many"}):
        found = []
        for segment in range(total):
            request = {
                "TableName": "things",
                "Segment": segment,
                "TotalSegments": total,
                "Limit": 3,
                **index,
            }
            while True:
                page = engine.call("Scan", request)
                found += [item["pk"]["S"] for item in page["Items"]]
                if "LastEvaluatedKey" not in page:
                    break
                request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        assert sorted(found) == sorted(f"p{number}" for number in range(60))


def test_an_index_with_several_key_attributes(engine: Engine) -> None:
    for number, (r1, r2) in enumerate([("b", "1"), ("a", "2"), ("a", "1"), ("ab", "0")]):
        put(
            engine,
            "a",
            number,
            g1={"S": "x"},
            g2={"S": "y"},
            r1={"S": r1},
            r2={"S": r2},
            v={"S": "v"},
            w={"S": "w"},
        )
    put(engine, "a", 9, g1={"S": "x"}, g2={"S": "y"}, r1={"S": "a"})  # lacks r2: not in the index
    both = {":x": {"S": "x"}, ":y": {"S": "y"}}
    page = query(engine, "g1 = :x AND g2 = :y", both, IndexName="many")
    assert sort_keys(page) == ["2", "1", "3", "0"]
    assert set(page["Items"][0]) == {"pk", "sk", "g1", "g2", "r1", "r2", "v"}
    one = query(
        engine,
        "g1 = :x AND g2 = :y AND r1 = :a AND r2 > :o",
        {**both, ":a": {"S": "a"}, ":o": {"S": "1"}},
        IndexName="many",
    )
    assert sort_keys(one) == ["1"]
    prefix = query(
        engine,
        "g1 = :x AND g2 = :y AND begins_with(r1, :a)",
        {**both, ":a": {"S": "a"}},
        IndexName="many",
    )
    assert sort_keys(prefix) == ["2", "1", "3"]
    with pytest.raises(ValidationFailed, match="HASH key attributes g2 must have equality"):
        query(engine, "g1 = :x", {":x": {"S": "x"}}, IndexName="many")
    with pytest.raises(
        ValidationFailed, match="RANGE key attributes r1 must have equality conditions"
    ):
        query(
            engine, "g1 = :x AND g2 = :y AND r2 = :a", {**both, ":a": {"S": "a"}}, IndexName="many"
        )
    ended = query(engine, "g1 = :x AND g2 = :y", both, IndexName="many", Limit=1)
    assert set(ended["LastEvaluatedKey"]) == {"pk", "sk", "g1", "g2", "r1", "r2"}


def test_a_local_index_fetches_attributes_it_does_not_hold(engine: Engine) -> None:
    put(engine, "a", 1, l={"B": "AQ=="}, text={"S": "x" * 5000})
    put(engine, "a", 2, l={"B": "AA=="})
    options: dict[str, Any] = {"IndexName": "local", "ReturnConsumedCapacity": "INDEXES"}
    keys_only = query(engine, "pk = :p", {":p": {"S": "a"}}, **options)
    assert sort_keys(keys_only) == ["2", "1"]
    assert all(set(item) == {"pk", "sk", "l"} for item in keys_only["Items"])
    assert keys_only["ConsumedCapacity"]["LocalSecondaryIndexes"]["local"]["CapacityUnits"] == 0.5
    whole = query(
        engine,
        "pk = :p",
        {":p": {"S": "a"}},
        **options,
        Select="ALL_ATTRIBUTES",
        ConsistentRead=True,
    )
    assert len(whole["Items"][1]["text"]["S"]) == 5000
    assert whole["ConsumedCapacity"]["Table"]["CapacityUnits"] == 3.0
    assert whole["ConsumedCapacity"]["CapacityUnits"] == 4.0


def test_capacity_of_writes_counts_every_index_entry_that_changes(engine: Engine) -> None:
    def units(operation: str, **request: Any) -> dict[str, Any]:
        reply = engine.call(
            operation, {"TableName": "things", "ReturnConsumedCapacity": "INDEXES", **request}
        )
        return reply["ConsumedCapacity"]

    attributes = {name: {"S": name} for name in ("g1", "g2", "r1", "r2")}
    item = {**key("a", 1), **attributes, "text": {"S": "x" * 1500}}
    first = units("PutItem", Item=item)
    assert first["Table"]["CapacityUnits"] == 2
    assert first["GlobalSecondaryIndexes"] == {"many": {"CapacityUnits": 1.0}}
    assert first["CapacityUnits"] == 3
    assert "GlobalSecondaryIndexes" not in units("PutItem", Item=item)
    assert "GlobalSecondaryIndexes" not in units("PutItem", Item={**item, "text": {"S": "other"}})
    moved = units("PutItem", Item={**item, "r1": {"S": "elsewhere"}})
    assert moved["GlobalSecondaryIndexes"]["many"]["CapacityUnits"] == 2
    assert units("DeleteItem", Key=key("a", 1))["CapacityUnits"] == 3
    assert units("DeleteItem", Key=key("a", 1)) == {
        "TableName": "things",
        "CapacityUnits": 1.0,
        "Table": {"CapacityUnits": 1.0},
    }


def test_conditions_return_the_item_they_failed_on(engine: Engine) -> None:
    put(engine, "a", 1, v={"N": "1"})
    request = {
        "TableName": "things",
        "Item": key("a", 1),
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    with pytest.raises(ConditionFailed) as without:
        engine.call("PutItem", request)
    assert without.value.item is None
    with pytest.raises(ConditionFailed) as caught:
        engine.call("PutItem", {**request, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"})
    assert caught.value.item == {**key("a", 1), "v": {"N": "1"}}


def test_a_transaction_is_all_or_nothing_with_reasons_in_order(engine: Engine) -> None:
    put(engine, "a", 1, v={"N": "1"})
    actions = [
        {"Put": {"TableName": "things", "Item": key("b", 1)}},
        {
            "Update": {
                "TableName": "things",
                "Key": key("a", 1),
                "UpdateExpression": "SET v = v - :n",
                "ConditionExpression": "v >= :n",
                "ExpressionAttributeValues": {":n": {"N": "5"}},
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        },
    ]
    with pytest.raises(TransactionCanceled) as caught:
        engine.call("TransactWriteItems", {"TransactItems": actions})
    assert [reason["Code"] for reason in caught.value.reasons] == ["None", "ConditionalCheckFailed"]
    assert caught.value.reasons[1]["Item"]["v"] == {"N": "1"}
    assert engine.call("GetItem", {"TableName": "things", "Key": key("b", 1)}) == {}


def test_a_client_token_makes_a_transaction_happen_once(engine: Engine) -> None:
    assert isinstance(engine.clock, VirtualClock)
    put(engine, "a", 1, v={"N": "0"})

    def add(amount: int) -> dict[str, Any]:
        update = {
            "TableName": "things",
            "Key": key("a", 1),
            "UpdateExpression": "ADD v :n",
            "ExpressionAttributeValues": {":n": {"N": str(amount)}},
        }
        request = {
            "TransactItems": [{"Update": update}],
            "ClientRequestToken": "once",
            "ReturnConsumedCapacity": "TOTAL",
        }
        answer = engine.call("TransactWriteItems", request)
        return answer["ConsumedCapacity"][0]

    def value() -> str:
        return str(
            engine.call("GetItem", {"TableName": "things", "Key": key("a", 1)})["Item"]["v"]["N"]
        )

    assert add(1)["WriteCapacityUnits"] == 2
    assert add(1)["ReadCapacityUnits"] == 2
    assert value() == "1"
    with pytest.raises(IdempotentParameterMismatch):
        add(2)
    engine.clock.advance(601)
    add(2)
    assert value() == "3"


def test_a_request_for_an_item_in_a_transaction_gets_a_conflict() -> None:
    clock = VirtualClock()
    with Engine.open(clock=clock, transaction_seconds=0.05) as engine:
        engine.call("CreateTable", SCHEMA)
        transaction = {"TransactItems": [{"Put": {"TableName": "things", "Item": key("a", 1)}}]}
        engine.call("TransactWriteItems", transaction)
        with pytest.raises(TransactionConflict):
            put(engine, "a", 1)
        for operation, request in (
            ("TransactWriteItems", transaction),
            (
                "TransactGetItems",
                {"TransactItems": [{"Get": {"TableName": "things", "Key": key("a", 1)}}]},
            ),
        ):
            with pytest.raises(TransactionCanceled) as caught:
                engine.call(operation, request)
            assert caught.value.reasons[0]["Code"] == "TransactionConflict"
        put(engine, "a", 2)
        clock.advance(0.06)
        put(engine, "a", 1)


def test_batches(engine: Engine) -> None:
    writes = [{"PutRequest": {"Item": {**key("a", n), "v": {"N": str(n)}}}} for n in range(25)]
    assert engine.call("BatchWriteItem", {"RequestItems": {"things": writes}}) == {
        "UnprocessedItems": {}
    }
    keys = [key("a", n) for n in range(30)]
    reply = engine.call(
        "BatchGetItem", {"RequestItems": {"things": {"Keys": keys, "ProjectionExpression": "v"}}}
    )
    assert sorted(int(item["v"]["N"]) for item in reply["Responses"]["things"]) == list(range(25))
    assert reply["UnprocessedKeys"] == {}
    with pytest.raises(ValidationFailed, match="contains duplicates"):
        engine.call(
            "BatchGetItem", {"RequestItems": {"things": {"Keys": [key("a", 1), key("a", 1)]}}}
        )


def test_a_batch_get_past_16_megabytes_gives_the_rest_back(engine: Engine) -> None:
    for number in range(50):
        put(engine, "a", number, text={"S": "x" * 390_000})
    wanted = {"Keys": [key("a", n) for n in range(50)], "ConsistentRead": True}
    first = engine.call("BatchGetItem", {"RequestItems": {"things": wanted}})
    rest = first["UnprocessedKeys"]
    assert rest["things"]["ConsistentRead"] is True
    second = engine.call("BatchGetItem", {"RequestItems": rest})
    assert second["UnprocessedKeys"] == {}
    counts = [len(reply["Responses"]["things"]) for reply in (first, second)]
    assert sum(counts) == 50
    assert all(counts)


def test_an_item_may_have_400_kilobytes_and_not_a_byte_more(engine: Engine) -> None:
    overhead = len("pk") + len("a") + len("sk") + 2 + len("text")
    put(engine, "a", 1, text={"S": "x" * (409_600 - overhead)})
    with pytest.raises(ValidationFailed, match="Item size has exceeded"):
        put(engine, "a", 1, text={"S": "x" * (409_601 - overhead)})


def test_errors_of_shape_come_before_errors_of_content(engine: Engine) -> None:
    with pytest.raises(SerializationFailed, match="NUMBER_VALUE cannot be converted to String"):
        engine.call("GetItem", {"TableName": 5, "Key": {}})
    with pytest.raises(ValidationFailed, match=r"^2 validation errors detected: "):
        engine.call("GetItem", {})
    with pytest.raises(ResourceNotFound):
        engine.call("GetItem", {"TableName": "absent", "Key": {}})
    with pytest.raises(UnknownOperation):
        engine.call("DropEverything", {})
    with pytest.raises(SerializationFailed, match="not DynamoDB JSON"):
        engine.call("PutItem", {"TableName": "things", "Item": {"pk": {"B": b"raw"}}})


def test_tables_of_accounts_and_regions_are_apart(engine: Engine) -> None:
    assert engine.call("ListTables", {}, region="eu-west-1")["TableNames"] == []
    assert engine.call("ListTables", {}, account="111111111111")["TableNames"] == []
    engine.call("CreateTable", SCHEMA, region="eu-west-1")
    put(engine, "a", 1)
    with pytest.raises(ResourceNotFound):
        engine.call("GetItem", {"TableName": "things", "Key": key("a", 1)}, account="111111111111")
    assert (
        engine.call("GetItem", {"TableName": "things", "Key": key("a", 1)}, region="eu-west-1")
        == {}
    )


def test_a_table_may_be_named_by_its_arn(engine: Engine) -> None:
    put(engine, "a", 1)
    arn = engine.call("DescribeTable", {"TableName": "things"})["Table"]["TableArn"]
    assert engine.call("GetItem", {"TableName": arn, "Key": key("a", 1)})["Item"] == key("a", 1)
    with pytest.raises(ValidationFailed, match="Invalid AWS region"):
        engine.call(
            "GetItem", {"TableName": arn.replace("us-east-1", "eu-west-1"), "Key": key("a", 1)}
        )


def test_everything_is_there_after_reopening(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    with Engine.open(path) as engine:
        engine.call("CreateTable", SCHEMA)
        for number in range(50):
            put(engine, "a", number, l={"B": "AA=="})
        before = engine.call("DescribeTable", {"TableName": "things"})
    with Engine.open(path) as engine:
        assert engine.call("DescribeTable", {"TableName": "things"}) == before
        assert (
            query(engine, "pk = :p", {":p": {"S": "a"}}, IndexName="local", Select="COUNT")["Count"]
            == 50
        )


def test_item_collection_metrics(engine: Engine) -> None:
    reply = engine.call(
        "PutItem",
        {"TableName": "things", "Item": key("a", 1), "ReturnItemCollectionMetrics": "SIZE"},
    )
    assert reply["ItemCollectionMetrics"] == {
        "ItemCollectionKey": {"pk": {"S": "a"}},
        "SizeEstimateRangeGB": [0, 1],
    }


def test_a_closed_engine_says_so(engine: Engine) -> None:
    engine.close()
    with pytest.raises(Exception, match=r"request processing has failed|closed"):
        engine.call("ListTables", {})
