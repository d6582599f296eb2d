"""DeleteTable: the table is DELETING at once, and gone with its data when the status has lasted."""

from __future__ import annotations

import copy
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.tables.description import describe, index_status
from stator.engine.tables.state_checks import check_stands, in_use
from stator.engine.tables.table import TableDefinition
from stator.errors import ValidationFailed
from stator.storage import Changes


def parse(request: dict[str, Any]) -> str:
    return str(request["TableName"])


def run(context: RequestContext, table_name: str) -> dict[str, Any]:
    database, parts = context.database, context.parts
    table = context.table_in_any_state(table_name)
    _check_may_go(table.definition)
    definition = copy.deepcopy(table.definition)
    parts.lifecycle.begin(definition, "DELETING")
    changes: Changes = {}
    parts.recovery.leave_backup(table, changes)
    parts.streams.end(definition.number, changes)
    table = database.catalog.put(definition, changes)
    context.write(changes)
    return {"TableDescription": describe(table, database.clock.now())}


def _check_may_go(definition: TableDefinition) -> None:
    check_stands(definition)
    if definition.status == "UPDATING":
        raise in_use(f"Table: {definition.name} is in the process of being updated.")
    if definition.captures:
        raise in_use(f"Table is being backed up, restored or exported: {definition.name}")
    if any(index_status(definition, index) != "ACTIVE" for index in definition.indexes):
        raise in_use("Cannot delete table while indexes are being created, updated, or deleted.")
    if definition.deletion_protection:
        raise ValidationFailed(
            "Resource cannot be deleted as it is currently protected against deletion. "
            "Disable deletion protection first."
        )


OPERATION = Operation("DeleteTable", parse, run)
