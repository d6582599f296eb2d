"""ListExports: those of the last 90 days, of one table or of all; the newest of a table first.

Measured on AWS by ScyllaDB's test suite, as is that those of a deleted table are described, but not listed for it.
"""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.export_description import summary
from stator.engine.recovery.names import newest_first, table_name
from stator.engine.recovery.pages import page_of


def parse(request: dict[str, Any]) -> dict[str, Any]:
    return request


def run(context: RequestContext, request: dict[str, Any]) -> dict[str, Any]:
    exports = context.parts.recovery.exports
    exports.forget_old()
    wanted = exports.registry.of(context.scope)
    if (table_arn := request.get("TableArn")) is not None:
        context.parts.lifecycle.settle_all()
        table = context.database.catalog.find(context.scope, table_name(table_arn))
        wanted = [
            each
            for each in wanted
            if table is not None and each.table_id == table.definition.table_id
        ]
    page, token = page_of(wanted, request.get("MaxResults"), request.get("NextToken"), newest_first)
    response: dict[str, Any] = {"ExportSummaries": [summary(export) for export in page]}
    return response if token is None else response | {"NextToken": token}


OPERATION = Operation("ListExports", parse, run)
