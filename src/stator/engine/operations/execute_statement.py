"""ExecuteStatement: one PartiQL statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.items import capacity
from stator.engine.operation import Operation, RequestContext
from stator.engine.partiql.next_token import statement_identity
from stator.engine.partiql.selects import run_select
from stator.engine.partiql.statements import (
    EXISTS_OUTSIDE,
    BoundSelect,
    Statement,
    read_statement,
)
from stator.engine.partiql.writes import BoundWrite, run_write
from stator.errors import ValidationFailed


@dataclass(slots=True)
class ExecuteStatementRequest:
    statement: Statement
    options: dict[str, Any]
    # Taken before parameters are normalised, so that the same request gets the same fingerprint
    # again.
    identity: str


def parse(request: dict[str, Any]) -> ExecuteStatementRequest:
    identity = statement_identity(request)
    statement = read_statement(request)
    if isinstance(statement, BoundWrite) and statement.is_check:
        raise ValidationFailed(EXISTS_OUTSIDE)
    return ExecuteStatementRequest(statement, request, identity)


def run(context: RequestContext, request: ExecuteStatementRequest) -> dict[str, Any]:
    statement, options = request.statement, request.options
    if isinstance(statement, BoundSelect):
        return run_select(context, statement, options, request.identity)
    table = context.table(statement.table_name)
    return_item = options.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    action = statement.action(table, return_item)
    item, consumed = run_write(context, table, action, statement.returning)
    response: dict[str, Any] = {"Items": [item] if item else []}
    mode = options.get("ReturnConsumedCapacity", "NONE")
    if mode != "NONE":
        response["ConsumedCapacity"] = capacity.report(table, table.name, consumed, mode)
    return response


OPERATIONS = (Operation("ExecuteStatement", parse, run),)
