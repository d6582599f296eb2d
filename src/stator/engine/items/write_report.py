"""The metrics in the answer to a write: consumed capacity and item collection metrics."""

from __future__ import annotations

from typing import Any

from stator.engine.items import capacity, records
from stator.engine.tables.table import Table
from stator.model.values import Item
from stator.storage import Storage
from stator.storage.protocol import after_prefix

_GIB = 1024**3


def write_report(
    storage: Storage,
    table: Table,
    options: dict[str, Any],
    key: Item,
    consumed: capacity.Consumed,
    response: dict[str, Any],
) -> dict[str, Any]:
    """Add ConsumedCapacity and ItemCollectionMetrics to a write's response, and return it.

    ``options`` are the members of the request, which say whether it asks for either of them.
    """
    mode = options.get("ReturnConsumedCapacity")
    if mode is not None and mode != "NONE":
        response["ConsumedCapacity"] = capacity.report(table, table.name, consumed, mode)
    if options.get("ReturnItemCollectionMetrics") == "SIZE" and table.local_indexes:
        response["ItemCollectionMetrics"] = collection_metrics(storage, table, key)
    return response


def collection_bytes(storage: Storage, table: Table, key: Item) -> int:
    """Return the bytes of an item collection: its items, and their entries in local indexes."""
    partition = table.schema.partition_bytes(key)
    size = 0
    for prefix in (table.prefix, *(index.prefix for index in table.local_indexes)):
        low = prefix + partition
        size += sum(map(records.size_of, storage.values(low, after_prefix(low))))
    return size


def collection_metrics(storage: Storage, table: Table, key: Item) -> dict[str, Any]:
    """Return the item collection's key and its size as a range in gigabytes, such as [0, 1]."""
    name, _ = table.schema.partition[0]
    gigabytes = collection_bytes(storage, table, key) // _GIB
    return {
        "ItemCollectionKey": {name: key[name]},
        "SizeEstimateRangeGB": [gigabytes, gigabytes + 1],
    }
