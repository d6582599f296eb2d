"""What these tests share: an engine with metrics on a virtual clock, seen through boto3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.testing import boto3_session

START = 1_700_000_100  # the start of a minute, and of five minutes


@dataclass
class Bench:
    """An engine, its clock and its clients. ``metrics`` are recorded."""

    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = VirtualClock(START)
        self.open()

    def open(self) -> None:
        self.engine = Engine.open(clock=self.clock, **{"metrics": True, **self.options})
        session = boto3_session(self.engine)
        self.dynamodb = session.client("dynamodb")
        self.cloudwatch = session.client("cloudwatch")

    def reopen(self) -> None:
        self.engine.close()
        self.open()

    def create(self, name: str = "orders", **options: Any) -> None:
        self.dynamodb.create_table(
            **{
                "TableName": name,
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
                **options,
            }
        )

    def put(self, value: float, name: str = "Load", **datum: Any) -> None:
        """Put one sample of a user's metric now."""
        self.put_all([{"MetricName": name, "Value": value, **datum}])

    def put_all(self, data: list[dict[str, Any]]) -> None:
        self.cloudwatch.put_metric_data(Namespace="Shop", MetricData=data)

    def moment(self, seconds: float) -> datetime:
        """Return a time as boto3 takes it, in seconds after the start."""
        return datetime.fromtimestamp(START + seconds, UTC)

    def points(
        self,
        metric: str,
        statistic: str = "Sum",
        *,
        namespace: str = "Shop",
        period: int = 60,
        start: float = 0,
        end: float | None = None,
        **dimensions: str,
    ) -> dict[int, float]:
        """Return a statistic by the seconds after the start. Points come unordered."""
        until = self.clock.now() - START if end is None else end
        kind = "Statistics" if statistic in SIMPLE else "ExtendedStatistics"
        answer = self.cloudwatch.get_metric_statistics(
            Namespace=namespace,
            MetricName=metric,
            Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
            StartTime=self.moment(start),
            EndTime=self.moment(until + 1),
            Period=period,
            **{kind: [statistic]},
        )
        points = answer["Datapoints"]
        return {
            round(point["Timestamp"].timestamp() - START): (
                point[statistic] if statistic in SIMPLE else point["ExtendedStatistics"][statistic]
            )
            for point in sorted(points, key=lambda each: each["Timestamp"])
        }

    def table_points(self, metric: str, statistic: str = "Sum", **options: Any) -> dict[int, float]:
        options = {"TableName": "orders", **options}
        return self.points(metric, statistic, namespace="AWS/DynamoDB", **options)


SIMPLE = ("SampleCount", "Average", "Sum", "Minimum", "Maximum")


def refused(code: str, message: str = "") -> Any:
    """Expect a ClientError with this code."""
    return _Refused(code, message)


class _Refused:
    def __init__(self, code: str, message: str) -> None:
        self._code, self._message = code, message
        self._raises: Any = pytest.raises(ClientError)

    def __enter__(self) -> None:
        self._caught = self._raises.__enter__()

    def __exit__(self, *error: Any) -> bool:
        swallowed: bool = self._raises.__exit__(*error)
        found = self._caught.value.response["Error"]
        assert found["Code"] == self._code, found
        assert self._message in found["Message"], found
        return swallowed


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.engine.close()
