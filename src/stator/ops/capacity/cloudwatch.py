"""Metrics from CloudWatch, by GetMetricData, in as few calls as its limits allow.

A call takes 500 queries and returns 100,800 values; more come in further pages. Two weeks of
minutes are 20,160 values a query, so five queries make a full call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from stator.ops.capacity.metric_source import MetricQuery
from stator.ops.capacity.service_calls import pages

_MOST_QUERIES: Final = 500
_MOST_VALUES: Final = 100_800


class CloudWatchMetrics:
    """Reads metrics through a botocore or boto3 client for ``cloudwatch``."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def read(self, queries: Sequence[MetricQuery], start: int, end: int) -> list[dict[int, float]]:
        """Return the values of each query by period, see ``MetricSource``."""
        found: list[dict[int, float]] = [{} for _ in queries]
        for numbers in _calls(queries, start, end):
            request = {
                "MetricDataQueries": [_query(number, queries[number]) for number in numbers],
                "StartTime": datetime.fromtimestamp(start, UTC),
                "EndTime": datetime.fromtimestamp(end, UTC),
                "ScanBy": "TimestampAscending",
            }
            for page in pages(self._client, "get_metric_data", **request):
                for result in page["MetricDataResults"]:
                    values = found[int(result["Id"][1:])]
                    for at, value in zip(result["Timestamps"], result["Values"]):
                        values[int(at.timestamp())] = float(value)
        return found


def _calls(queries: Sequence[MetricQuery], start: int, end: int) -> Iterator[list[int]]:
    """Yield the numbers of the queries of each call."""
    numbers: list[int] = []
    values = 0
    for number, query in enumerate(queries):
        own = -(-(end - start) // query.period_seconds)
        if numbers and (len(numbers) == _MOST_QUERIES or values + own > _MOST_VALUES):
            yield numbers
            numbers, values = [], 0
        numbers.append(number)
        values += own
    if numbers:
        yield numbers


def _query(number: int, query: MetricQuery) -> dict[str, Any]:
    dimensions = [{"Name": "TableName", "Value": query.table}]
    if query.index is not None:
        dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": query.index})
    metric = {"Namespace": "AWS/DynamoDB", "MetricName": query.metric, "Dimensions": dimensions}
    return {
        "Id": f"q{number}",
        "MetricStat": {
            "Metric": metric, "Period": query.period_seconds, "Stat": query.statistic,
        },
    }  # fmt: skip
