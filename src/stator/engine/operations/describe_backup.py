"""DescribeBackup."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Call, Operation
from stator.engine.recovery.backup_description import describe


def parse(request: dict[str, Any]) -> str:
    return str(request["BackupArn"])


def run(call: Call, arn: str) -> dict[str, Any]:
    backup = call.engine.recovery.backups.get(call.scope, arn)
    return {"BackupDescription": describe(backup, backup.status(call.engine.clock.now()))}


OPERATION = Operation("DescribeBackup", parse, run)
