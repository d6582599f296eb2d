"""RestoreTableToPointInTime: a new table with the items as they were at any second of the window."""

from __future__ import annotations

from typing import Any

from stator.engine import keyspace
from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.log import to_micros
from stator.engine.recovery.moments import ROUNDING_SECONDS, iso
from stator.engine.recovery.recovery import Recovery
from stator.engine.recovery.restores import restored_definition
from stator.engine.recovery.source_table import find_source
from stator.engine.recovery.tasks import Task
from stator.engine.tables.description import describe
from stator.engine.tables.settings import without_nulls
from stator.engine.tables.table import Table
from stator.errors import InvalidRestoreTime, RecoveryUnavailable, ValidationFailed
from stator.storage import Changes


def parse(request: dict[str, Any]) -> dict[str, Any]:
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


def run(context: RequestContext, options: dict[str, Any]) -> dict[str, Any]:
    database, recovery = context.database, context.parts.recovery
    source = find_source(context, options.get("SourceTableArn") or options["SourceTableName"])
    if source.definition.recovery is None or source.definition.status in ("CREATING", "DELETING"):
        raise RecoveryUnavailable(
            f"Point in time recovery is not enabled for table '{source.name}'"
        )
    moment = _moment(recovery, source, options)
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
    task = Task(number, ["copy", "undo", "fill", "drop"], facts)
    recovery.captures.begin(source, task, changes)
    context.write(changes)
    answer = {"TableDescription": describe(target, now)}
    recovery.tasks.start(task, at_once=True)
    return answer


def _moment(recovery: Recovery, source: Table, options: dict[str, Any]) -> float:
    """The moment to restore to. The bounds are given to the millisecond, and the first may be cut to its second."""
    earliest, latest = recovery.earliest(source.definition), recovery.latest(source.definition)
    if options.get("UseLatestRestorableTime"):
        return round(latest, 3)
    asked = float(options["RestoreDateTime"])
    if not int(earliest) <= asked <= latest + ROUNDING_SECONDS:
        raise InvalidRestoreTime(
            f"RestoreDateTime must be between EarliestRestorableDateTime ({iso(earliest)}) and "
            f"LatestRestorableDateTime ({iso(latest)})"
        )
    return max(asked, earliest)


OPERATION = Operation("RestoreTableToPointInTime", parse, run)
