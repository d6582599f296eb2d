"""DescribeBackup."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.backup_description import describe


def parse(request: dict[str, Any]) -> str:
    return str(request["BackupArn"])


def run(context: RequestContext, arn: str) -> dict[str, Any]:
    backup = context.parts.recovery.backups.get(context.scope, arn)
    return {"BackupDescription": describe(backup, backup.status(context.database.clock.now()))}


OPERATION = Operation("DescribeBackup", parse, run)
