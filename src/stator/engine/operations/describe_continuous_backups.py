"""DescribeContinuousBackups."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.recovery import describe_continuous
from stator.engine.recovery.source_table import find_source


def parse(request: dict[str, Any]) -> str:
    return str(request["TableName"])


def run(context: RequestContext, name: str) -> dict[str, Any]:
    table = find_source(context, name)
    context.parts.recovery.trim(table)
    return {
        "ContinuousBackupsDescription": describe_continuous(
            context.parts.recovery, table.definition
        )
    }


OPERATION = Operation("DescribeContinuousBackups", parse, run)
