"""Dashboards, and the tags of alarms and dashboards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .bench import Bench, refused

BODY = json.dumps({"widgets": [{"type": "metric", "properties": {"metrics": [["Shop", "Load"]]}}]})


def put(bench: Bench, name: str = "shop", body: str = BODY, **options: Any) -> dict[str, Any]:
    answer: dict[str, Any] = bench.cloudwatch.put_dashboard(
        DashboardName=name, DashboardBody=body, **options
    )
    return answer


def test_a_dashboard_is_stored_listed_and_deleted(tmp_path: Any) -> None:
    bench = Bench({"path": tmp_path / "data"})
    assert put(bench)["DashboardValidationMessages"] == []
    put(bench, "other")
    bench.reopen()
    found = bench.cloudwatch.get_dashboard(DashboardName="shop")
    assert found["DashboardBody"] == BODY
    assert found["DashboardArn"] == "arn:aws:cloudwatch::123456789012:dashboard/shop"
    [entry] = bench.cloudwatch.list_dashboards(DashboardNamePrefix="sh")["DashboardEntries"]
    assert (entry["DashboardName"], entry["Size"]) == ("shop", len(BODY))
    assert entry["LastModified"] == bench.moment(0)
    with refused("ResourceNotFound", "nothing does not exist"):
        bench.cloudwatch.delete_dashboards(DashboardNames=["shop", "nothing"])
    bench.cloudwatch.delete_dashboards(DashboardNames=["shop"])
    with refused("ResourceNotFound", "shop does not exist"):
        bench.cloudwatch.get_dashboard(DashboardName="shop")
    bench.engine.close()


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("{", "/"),
        ("[]", "/"),
        ('{"widgets": {}}', "/widgets"),
        ('{"widgets": [1]}', "/widgets/0"),
        ('{"widgets": [{"type": "graph", "properties": {}}]}', "/widgets/0/type"),
        ('{"widgets": [{"type": "text"}]}', "/widgets/0"),
    ],
)
def test_a_wrong_body_is_refused_with_its_place(bench: Bench, body: str, path: str) -> None:
    error = bench.cloudwatch.exceptions.DashboardInvalidInputError
    with pytest.raises(error) as caught:
        put(bench, body=body)
    assert caught.value.response["dashboardValidationMessages"][0]["DataPath"] == path
    with refused("InvalidParameterValue", "invalid characters"):
        put(bench, "my shop")


def test_alarms_and_dashboards_have_tags(bench: Bench) -> None:
    put(bench, Tags=[{"Key": "team", "Value": "a"}])
    bench.cloudwatch.put_metric_alarm(
        AlarmName="busy",
        Namespace="Shop",
        MetricName="Load",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
        Tags=[{"Key": "team", "Value": "b"}],
    )
    [alarm] = bench.cloudwatch.describe_alarms()["MetricAlarms"]
    for arn, team in (
        (alarm["AlarmArn"], "b"),
        ("arn:aws:cloudwatch::123456789012:dashboard/shop", "a"),
    ):
        bench.cloudwatch.tag_resource(ResourceARN=arn, Tags=[{"Key": "x", "Value": "y"}])
        tags = bench.cloudwatch.list_tags_for_resource(ResourceARN=arn)["Tags"]
        assert tags == [{"Key": "team", "Value": team}, {"Key": "x", "Value": "y"}]
        bench.cloudwatch.untag_resource(ResourceARN=arn, TagKeys=["team"])
        tags = bench.cloudwatch.list_tags_for_resource(ResourceARN=arn)["Tags"]
        assert tags == [{"Key": "x", "Value": "y"}]
    with refused("ResourceNotFoundException"):
        bench.cloudwatch.list_tags_for_resource(ResourceARN=alarm["AlarmArn"] + "x")
