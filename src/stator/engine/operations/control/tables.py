"""CreateTable, DescribeTable, ListTables and DeleteTable.

CreateTable checks every rule about the declaration itself before it looks at the catalogue.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from stator.engine.operation import Operation, RequestContext
from stator.engine.requests.shapes import failed, violations
from stator.engine.tables import declared_keys, index_checks, throughput
from stator.engine.tables import settings as table_settings
from stator.engine.tables.account_quotas import (
    check_account_quota,
    check_table_count,
    check_throughput_quotas,
)
from stator.engine.tables.description import describe, index_status
from stator.engine.tables.table import Table, TableDefinition, check_changeable, in_use
from stator.engine.tables.tag_checks import read_tags
from stator.errors import AccessDenied, ResourceInUse, ValidationFailed
from stator.model.scope import Scope
from stator.model.values import INVALID
from stator.storage import Changes

_UNOFFERED = ("GlobalTableSourceArn", "GlobalTableSettingsReplicationMode", "VectorIndexes")
_SHORTEST_NAME = 3
_PAGE_TABLES = 100


@dataclass(slots=True)
class CreateTableRequest:
    options: dict[str, Any]
    billing_mode: str
    attributes: dict[str, str]
    tags: dict[str, str]


def parse_create(request: dict[str, Any]) -> CreateTableRequest:
    options = table_settings.without_nulls(request)
    table_settings.refuse_unoffered(options, _UNOFFERED)
    _check_members(options)
    billing_mode = options.get("BillingMode", "PROVISIONED")
    _check_billing(options, billing_mode)
    attributes = declared_keys.read_definitions(options["AttributeDefinitions"])
    _check_keys(options, attributes, billing_mode)
    _check_stream(options.get("StreamSpecification"))
    table_settings.check_encryption(options.get("SSESpecification"))
    table_settings.check_table_class(options.get("TableClass"))
    tags = read_tags(options.get("Tags", []))
    return CreateTableRequest(options, billing_mode, attributes, tags)


def _check_members(options: dict[str, Any]) -> None:
    """Check constraints that AWS enforces but its service model no longer states."""
    errors = []
    name = options["TableName"]
    if "AttributeDefinitions" not in options:
        errors.append(failed(None, "attributeDefinitions", "Member must not be null"))
    if len(name) < _SHORTEST_NAME:
        constraint = f"Member must have length greater than or equal to {_SHORTEST_NAME}"
        errors.append(failed(name, "tableName", constraint))
    if "KeySchema" not in options:
        errors.append(failed(None, "keySchema", "Member must not be null"))
    if errors:
        raise violations(errors)


def _check_billing(options: dict[str, Any], billing_mode: str) -> None:
    provisioned, on_demand = options.get("ProvisionedThroughput"), options.get("OnDemandThroughput")
    if billing_mode == "PAY_PER_REQUEST":
        if provisioned is not None:
            raise ValidationFailed(
                f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
                "when BillingMode is PAY_PER_REQUEST"
            )
    elif provisioned is None:
        raise ValidationFailed(
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified "
            "when BillingMode is PROVISIONED"
        )
    elif (member := throughput.first_maximum(on_demand)) is not None:
        raise ValidationFailed(
            f"{INVALID}{member} for OnDemandThroughput cannot be specified when table "
            "BillingMode is PROVISIONED."
        )
    throughput.check_bounds(provisioned, throughput.TABLE)
    throughput.check_maxima(on_demand, throughput.TABLE, clearable=False)
    throughput.check_first_warm(
        options.get("WarmThroughput"), provisioned, billing_mode, throughput.TABLE
    )


def _check_keys(options: dict[str, Any], attributes: dict[str, str], billing_mode: str) -> None:
    """Check the table's keys, then that AttributeDefinitions match all keys, then each index."""
    schema = options["KeySchema"]
    local, global_ = options.get("LocalSecondaryIndexes"), options.get("GlobalSecondaryIndexes")
    indexes = [*(local or ()), *(global_ or ())]
    declared_keys.check_table_keys(schema, attributes)
    for index in indexes:
        declared_keys.check_defined(index["KeySchema"], attributes)
    declared_keys.check_all_used([schema, *(index["KeySchema"] for index in indexes)], attributes)
    index_checks.check_local_indexes(local, schema)
    index_checks.check_global_indexes(global_, billing_mode)
    index_checks.check_names_differ(indexes)
    index_checks.check_projected_total(
        [len(i["Projection"].get("NonKeyAttributes", ())) for i in indexes]
    )


