"""Alarms as Terraform's HCL, in the form that ``terraform fmt`` leaves unchanged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final

from stator.design.export.source import snake
from stator.ops.dashboards.cloudwatch_alarms import cloudwatch_alarms
from stator.ops.dashboards.planned_alarm import PlannedAlarm

_HEAD: Final = """\
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "topic_arns" {
  description = "The SNS topics that alarms notify"
  type        = list(string)
  default     = []
}
"""
_ARGUMENTS: Final = {
    "AlarmName": "alarm_name",
    "AlarmDescription": "alarm_description",
    "ComparisonOperator": "comparison_operator",
    "Threshold": "threshold",
    "ThresholdMetricId": "threshold_metric_id",
    "EvaluationPeriods": "evaluation_periods",
    "DatapointsToAlarm": "datapoints_to_alarm",
    "TreatMissingData": "treat_missing_data",
    "Namespace": "namespace",
    "MetricName": "metric_name",
    "Period": "period",
    "Statistic": "statistic",
    "ExtendedStatistic": "extended_statistic",
}


def terraform_alarms(name: str, alarms: Iterable[PlannedAlarm], runbooks: str) -> str:
    """Return the text of a file with one resource for each alarm."""
    parts, used = [_HEAD], set[str]()
    for request in cloudwatch_alarms(name, alarms, runbooks):
        resource = snake(request["AlarmName"].removeprefix("stator "))
        if resource in used:  # two tables whose names differ in signs only, such as a-b and a.b
            resource += f"_{hashlib.sha256(request['AlarmName'].encode()).hexdigest()[:6]}"
        used.add(resource)
        parts.append(_resource(resource, request) + "\n")
    return "\n".join(parts).rstrip("\n") + "\n"


def _resource(name: str, request: dict[str, Any]) -> str:
    plain = [
        (_ARGUMENTS[member], _value(value))
        for member, value in request.items()
        if member in _ARGUMENTS
    ]
    actions = [("alarm_actions", "var.topic_arns"), ("ok_actions", "var.topic_arns")]
    lines = [
        f'resource "aws_cloudwatch_metric_alarm" "{name}" {{',
        *_aligned([*plain, *actions], 2),
    ]
    if "Dimensions" in request:
        lines += ["", *_map("dimensions", request["Dimensions"], 2)]
    for query in request.get("Metrics", ()):
        lines += ["", *_query(query)]
    return "\n".join([*lines, "}"])


def _query(query: dict[str, Any]) -> list[str]:
    arguments = [("id", _value(query["Id"]))]
    if "Expression" in query:
        arguments.append(("expression", _value(query["Expression"])))
    if "Label" in query:
        arguments.append(("label", _value(query["Label"])))
    arguments.append(("return_data", _value(query["ReturnData"])))
    lines = ["  metric_query {", *_aligned(arguments, 4)]
    if "MetricStat" in query:
        stat = query["MetricStat"]
        metric = [
            ("namespace", _value(stat["Metric"]["Namespace"])),
            ("metric_name", _value(stat["Metric"]["MetricName"])),
            ("period", _value(stat["Period"])),
            ("stat", _value(stat["Stat"])),
        ]
        lines += ["", "    metric {", *_aligned(metric, 6), ""]
        lines += [*_map("dimensions", stat["Metric"]["Dimensions"], 6), "    }"]
    return [*lines, "  }"]


def _map(name: str, dimensions: list[dict[str, str]], indent: int) -> list[str]:
    pad = " " * indent
    pairs = [(each["Name"], _value(each["Value"])) for each in dimensions]
    return [f"{pad}{name} = {{", *_aligned(pairs, indent + 2), f"{pad}}}"]


def _aligned(arguments: list[tuple[str, str]], indent: int) -> list[str]:
    width = max(len(name) for name, _ in arguments)
    return [f"{' ' * indent}{name:{width}} = {value}" for name, value in arguments]


def _value(value: Any) -> str:
    """Return a value of HCL. A string's template markers are escaped, or HCL would fill them."""
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("${", "$${").replace("%{", "%%{") if isinstance(value, str) else text
