"""ImportTable: a new table from files in a bucket."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.operations import create_table
from stator.engine.recovery.import_description import describe
from stator.engine.recovery.imports import Import
from stator.engine.recovery.names import make_arn, new_id, table_name
from stator.engine.recovery.tasks import Task
from stator.engine.tables.settings import without_nulls
from stator.engine.tables.table import Table
from stator.errors import ImportConflict, LimitExceeded, ValidationFailed
from stator.model.limits import CONCURRENT_IMPORTS, TASK_TOKEN_SECONDS
from stator.storage import Changes


@dataclass(slots=True)
class Request:
    options: dict[str, Any]
    table: create_table.Request


def parse(request: dict[str, Any]) -> Request:
    options: dict[str, Any] = without_nulls(request)
    if "ClientToken" not in options:
        # The reference calls it optional, and AWS refuses a request without it; SDKs make one up.
        raise ValidationFailed(
            "1 validation error detected: Value null at 'clientToken' failed to satisfy constraint: Member must not be null"
        )
    if "Csv" in options.get("InputFormatOptions", {}) and options["InputFormat"] != "CSV":
        raise ValidationFailed(
            "InputFormatOptions.Csv can only be specified when InputFormat is CSV"
        )
    table = create_table.parse(copy.deepcopy(options["TableCreationParameters"]))
    _unstarted(options, "").input_format.check()
    return Request(options, table)


def _unstarted(options: dict[str, Any], token: str) -> Import:
    return Import(
        number=0, arn="", table_arn="", table_id="", token=token, options=options, started=0.0
    )


def run(context: RequestContext, request: Request) -> dict[str, Any]:
    database, recovery, options = context.database, context.parts.recovery, request.options
    imports = recovery.imports
    imports.forget_old()
    token = options.pop("ClientToken")
    again = _sent_before(context, token)
    if again is not None and _is_filling(context, again, options):
        return {"ImportTableDescription": describe(again)}
    name = create_table.check_name_is_free(context, options["TableCreationParameters"]["TableName"])
    if again is not None:
        if again.table_arn != context.scope.table_arn(name):
            raise ImportConflict("Duplicate request detected with conflicting parameters")
        return {"ImportTableDescription": describe(again)}
    if (
        sum(each.status == "IN_PROGRESS" for each in imports.registry.of(context.scope))
        >= CONCURRENT_IMPORTS
    ):
        raise LimitExceeded(
            f"Subscriber limit exceeded: there can be {CONCURRENT_IMPORTS} imports at a time"
        )
    changes: Changes = {}
    definition = create_table.define(request.table, name, context.scope, database.clock.now())
    table = recovery.restores.create_table(definition, changes)
    running = _define(context, table, token, options, database.catalog.take_number(changes))
    imports.registry.put(running, changes)
    task = Task(running.number, ["import"], {"target": table.definition.number})
    recovery.tasks.save(task, changes)
    context.write(changes)
    recovery.tasks.start(task, at_once=False)
    return {"ImportTableDescription": describe(running)}


def _sent_before(context: RequestContext, token: str) -> Import | None:
    """The import that this token stands for, within eight hours of its end."""
    now = context.database.clock.now()
    for running in context.parts.recovery.imports.registry.of(context.scope):
        if running.token == token and now - (running.ended or now) < TASK_TOKEN_SECONDS:
            return running
    return None


def _is_filling(context: RequestContext, running: Import, options: dict[str, Any]) -> bool:
    """Whether the table that a request asks for is the one this import is making.

    Measured on AWS by ScyllaDB's test suite: a token is looked at only after the table's name is found free, and nothing but that name
    makes another request of it.
    """
    name = table_name(options["TableCreationParameters"]["TableName"])
    return running.status == "IN_PROGRESS" and running.table_arn == context.scope.table_arn(name)


def _define(
    context: RequestContext, table: Table, token: str, options: dict[str, Any], number: int
) -> Import:
    now = context.database.clock.now()
    running = _unstarted(options, token)
    running.number, running.started = number, now
    running.arn = make_arn(table.arn, "import", new_id(now))
    running.table_arn, running.table_id = table.arn, table.definition.table_id
    return running


OPERATION = Operation("ImportTable", parse, run)
