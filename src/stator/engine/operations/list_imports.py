"""ListImports: those of the last 90 days, into one table or into any."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.import_description import summary
from stator.engine.recovery.pages import page_of


def parse(request: dict[str, Any]) -> dict[str, Any]:
    return request


def run(context: RequestContext, request: dict[str, Any]) -> dict[str, Any]:
    imports = context.parts.recovery.imports
    imports.forget_old()
    table_arn = request.get("TableArn")
    wanted = [
        each for each in imports.registry.of(context.scope) if table_arn in (None, each.table_arn)
    ]
    page, token = page_of(wanted, request.get("PageSize"), request.get("NextToken"))
    response: dict[str, Any] = {"ImportSummaryList": [summary(running) for running in page]}
    return response if token is None else response | {"NextToken": token}


OPERATION = Operation("ListImports", parse, run)
