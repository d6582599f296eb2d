"""The hottest keys, from the engine's Contributor Insights."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from stator.clock import VirtualClock
from stator.design.cost.prices import prices
from stator.engine import Engine
from stator.metrics.busy_keys import hashed_key
from stator.ops.live.hot_keys import HotKeys
from stator.ops.live.table_use import table_use
from stator.testing import boto3_session

INDEX = {
    "IndexName": "by-g",
    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}


class Tables:
    def __init__(self) -> None:
        self.clock = VirtualClock(1_700_000_100)
        self.engine = Engine.open(clock=self.clock, metrics=True)
        session = boto3_session(self.engine)
        self.dynamodb, self.cloudwatch = session.client("dynamodb"), session.client("cloudwatch")
        self.dynamodb.create_table(
            TableName="orders",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "g")
            ],
            GlobalSecondaryIndexes=[INDEX],
            BillingMode="PAY_PER_REQUEST",
        )

    def enable(self, **where: str) -> None:
        self.dynamodb.update_contributor_insights(
            TableName="orders", ContributorInsightsAction="ENABLE", **where
        )

    def write(self) -> None:
        for key in [*["hot"] * 60, *["warm"] * 6, *"abcdef"]:
            item = {"pk": {"S": key}, "g": {"S": "all"}}
            self.dynamodb.put_item(TableName="orders", Item=item)
        self.clock.advance(180)

    def look(self, **options: Any) -> Any:
        now = datetime.fromtimestamp(self.clock.now(), UTC)
        places = table_use(self.dynamodb, self.cloudwatch, ["orders"], prices(), now=now)
        return HotKeys(self.dynamodb, self.cloudwatch, **options).look(places, now=now)


@pytest.fixture
def tables() -> Iterator[Tables]:
    found = Tables()
    yield found
    found.engine.close()


def test_the_hottest_three_keys_of_a_place_are_hashes(tables: Tables) -> None:
    tables.enable()
    tables.write()
    found = tables.look()
    assert [each.key for each in found.keys][:2] == [hashed_key("hot"), hashed_key("warm")]
    assert len(found.keys) == 3
    assert found.keys[0].write_units == 1.0  # 60 in a minute
    assert found.keys[0].limit_share == pytest.approx(0.001)  # of 1,000 a second
    assert [(each.table, each.index) for each in found.switches] == [("orders", "by-g")]


def test_keys_are_named_on_request_also_those_of_an_index(tables: Tables) -> None:
    tables.enable(IndexName="by-g")
    tables.write()
    found = tables.look(show_keys=True)
    (key,) = found.keys
    assert (key.index, key.key) == ("by-g", "all")
    assert found.switches[0].command == (
        "aws dynamodb update-contributor-insights --table-name orders "
        "--contributor-insights-action ENABLE --region us-east-1"
    )


@pytest.mark.parametrize(
    ("endpoint", "region", "said"),
    [
        ("https://dynamodb.eu-west-1.amazonaws.com", "eu-west-1", "--region eu-west-1"),
        ("https://dynamodb.cn-north-1.amazonaws.com.cn", "cn-north-1", "--region cn-north-1"),
        (
            "http://127.0.0.1:8000",
            "eu-west-1",
            "--endpoint-url http://127.0.0.1:8000 --region eu-west-1",
        ),
    ],
)
def test_the_command_goes_to_the_address_that_was_read(
    tables: Tables, endpoint: str, region: str, said: str
) -> None:
    class At:
        meta = SimpleNamespace(endpoint_url=endpoint, region_name=region)

        def __getattr__(self, name: str) -> Any:
            return getattr(tables.dynamodb, name)

    now = datetime.fromtimestamp(tables.clock.now(), UTC)
    places = table_use(tables.dynamodb, tables.cloudwatch, ["orders"], prices(), now=now)
    found = HotKeys(At(), tables.cloudwatch).look(places, now=now)
    assert found.switches
    assert all(each.command.endswith(f"ENABLE {said}") for each in found.switches)


def test_an_endpoint_without_insights_is_a_problem_to_show(tables: Tables) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "UnknownOperationException"}}, "DescribeX")

    setattr(tables.dynamodb, "describe_contributor_insights", refuse)  # noqa: B010
    found = tables.look()
    assert (found.keys, found.switches) == ((), ())
    assert "UnknownOperationException" in found.problem
