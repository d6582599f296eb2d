"""UpdateContinuousBackups: turns recovery to any second on or off, and sets for how many days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.recovery import describe_continuous
from stator.engine.recovery.source_table import find_source
from stator.errors import ContinuousBackupsUnavailable, ValidationFailed
from stator.model.limits import RECOVERY_DAYS
from stator.storage import Changes


@dataclass(frozen=True, slots=True)
class Request:
    table_name: str
    enabled: bool
    period_days: int | None


def parse(request: dict[str, Any]) -> Request:
    specification = request["PointInTimeRecoverySpecification"]
    enabled, days = (
        specification["PointInTimeRecoveryEnabled"],
        specification.get("RecoveryPeriodInDays"),
    )
    if days is not None and not enabled:
        raise ValidationFailed(
            "RecoveryPeriodInDays can only be set when PointInTimeRecoveryEnabled is true"
        )
    return Request(request["TableName"], enabled, days)


def run(context: RequestContext, request: Request) -> dict[str, Any]:
    recovery = context.parts.recovery
    table = find_source(context, request.table_name)
    if table.definition.status in ("CREATING", "DELETING"):
        # AWS says so of a table that was made a moment ago (seen in aws-amplify/amplify-backend#1654).
        raise ContinuousBackupsUnavailable(
            f"Backups are being enabled for the table: {table.name}. Please retry later"
        )
    changes: Changes = {}
    if request.enabled:
        current = table.definition.recovery
        days = request.period_days or (
            current["period_days"] if current is not None else RECOVERY_DAYS
        )
        table = recovery.enable(table, days, changes)
        context.write(changes)
        recovery.trim(table)
        context.parts.housekeeping.wake()
    elif table.definition.recovery is not None:
        if table.definition.captures:
            raise ContinuousBackupsUnavailable(
                f"The history of the table is being restored or exported: {table.name}. Please retry later"
            )
        table = recovery.disable(table, changes)
        context.write(changes)
        recovery.log.drop(table.definition.number)
    return {"ContinuousBackupsDescription": describe_continuous(recovery, table.definition)}


OPERATION = Operation("UpdateContinuousBackups", parse, run)
