"""DescribeContinuousBackups, UpdateContinuousBackups and RestoreTableToPointInTime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine import keyspace
from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.log import ROUNDING_SECONDS, iso, to_micros
from stator.engine.recovery.recovery import Recovery, describe_continuous
from stator.engine.recovery.restores import restored_definition
from stator.engine.recovery.tasks import Task
from stator.engine.tables.description import describe
from stator.engine.tables.settings import without_nulls
from stator.engine.tables.table import Table
from stator.errors import (
    ContinuousBackupsUnavailable,
    InvalidRestoreTime,
    RecoveryUnavailable,
    ValidationFailed,
)
from stator.model.limits import RECOVERY_DAYS
from stator.storage import Changes


def parse_describe(request: dict[str, Any]) -> str:
    return str(request["TableName"])


def describe_continuous_backups(context: RequestContext, name: str) -> dict[str, Any]:
    recovery = context.parts.recovery
    table = context.recovery_source(name)
    recovery.trim(table)
    return {"ContinuousBackupsDescription": describe_continuous(recovery, table.definition)}


@dataclass(frozen=True, slots=True)
class UpdateContinuousBackupsRequest:
    table_name: str
    enabled: bool
    period_days: int | None


def parse_update(request: dict[str, Any]) -> UpdateContinuousBackupsRequest:
    specification = request["PointInTimeRecoverySpecification"]
    enabled = specification["PointInTimeRecoveryEnabled"]
    days = specification.get("RecoveryPeriodInDays")
    if days is not None and not enabled:
        raise ValidationFailed(
            "RecoveryPeriodInDays can only be set when PointInTimeRecoveryEnabled is true"
        )
    return UpdateContinuousBackupsRequest(request["TableName"], enabled, days)


def update_continuous_backups(
    context: RequestContext, request: UpdateContinuousBackupsRequest
) -> dict[str, Any]:
    """Turn point-in-time recovery on or off, or change the number of days it covers."""
    recovery = context.parts.recovery
    table = context.recovery_source(request.table_name)
    if table.definition.status in ("CREATING", "DELETING"):
        # AWS answers this for a table created a moment ago (aws-amplify/amplify-backend#1654).
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
                f"The history of the table is being restored or exported: {table.name}. "
                "Please retry later"
            )
        table = recovery.disable(table, changes)
        context.write(changes)
        recovery.log.drop(table.definition.number)
    return {"ContinuousBackupsDescription": describe_continuous(recovery, table.definition)}


def parse_restore(request: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = without_nulls(request)
    if ("SourceTableName" in options) == ("SourceTableArn" in options):
        raise ValidationFailed(
            "Exactly one of SourceTableName and SourceTableArn must be specified"
        )
    if bool(options.get("UseLatestRestorableTime")) == ("RestoreDateTime" in options):
        raise ValidationFailed(
            "Exactly one of RestoreDateTime and UseLatestRestorableTime must be specified"
        )
    return options


def restore_to_point_in_time(context: RequestContext, options: dict[str, Any]) -> dict[str, Any]:
    """Create a table with the items as they were at a given moment of the recovery window."""
    database, recovery = context.database, context.parts.recovery
    source = context.recovery_source(options.get("SourceTableArn") or options["SourceTableName"])
    if source.definition.recovery is None or source.definition.status in ("CREATING", "DELETING"):
        raise RecoveryUnavailable(
            f"Point in time recovery is not enabled for table '{source.name}'"
        )
    moment = _restore_time(recovery, source, options)
    context.parts.lifecycle.settle_all()
    recovery.restores.check_target(context.scope, options["TargetTableName"])
    now = database.clock.now()
    summary = {"SourceTableArn": source.arn, "RestoreDateTime": moment, "RestoreInProgress": True}
    changes: Changes = {}
    definition = restored_definition(source.definition, options, context.scope, now, summary)
    target = recovery.restores.create_table(definition, changes)
    number = database.catalog.take_number(changes)
    facts = {
        **recovery.captures.undo_facts(source, to_micros(moment)),
        "source": keyspace.area_prefix(number).hex(),
        "target": target.definition.number,
    }
    task = Task(number, ["copy", "count", "undo", "fill", "drop"], facts)
    recovery.captures.begin(source, task, changes)
    context.write(changes)
    answer = {"TableDescription": describe(target, now)}
    recovery.tasks.start(task, at_once=True)
    return answer


def _restore_time(recovery: Recovery, source: Table, options: dict[str, Any]) -> float:
    """Return the moment to restore to. Raises InvalidRestoreTime if it is not restorable.

    DescribeContinuousBackups shows the earliest and the latest moment to the millisecond. Clients
    may round the earliest moment down to a whole second. The rounded time is accepted and means the
    earliest moment.
    """
    earliest, latest = recovery.earliest(source.definition), recovery.latest(source.definition)
    if options.get("UseLatestRestorableTime"):
        return round(latest, 3)
    moment = float(options["RestoreDateTime"])
    if not int(earliest) <= moment <= latest + ROUNDING_SECONDS:
        raise InvalidRestoreTime(
            f"RestoreDateTime must be between EarliestRestorableDateTime ({iso(earliest)}) and "
            f"LatestRestorableDateTime ({iso(latest)})"
        )
    return max(moment, earliest)


OPERATIONS = (
    Operation("DescribeContinuousBackups", parse_describe, describe_continuous_backups),
    Operation("UpdateContinuousBackups", parse_update, update_continuous_backups),
    Operation("RestoreTableToPointInTime", parse_restore, restore_to_point_in_time),
)
