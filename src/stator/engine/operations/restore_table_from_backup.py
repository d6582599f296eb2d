"""RestoreTableFromBackup."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.restores import restored_definition
from stator.engine.recovery.tasks import Task
from stator.engine.tables.description import describe
from stator.engine.tables.settings import without_nulls
from stator.storage import Changes


def parse(request: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = without_nulls(request)
    return options


def run(context: RequestContext, options: dict[str, Any]) -> dict[str, Any]:
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
    answer = {"TableDescription": describe(table, now)}
    recovery.tasks.start(task, at_once=True)
    return answer


OPERATION = Operation("RestoreTableFromBackup", parse, run)