def _check_stream(specification: dict[str, Any] | None) -> None:
    if specification is None:
        return
    if specification["StreamEnabled"]:
        if "StreamViewType" not in specification:
            raise ValidationFailed(
                f"{INVALID}Table is being created with a stream enabled, UpdateViewType is required"
            )
    elif "StreamViewType" in specification:
        raise ValidationFailed(
            f"{INVALID}Table is being created with a stream disabled, UpdateViewType "
            "should not be specified"
        )


def create_table(context: RequestContext, request: CreateTableRequest) -> dict[str, Any]:
    database, parts = context.database, context.parts
    name = check_name_is_free(context, request.options["TableName"])
    check_table_count(database.catalog, context.scope)
    changes: Changes = {}
    definition = define(request, name, context.scope, database.clock.now())
    check_throughput_quotas(definition)
    check_account_quota(database.catalog, definition)
    definition.number = database.catalog.take_number(changes)
    parts.lifecycle.begin(definition, "CREATING")
    parts.streams.apply_definition(definition, changes)
    table = database.catalog.put(definition, changes)
    context.write(changes)
    parts.housekeeping.wake()
    return {"TableDescription": describe(table, database.clock.now())}


def check_name_is_free(context: RequestContext, name: str) -> str:
    """Check that no table has this name, which may be an ARN, and return the bare name.

    Raises ResourceInUse if the table exists or is being created.
    """
    context.parts.lifecycle.settle_all()
    name = _own_name(name, context.scope)
    existing = context.database.catalog.find(context.scope, name)
    if existing is not None:
        if existing.definition.status == "CREATING":
            raise in_use(f"Table is being created: {name}")
        raise ResourceInUse(f"Table already exists: {name}")
    return name


def _own_name(name: str, scope: Scope) -> str:
    """Return the name of a table to create, given its name or ARN.

    An ARN must be in the caller's account and region.
    """
    if not name.startswith("arn:"):
        return name
    prefix = scope.table_arn("")
    if not name.startswith(prefix):
        raise AccessDenied(
            f"User: arn:aws:iam::{scope.account}:root is not authorized to perform: "
            f"dynamodb:CreateTable on resource: {name}"
        )
    return name.removeprefix(prefix)


def define(request: CreateTableRequest, name: str, scope: Scope, now: float) -> TableDefinition:
    options = request.options
    on_demand = request.billing_mode == "PAY_PER_REQUEST"
    read, write = (0, 0) if on_demand else throughput.units(options["ProvisionedThroughput"])
    definition = TableDefinition(
        name=name,
        number=0,
        table_id=str(uuid4()),
        account=scope.account,
        region=scope.region,
        created=now,
        key_schema=declared_keys.plain(options["KeySchema"]),
        attributes=request.attributes,
        billing_mode=request.billing_mode,
        billing_changed=now if on_demand else None,
        read_units=read,
        write_units=write,
        on_demand=throughput.plain_members(options.get("OnDemandThroughput")),
        warm=throughput.plain_members(options.get("WarmThroughput")),
        table_class=options.get("TableClass"),
        deletion_protection=options.get("DeletionProtectionEnabled", False),
        sse=table_settings.read_encryption(options.get("SSESpecification"), scope),
        tags=request.tags,
        resource_policy=options.get("ResourcePolicy"),
    )
    _add_indexes(definition, options)
    stream = options.get("StreamSpecification", {})
    if stream.get("StreamEnabled"):
        table_settings.start_stream(definition, stream["StreamViewType"], now)
    return definition


