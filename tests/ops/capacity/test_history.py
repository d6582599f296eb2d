"""Histories of live tables: from metrics in memory, from moto's CloudWatch, and kept in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from stator.errors import ConfigurationError, LiveTableUnreachable
from stator.ops.capacity.cloudwatch import CloudWatchMetrics
from stator.ops.capacity.history import fetch_history, kept_history, last_days, live_history
from stator.ops.capacity.history_file import read_history
from stator.ops.capacity.live_table import LiveTable
from stator.ops.capacity.metric_source import MemoryMetrics, MetricQuery
from stator.ops.capacity.use_series import Dimension

from .histories import MONDAY, READS, WRITES, history

DAY = 86_400
TABLE = LiveTable("orders", {}, ("GSI1",), sizes={None: 100.0, "GSI1": 10.0})
NOW = MONDAY + 2 * DAY + 200.0


class CountedMetrics(MemoryMetrics):
    """Metrics that remember for which times they were asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[int, int]] = []

    def read(self, queries: Sequence[MetricQuery], start: int, end: int) -> list[dict[int, float]]:
        self.asked.append((start, end))
        return super().read(queries, start, end)


def metrics(days: float = 3.0) -> CountedMetrics:
    found = CountedMetrics()
    for minute in range(int(days * 1440)):
        at = MONDAY + minute * 60
        found.put("ConsumedWriteCapacityUnits", "orders", None, at, 4.0)
        found.put("ConsumedWriteCapacityUnits", "orders", None, at + 30, 2.0)
        found.put("ConsumedWriteCapacityUnits", "orders", "GSI1", at, 1.0)
    found.put("WriteThrottleEvents", "orders", None, MONDAY + 61, 5.0)
    return found


def test_the_minutes_come_from_the_metrics() -> None:
    found = fetch_history(metrics(1), TABLE, MONDAY, MONDAY + 600)
    assert found.minutes == 10 and found.size_bytes == 110.0
    assert list(found.of(WRITES).consumed) == [6.0] * 10
    assert list(found.of(Dimension("GSI1", "write")).consumed) == [1.0] * 10
    assert list(found.of(READS).consumed) == [0.0] * 10
    assert found.of(WRITES).units_per_request == 3.0  # 6 units in 2 requests a minute
    assert found.of(WRITES).demand()[1] == 6.0 + 5 * 3.0
    assert not found.was_provisioned


def test_units_hold_until_the_next_value_and_end_when_a_table_is_switched() -> None:
    source = metrics(1)
    for minute, units in ((0, 10.0), (5, 10.0), (10, 40.0)):
        name = "ProvisionedWriteCapacityUnits"
        source.put(name, "orders", None, MONDAY + minute * 60, units)
    found = fetch_history(source, TABLE, MONDAY, MONDAY + 3600).of(WRITES).provisioned
    assert list(found[:12]) == [10.0] * 10 + [40.0] * 2
    assert found[24] == 40.0 and set(found[25:]) == {0.0}


def test_a_provisioned_table_without_that_metric_has_its_present_units() -> None:
    table = LiveTable("orders", {READS: 7, WRITES: 9})
    found = fetch_history(metrics(1), table, MONDAY, MONDAY + 120)
    assert list(found.of(WRITES).provisioned) == [9.0, 9.0]


def test_a_history_ends_minutes_ago_and_begins_with_the_table() -> None:
    found = live_history(metrics(), TABLE, NOW, days=1)
    assert (found.start, found.minutes) == (MONDAY + DAY, 1440)
    young = LiveTable("orders", {}, created_at=MONDAY + DAY + 30.0)
    assert live_history(metrics(), young, NOW, days=14).start == MONDAY + DAY + 60
    with pytest.raises(ConfigurationError, match="was created minutes ago"):
        live_history(metrics(), LiveTable("orders", {}, created_at=NOW), NOW)


def test_more_than_fifteen_days_are_in_points_of_five_minutes() -> None:
    found = live_history(metrics(1), TABLE, NOW, days=16)
    assert found.source_seconds == 300 and found.start % 300 == 0
    assert list(found.of(WRITES).consumed)[-2880:-2875] == [6.0] * 5
    with pytest.raises(ConfigurationError, match="64 days is not a length of history"):
        live_history(metrics(1), TABLE, NOW, days=64)


# --- kept in a file -------------------------------------------------------------------------------


