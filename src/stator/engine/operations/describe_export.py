"""DescribeExport."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Call, Operation
from stator.engine.recovery.export_description import describe
from stator.engine.recovery.names import check_arn
from stator.errors import ExportNotFound


def parse(request: dict[str, Any]) -> str:
    return str(request["ExportArn"])


def run(call: Call, arn: str) -> dict[str, Any]:
    check_arn(arn, "export", call.scope)
    export = call.engine.recovery.exports.registry.find(arn)
    if export is None:
        raise ExportNotFound(f"Export not found: {arn}")
    return {"ExportDescription": describe(export)}


OPERATION = Operation("DescribeExport", parse, run)
