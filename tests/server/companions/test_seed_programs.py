"""Two programs that people write, with their AWS calls, against a server: what the answers are.

One decides from CloudWatch whether a table has a hot partition, the other which capacity mode a
table should have. The calls are answered as AWS answers them, so both programs go wrong here as
they do there. docs/guides/monitoring.md says why, and what to ask instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import SlowDown
from stator.server import BackgroundServer

from ...engine.companions.bench import refused

NOW = datetime.now(UTC).replace(second=0, microsecond=0)
UNITS = {"ReadCapacityUnits": 10, "WriteCapacityUnits": 10}


class Account:
    """A server with one table, and the clients of a program that uses it."""

    def __init__(self, engine: Engine, clock: VirtualClock, url: str) -> None:
        self.engine = engine
        self.clock = clock
        options = {
            "endpoint_url": url,
            "region_name": "us-east-1",
            "aws_access_key_id": "local",
            "aws_secret_access_key": "local",
        }
        self.dynamodb = boto3.client("dynamodb", **options)
        self.cloudwatch = boto3.client("cloudwatch", **options)
        self.scaling = boto3.client("application-autoscaling", **options)

    def create(self, *, with_index: bool = False) -> None:
        request: dict[str, Any] = {
            "TableName": "orders",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "ProvisionedThroughput": UNITS,
        }
        if with_index:
            request["AttributeDefinitions"].append({"AttributeName": "g", "AttributeType": "S"})
            request["GlobalSecondaryIndexes"] = [
                {
                    "IndexName": "by-g",
                    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                    "ProvisionedThroughput": UNITS,
                }
            ]
        self.dynamodb.create_table(**request)

    def write(self, times: int, key: str) -> int:
        """Write an item so often, and return how often the table refused."""
        refusals = 0
        for _ in range(times):
            try:
                self.engine.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": key}}})
            except SlowDown:
                refusals += 1
        return refusals

    def points(self, metric: str, *statistics: str, **options: Any) -> list[dict[str, Any]]:
        end = datetime.fromtimestamp(self.clock.now(), UTC)
        answer = self.cloudwatch.get_metric_statistics(
            Namespace="AWS/DynamoDB",
            MetricName=metric,
            Dimensions=[{"Name": "TableName", "Value": "orders"}],
            **{"StartTime": end - timedelta(minutes=5), "Period": 60, **options},
            EndTime=end,
            Statistics=statistics or ["Sum"],
        )
        points: list[dict[str, Any]] = answer["Datapoints"]
        return points


@pytest.fixture
def account() -> Iterator[Account]:
    clock = VirtualClock(NOW.timestamp())
    options: dict[str, Any] = {"throughput": "enforced", "metrics": True}
    with Engine.open(clock=clock, **options) as engine, BackgroundServer(engine) as server:
        yield Account(engine, clock, server.url)


# -- "the partition is hot if the table has user errors"


def test_user_errors_of_a_table_do_not_exist_however_hot_it_is(account: Account) -> None:
    account.create()
    assert account.write(100, "hot") > 10
    account.clock.advance(60)
    # UserErrors has no dimensions, and counts no throttling: the answer is always empty.
    assert account.points("UserErrors") == []
    [point] = account.points("WriteThrottleEvents")
    assert point["Sum"] > 10


def test_contributor_insights_name_the_hot_key(account: Account) -> None:
    account.create()
    account.dynamodb.update_contributor_insights(
        TableName="orders", ContributorInsightsAction="ENABLE"
    )
    account.write(3, "calm")
    refusals = account.write(100, "hot")
    account.clock.advance(60)
    rules = account.dynamodb.describe_contributor_insights(TableName="orders")
    [throttled] = [name for name in rules["ContributorInsightsRuleList"] if "-PKT-" in name]
    report = account.cloudwatch.get_insight_rule_report(
        RuleName=throttled,
        StartTime=NOW,
        EndTime=NOW + timedelta(minutes=5),
        Period=60,
        MaxContributorCount=5,
        Metrics=["MaxContributorValue"],
    )
    [hot] = report["Contributors"]
    assert hot["Keys"] == ["hot"]
    assert hot["ApproximateAggregateValue"] == refusals


# -- "on demand if the average is below ten units"


def test_the_average_of_consumed_units_is_no_rate(account: Account) -> None:
    account.create()
    account.clock.advance(300)  # save up for the first minute
    for minute in range(60):
        account.write(540, f"{minute}")
        account.clock.advance(60)
    start = NOW - timedelta(days=7)
    points = account.points(
        "ConsumedWriteCapacityUnits",
        "Sum",
        "Average",
        "Maximum",
        StartTime=start,
        Period=3600,
    )
    busy = [point for point in points if point["Sum"]]
    # Units of one request: the program sees a table that is nearly idle, and recommends on-demand.
    assert {point["Average"] for point in busy} == {1.0}
    assert {point["Maximum"] for point in busy} == {1.0}
    # Nine units a second of the ten that are provisioned.
    assert sum(point["Sum"] for point in points) / 3600 == 9.0


def test_a_switch_to_provisioned_needs_units_for_each_index(account: Account) -> None:
    account.create(with_index=True)
    account.dynamodb.update_table(TableName="orders", BillingMode="PAY_PER_REQUEST")
    switch = {"TableName": "orders", "BillingMode": "PROVISIONED", "ProvisionedThroughput": UNITS}
    with refused("ValidationException", "must be specified for index: by-g"):
        account.dynamodb.update_table(**switch)
    index = {"Update": {"IndexName": "by-g", "ProvisionedThroughput": UNITS}}
    account.dynamodb.update_table(**switch, GlobalSecondaryIndexUpdates=[index])
    table = account.dynamodb.describe_table(TableName="orders")["Table"]
    assert table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]["WriteCapacityUnits"] == 10


# -- what to do instead: let a policy follow the load


def test_auto_scaling_over_http(account: Account) -> None:
    account.create()
    target = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": "table/orders",
        "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
    }
    account.scaling.register_scalable_target(**target, MinCapacity=2, MaxCapacity=40)
    account.scaling.put_scaling_policy(
        **target,
        PolicyName="steady",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 70.0,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "DynamoDBWriteCapacityUtilization"
            },
        },
    )
    for _ in range(2):
        account.clock.advance(50)
        account.write(500, "a")
        account.clock.advance(10)
        account.engine.sweep()
    [activity] = account.scaling.describe_scaling_activities(ServiceNamespace="dynamodb")[
        "ScalingActivities"
    ]
    assert activity["Description"] == "Setting write capacity units to 12."
    assert activity["EndTime"] == NOW + timedelta(minutes=2)
    alarms = account.cloudwatch.describe_alarms(AlarmNamePrefix="TargetTracking-table/orders-")
    assert len(alarms["MetricAlarms"]) == 4
    with refused("ObjectNotFoundException", "No scaling policy found"):
        account.scaling.delete_scaling_policy(**target, PolicyName="other")


# -- the calls of both programs, in the order in which they make them


def test_a_suffix_while_a_key_is_hot_hides_what_was_written_before(account: Account) -> None:
    account.dynamodb.create_table(
        TableName="feed",
        KeySchema=[
            {"AttributeName": "PK", "KeyType": "HASH"},
            {"AttributeName": "SK", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK")
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    for key in ("user", "user#0", "user#7"):  # before, and while it is taken for hot
        item = {"PK": {"S": key}, "SK": {"S": f"s-{key}"}, "OriginalPK": {"S": "user"}}
        account.dynamodb.put_item(TableName="feed", Item=item)

    def found(keys: list[str]) -> int:
        return sum(
            account.dynamodb.query(
                TableName="feed",
                KeyConditionExpression="PK = :p AND begins_with(SK, :s)",
                ExpressionAttributeValues={":p": {"S": key}, ":s": {"S": "s"}},
            )["Count"]
            for key in keys
        )

    assert found([f"user#{shard}" for shard in range(10)]) == 2  # a reader while it is hot
    assert found(["user"]) == 1  # and afterwards


def test_a_week_of_hours_is_one_answer_and_says_nothing_of_the_busiest_second(
    account: Account,
) -> None:
    account.create()
    for _ in range(3):
        account.engine.call("GetItem", {"TableName": "orders", "Key": {"pk": {"S": "a"}}})
    account.clock.advance(3600)
    end = datetime.fromtimestamp(account.clock.now(), UTC)
    points = account.points(
        "ConsumedReadCapacityUnits", "Sum", "Average", "Maximum",
        StartTime=end - timedelta(days=7), Period=3600,
    )  # fmt: skip
    used = [each for each in points if each["Sum"]]
    assert [(each["Sum"], each["Average"], each["Maximum"]) for each in used] == [(1.5, 0.5, 0.5)]
    account.dynamodb.update_table(TableName="orders", BillingMode="PAY_PER_REQUEST")
    account.dynamodb.update_table(
        TableName="orders", BillingMode="PROVISIONED", ProvisionedThroughput=UNITS
    )
    described = account.dynamodb.describe_table(TableName="orders")["Table"]
    assert described["BillingModeSummary"]["BillingMode"] == "PROVISIONED"
