"""What an outsider sends to the companions: values that AWS refuses, by its codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from stator.engine import Engine
from stator.server import BackgroundServer

NAN, INFINITE = float("nan"), float("inf")
ALARM: dict[str, Any] = {
    "AlarmName": "a",
    "Namespace": "X",
    "MetricName": "m",
    "Statistic": "Sum",
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 1.0,
    "ComparisonOperator": "GreaterThanThreshold",
}


@pytest.fixture(scope="module")
def cloudwatch() -> Iterator[Any]:
    with Engine.open(metrics=True) as engine, BackgroundServer(engine) as server:
        yield boto3.client(
            "cloudwatch",
            endpoint_url=server.url,
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
            config=Config(parameter_validation=False, retries={"max_attempts": 1}),
        )


def refusal(call: Any, **request: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as raised:
        call(**request)
    error = raised.value.response["Error"]
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return error["Code"], error["Message"]


@pytest.mark.parametrize("value", [NAN, INFINITE, -INFINITE])
@pytest.mark.parametrize("member", ["Value", "Values", "StatisticValues"])
def test_what_is_no_number_is_an_invalid_value(cloudwatch: Any, member: str, value: float) -> None:
    counted = {"SampleCount": 1.0, "Sum": value, "Minimum": 1.0, "Maximum": 1.0}
    given = {"Value": value, "Values": [value], "StatisticValues": counted}[member]
    code, message = refusal(
        cloudwatch.put_metric_data, Namespace="X", MetricData=[{"MetricName": "m", member: given}]
    )
    assert code == "InvalidParameterValue" and member in message


@pytest.mark.parametrize("value", [NAN, INFINITE])
def test_an_alarm_has_a_number_for_a_threshold(cloudwatch: Any, value: float) -> None:
    code, message = refusal(cloudwatch.put_metric_alarm, **{**ALARM, "Threshold": value})
    assert code == "ValidationError" and "Threshold" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [("é", "1"), ("a", "é"), (" ", "1"), ("a", " "), (":a", "1"), ("a", "b\0"), ("a\n", "b")],
)
def test_dimensions_are_ascii_and_not_blank(cloudwatch: Any, name: str, value: str) -> None:
    dimensions = [{"Name": name, "Value": value}]
    datum = {"MetricName": "m", "Value": 1.0, "Dimensions": dimensions}
    code, message = refusal(cloudwatch.put_metric_data, Namespace="X", MetricData=[datum])
    assert code == "InvalidParameterValue" and "Dimensions" in message
    code, _ = refusal(cloudwatch.put_metric_alarm, **ALARM, Dimensions=dimensions)
    assert code in ("InvalidParameterValue", "ValidationError")


def test_tags_of_aws_are_not_set(cloudwatch: Any) -> None:
    tags = [{"Key": "aws:owner", "Value": "me"}]
    code, message = refusal(cloudwatch.put_metric_alarm, **{**ALARM, "AlarmName": "t"}, Tags=tags)
    assert code == "InvalidParameterValue" and "aws:" in message
    assert cloudwatch.describe_alarms(AlarmNames=["t"])["MetricAlarms"] == []
    cloudwatch.put_metric_alarm(**{**ALARM, "AlarmName": "t"})
    (alarm,) = cloudwatch.describe_alarms(AlarmNames=["t"])["MetricAlarms"]
    code, _ = refusal(cloudwatch.tag_resource, ResourceARN=alarm["AlarmArn"], Tags=tags)
    assert code == "InvalidParameterValue"


@pytest.mark.parametrize("text", ["{X", "X}", '"X', "{X,a,b", "{}"])
def test_a_search_with_a_brace_or_quote_left_open_is_refused(cloudwatch: Any, text: str) -> None:
    queries = [{"Id": "e", "Expression": f"SEARCH('{text} m', 'Sum', 60)"}]
    code, message = refusal(
        cloudwatch.get_metric_data, MetricDataQueries=queries, StartTime=0, EndTime=3600
    )
    assert code == "ValidationError" and "Error in expression 'e'" in message
