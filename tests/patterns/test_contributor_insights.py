"""Hot keys found with Contributor Insights, with botocore's own check of requests and replies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import botocore.session
import pytest
from botocore.stub import Stubber

from stator import connect
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ConfigurationError, RequestRefused
from stator.tables.shards.adaptive_shards import AdaptiveShards
from stator.tables.shards.contributor_insights import ContributorInsights, MeasuredKey
from stator.tables.shards.shard_change import ShardChange
from tests.patterns.meters import T0, reading
from tests.patterns.series_world import series
from tests.tables.shop import shop

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
RULES = [
    f"DynamoDBContributorInsights-{kind}-shop-stator-1763500000000"
    for kind in ("PKC", "SKC", "PKT", "SKT")
]


def report(*contributors: tuple[str, list[float]]) -> dict[str, Any]:
    return {
        "KeyLabels": ["PK"],
        "AggregationStatistic": "Maximum",
        "Contributors": [
            {
                "Keys": [key],
                "ApproximateAggregateValue": max(values),
                "Datapoints": [
                    {"Timestamp": NOW - timedelta(minutes=at), "ApproximateValue": value}
                    for at, value in enumerate(values)
                ],
            }
            for key, values in contributors
        ],
    }


def request(rule: str) -> dict[str, Any]:
    return {
        "RuleName": rule,
        "StartTime": NOW - timedelta(minutes=5),
        "EndTime": NOW,
        "Period": 60,
        "MaxContributorCount": 25,
        "Metrics": ["MaxContributorValue"],
        "OrderBy": "Maximum",
    }


def stubbed(
    described: dict[str, Any], reports: dict[str, dict[str, Any]]
) -> tuple[ContributorInsights, list[Stubber]]:
    session = botocore.session.get_session()
    session.set_credentials("local", "local")
    clients = [session.create_client(each, "eu-west-1") for each in ("dynamodb", "cloudwatch")]
    stubs = [Stubber(client) for client in clients]
    stubs[0].add_response(
        "describe_contributor_insights",
        {"TableName": "shop-stator", **described},
        {"TableName": "shop-stator"},
    )
    for rule, answer in reports.items():
        stubs[1].add_response("get_insight_rule_report", answer, request(rule))
    for stub in stubs:
        stub.activate()
    return ContributorInsights(*clients), stubs


def test_the_busiest_and_the_throttled_keys_are_read_from_their_rules() -> None:
    insights, stubs = stubbed(
        {"ContributorInsightsStatus": "ENABLED", "ContributorInsightsRuleList": RULES},
        {
            RULES[0]: report(("a", [9_000.0, 180_000.0]), ('"b"', [90_000.0])),
            RULES[2]: report(("a", [7.0, 5.0]), ("c", [1.0])),
        },
    )
    assert insights.hot_keys("shop-stator", until=NOW) == [
        MeasuredKey("a", 1_000.0, 12),
        MeasuredKey("b", 500.0, 0),
        MeasuredKey("c", 0.0, 1),
    ]
    for stub in stubs:
        stub.assert_no_pending_responses()


@pytest.mark.parametrize("status", ["DISABLED", "ENABLING", "FAILED"])
def test_where_it_is_off_no_key_is_hot(status: str) -> None:
    insights, _ = stubbed({"ContributorInsightsStatus": status}, {})
    assert insights.hot_keys("shop-stator", until=NOW) == []


def test_a_span_of_no_minutes_is_refused() -> None:
    insights, _ = stubbed({"ContributorInsightsStatus": "DISABLED"}, {})
    with pytest.raises(ConfigurationError, match="minutes=0"):
        insights.hot_keys("shop-stator", until=NOW, minutes=0)


def test_a_series_spreads_the_buckets_of_its_hot_keys_and_no_others() -> None:
    clock = VirtualClock(T0.timestamp())
    changes: list[ShardChange] = []
    db = connect(shop(), Engine.open(clock=clock), clock=clock)
    readings = series(db, shards=AdaptiveShards(on_change=changes.append))
    for sensor in ("s1", "s2", "s 3"):
        readings.add(reading(1, sensor=sensor))
    keys = {
        sensor: readings.layout.partition(readings.layout.by.text(sensor), "2096-11-14T12", 0)
        for sensor in ("s1", "s2", "s 3", "unknown")
    }
    hot = [
        MeasuredKey(keys["s1"], 2_500.0, 0),
        MeasuredKey(keys["s 3"], 100.0, 40),
        MeasuredKey(keys["s2"], 300.0, 0),
        MeasuredKey(keys["unknown"], 5_000.0, 0),
        MeasuredKey("USER#u1", 5_000.0, 0),
        MeasuredKey("SERIES#reading#s1", 5_000.0, 0),
        MeasuredKey("SERIES#readings#s2#2096-11-14T12#0", 5_000.0, 0),
    ]
    assert readings.spread(hot) == 2
    shards = {sensor: readings.shards(sensor)[0].shards for sensor in ("s1", "s2", "s 3")}
    assert shards == {"s1": 4, "s2": 1, "s 3": 2}
    assert {each.reason for each in changes} == {"Contributor Insights"}
    assert readings.spread(hot) == 0
    assert readings.shards("unknown") == []
    # Writers of this process know at once.
    for minute in range(2, 40):
        readings.add(reading(minute))
    assert readings.count("s1") == 39


def test_a_series_with_fixed_shards_is_not_spread() -> None:
    with pytest.raises(RequestRefused, match="fixed number of shards"):
        series(connect(shop()), shards=4).spread([])
