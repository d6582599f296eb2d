"""A CloudFormation template, in JSON. Tables stay when the stack is deleted."""

from __future__ import annotations

import json
from typing import Any

from stator.design.export.source import Exported, ExportSource, camel
from stator.design.plan.plan import TablePlan


def export(source: ExportSource) -> Exported:
    resources, outputs = {}, {}
    for table in source.tables:
        name = f"{camel(table.name)}Table"
        resources[name] = _table(table, source)
        outputs[f"{name}Name"] = {
            "Description": f"The name of {table.name}",
            "Value": {"Ref": name},
        }
        outputs[f"{name}Arn"] = {
            "Description": f"The ARN of {table.name}",
            "Value": {"Fn::GetAtt": [name, "Arn"]},
        }
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"The tables of {source.design.name}, made by stator export-design",
        "Resources": resources,
        "Outputs": outputs,
    }
    return Exported(json.dumps(template, indent=2) + "\n")


def _table(table: TablePlan, source: ExportSource) -> dict[str, Any]:
    properties = table.create_request()
    ttl = table.ttl
    if ttl is not None:
        properties["TimeToLiveSpecification"] = {"AttributeName": ttl, "Enabled": True}
    return {
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": properties,
    }
