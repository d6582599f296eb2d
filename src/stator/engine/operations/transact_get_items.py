"""TransactGetItems: up to a hundred items, all as of one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.items import capacity, records
from stator.engine.items.records import shown
from stator.engine.items.transactions import NO_REASON, check_distinct, check_total, read_report
from stator.engine.operation import Operation, RequestContext
from stator.engine.operations.transact_write_items import cancel_if_refused
from stator.engine.partitions.charges import Charge
from stator.engine.requests.expression_parameters import Placeholders
from stator.engine.tables.item_keys import ItemRefused, check_key, check_key_paths
from stator.engine.tables.table import Table
from stator.errors import TransactionCanceled, TransactionConflict, ValidationFailed
from stator.expr.tree import ProjectionExpression
from stator.model.heat.limits import READ
from stator.model.values import Item, normalise_item


@dataclass(slots=True)
class TransactGet:
    table_name: str
    key: Item
    projection: ProjectionExpression | None


@dataclass(slots=True)
class TransactGetItemsRequest:
    gets: list[TransactGet]
    mode: str


def parse(request: dict[str, Any]) -> TransactGetItemsRequest:
    gets = [_parse_get(entry["Get"]) for entry in request["TransactItems"]]
    return TransactGetItemsRequest(gets, request.get("ReturnConsumedCapacity", "NONE"))


def _parse_get(member: dict[str, Any]) -> TransactGet:
    normalise_item(member["Key"])
    placeholders = Placeholders(member)
    text = member.get("ProjectionExpression")
    projection = placeholders.projection(text)
    if text is not None:
        placeholders.check_all_used()
    return TransactGet(member["TableName"], member["Key"], projection)


def run(context: RequestContext, request: TransactGetItemsRequest) -> dict[str, Any]:
    tables = [context.table(get.table_name) for get in request.gets]
    found = read_together(context, request.gets, tables)
    response: dict[str, Any] = {
        "Responses": [_shown(record, get) for record, get in zip(found, request.gets)]
    }
    if request.mode != "NONE":
        response["ConsumedCapacity"] = read_report(tables, found, request.mode)
    return response


def read_together(
    context: RequestContext, gets: list[TransactGet], tables: list[Table]
) -> list[bytes | None]:
    """Return the record of each item, or None for each item that does not exist.

    Raises TransactionCanceled if a key is wrong or if a transaction holds one of the items.
    """
    keys, reasons = _locate(gets, tables)
    for at, key in enumerate(keys):
        if key is not None and context.database.transaction_locks.holds(key):
            reasons[at] = {
                "Code": "TransactionConflict",
                "Message": TransactionConflict.default_message,
            }
    if any(reason is not NO_REASON for reason in reasons):
        raise TransactionCanceled(reasons=reasons)
    found = context.database.storage.get_many([key for key in keys if key is not None])
    check_total(sum(0 if record is None else records.size_of(record) for record in found))
    if context.database.meter.is_needed:
        cancel_if_refused(context.database.meter.try_together(READ, _charges(tables, keys, found)))
    return found


def _charges(
    tables: list[Table], keys: list[bytes | None], found: list[bytes | None]
) -> list[list[Charge]]:
    """Return what each read is charged: twice the units of a consistent read."""
    parts: list[list[Charge]] = []
    for table, key, record in zip(tables, keys, found):
        size = 0 if record is None else records.size_of(record)
        parts.append([(table, None, key or b"", 2 * capacity.read_units(size, True))])
    return parts


def _locate(
    gets: list[TransactGet], tables: list[Table]
) -> tuple[list[bytes | None], list[dict[str, Any]]]:
    keys: list[bytes | None] = []
    reasons: list[dict[str, Any]] = []
    for get, table in zip(gets, tables):
        try:
            check_key(table.schema, get.key)
            if get.projection is not None:
                check_key_paths(table.schema, list(get.projection.paths))
        except ItemRefused:
            raise
        except ValidationFailed as error:
            keys.append(None)
            reasons.append({"Code": "ValidationError", "Message": error.message})
        else:
            keys.append(table.encode_key(get.key))
            reasons.append(NO_REASON)
    check_distinct(keys)
    return keys, reasons


def _shown(record: bytes | None, get: TransactGet) -> dict[str, Any]:
    if record is None:
        return {}
    item = shown(record, get.projection)
    return {"Item": item} if item else {}


OPERATIONS = (Operation("TransactGetItems", parse, run),)