def _add_indexes(definition: TableDefinition, options: dict[str, Any]) -> None:
    for member, is_global in (("LocalSecondaryIndexes", False), ("GlobalSecondaryIndexes", True)):
        for spec in options.get(member, ()):
            index = index_checks.read_index(spec, definition.next_index, is_global=is_global)
            definition.indexes.append(index)
            definition.next_index += 1


# -- the other operations


def parse_name(request: dict[str, Any]) -> str:
    return str(request["TableName"])


def describe_table(context: RequestContext, table_name: str) -> dict[str, Any]:
    table = context.table_in_any_state(table_name)
    description = describe(table, context.database.clock.now())
    if context.database.meter.is_on:
        _show_warm(context, table, description)
    return {"Table": description}


def _show_warm(context: RequestContext, table: Table, description: dict[str, Any]) -> None:
    """Set WarmThroughput to what the partitions can take now, which rises with use."""
    entry = context.database.meter.of(table)
    indexes = description.get("GlobalSecondaryIndexes", ())
    shown = [(description, entry.resource)]
    shown += [(index, entry.indexes[index["IndexName"]]) for index in indexes]
    for part, resource in shown:
        if "WarmThroughput" in part:
            read, write = resource.warm
            part["WarmThroughput"] |= {"ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write}


@dataclass(frozen=True, slots=True)
class ListTablesRequest:
    after: str
    limit: int


def parse_list(request: dict[str, Any]) -> ListTablesRequest:
    return ListTablesRequest(
        request.get("ExclusiveStartTableName") or "", request.get("Limit") or _PAGE_TABLES
    )


def list_tables(context: RequestContext, request: ListTablesRequest) -> dict[str, Any]:
    """List table names in the order of their bytes, at most a hundred per page."""
    context.parts.lifecycle.settle_all()
    names = context.database.catalog.names(context.scope)
    start = bisect_right(names, request.after)
    page = names[start : start + request.limit]
    response: dict[str, Any] = {"TableNames": page}
    if start + request.limit < len(names):
        response["LastEvaluatedTableName"] = page[-1]
    return response


def delete_table(context: RequestContext, table_name: str) -> dict[str, Any]:
    """Mark a table as DELETING at once.

    The table and its data are removed when that status ends.
    """
    database, parts = context.database, context.parts
    table = context.table_in_any_state(table_name)
    _check_deletable(table.definition)
    definition = copy.deepcopy(table.definition)
    parts.lifecycle.begin(definition, "DELETING")
    changes: Changes = {}
    parts.recovery.leave_backup(table, changes)
    parts.streams.end(definition.number, changes)
    table = database.catalog.put(definition, changes)
    context.write(changes)
    return {"TableDescription": describe(table, database.clock.now())}


def _check_deletable(definition: TableDefinition) -> None:
    check_changeable(definition)
    if definition.status == "UPDATING":
        raise in_use(f"Table: {definition.name} is in the process of being updated.")
    if definition.captures:
        raise in_use(f"Table is being backed up, restored or exported: {definition.name}")
    if any(index_status(definition, index) != "ACTIVE" for index in definition.indexes):
        raise in_use("Cannot delete table while indexes are being created, updated, or deleted.")
    if definition.deletion_protection:
        raise ValidationFailed(
            "Resource cannot be deleted as it is currently protected against deletion. "
            "Disable deletion protection first."
        )


OPERATIONS = (
    Operation("CreateTable", parse_create, create_table),
    Operation("DescribeTable", parse_name, describe_table),
    Operation("ListTables", parse_list, list_tables),
    Operation("DeleteTable", parse_name, delete_table),
)
