"""What the backup operations say about a backup."""

from __future__ import annotations

from typing import Any

from stator.engine.recovery.backups import Backup
from stator.engine.tables.table import IndexDefinition, TableDefinition

Description = dict[str, Any]


def details(backup: Backup, status: str) -> Description:
    shown: Description = {
        "BackupArn": backup.arn,
        "BackupName": backup.name,
        "BackupSizeBytes": backup.size_bytes,
        "BackupStatus": status,
        "BackupType": backup.type,
        "BackupCreationDateTime": round(backup.created, 3),
    }
    if backup.expires is not None:
        shown["BackupExpiryDateTime"] = round(backup.expires, 3)
    return shown


def describe(backup: Backup, status: str) -> Description:
    definition = backup.definition
    return {
        "BackupDetails": details(backup, status),
        "SourceTableDetails": _source(backup, definition),
        "SourceTableFeatureDetails": _features(definition),
    }


def summary(backup: Backup, status: str) -> Description:
    definition = backup.definition
    return {
        "TableName": definition.name,
        "TableId": definition.table_id,
        "TableArn": definition.scope.table_arn(definition.name),
        **details(backup, status),
    }


def _source(backup: Backup, definition: TableDefinition) -> Description:
    shown: Description = {
        "TableName": definition.name,
        "TableId": definition.table_id,
        "TableArn": definition.scope.table_arn(definition.name),
        "TableSizeBytes": backup.size_bytes,
        "KeySchema": definition.key_schema,
        "TableCreationDateTime": round(definition.created, 3),
        "ProvisionedThroughput": _throughput(definition),
        "ItemCount": backup.items,
        "BillingMode": definition.billing_mode,
    }
    if definition.on_demand is not None:
        shown["OnDemandThroughput"] = definition.on_demand
    return shown


def _throughput(holder: TableDefinition | IndexDefinition) -> Description:
    return {"ReadCapacityUnits": holder.read_units, "WriteCapacityUnits": holder.write_units}


def _features(definition: TableDefinition) -> Description:
    shown: Description = {}
    for index in definition.indexes:
        member = "GlobalSecondaryIndexes" if index.is_global else "LocalSecondaryIndexes"
        shown.setdefault(member, []).append(_index(index))
    if definition.stream is not None:
        shown["StreamDescription"] = definition.stream
    shown["TimeToLiveDescription"] = {"TimeToLiveStatus": "DISABLED"}
    if definition.ttl_attribute is not None:
        shown["TimeToLiveDescription"] = {
            "TimeToLiveStatus": "ENABLED",
            "AttributeName": definition.ttl_attribute,
        }
    if definition.sse is not None:
        shown["SSEDescription"] = {"Status": "ENABLED", **definition.sse}
    return shown


def _index(index: IndexDefinition) -> Description:
    projection: Description = {"ProjectionType": index.projection_type}
    if index.non_key_attributes:
        projection["NonKeyAttributes"] = index.non_key_attributes
    shown: Description = {
        "IndexName": index.name,
        "KeySchema": index.key_schema,
        "Projection": projection,
    }
    if index.is_global:
        shown["ProvisionedThroughput"] = _throughput(index)
        if index.on_demand is not None:
            shown["OnDemandThroughput"] = index.on_demand
    return shown
