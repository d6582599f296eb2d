"""CreateBackup: of the table as it is at this moment; the copying goes on while others write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.backup_description import details
from stator.engine.recovery.source_table import find_source
from stator.errors import TableInUse
from stator.storage import Changes


@dataclass(frozen=True, slots=True)
class Request:
    table_name: str
    backup_name: str


def parse(request: dict[str, Any]) -> Request:
    return Request(request["TableName"], request["BackupName"])


def run(context: RequestContext, request: Request) -> dict[str, Any]:
    recovery = context.parts.recovery
    table = find_source(context, request.table_name)
    if table.definition.status in ("CREATING", "DELETING"):
        raise TableInUse(f"Table is in {table.definition.status} state: {table.name}")
    changes: Changes = {}
    backup, task = recovery.backups.create(table, request.backup_name, changes)
    context.write(changes)
    recovery.tasks.start(task, at_once=True)
    return {"BackupDetails": details(backup, "CREATING")}


OPERATION = Operation("CreateBackup", parse, run)