def test_only_what_a_file_lacks_is_fetched(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path, source = tmp_path / "kept.parquet", metrics()
    (first,) = kept_history(path, source, [TABLE], NOW, days=1)
    (second,) = kept_history(path, source, [TABLE], NOW + 3600, days=1)
    (again,) = kept_history(path, source, [TABLE], NOW + 3600, days=1)
    (longer,) = kept_history(path, source, [TABLE], NOW + 3600, days=2)
    end = MONDAY + 2 * DAY
    assert source.asked == [
        (end - DAY, end), (end, end + 3600), (end - DAY + 3600 - DAY, end - DAY)
    ]  # fmt: skip
    assert (first.minutes, second.minutes, again.minutes, longer.minutes) == (
        1440,
        1440,
        1440,
        2880,
    )
    assert second.start == first.start + 3600
    assert list(longer.of(WRITES).consumed) == [6.0] * 2880
    assert longer.of(WRITES).units_per_request == pytest.approx(3.0)


def test_a_file_of_another_resolution_is_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    kept_history(path, metrics(), [TABLE], NOW, days=1)
    with pytest.raises(ConfigurationError, match="has a point for every 60 seconds of orders"):
        kept_history(path, metrics(), [TABLE], NOW, days=20)


def test_an_index_that_was_added_later_was_idle_before(tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    kept_history(path, metrics(), [LiveTable("orders", {})], NOW, days=1)
    (found,) = kept_history(path, metrics(), [TABLE], NOW + 600, days=2)
    added = found.of(Dimension("GSI1", "write")).consumed
    assert sum(added) == len([each for each in added if each])
    assert added[-1] == 1.0 and 0.0 in added


def test_a_file_is_enough_for_a_table_that_was_created_now(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    (kept,) = kept_history(path, metrics(), [TABLE], NOW, days=2)
    before = path.read_text()
    for later in (30.0, 600.0, 9 * DAY):  # no minutes yet, a few, days after the file ends
        young = replace(TABLE, created_at=NOW + later)
        (found,) = kept_history(path, CountedMetrics(), [young], NOW + later + 400, days=2)
        assert found == kept
        assert path.read_text() == before


def test_what_a_file_has_is_never_replaced_by_what_came_long_after(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    kept_history(path, metrics(), [TABLE], NOW, days=2)
    before = path.read_text()
    with pytest.raises(ConfigurationError, match=r"orders until 2026-11-0. .*the time between"):
        kept_history(path, metrics(), [TABLE], NOW + 40 * DAY, days=2)
    assert path.read_text() == before


def test_an_index_that_is_gone_is_kept_in_the_file_and_left_out_of_the_history(
    tmp_path: Path,
) -> None:
    path = tmp_path / "history.csv"
    kept_history(path, metrics(), [TABLE], NOW, days=1)
    (found,) = kept_history(path, metrics(), [LiveTable("orders", {}, ("GSI2",))], NOW, days=1)
    assert found.indexes == ("GSI2",)
    assert not any(found.of(Dimension("GSI2", "write")).consumed)
    assert [each.indexes for each in read_history(path)] == [("GSI1",)]


def test_the_last_days_of_a_short_history_are_all_of_it() -> None:
    found = history([1.0] * 100)
    assert last_days(found, 14) is found
    assert last_days(history([1.0] * 1500), 1).minutes == 1440


# --- CloudWatch -----------------------------------------------------------------------------------


@pytest.fixture
def cloudwatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        yield boto3.client("cloudwatch", region_name="eu-west-1")


def test_cloudwatch_has_the_same_minutes_as_the_twin(cloudwatch: Any) -> None:
    now = int(datetime.now(UTC).timestamp()) // 86_400 * 86_400
    twin = MemoryMetrics()
    for minute in range(120):
        for index, value in ((None, 4.0), ("GSI1", 1.0)):
            at = now + minute * 60
            twin.put("ConsumedWriteCapacityUnits", "orders", index, at, value)
            dimensions = [{"Name": "TableName", "Value": "orders"}]
            if index is not None:
                dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": index})
            cloudwatch.put_metric_data(
                Namespace="AWS/DynamoDB",
                MetricData=[
                    {
                        "MetricName": "ConsumedWriteCapacityUnits",
                        "Dimensions": dimensions,
                        "Timestamp": datetime.fromtimestamp(at, UTC),
                        "Value": value,
                    }
                ],
            )
    asked = [
        MetricQuery("ConsumedWriteCapacityUnits", "orders", index, "Sum", 60)
        for index in (None, "GSI1", "GSI2")
    ]
    found = CloudWatchMetrics(cloudwatch).read(asked, now, now + 7200)
    assert found == twin.read(asked, now, now + 7200)
    assert len(found[0]) == 120 and found[2] == {}


class PagedCloudWatch:
    """Answers GetMetricData in pages of one result, and remembers the requests."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def get_metric_data(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        page = int(request.get("NextToken", 0))
        query = request["MetricDataQueries"][page]
        result = {"Id": query["Id"], "Timestamps": [request["StartTime"]], "Values": [float(page)]}
        more = page + 1 < len(request["MetricDataQueries"])
        return {"MetricDataResults": [result], **({"NextToken": str(page + 1)} if more else {})}


def test_calls_stay_within_the_limits_and_every_page_is_read() -> None:
    client = PagedCloudWatch()
    asked = [MetricQuery("M", "orders", f"i{number}") for number in range(12)]
    found = CloudWatchMetrics(client).read(asked, MONDAY, MONDAY + 14 * DAY)
    assert [list(each) for each in found] == [[MONDAY]] * 12
    sizes = [len(each["MetricDataQueries"]) for each in client.requests if "NextToken" not in each]
    assert sizes == [5, 5, 2]  # 20,160 values a query, 100,800 a call
    client = PagedCloudWatch()
    CloudWatchMetrics(client).read([asked[0]] * 1001, MONDAY, MONDAY + 60)
    sizes = [len(each["MetricDataQueries"]) for each in client.requests if "NextToken" not in each]
    assert sizes == [500, 500, 1]


def test_an_endpoint_without_cloudwatch_says_what_to_do() -> None:
    client = boto3.client(
        "cloudwatch", region_name="eu-west-1", endpoint_url="http://127.0.0.1:1",
        aws_access_key_id="x", aws_secret_access_key="x",
    )  # fmt: skip
    with pytest.raises(LiveTableUnreachable, match="CloudWatch at http") as raised:
        CloudWatchMetrics(client).read([MetricQuery("M", "orders")], MONDAY, MONDAY + 60)
    assert "stator serve" in str(raised.value.hint)
