"""DeleteBackup: at once, unless it is being made or restored."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Call, Operation
from stator.engine.recovery.backup_description import describe
from stator.storage import Changes


def parse(request: dict[str, Any]) -> str:
    return str(request["BackupArn"])


def run(call: Call, arn: str) -> dict[str, Any]:
    backups = call.engine.recovery.backups
    backup = backups.get_available(call.scope, arn)
    backups.check_unused(backup)
    changes: Changes = {}
    backups.delete(backup, changes)
    call.engine.commit_changes(call, changes)
    backups.remove_data(backup)
    return {"BackupDescription": describe(backup, "DELETED")}


OPERATION = Operation("DeleteBackup", parse, run)
