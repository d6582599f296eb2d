"""ListBackups: in the order of their ARNs; those of users unless others are asked for."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.backup_description import summary
from stator.engine.recovery.backups import Backup
from stator.engine.recovery.names import table_name
from stator.errors import ValidationFailed

_MOST = 100


def parse(request: dict[str, Any]) -> dict[str, Any]:
    lower, upper = request.get("TimeRangeLowerBound"), request.get("TimeRangeUpperBound")
    if lower is not None and upper is not None and lower > upper:
        raise ValidationFailed("TimeRangeLowerBound must be before TimeRangeUpperBound")
    return request


def run(context: RequestContext, request: dict[str, Any]) -> dict[str, Any]:
    backups, now = context.parts.recovery.backups, context.database.clock.now()
    backups.expire()
    after = request.get("ExclusiveStartBackupArn") or ""
    found = [
        each
        for each in backups.registry.of(context.scope)
        if each.arn > after and _wanted(each, request)
    ]
    page = found[: request.get("Limit") or _MOST]
    response: dict[str, Any] = {
        "BackupSummaries": [summary(backup, backup.status(now)) for backup in page]
    }
    if len(page) < len(found):
        response["LastEvaluatedBackupArn"] = page[-1].arn
    return response


def _wanted(backup: Backup, request: dict[str, Any]) -> bool:
    """The lower bound of the time is among what is listed, the upper is not."""
    kind, name = request.get("BackupType") or "USER", request.get("TableName")
    lower, upper = request.get("TimeRangeLowerBound"), request.get("TimeRangeUpperBound")
    return (
        kind in ("ALL", backup.type)
        and (name is None or backup.table["name"] == table_name(name))
        and (lower is None or backup.created >= lower)
        and (upper is None or backup.created < upper)
    )


OPERATION = Operation("ListBackups", parse, run)
