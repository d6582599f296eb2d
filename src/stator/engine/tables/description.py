"""The answer of DescribeTable: exactly the members that AWS shows.

Counts are updated with each write, never recounted. These members are left out, as on AWS:

- BillingModeSummary, until a table has been on demand
- LastIncreaseDateTime and LastDecreaseDateTime, until they happen
- WarmThroughput, while a table is CREATING, unless the request set it
- OnDemandThroughput, SSEDescription, TableClassSummary and stream members, unless set
- nearly everything, once a table is DELETING
"""

from __future__ import annotations

from typing import Any

from stator.engine.tables import throughput
from stator.engine.tables.table import Index, IndexDefinition, ItemCounts, Table, TableDefinition

Description = dict[str, Any]


def describe(table: Table, now: float) -> Description:
    definition = table.definition
    if definition.status == "DELETING":
        return _essentials(table, now) | _billing(definition)
    attributes = sorted(definition.attributes.items())
    description: Description = {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind} for name, kind in attributes
        ],
        "KeySchema": definition.key_schema,
        "CreationDateTime": _moment(definition.created),
        **_essentials(table, now),
        **_billing(definition),
        **_indexes(table, now),
        **_stream(table),
        **_settings(definition),
    }
    # A new table with warm throughput shows it as UPDATING (seen on AWS by ScyllaDB's test suite).
    status = "UPDATING" if definition.status == "CREATING" else definition.status or "ACTIVE"
    warm = _warm(definition, definition, status)
    if warm is not None:
        description["WarmThroughput"] = warm
    return description


def _essentials(table: Table, now: float) -> Description:
    definition = table.definition
    return {
        "TableName": definition.name,
        "TableStatus": definition.status or "ACTIVE",
        "ProvisionedThroughput": _provisioned(definition, now),
        "TableSizeBytes": table.counts.size_bytes,
        "ItemCount": table.counts.items,
        "TableArn": table.arn,
        "TableId": definition.table_id,
        "DeletionProtectionEnabled": definition.deletion_protection,
    }


def _moment(seconds: float) -> float:
    return round(seconds, 3)


def _provisioned(holder: TableDefinition | IndexDefinition, now: float) -> Description:
    shown: Description = {}
    if holder.last_increase is not None:
        shown["LastIncreaseDateTime"] = _moment(holder.last_increase)
    if holder.last_decrease is not None:
        shown["LastDecreaseDateTime"] = _moment(holder.last_decrease)
    return shown | {
        "NumberOfDecreasesToday": throughput.decreases_today(holder, now),
        "ReadCapacityUnits": holder.read_units,
        "WriteCapacityUnits": holder.write_units,
    }


def _billing(definition: TableDefinition) -> Description:
    if definition.billing_changed is None:
        return {}
    summary: Description = {"BillingMode": definition.billing_mode}
    if definition.status != "CREATING":
        summary["LastUpdateToPayPerRequestDateTime"] = _moment(definition.billing_changed)
    return {"BillingModeSummary": summary}


def _warm(
    definition: TableDefinition, holder: TableDefinition | IndexDefinition, status: str
) -> Description | None:
    if definition.status == "CREATING" and holder.warm is None:
        return None
    read, write = throughput.warm_units(
        holder.warm, throughput.warm_base(definition.billing_mode, holder)
    )
    return {"ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write, "Status": status}


# -- indexes


def _indexes(table: Table, now: float) -> Description:
    shown: Description = {}
    for declared in table.definition.indexes:
        index = table.index(declared.name)
        assert index is not None
        member = "GlobalSecondaryIndexes" if declared.is_global else "LocalSecondaryIndexes"
        described = _index(table, index)
        if declared.is_global:
            described |= _global(table, index, now)
        shown.setdefault(member, []).append(described)
    return shown


def _index(table: Table, index: Index) -> Description:
    declared, counts = index.definition, index.counts
    projection: Description = {"ProjectionType": declared.projection_type}
    if declared.non_key_attributes:
        projection["NonKeyAttributes"] = declared.non_key_attributes
    return {
        "IndexName": declared.name,
        "KeySchema": declared.key_schema,
        "Projection": projection,
        "IndexArn": f"{table.arn}/index/{declared.name}",
        **_counted(counts),
    }


def _counted(counts: ItemCounts) -> Description:
    return {"IndexSizeBytes": counts.size_bytes, "ItemCount": counts.items}


def _global(table: Table, index: Index, now: float) -> Description:
    definition, declared = table.definition, index.definition
    status = index_status(definition, declared)
    shown: Description = {
        "IndexStatus": status,
        "ProvisionedThroughput": _provisioned(declared, now),
    }
    if status == "CREATING" and definition.status != "CREATING":
        # While the table is UPDATING the index gets its resources; its backfill shows from then on.
        shown["Backfilling"] = definition.status is None and declared.backfilled_to is not None
    if declared.on_demand is not None:
        shown["OnDemandThroughput"] = declared.on_demand
    warm = _warm(definition, declared, status)
    return shown if warm is None else shown | {"WarmThroughput": warm}


def index_status(definition: TableDefinition, index: IndexDefinition) -> str:
    if index.status is not None:
        return index.status
    return (
        "CREATING"
        if definition.status == "CREATING" or index.backfilled_to is not None
        else "ACTIVE"
    )


# -- settings


def _stream(table: Table) -> Description:
    """Describe the stream. After it is disabled, only its label and ARN are still shown."""
    definition = table.definition
    shown: Description = {}
    if definition.stream is not None:
        shown["StreamSpecification"] = definition.stream
    if definition.stream_label is not None:
        shown["LatestStreamLabel"] = definition.stream_label
        shown["LatestStreamArn"] = f"{table.arn}/stream/{definition.stream_label}"
    return shown


def _settings(definition: TableDefinition) -> Description:
    shown: Description = {}
    if definition.on_demand is not None:
        shown["OnDemandThroughput"] = definition.on_demand
    if definition.sse is not None:
        shown["SSEDescription"] = {"Status": "ENABLED", **definition.sse}
    if definition.table_class is not None:
        summary: Description = {"TableClass": definition.table_class}
        if definition.table_class_changed is not None:
            summary["LastUpdateDateTime"] = _moment(definition.table_class_changed)
        shown["TableClassSummary"] = summary
    if definition.restored is not None:
        shown["RestoreSummary"] = definition.restored
    return shown
