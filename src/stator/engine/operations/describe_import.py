"""DescribeImport."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.import_description import describe
from stator.engine.recovery.names import check_arn
from stator.errors import ImportNotFound


def parse(request: dict[str, Any]) -> str:
    return str(request["ImportArn"])


def run(context: RequestContext, arn: str) -> dict[str, Any]:
    check_arn(arn, "import", context.scope)
    running = context.parts.recovery.imports.registry.find(arn)
    if running is None:
        raise ImportNotFound(f"Import not found: {arn}")
    return {"ImportTableDescription": describe(running)}


OPERATION = Operation("DescribeImport", parse, run)
