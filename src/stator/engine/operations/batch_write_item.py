"""BatchWriteItem: up to 25 puts and deletes in several tables, without conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.items import capacity, records
from stator.engine.items.actions import ItemDelete, ItemPut
from stator.engine.items.capacity import Consumed
from stator.engine.items.write_path import Mutation
from stator.engine.items.write_report import collection_metrics
from stator.engine.operation import Operation, RequestContext
from stator.engine.partitions.throttle_errors import of_whole_batch
from stator.engine.tables.item_keys import MISMATCH, check_no_empty_key
from stator.engine.tables.table import Table
from stator.errors import SlowDown, TransactionConflict, ValidationFailed
from stator.model.limits import BATCH_WRITE_BYTES, BATCH_WRITE_ITEMS
from stator.model.values import SEVERAL_TYPES, Item, normalise_item


@dataclass(slots=True)
class BatchWriteItemRequest:
    tables: dict[str, list[ItemPut | ItemDelete]]
    options: dict[str, Any]


def parse(request: dict[str, Any]) -> BatchWriteItemRequest:
    tables = {
        name: [_parse_write(name, write) for write in writes]
        for name, writes in request["RequestItems"].items()
    }
    if sum(map(len, tables.values())) > BATCH_WRITE_ITEMS:
        raise ValidationFailed("Too many items requested for the BatchWriteItem call")
    return BatchWriteItemRequest(tables, request)


def _parse_write(table_name: str, write: dict[str, Any]) -> ItemPut | ItemDelete:
    put, delete = write.get("PutRequest"), write.get("DeleteRequest")
    if (put is None) == (delete is None):
        raise ValidationFailed(SEVERAL_TYPES)
    if put is not None:
        item = put["Item"]
        if "" in item:
            raise ValidationFailed("Empty attribute name")
        return ItemPut(table_name, item, normalise_item(item), None)
    assert delete is not None
    normalise_item(delete["Key"])
    return ItemDelete(table_name, delete["Key"], None)


def run(context: RequestContext, request: BatchWriteItemRequest) -> dict[str, Any]:
    located = _locate(context, request)
    writer = context.writer()
    used: dict[str, tuple[Table, Consumed]] = {}
    storage = context.database.storage
    found = storage.get_many([key for _, _, key in located])
    metered = context.database.meter.charges_keys
    refused: dict[int, SlowDown] = {}
    for at, ((table, action, key), old) in enumerate(zip(located, found)):
        mutation = _mutation(table, action, key, old)
        if metered:
            part = context.writer()
            consumed = part.add(mutation)
            error = context.database.meter.try_write(part.charges or [])
            if error is not None:
                refused[at] = error
                continue
            writer.take_over(part)
            used.setdefault(table.name, (table, Consumed()))[1].add(consumed)
            continue
        entry = used.get(table.name)
        if entry is None:
            entry = used[table.name] = (table, Consumed())
        writer.add(mutation, entry[1])
    if refused and len(refused) == len(located):
        raise of_whole_batch(refused[0])
    context.commit(writer)
    response = _report(context, request, used)
    if refused:
        response["UnprocessedItems"] = _unprocessed(request, refused)
    return response


def _unprocessed(request: BatchWriteItemRequest, refused: dict[int, SlowDown]) -> dict[str, Any]:
    """Return the writes that were refused, by table, as they were sent."""
    unprocessed: dict[str, Any] = {}
    at = 0
    for name, writes in request.options["RequestItems"].items():
        for write in writes:
            if at in refused:
                unprocessed.setdefault(name, []).append(write)
            at += 1
    return unprocessed


def _mutation(
    table: Table, action: ItemPut | ItemDelete, key: bytes, old: bytes | None
) -> Mutation:
    """Return the mutation of one put or delete.

    This is a short form of ``mutate``, because a batch has no conditions.
    """
    old_item = records.unpack(old) if old is not None and table.indexes else None
    if isinstance(action, ItemPut):
        return Mutation(table, key, old, old_item, action.item, action.size)
    return Mutation(table, key, old, old_item, None)


def _locate(
    context: RequestContext, request: BatchWriteItemRequest
) -> list[tuple[Table, ItemPut | ItemDelete, bytes]]:
    """Check every write. Return each with its table and storage key; no item may appear twice."""
    located = []
    size = 0
    for name, actions in request.tables.items():
        table = context.table(name)
        for action in actions:
            if isinstance(action, ItemPut):
                if not table.schema.has_plain_key(action.item):
                    _check_batch_key(table, action.item)
                size += action.size
            located.append((table, action, action.locate(table)))
    keys = [key for _, _, key in located]
    if len(set(keys)) != len(keys):
        raise ValidationFailed("Provided list of item keys contains duplicates")
    if size > BATCH_WRITE_BYTES:
        raise ValidationFailed("Item size has exceeded the maximum allowed size")
    if any(context.database.transaction_locks.holds(key) for key in keys):
        raise TransactionConflict
    return located


def _check_batch_key(table: Table, item: Item) -> None:
    """Check the key of an item to put, with the errors that AWS has for a bad Key parameter.

    In a batch, AWS words the errors of puts and deletes alike.
    """
    if not table.schema.covers(item):
        raise ValidationFailed(MISMATCH)
    check_no_empty_key(table.schema, item)


def _report(
    context: RequestContext, request: BatchWriteItemRequest, used: dict[str, tuple[Table, Consumed]]
) -> dict[str, Any]:
    options = request.options
    response: dict[str, Any] = {"UnprocessedItems": {}}
    mode = options.get("ReturnConsumedCapacity", "NONE")
    if mode != "NONE":
        response["ConsumedCapacity"] = [
            capacity.report(table, table.name, consumed, mode) for table, consumed in used.values()
        ]
    if options.get("ReturnItemCollectionMetrics") == "SIZE":
        metrics = {
            name: _metrics(context, table, actions)
            for name, actions in request.tables.items()
            if (table := context.table(name)).local_indexes
        }
        response["ItemCollectionMetrics"] = metrics
    return response


def _metrics(
    context: RequestContext, table: Table, actions: list[ItemPut | ItemDelete]
) -> list[dict[str, Any]]:
    name = table.schema.partition[0].name
    keys = [action.keyed for action in actions]
    distinct = {str(key[name]): key for key in keys}
    return [collection_metrics(context.database.storage, table, key) for key in distinct.values()]


OPERATIONS = (Operation("BatchWriteItem", parse, run, older_values=True),)
