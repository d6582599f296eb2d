"""DescribeTable."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Call, Operation
from stator.engine.tables.description import describe


def parse(request: dict[str, Any]) -> str:
    return str(request["TableName"])


def run(call: Call, table_name: str) -> dict[str, Any]:
    table = call.table_as_a_whole(table_name)
    return {"Table": describe(table, call.engine.clock.now())}


OPERATION = Operation("DescribeTable", parse, run)
