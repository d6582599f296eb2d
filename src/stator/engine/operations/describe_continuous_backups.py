"""DescribeContinuousBackups."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Call, Operation
from stator.engine.recovery.recovery import describe_continuous
from stator.engine.recovery.source_table import find_source


def parse(request: dict[str, Any]) -> str:
    return str(request["TableName"])


def run(call: Call, name: str) -> dict[str, Any]:
    table = find_source(call, name)
    call.engine.recovery.trim(table)
    return {
        "ContinuousBackupsDescription": describe_continuous(call.engine.recovery, table.definition)
    }


OPERATION = Operation("DescribeContinuousBackups", parse, run)
