"""What CloudWatch, CloudFormation and Terraform are given is what they accept."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from stator import ProvisionedCapacity
from stator.errors import ConfigurationError
from stator.ops.dashboards.cloudformation_alarms import cloudformation_alarms
from stator.ops.dashboards.cloudwatch_alarms import cloudwatch_alarms
from stator.ops.dashboards.cloudwatch_body import cloudwatch_body
from stator.ops.dashboards.design_alarms import design_alarms
from stator.ops.dashboards.design_dashboard import design_dashboard
from stator.ops.dashboards.monitored_design import MonitoredDesign
from stator.ops.dashboards.terraform_alarms import terraform_alarms

from ...design.export.sources import sources
from .watched_shop import watched

TERRAFORM = shutil.which("terraform")
RUNBOOKS = "docs/runbooks"


def designs() -> dict[str, MonitoredDesign]:
    found = {name: MonitoredDesign(source) for name, source in sources().items()}
    return found | {"provisioned": watched(ProvisionedCapacity(100, 50), prefix="prod-")}


NAMES = ("shop", "shop-tables", "social", "orders", "games", "provisioned")


@pytest.fixture(params=NAMES)
def design(request: pytest.FixtureRequest) -> MonitoredDesign:
    return designs()[request.param]


@mock_aws
def test_cloudwatch_takes_the_dashboard(design: MonitoredDesign) -> None:
    body = cloudwatch_body(design_dashboard(design), "eu-west-1")
    client = boto3.client("cloudwatch", "eu-west-1")
    answer = client.put_dashboard(DashboardName="shop", DashboardBody=body)
    assert answer.get("DashboardValidationMessages", []) == []
    stored = json.loads(client.get_dashboard(DashboardName="shop")["DashboardBody"])
    assert stored == json.loads(body)


def test_ids_of_a_widget_are_unique_and_expressions_find_their_metrics(
    design: MonitoredDesign,
) -> None:
    for widget in json.loads(cloudwatch_body(design_dashboard(design), "eu-west-1"))["widgets"]:
        options = [line[-1] for line in widget["properties"].get("metrics", ())]
        ids = [each["id"] for each in options if "id" in each]
        assert len(ids) == len(set(ids))
        for each in options:
            if "expression" in each:
                assert set(re.findall(r"\bs\d+m\d+\b", each["expression"])) <= set(ids)
        if "metrics" in widget["properties"]:
            assert options, widget["properties"]["title"]


@mock_aws
def test_cloudwatch_takes_every_alarm(design: MonitoredDesign) -> None:
    client = boto3.client("cloudwatch", "eu-west-1")
    requests = cloudwatch_alarms(design.name, design_alarms(design), RUNBOOKS)
    for request in requests:
        client.put_metric_alarm(**request)
    stored = client.get_paginator("describe_alarms").paginate()
    names = {alarm["AlarmName"] for page in stored for alarm in page["MetricAlarms"]}
    assert names == {each["AlarmName"] for each in requests} and len(names) == len(requests)
    assert all(f"{RUNBOOKS}/" in each["AlarmDescription"] for each in requests)
    assert all(len(each.get("Metrics", ())) <= 10 for each in requests), "CloudWatch's quota"


def test_cfn_lint_finds_nothing(tmp_path: Path) -> None:
    pytest.importorskip("cfnlint")
    files = []
    for name, design in designs().items():
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(cloudformation_alarms(design.name, design_alarms(design), RUNBOOKS))
    ran = subprocess.run(
        [Path(sys.executable).parent / "cfn-lint", "--include-checks", "I", "--", *files],
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


def test_a_template_with_too_many_alarms_is_refused() -> None:
    alarms = [each for each in design_alarms(watched()) if each.cloudwatch] * 40
    with pytest.raises(ConfigurationError, match="at most 500 resources"):
        cloudformation_alarms("shop", alarms, RUNBOOKS)


def test_terraform_has_a_resource_of_its_own_for_each_alarm(design: MonitoredDesign) -> None:
    alarms = design_alarms(design)
    text = terraform_alarms(design.name, alarms, RUNBOOKS)
    names = re.findall(r'^resource "aws_cloudwatch_metric_alarm" "(\w+)" {$', text, re.MULTILINE)
    assert len(names) == len(set(names)) == len([each for each in alarms if each.cloudwatch])
    assert text.count("{") == text.count("}") and "\n\n\n" not in text


def test_tables_whose_names_differ_in_signs_have_resources_of_their_own() -> None:
    alarm = next(each for each in design_alarms(watched()) if each.cloudwatch)
    twice = [replace(alarm, about=about) for about in ("a-b", "a.b")]
    text = terraform_alarms("shop", twice, RUNBOOKS)
    names = re.findall(r'^resource "\w+" "(\w+)" {$', text, re.MULTILINE)
    assert len(set(names)) == 2
    resources = json.loads(cloudformation_alarms("shop", twice, RUNBOOKS))["Resources"]
    assert len(resources) == 2


@pytest.mark.skipif(TERRAFORM is None, reason="terraform is not installed")
def test_terraform_reads_it_and_has_nothing_to_format(
    design: MonitoredDesign, tmp_path: Path
) -> None:
    (tmp_path / "main.tf").write_text(
        terraform_alarms(design.name, design_alarms(design), RUNBOOKS)
    )
    ran = subprocess.run(
        [str(TERRAFORM), "fmt", "-check", "-diff", "-no-color"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr
