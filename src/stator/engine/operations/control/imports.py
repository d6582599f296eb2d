"""ImportTable, DescribeImport and ListImports.

An import fills a new table from files in a bucket.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.operations.control import tables
from stator.engine.recovery.arns import check_arn, make_arn, new_id, page_of, table_name
from stator.engine.recovery.imports import Import, import_description, import_summary
from stator.engine.recovery.tasks import Task
from stator.engine.tables.settings import without_nulls
from stator.engine.tables.table import Table
from stator.errors import ImportConflict, ImportNotFound, LimitExceeded, ValidationFailed
from stator.model.limits import CONCURRENT_IMPORTS, TASK_TOKEN_SECONDS
from stator.storage import Changes


@dataclass(slots=True)
class ImportTableRequest:
    options: dict[str, Any]
    table: tables.CreateTableRequest


def parse_import(request: dict[str, Any]) -> ImportTableRequest:
    options: dict[str, Any] = without_nulls(request)
    if "ClientToken" not in options:
        # The reference calls it optional, but AWS refuses a request without it. SDKs make one up.
        raise ValidationFailed(
            "1 validation error detected: Value null at 'clientToken' failed to satisfy "
            "constraint: Member must not be null"
        )
    if "Csv" in options.get("InputFormatOptions", {}) and options["InputFormat"] != "CSV":
        raise ValidationFailed(
            "InputFormatOptions.Csv can only be specified when InputFormat is CSV"
        )
    table = tables.parse_create(copy.deepcopy(options["TableCreationParameters"]))
    _unstarted(options, "").input_format.check()
    return ImportTableRequest(options, table)


def _unstarted(options: dict[str, Any], token: str) -> Import:
    return Import(
        number=0, arn="", table_arn="", table_id="", token=token, options=options, started=0.0
    )


def import_table(context: RequestContext, request: ImportTableRequest) -> dict[str, Any]:
    """Start an import, or answer a repeated ClientToken.

    A token that was used before starts no second import, as ScyllaDB's test suite recorded on AWS.
    While the first import runs, the answer describes it. After that, the request fails as long as
    the requested table exists. Once the table is deleted, the answer describes the first import
    again. A request for another table fails as a conflict.
    """
    database, recovery, options = context.database, context.parts.recovery, request.options
    imports = recovery.imports
    imports.forget_old()
    token = options.pop("ClientToken")
    again = _sent_before(context, token)
    if again is not None and _is_filling(context, again, options):
        return {"ImportTableDescription": import_description(again)}
    name = tables.check_name_is_free(context, options["TableCreationParameters"]["TableName"])
    if again is not None:
        if again.table_arn != context.scope.table_arn(name):
            raise ImportConflict("Duplicate request detected with conflicting parameters")
        return {"ImportTableDescription": import_description(again)}
    if (
        sum(each.status == "IN_PROGRESS" for each in imports.registry.of(context.scope))
        >= CONCURRENT_IMPORTS
    ):
        raise LimitExceeded(
            f"Subscriber limit exceeded: there can be {CONCURRENT_IMPORTS} imports at a time"
        )
    changes: Changes = {}
    definition = tables.define(request.table, name, context.scope, database.clock.now())
    table = recovery.restores.create_table(definition, changes)
    running = _define(context, table, token, options, database.catalog.take_number(changes))
    imports.registry.put(running, changes)
    task = Task(running.number, ["import"], {"target": table.definition.number})
    recovery.tasks.save(task, changes)
    context.write(changes)
    recovery.tasks.start(task, at_once=False)
    return {"ImportTableDescription": import_description(running)}


def _sent_before(context: RequestContext, token: str) -> Import | None:
    """Return the import that used this token, or None.

    A token is valid until eight hours after its import ended.
    """
    now = context.database.clock.now()
    for running in context.parts.recovery.imports.registry.of(context.scope):
        if running.token == token and now - (running.ended or now) < TASK_TOKEN_SECONDS:
            return running
    return None


def _is_filling(context: RequestContext, running: Import, options: dict[str, Any]) -> bool:
    """Whether this import is in progress and fills the table that the request names."""
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


def parse_arn(request: dict[str, Any]) -> str:
    return str(request["ImportArn"])


def describe_import(context: RequestContext, arn: str) -> dict[str, Any]:
    check_arn(arn, "import", context.scope)
    running = context.parts.recovery.imports.registry.find(arn)
    if running is None:
        raise ImportNotFound(f"Import not found: {arn}")
    return {"ImportTableDescription": import_description(running)}


def parse_list(request: dict[str, Any]) -> dict[str, Any]:
    return request


def list_imports(context: RequestContext, request: dict[str, Any]) -> dict[str, Any]:
    """List the imports of the last 90 days, into one table or into any."""
    imports = context.parts.recovery.imports
    imports.forget_old()
    table_arn = request.get("TableArn")
    matches = [
        running
        for running in imports.registry.of(context.scope)
        if table_arn in (None, running.table_arn)
    ]
    page, token = page_of(matches, request.get("PageSize"), request.get("NextToken"))
    response: dict[str, Any] = {"ImportSummaryList": [import_summary(running) for running in page]}
    return response if token is None else response | {"NextToken": token}


OPERATIONS = (
    Operation("ImportTable", parse_import, import_table),
    Operation("DescribeImport", parse_arn, describe_import),
    Operation("ListImports", parse_list, list_imports),
)
