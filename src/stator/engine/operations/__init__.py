"""One module per operation, each with ``parse`` and ``run``; this is their register.

A module is imported when its operation is first called: a server starts sooner, and few programs need PartiQL.
"""

from __future__ import annotations

import re
from importlib import import_module

from stator.engine.operation import Operation

OPERATIONS = frozenset(
    {
        "CreateTable",
        "DeleteTable",
        "DescribeEndpoints",
        "DescribeLimits",
        "DescribeTable",
        "DescribeTimeToLive",
        "ListTables",
        "ListTagsOfResource",
        "TagResource",
        "UntagResource",
        "UpdateTable",
        "UpdateTimeToLive",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "BatchGetItem",
        "BatchWriteItem",
        "Query",
        "Scan",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateItem",
        "BatchExecuteStatement",
        "ExecuteStatement",
        "ExecuteTransaction",
        "CreateBackup",
        "DeleteBackup",
        "DescribeBackup",
        "ListBackups",
        "RestoreTableFromBackup",
        "DescribeContinuousBackups",
        "UpdateContinuousBackups",
        "RestoreTableToPointInTime",
        "DescribeExport",
        "ExportTableToPointInTime",
        "ListExports",
        "DescribeImport",
        "ImportTable",
        "ListImports",
        "DescribeStream",
        "GetRecords",
        "GetShardIterator",
        "ListStreams",
    }
)
LOADED: dict[str, Operation] = {}


def load_operation(name: str) -> Operation | None:
    """The operation, imported and put among the loaded ones; None if there is no such operation."""
    if name not in OPERATIONS:
        return None
    module = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    operation: Operation = import_module(f"{__name__}.{module}").OPERATION
    LOADED[name] = operation
    return operation
