"""ExecuteTransaction: up to a hundred PartiQL statements as one transaction.

Either all statements read or all write. Reads use the code of TransactGetItems, writes the code of
TransactWriteItems, so locks, tokens, cancellations and capacity work the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stator.engine.items import records
from stator.engine.items.actions import ItemAction
from stator.engine.items.request_tokens import fingerprint
from stator.engine.items.transactions import read_report
from stator.engine.operation import Operation, RequestContext
from stator.engine.operations.transact_get_items import TransactGet, read_together
from stator.engine.operations.transact_write_items import transact
from stator.engine.partiql.selects import shape, single_key
from stator.engine.partiql.statements import BoundSelect, Statement, bind
from stator.engine.partiql.values import check_parameters
from stator.engine.partiql.writes import BoundWrite
from stator.errors import ValidationFailed
from stator.expr.tree import Path
from stator.model.values import Item


@dataclass(slots=True)
class ExecuteTransactionRequest:
    """A parsed request. Either ``reads`` or ``writes`` is empty."""

    reads: list[BoundSelect]
    writes: list[BoundWrite]
    options: dict[str, Any]
    fingerprint: str


def parse(request: dict[str, Any]) -> ExecuteTransactionRequest:
    members = request["TransactStatements"]
    identity = fingerprint(members) if request.get("ClientRequestToken") else ""
    # An error in a parameter is reported for the request, an error in a statement for that
    # statement.
    for member in members:
        check_parameters(member.get("Parameters") or [])
    reads: list[BoundSelect] = []
    writes: list[BoundWrite] = []
    for at, member in enumerate(members):
        with _naming_statement(at):
            statement = _statement(member)
        if isinstance(statement, BoundSelect):
            reads.append(statement)
        else:
            writes.append(statement)
    if reads and writes:
        raise ValidationFailed(
            "ExecuteTransaction API does not support both read and write operations in "
            "the same request."
        )
    return ExecuteTransactionRequest(reads, writes, request, identity)


def _statement(member: dict[str, Any]) -> Statement:
    statement = bind(member["Statement"], member.get("Parameters") or [])
    if isinstance(statement, BoundSelect):
        if statement.index_name is not None:
            raise ValidationFailed("Reads on indices are not supported within transactions.")
    elif statement.returning is not None:
        raise ValidationFailed("RETURNING clause is not supported in ExecuteTransaction.")
    return statement


@contextmanager
def _naming_statement(at: int) -> Iterator[None]:
    """Add the statement's position to validation errors raised inside the ``with`` block."""
    try:
        yield
    except ValidationFailed as error:
        raise ValidationFailed(
            f"Validation failed in TransactStatements[{at}]: {error.message}"
        ) from None


def run(context: RequestContext, request: ExecuteTransactionRequest) -> dict[str, Any]:
    return _read(context, request) if request.reads else _write(context, request)


def _write(context: RequestContext, request: ExecuteTransactionRequest) -> dict[str, Any]:
    tables = [context.table(statement.table_name) for statement in request.writes]
    members = request.options["TransactStatements"]
    actions: list[ItemAction] = []
    for at, (statement, table, member) in enumerate(zip(request.writes, tables, members)):
        return_item = member.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
        with _naming_statement(at):
            actions.append(statement.action(table, return_item))
    return {"Responses": [], **transact(context, actions, request.options, request.fingerprint)}


def _read(context: RequestContext, request: ExecuteTransactionRequest) -> dict[str, Any]:
    tables = [context.table(select.table_name) for select in request.reads]
    keyed: list[tuple[Item, tuple[Path, ...]]] = []
    for at, (select, table) in enumerate(zip(request.reads, tables)):
        with _naming_statement(at):
            keyed.append(single_key(select, table, "ExecuteTransaction"))
    gets = [TransactGet(table.name, key, None) for table, (key, _) in zip(tables, keyed)]
    found = read_together(context, gets, tables)
    answers = [_answer(record, paths) for record, (_, paths) in zip(found, keyed)]
    response: dict[str, Any] = {"Responses": answers}
    mode = request.options.get("ReturnConsumedCapacity", "NONE")
    if mode != "NONE":
        response["ConsumedCapacity"] = read_report(tables, found, mode)
    return response


def _answer(record: bytes | None, paths: tuple[Path, ...]) -> dict[str, Any]:
    if record is None:
        return {}
    return {"Item": shape(records.unpack(record), paths) if paths else records.fragment(record)}


OPERATIONS = (Operation("ExecuteTransaction", parse, run),)
