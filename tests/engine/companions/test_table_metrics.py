"""The metrics that the engine records of its tables: what counts where, in which minute."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.engine.tables.table import IndexDefinition
from stator.errors import SlowDown, TransactionCanceled, TransactionConflict
from stator.testing import boto3_session, throttle

from .bench import START, Bench

INDEXED: dict[str, Any] = {
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "city", "AttributeType": "S"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-city",
            "KeySchema": [{"AttributeName": "city", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}
KEY = {"pk": {"S": "a"}}
GSI = {"GlobalSecondaryIndexName": "by-city"}


def test_consumed_units_are_samples_of_requests_in_their_minute(bench: Bench) -> None:
    bench.create()
    for size in (100, 1500):
        bench.dynamodb.put_item(TableName="orders", Item={**KEY, "note": {"S": "x" * size}})
    bench.clock.advance(60)
    bench.dynamodb.get_item(TableName="orders", Key=KEY)
    bench.dynamodb.get_item(TableName="orders", Key=KEY, ConsistentRead=True)
    bench.clock.advance(60)
    assert bench.table_points("ConsumedWriteCapacityUnits") == {0: 3.0, 60: 0.0}
    assert bench.table_points("ConsumedWriteCapacityUnits", "Maximum") == {0: 2.0, 60: 0.0}
    assert bench.table_points("ConsumedWriteCapacityUnits", "SampleCount") == {0: 2.0, 60: 0.0}
    assert bench.table_points("ConsumedReadCapacityUnits") == {0: 0.0, 60: 1.5}
    assert bench.table_points("ConsumedReadCapacityUnits", "Average") == {0: 0.0, 60: 0.75}


def test_the_table_s_figure_leaves_out_its_global_indexes(bench: Bench) -> None:
    bench.create(**INDEXED)
    bench.dynamodb.put_item(TableName="orders", Item={**KEY, "city": {"S": "Ghent"}})
    bench.dynamodb.query(
        TableName="orders",
        IndexName="by-city",
        KeyConditionExpression="city = :c",
        ExpressionAttributeValues={":c": {"S": "Ghent"}},
    )
    bench.clock.advance(60)
    assert bench.table_points("ConsumedWriteCapacityUnits") == {0: 1.0}
    assert bench.table_points("ConsumedWriteCapacityUnits", **GSI) == {0: 1.0}
    assert bench.table_points("ConsumedReadCapacityUnits") == {0: 0.0}
    assert bench.table_points("ConsumedReadCapacityUnits", **GSI) == {0: 0.5}


@pytest.mark.parametrize("throughput", ["off", "observed", "enforced"])
def test_every_operation_consumes_the_same_in_every_mode(throughput: str) -> None:
    bench = Bench({"throughput": throughput})
    bench.create()
    client = bench.dynamodb
    client.batch_write_item(
        RequestItems={"orders": [{"PutRequest": {"Item": {"pk": {"S": str(i)}}}} for i in range(4)]}
    )
    client.transact_write_items(
        TransactItems=[{"Put": {"TableName": "orders", "Item": {"pk": {"S": "t"}}}}]
    )
    client.execute_statement(Statement="INSERT INTO orders VALUE {'pk': 'p'}")
    client.batch_execute_statement(
        Statements=[{"Statement": "INSERT INTO orders VALUE {'pk': 'q'}"}]
    )
    client.batch_get_item(RequestItems={"orders": {"Keys": [{"pk": {"S": "1"}}, KEY]}})
    client.transact_get_items(TransactItems=[{"Get": {"TableName": "orders", "Key": KEY}}])
    client.scan(TableName="orders")
    client.execute_statement(Statement="SELECT * FROM orders WHERE pk = 'p'")
    client.batch_execute_statement(
        Statements=[{"Statement": "SELECT * FROM orders WHERE pk = 'p'"}]
    )
    bench.clock.advance(60)
    writes = 4 + 2 + 1 + 1
    reads = 1 + 2 + 0.5 + 0.5 + 0.5
    assert bench.table_points("ConsumedWriteCapacityUnits") == {0: writes}
    assert bench.table_points("ConsumedReadCapacityUnits") == {0: reads}
    bench.engine.close()


def test_a_table_is_idle_from_its_creation_to_its_end_and_only_while_recorded(
    bench: Bench,
) -> None:
    bench.clock.advance(60)
    bench.create()
    bench.clock.advance(120)
    bench.engine.sweep()
    bench.dynamodb.delete_table(TableName="orders")
    bench.clock.advance(180)
    assert bench.table_points("ConsumedReadCapacityUnits") == {60: 0.0, 120: 0.0}


def test_latency_and_returned_items_are_by_operation(bench: Bench) -> None:
    bench.create()
    for pk in "abc":
        bench.dynamodb.put_item(TableName="orders", Item={"pk": {"S": pk}})
    bench.dynamodb.scan(TableName="orders")
    bench.clock.advance(60)
    latency = "SuccessfulRequestLatency"
    assert bench.table_points(latency, "SampleCount", Operation="PutItem") == {0: 3.0}
    assert bench.table_points(latency, "SampleCount", Operation="Scan") == {0: 1.0}
    assert bench.table_points("ReturnedItemCount", Operation="Scan") == {0: 3.0}


def test_failures_are_counted_by_their_kind(bench: Bench) -> None:
    bench.create()
    put = bench.dynamodb.put_item
    put(TableName="orders", Item=KEY)
    with pytest.raises(ClientError):
        put(TableName="orders", Item=KEY, ConditionExpression="attribute_not_exists(pk)")
    check = {"TableName": "orders", "ConditionExpression": "attribute_not_exists(pk)"}
    with pytest.raises(ClientError):
        bench.dynamodb.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": "orders", "Item": {"pk": {"S": "b"}}}},
                {"ConditionCheck": {**check, "Key": KEY}},
            ]
        )
    with pytest.raises(ClientError):
        bench.dynamodb.get_item(TableName="missing", Key=KEY)
    bench.clock.advance(60)
    assert bench.table_points("ConditionalCheckFailedRequests") == {0: 2.0}
    assert bench.points("UserErrors", namespace="AWS/DynamoDB") == {0: 1.0}
    latency = bench.table_points("SuccessfulRequestLatency", "SampleCount", Operation="PutItem")
    assert latency == {0: 1.0}


def test_throttled_items_and_requests_are_counted_with_their_reason(bench: Bench) -> None:
    bench.create()
    throttle(bench.engine, "orders", requests=3)
    with pytest.raises(SlowDown):
        bench.engine.call("PutItem", {"TableName": "orders", "Item": KEY})
    # One item of the batch is written, so the request as a whole is not throttled.
    items = [{"PutRequest": {"Item": {"pk": {"S": pk}}}} for pk in "abc"]
    bench.engine.call("BatchWriteItem", {"RequestItems": {"orders": items}})
    bench.clock.advance(60)
    assert bench.table_points("WriteThrottleEvents") == {0: 3.0}
    assert bench.table_points("WriteKeyRangeThroughputThrottleEvents") == {0: 3.0}
    assert bench.table_points("ThrottledRequests", Operation="PutItem") == {0: 1.0}
    assert bench.table_points("ThrottledRequests", Operation="BatchWriteItem") == {}
    assert bench.table_points("ConsumedWriteCapacityUnits") == {0: 1.0}


def test_conflicts_count_once_for_each_item() -> None:
    bench = Bench({"transaction_seconds": 10})
    bench.create()
    bench.dynamodb.transact_write_items(
        TransactItems=[{"Put": {"TableName": "orders", "Item": KEY}}]
    )
    with pytest.raises(TransactionConflict):
        bench.engine.call("PutItem", {"TableName": "orders", "Item": KEY})
    gets = [{"Get": {"TableName": "orders", "Key": KEY}}]
    with pytest.raises(TransactionCanceled):
        bench.engine.call("TransactGetItems", {"TransactItems": gets})
    bench.clock.advance(60)
    assert bench.table_points("TransactionConflict") == {0: 2.0}
    bench.engine.close()


def test_expired_items_are_counted_and_consume_nothing(bench: Bench) -> None:
    bench.create()
    bench.dynamodb.update_time_to_live(
        TableName="orders",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"},
    )
    bench.dynamodb.put_item(TableName="orders", Item={**KEY, "until": {"N": str(START + 5)}})
    bench.clock.advance(61)
    bench.engine.sweep()
    bench.clock.advance(60)
    assert bench.table_points("TimeToLiveDeletedItemCount") == {60: 1.0}
    assert bench.table_points("ConsumedWriteCapacityUnits") == {0: 1.0, 60: 0.0}


def test_reading_a_stream_returns_records_and_bytes(bench: Bench) -> None:
    bench.create(StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
    bench.dynamodb.put_item(TableName="orders", Item=KEY)
    arn = bench.dynamodb.describe_table(TableName="orders")["Table"]["LatestStreamArn"]
    shards = bench.engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
    for shard in shards:
        place = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = bench.engine.call("GetShardIterator", place)["ShardIterator"]
        bench.engine.call("GetRecords", {"ShardIterator": iterator})
    bench.clock.advance(60)
    label = arn.rpartition("/")[2]
    stream = {"Operation": "GetRecords", "StreamLabel": label}
    assert bench.table_points("ReturnedRecordsCount", **stream) == {0: 1.0}
    assert bench.table_points("ReturnedBytes", **stream)[0] > 0
    calls = bench.table_points("SuccessfulRequestLatency", "SampleCount", **stream)
    assert calls == {0: float(len(shards))}


def test_provisioned_units_and_quotas_come_every_five_minutes(bench: Bench) -> None:
    units = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 4_000}
    bench.create(BillingMode="PROVISIONED", ProvisionedThroughput=units)
    bench.clock.advance(660)
    assert bench.table_points("ProvisionedReadCapacityUnits", "Average") == {0: 7.0, 300: 7.0}
    account: dict[str, Any] = {"namespace": "AWS/DynamoDB", "period": 300}
    highest = bench.points("MaxProvisionedTableWriteCapacityUtilization", "Maximum", **account)
    assert highest == {0: 10.0, 300: 10.0}
    assert bench.points("AccountProvisionedWriteCapacityUtilization", "Maximum", **account) == {
        0: 5.0,
        300: 5.0,
    }


def test_maxima_of_on_demand_tables_are_reported_if_there_are_any(bench: Bench) -> None:
    bench.create(OnDemandThroughput={"MaxReadRequestUnits": 50})
    bench.clock.advance(300)
    assert bench.table_points("OnDemandMaxReadRequestUnits", "Maximum") == {0: 50.0}
    assert bench.table_points("OnDemandMaxWriteRequestUnits", "Maximum") == {}


def test_a_backfill_reports_its_progress(bench: Bench) -> None:
    bench.create()
    bench.dynamodb.put_item(TableName="orders", Item=KEY)
    with bench.engine.lock:  # a backfill that has read half of the hashes
        table = next(iter(bench.engine.database.catalog.all()))
        definition = copy.deepcopy(table.definition)
        definition.attributes["city"] = "S"
        half = table.prefix + b"\x80" + bytes(7)
        schema = [{"AttributeName": "city", "KeyType": "HASH"}]
        definition.indexes.append(
            IndexDefinition("by-city", 1, True, schema, "ALL", [], backfilled_to=half.hex())
        )
        changes: dict[bytes, bytes | None] = {}
        bench.engine.database.catalog.put(definition, changes)
    bench.clock.advance(60)
    assert bench.table_points("OnlineIndexPercentageProgress", "Maximum", **GSI) == {0: 50.0}


def test_accounts_and_regions_see_only_their_own_tables(bench: Bench) -> None:
    bench.create()
    other = boto3_session(bench.engine, region_name="eu-west-1").client("cloudwatch")
    bench.clock.advance(60)
    assert bench.cloudwatch.list_metrics(MetricName="ConsumedReadCapacityUnits")["Metrics"]
    assert other.list_metrics()["Metrics"] == []


def test_without_metrics_nothing_is_recorded_and_users_may_still_put_their_own() -> None:
    bench = Bench({"metrics": False})
    bench.create()
    bench.dynamodb.put_item(TableName="orders", Item=KEY)
    bench.put(1)
    bench.clock.advance(60)
    listed = bench.cloudwatch.list_metrics()["Metrics"]
    assert [metric["Namespace"] for metric in listed] == ["Shop"]
    bench.engine.close()


@given(
    st.lists(st.tuples(st.sampled_from(["put", "get", "wait"]), st.integers(0, 5000)), max_size=30)
)
@settings(max_examples=30, deadline=None)
def test_minutes_add_up_to_the_capacity_that_requests_report(steps: list[tuple[str, int]]) -> None:
    bench = Bench()
    bench.create()
    expected: dict[str, float] = {"put": 0.0, "get": 0.0}
    requests: dict[str, dict[str, Any]] = {
        "put": {"TableName": "orders"},
        "get": {"TableName": "orders", "Key": KEY},
    }
    for step, size in steps:
        if step == "wait":
            bench.clock.advance(size / 20)
            continue
        request = {**requests[step], "ReturnConsumedCapacity": "TOTAL"}
        if step == "put":
            request["Item"] = {**KEY, "note": {"S": "x" * size}}
        answer = bench.engine.call("PutItem" if step == "put" else "GetItem", request)
        expected[step] += answer["ConsumedCapacity"]["CapacityUnits"]
    bench.clock.advance(60)
    written = bench.table_points("ConsumedWriteCapacityUnits")
    read = bench.table_points("ConsumedReadCapacityUnits")
    assert sum(written.values()) == expected["put"]
    assert sum(read.values()) == expected["get"]
    minutes = int(round(bench.clock.now() - START, 3) // 60)
    assert list(read) == list(range(0, minutes * 60, 60))
    bench.engine.close()
