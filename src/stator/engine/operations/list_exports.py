"""ListExports: those of the last 90 days, of one table or of all."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Call, Operation
from stator.engine.recovery.export_description import summary
from stator.engine.recovery.pages import page_of


def parse(request: dict[str, Any]) -> dict[str, Any]:
    return request


def run(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    exports = call.engine.recovery.exports
    exports.forget_old()
    table_arn = request.get("TableArn")
    wanted = [each for each in exports.registry.of(call.scope) if table_arn in (None, each.table_arn)]
    page, token = page_of(wanted, request.get("MaxResults"), request.get("NextToken"))
    response: dict[str, Any] = {"ExportSummaries": [summary(export) for export in page]}
    return response if token is None else response | {"NextToken": token}


OPERATION = Operation("ListExports", parse, run)
