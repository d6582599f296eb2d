"""DescribeTable."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.tables.description import describe


def parse(request: dict[str, Any]) -> str:
    return str(request["TableName"])


def run(context: RequestContext, table_name: str) -> dict[str, Any]:
    table = context.table_in_any_state(table_name)
    return {"Table": describe(table, context.database.clock.now())}


OPERATION = Operation("DescribeTable", parse, run)
