"""What tables use at this moment, read from moto's DynamoDB and CloudWatch."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from stator.design.cost.prices import prices
from stator.errors import LiveTableUnreachable
from stator.ops.live.table_use import table_use

NOW = datetime.now(UTC).replace(second=30, microsecond=0)
KEY = {
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
}
UNITS = {"ReadCapacityUnits": 100, "WriteCapacityUnits": 50}


@pytest.fixture
def clients() -> Iterator[tuple[Any, Any]]:
    with mock_aws():
        yield boto3.client("dynamodb", "us-east-1"), boto3.client("cloudwatch", "us-east-1")


def put(cloudwatch: Any, name: str, value: float, minutes_ago: int, **dimensions: str) -> None:
    cloudwatch.put_metric_data(
        Namespace="AWS/DynamoDB",
        MetricData=[
            {
                "MetricName": name,
                "Dimensions": [{"Name": key, "Value": each} for key, each in dimensions.items()],
                "Timestamp": NOW - timedelta(minutes=minutes_ago),
                "Value": value,
            }
        ],
    )


def test_an_on_demand_table_costs_what_it_uses(clients: tuple[Any, Any]) -> None:
    dynamodb, cloudwatch = clients
    dynamodb.create_table(TableName="orders", BillingMode="PAY_PER_REQUEST", **KEY)
    for minute in range(3, 8):
        put(cloudwatch, "ConsumedReadCapacityUnits", 6000, minute, TableName="orders")
        put(cloudwatch, "ConsumedWriteCapacityUnits", 600, minute, TableName="orders")
    put(cloudwatch, "ConsumedReadCapacityUnits", 10**9, 60, TableName="orders")  # too long ago
    put(cloudwatch, "WriteKeyRangeThroughputThrottleEvents", 12, 4, TableName="orders")
    [use] = table_use(dynamodb, cloudwatch, ["orders"], prices(), now=NOW)
    assert (use.table, use.index) == ("orders", None)
    assert (use.read_units, use.write_units) == (100, 10)
    assert (use.read_capacity, use.write_capacity) == (None, None)
    assert use.throttles == {"write hot key": 12}
    known = prices()
    dollars = (
        float(known["read_request_unit"]) * 360_000 + float(known["write_request_unit"]) * 36e3
    )
    assert use.dollars_an_hour == pytest.approx(dollars)


def test_a_provisioned_table_costs_its_capacity_and_indexes_have_their_own(
    clients: tuple[Any, Any],
) -> None:
    dynamodb, cloudwatch = clients
    index = {
        "IndexName": "by_id",
        "KeySchema": KEY["KeySchema"],
        "Projection": {"ProjectionType": "ALL"},
        "ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 9},
    }
    dynamodb.create_table(
        TableName="orders", ProvisionedThroughput=UNITS, GlobalSecondaryIndexes=[index], **KEY
    )
    put(
        cloudwatch,
        "ConsumedReadCapacityUnits",
        300,
        5,
        TableName="orders",
        GlobalSecondaryIndexName="by_id",
    )
    table, by_id = table_use(dynamodb, cloudwatch, ["orders"], prices(), now=NOW)
    assert (table.read_capacity, table.write_capacity, table.read_units) == (100, 50, 0)
    assert (by_id.index, by_id.read_capacity, by_id.read_units) == ("by_id", 7, 1.0)
    known = prices()
    dollars = float(known["read_capacity_hour"]) * 100 + float(known["write_capacity_hour"]) * 50
    assert table.dollars_an_hour == pytest.approx(dollars)


def test_a_table_that_does_not_exist_is_left_out(clients: tuple[Any, Any]) -> None:
    assert table_use(*clients, ["ghost"], prices(), now=NOW) == ()


def test_an_endpoint_without_cloudwatch_is_an_error_that_says_so() -> None:
    from botocore.config import Config

    def client(service: str) -> Any:
        return boto3.client(
            service,
            "us-east-1",
            endpoint_url="http://127.0.0.1:9",
            aws_access_key_id="x",
            aws_secret_access_key="x",
            config=Config(retries={"max_attempts": 0}),
        )

    with pytest.raises(LiveTableUnreachable, match="the use of tables cannot be read"):
        table_use(client("dynamodb"), client("cloudwatch"), ["orders"], prices())
