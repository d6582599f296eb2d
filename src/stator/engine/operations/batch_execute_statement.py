"""BatchExecuteStatement: up to 25 PartiQL statements, all reads or all writes.

Each statement is answered separately. A statement that fails gets an ``Error``, and the others
still run. Their changes are written as one batch, like those of BatchWriteItem. Two faults fail the
whole request before any statement runs: reads mixed with writes, and two statements about the same
item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

from stator.engine.items import capacity, records
from stator.engine.items.actions import ItemAction, mutate, returned_values
from stator.engine.items.capacity import Consumed
from stator.engine.items.write_path import Writer
from stator.engine.operation import Operation, RequestContext
from stator.engine.partiql.selects import check_index, shape, single_key
from stator.engine.partiql.statements import (
    EXISTS_OUTSIDE,
    BoundSelect,
    Statement,
    read_statement,
)
from stator.engine.partiql.writes import BoundWrite
from stator.engine.tables.item_keys import check_key
from stator.engine.tables.table import Table
from stator.errors import (
    ConditionFailed,
    DuplicateItem,
    ServiceError,
    StatorError,
    TransactionConflict,
    ValidationFailed,
)
from stator.expr.tree import Path

_CODES = {"ValidationException": "ValidationError", "ThrottlingException": "ThrottlingError"}
_NAMING_TABLE = ("ConditionalCheckFailed", "DuplicateItem", "TransactionConflict")


@dataclass(slots=True)
class BatchMember:
    """A parsed statement of the batch, or the error for which it was refused."""

    statement: Statement | ServiceError
    consistent: bool


@dataclass(slots=True)
class BatchExecuteStatementRequest:
    members: list[BatchMember]
    mode: str


@dataclass(slots=True)
class StatementRead:
    table: Table
    key: bytes
    paths: tuple[Path, ...]
    consistent: bool


@dataclass(slots=True)
class StatementWrite:
    table: Table
    key: bytes
    action: ItemAction
    returning: str | None


BatchStep = Union[StatementRead, StatementWrite, ServiceError]


def parse(request: dict[str, Any]) -> BatchExecuteStatementRequest:
    members = [_member(entry) for entry in request["Statements"]]
    kinds = {
        isinstance(member.statement, BoundSelect)
        for member in members
        if not isinstance(member.statement, StatorError)
    }
    if len(kinds) > 1:
        raise ValidationFailed(
            "Read and write requests together in the same batch is not supported."
        )
    return BatchExecuteStatementRequest(members, request.get("ReturnConsumedCapacity", "NONE"))


def _member(entry: dict[str, Any]) -> BatchMember:
    consistent = bool(entry.get("ConsistentRead"))
    try:
        statement = read_statement(entry)
    except ServiceError as error:
        return BatchMember(error, consistent)
    if isinstance(statement, BoundWrite) and statement.is_check:
        return BatchMember(ValidationFailed(EXISTS_OUTSIDE), consistent)
    return BatchMember(statement, consistent)


def run(context: RequestContext, request: BatchExecuteStatementRequest) -> dict[str, Any]:
    steps = [_step(context, member) for member in request.members]
    _check_distinct(steps)
    used: dict[str, tuple[Table, Consumed]] = {}
    writer = Writer()
    response: dict[str, Any] = {
        "Responses": [_answer(context, step, writer, used) for step in steps]
    }
    context.commit(writer)
    if request.mode != "NONE":
        response["ConsumedCapacity"] = [
            capacity.report(table, name, consumed, request.mode)
            for name, (table, consumed) in used.items()
        ]
    return response


def _step(context: RequestContext, member: BatchMember) -> BatchStep:
    statement = member.statement
    if isinstance(statement, ServiceError):
        return statement
    try:
        table = context.table(statement.table_name)
        if isinstance(statement, BoundSelect):
            return _read(statement, table, member.consistent)
        # ReturnValuesOnConditionCheckFailure has no effect on a member of a batch (AWS, eu-west-2,
        # 2026).
        action = statement.action(table, False)
        return StatementWrite(table, action.locate(table), action, statement.returning)
    except ServiceError as error:
        return error


def _read(select: BoundSelect, table: Table, consistent: bool) -> StatementRead:
    check_index(select, table)
    key, paths = single_key(select, table, "BatchExecuteStatement")
    check_key(table.schema, key)
    return StatementRead(table, table.encode_key(key), paths, consistent)


def _check_distinct(steps: list[BatchStep]) -> None:
    keys = [step.key for step in steps if isinstance(step, (StatementRead, StatementWrite))]
    if len(set(keys)) != len(keys):
        raise ValidationFailed("Provided list of item keys contains duplicates")


def _answer(
    context: RequestContext,
    step: BatchStep,
    writer: Writer,
    used: dict[str, tuple[Table, Consumed]],
) -> dict[str, Any]:
    if isinstance(step, ServiceError):
        return _failure(step, None)
    try:
        item, consumed = (
            _read_item(context, step)
            if isinstance(step, StatementRead)
            else _write_item(context, step, writer)
        )
    except ServiceError as error:
        if context.database.traffic is not None:
            context.database.traffic.statement_failed(step.table, error)
        return _failure(error, step.table)
    used.setdefault(step.table.name, (step.table, Consumed()))[1].add(consumed)
    answer: dict[str, Any] = {"TableName": step.table.name}
    if item is not None:
        answer["Item"] = item
    return answer


def _read_item(context: RequestContext, read: StatementRead) -> tuple[Any, Consumed]:
    record = context.database.reader(read.consistent).get(read.key)
    size = 0 if record is None else records.size_of(record)
    consumed = Consumed(capacity.read_units(size, read.consistent))
    if context.database.meter.is_needed:
        context.database.meter.read(read.table, None, read.key, consumed.table)
    if record is None:
        return None, consumed
    item = shape(records.unpack(record), read.paths) if read.paths else records.fragment(record)
    return item, consumed


def _write_item(
    context: RequestContext, change: StatementWrite, writer: Writer
) -> tuple[Any, Consumed]:
    """Add one statement's change to ``writer``. Return its RETURNING values and capacity used.

    The item before the write is read from storage, which has none of the batch's changes yet. This
    is correct because no two statements of a batch are about the same item.
    """
    database = context.database
    if database.transaction_locks.holds(change.key):
        raise TransactionConflict
    old = database.storage.get(change.key)
    returning = change.returning or "NONE"
    try:
        mutation, old_item = mutate(
            change.table,
            change.action,
            change.key,
            old,
            needs_old=returning in ("ALL_OLD", "UPDATED_OLD"),
        )
    except (ConditionFailed, DuplicateItem):
        if database.meter.is_needed:
            context.charge_refused(change.table, change.key, old)
        raise
    if database.meter.is_needed:
        part = context.writer()
        consumed = part.add(mutation)
        database.meter.write(part.charges or [])
        writer.take_over(part)
    else:
        consumed = writer.add(mutation)
    touched = [] if returning == "NONE" else change.action.touched()
    return returned_values(returning, old_item, mutation.new_item, touched) or None, consumed


def _failure(error: ServiceError, table: Table | None) -> dict[str, Any]:
    """Return the answer of a statement that failed: the error's short code and its message.

    For some errors AWS adds the table's name, if the table was found.
    """
    code = _CODES.get(error.code, error.code.removesuffix("Exception"))
    answer: dict[str, Any] = {"Error": {"Code": code, "Message": error.message}}
    if table is not None and code in _NAMING_TABLE:
        answer["TableName"] = table.name
    return answer


OPERATIONS = (Operation("BatchExecuteStatement", parse, run),)
