"""DescribeExport."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.export_description import describe
from stator.engine.recovery.names import check_arn
from stator.errors import ExportNotFound


def parse(request: dict[str, Any]) -> str:
    return str(request["ExportArn"])


def run(context: RequestContext, arn: str) -> dict[str, Any]:
    check_arn(arn, "export", context.scope)
    export = context.parts.recovery.exports.registry.find(arn)
    if export is None:
        raise ExportNotFound(f"Export not found: {arn}")
    return {"ExportDescription": describe(export)}


OPERATION = Operation("DescribeExport", parse, run)
