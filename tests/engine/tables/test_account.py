"""DescribeLimits and DescribeEndpoints."""

from __future__ import annotations

from stator.engine import Engine


def test_limits_are_the_default_quotas_of_aws(engine: Engine) -> None:
    assert engine.call("DescribeLimits", {}) == {
        "AccountMaxReadCapacityUnits": 80_000,
        "AccountMaxWriteCapacityUnits": 80_000,
        "TableMaxReadCapacityUnits": 40_000,
        "TableMaxWriteCapacityUnits": 40_000,
    }


def test_the_endpoint_names_the_callers_region(engine: Engine) -> None:
    answer = engine.call("DescribeEndpoints", {}, region="eu-west-2")
    assert answer == {
        "Endpoints": [{"Address": "dynamodb.eu-west-2.amazonaws.com", "CachePeriodInMinutes": 1440}]
    }
