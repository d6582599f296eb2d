"""DeleteBackup: at once, unless it is being made or restored."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.backup_description import describe
from stator.storage import Changes


def parse(request: dict[str, Any]) -> str:
    return str(request["BackupArn"])


def run(context: RequestContext, arn: str) -> dict[str, Any]:
    backups = context.parts.recovery.backups
    backup = backups.get_available(context.scope, arn)
    backups.check_unused(backup)
    changes: Changes = {}
    backups.delete(backup, changes)
    context.write(changes)
    backups.remove_data(backup)
    return {"BackupDescription": describe(backup, "DELETED")}


OPERATION = Operation("DeleteBackup", parse, run)
