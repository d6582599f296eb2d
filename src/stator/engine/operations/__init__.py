"""DynamoDB's operations, and a register of the module that holds each of them.

An operation is a ``parse``, which sees only the request, and a ``run``, which sees tables. Data
operations have a module each; ``control`` holds the operations on whole tables, a module per
family. Code that several operations share is in ``engine.items``, ``tables``, ``partiql``,
``streams`` and ``recovery``.

A module is imported when one of its operations is first called, so that a server starts sooner.
Few programs need PartiQL or backups.
"""

from __future__ import annotations

from importlib import import_module

from stator.engine.operation import Operation

_MODULES = {
    # Items
    "GetItem": "get_item",
    "PutItem": "put_item",
    "UpdateItem": "update_item",
    "DeleteItem": "delete_item",
    "Query": "query",
    "Scan": "scan",
    "BatchGetItem": "batch_get_item",
    "BatchWriteItem": "batch_write_item",
    "TransactGetItems": "transact_get_items",
    "TransactWriteItems": "transact_write_items",
    # PartiQL
    "ExecuteStatement": "execute_statement",
    "BatchExecuteStatement": "batch_execute_statement",
    "ExecuteTransaction": "execute_transaction",
    # Stream records
    "GetShardIterator": "get_shard_iterator",
    "GetRecords": "get_records",
    # The control plane
    "CreateTable": "control.tables",
    "DescribeTable": "control.tables",
    "ListTables": "control.tables",
    "DeleteTable": "control.tables",
    "UpdateTable": "control.update_table",
    "DescribeTimeToLive": "control.time_to_live",
    "UpdateTimeToLive": "control.time_to_live",
    "TagResource": "control.tags",
    "UntagResource": "control.tags",
    "ListTagsOfResource": "control.tags",
    "DescribeStream": "control.streams",
    "ListStreams": "control.streams",
    "CreateBackup": "control.backups",
    "DescribeBackup": "control.backups",
    "ListBackups": "control.backups",
    "DeleteBackup": "control.backups",
    "RestoreTableFromBackup": "control.backups",
    "DescribeContributorInsights": "control.contributor_insights",
    "ListContributorInsights": "control.contributor_insights",
    "UpdateContributorInsights": "control.contributor_insights",
    "DescribeContinuousBackups": "control.continuous_backups",
    "UpdateContinuousBackups": "control.continuous_backups",
    "RestoreTableToPointInTime": "control.continuous_backups",
    "ExportTableToPointInTime": "control.exports",
    "DescribeExport": "control.exports",
    "ListExports": "control.exports",
    "ImportTable": "control.imports",
    "DescribeImport": "control.imports",
    "ListImports": "control.imports",
    "DescribeLimits": "control.account",
    "DescribeEndpoints": "control.account",
}
OPERATIONS = frozenset(_MODULES)
LOADED: dict[str, Operation] = {}


def load_operation(name: str) -> Operation | None:
    """Import the module that holds an operation, and return the operation.

    Returns None if there is no such operation.
    """
    module = _MODULES.get(name)
    if module is None:
        return None
    operations: tuple[Operation, ...] = import_module(f"{__name__}.{module}").OPERATIONS
    for operation in operations:
        LOADED[operation.name] = operation
    return LOADED[name]
