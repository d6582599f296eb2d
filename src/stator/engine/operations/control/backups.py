"""CreateBackup, DescribeBackup, ListBackups, DeleteBackup and RestoreTableFromBackup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.arns import table_name
from stator.engine.recovery.backups import (
    Backup,
    backup_description,
    backup_details,
    backup_summary,
)
from stator.engine.recovery.restores import restored_definition
from stator.engine.recovery.tasks import Task
from stator.engine.tables import description
from stator.engine.tables.settings import without_nulls
from stator.errors import TableInUse, ValidationFailed
from stator.storage import Changes

_PAGE_BACKUPS = 100


@dataclass(frozen=True, slots=True)
class CreateBackupRequest:
    table_name: str
    backup_name: str


def parse_create(request: dict[str, Any]) -> CreateBackupRequest:
    return CreateBackupRequest(request["TableName"], request["BackupName"])


def create_backup(context: RequestContext, request: CreateBackupRequest) -> dict[str, Any]:
    """Back up the table as it is now. The table can be written to while it is being copied."""
    recovery = context.parts.recovery
    table = context.recovery_source(request.table_name)
    if table.definition.status in ("CREATING", "DELETING"):
        raise TableInUse(f"Table is in {table.definition.status} state: {table.name}")
    changes: Changes = {}
    backup, task = recovery.backups.create(table, request.backup_name, changes)
    context.write(changes)
    recovery.tasks.start(task, at_once=True)
    return {"BackupDetails": backup_details(backup, "CREATING")}


def parse_arn(request: dict[str, Any]) -> str:
    return str(request["BackupArn"])


def describe_backup(context: RequestContext, arn: str) -> dict[str, Any]:
    backup = context.parts.recovery.backups.get(context.scope, arn)
    status = backup.status(context.database.clock.now())
    return {"BackupDescription": backup_description(backup, status)}


def delete_backup(context: RequestContext, arn: str) -> dict[str, Any]:
    """Delete a backup at once, unless it is being created or restored."""
    backups = context.parts.recovery.backups
    backup = backups.get_available(context.scope, arn)
    backups.check_unused(backup)
    changes: Changes = {}
    backups.delete(backup, changes)
    context.write(changes)
    backups.remove_data(backup)
    return {"BackupDescription": backup_description(backup, "DELETED")}


def parse_list(request: dict[str, Any]) -> dict[str, Any]:
    lower, upper = request.get("TimeRangeLowerBound"), request.get("TimeRangeUpperBound")
    if lower is not None and upper is not None and lower > upper:
        raise ValidationFailed("TimeRangeLowerBound must be before TimeRangeUpperBound")
    return request


def list_backups(context: RequestContext, request: dict[str, Any]) -> dict[str, Any]:
    """List backups in the order of their ARNs.

    By default, only backups that users requested are listed.
    """
    backups, now = context.parts.recovery.backups, context.database.clock.now()
    backups.expire()
    after = request.get("ExclusiveStartBackupArn") or ""
    found = [
        backup
        for backup in backups.registry.of(context.scope)
        if backup.arn > after and _matches(backup, request)
    ]
    page = found[: request.get("Limit") or _PAGE_BACKUPS]
    response: dict[str, Any] = {
        "BackupSummaries": [backup_summary(backup, backup.status(now)) for backup in page]
    }
    if len(page) < len(found):
        response["LastEvaluatedBackupArn"] = page[-1].arn
    return response


def _matches(backup: Backup, request: dict[str, Any]) -> bool:
    """Whether a request asks for this backup.

    The lower time bound is inclusive, the upper bound is exclusive.
    """
    kind, name = request.get("BackupType") or "USER", request.get("TableName")
    lower, upper = request.get("TimeRangeLowerBound"), request.get("TimeRangeUpperBound")
    return (
        kind in ("ALL", backup.type)
        and (name is None or backup.table["name"] == table_name(name))
        and (lower is None or backup.created >= lower)
        and (upper is None or backup.created < upper)
    )


def parse_restore(request: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = without_nulls(request)
    return options


def restore_from_backup(context: RequestContext, options: dict[str, Any]) -> dict[str, Any]:
    database, recovery = context.database, context.parts.recovery
    backup = recovery.backups.get_available(context.scope, options["BackupArn"])
    context.parts.lifecycle.settle_all()
    recovery.restores.check_target(context.scope, options["TargetTableName"])
    source, now = backup.definition, database.clock.now()
    summary = {
        "SourceBackupArn": backup.arn,
        "SourceTableArn": source.scope.table_arn(source.name),
        "RestoreDateTime": round(backup.created, 3),
        "RestoreInProgress": True,
    }
    changes: Changes = {}
    definition = restored_definition(source, options, context.scope, now, summary)
    table = recovery.restores.create_table(definition, changes)
    facts = {"backup": backup.arn, "source": backup.prefix, "target": table.definition.number}
    task = Task(database.catalog.take_number(changes), ["fill"], facts)
    recovery.tasks.save(task, changes)
    context.write(changes)
    answer = {"TableDescription": description.describe(table, now)}
    recovery.tasks.start(task, at_once=True)
    return answer


OPERATIONS = (
    Operation("CreateBackup", parse_create, create_backup),
    Operation("DescribeBackup", parse_arn, describe_backup),
    Operation("DeleteBackup", parse_arn, delete_backup),
    Operation("ListBackups", parse_list, list_backups),
    Operation("RestoreTableFromBackup", parse_restore, restore_from_backup),
)
