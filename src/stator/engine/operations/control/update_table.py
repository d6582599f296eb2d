"""UpdateTable.

A request can usually change only one setting. ``_check_combination`` has AWS's rules on settings
that may change together. The change is made to a copy of the definition and takes effect with one
write, so a refused request changes nothing. The answer shows the throughput before the change, as
on AWS.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.tables import declared_keys, throughput
from stator.engine.tables import settings as table_settings
from stator.engine.tables.account_quotas import check_account_quota, check_throughput_quotas
from stator.engine.tables.description import describe
from stator.engine.tables.index_updates import IndexChange, IndexUpdate, apply_updates, read_updates
from stator.engine.tables.table import TableDefinition, check_changeable, in_use
from stator.errors import ResourceInUse, ValidationFailed
from stator.model.values import INVALID
from stator.storage import Changes

_UNOFFERED = (
    "ReplicaUpdates",
    "MultiRegionConsistency",
    "GlobalTableWitnessUpdates",
    "GlobalTableSettingsReplicationMode",
    "DisassociationProtectionEnabled",
    "VectorIndexUpdates",
)
_OPERATIONS = (
    "ProvisionedThroughput",
    "BillingMode",
    "StreamSpecification",
    "GlobalSecondaryIndexUpdates",
    "SSESpecification",
    "DeletionProtectionEnabled",
    "OnDemandThroughput",
    "WarmThroughput",
    "TableClass",
)
_NOTHING = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
    "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, "
    "ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, "
    "OnDemandThroughput, WarmThroughput or TableClass is required"
)
# In the order in which AWS reports them.
_ALONE = {
    "SSESpecification": "Server-Side Encryption modification",
    "TableClass": "TableClass modification",
    "DeletionProtectionEnabled": "DeletionProtection modification",
}
# Changes after which AWS shows the table as UPDATING. Others are done when it answers.
_SLOW = (
    "ProvisionedThroughput",
    "BillingMode",
    "StreamSpecification",
    "TableClass",
    "WarmThroughput",
)


@dataclass(slots=True)
class UpdateTableRequest:
    options: dict[str, Any]
    updates: list[IndexUpdate]
    attributes: dict[str, str] | None

    @property
    def moves_index(self) -> bool:
        return any(update.action != "Update" for update in self.updates)


# -- before the table is known


def parse(request: dict[str, Any]) -> UpdateTableRequest:
    options = table_settings.without_nulls(request)
    table_settings.refuse_unoffered(options, _UNOFFERED)
    requested = [member for member in _OPERATIONS if _requests_change(options, member)]
    if not requested:
        raise ValidationFailed(_NOTHING)
    updates = options.get("GlobalSecondaryIndexUpdates")
    if updates == []:
        raise ValidationFailed(f"{INVALID}List of GlobalSecondaryIndexUpdates is empty")
    definitions = options.get("AttributeDefinitions")
    attributes = None if definitions is None else declared_keys.read_definitions(definitions)
    parsed = UpdateTableRequest(options, read_updates(updates or []), attributes)
    _check_combination(requested, parsed)
    _check_billing(options)
    _check_stream(options.get("StreamSpecification"))
    table_settings.check_encryption(options.get("SSESpecification"))
    table_settings.check_table_class(options.get("TableClass"))
    throughput.check_bounds(options.get("ProvisionedThroughput"), throughput.TABLE)
    throughput.check_maxima(options.get("OnDemandThroughput"), throughput.TABLE, clearable=True)
    return parsed


def _requests_change(options: dict[str, Any], member: str) -> bool:
    """Whether the request has this member and the member asks for a change.

    An empty member asks for no change. The exception is an empty SSESpecification, which AWS takes
    as its default settings.
    """
    return member in options and (member == "SSESpecification" or options[member] not in ({}, []))


def _check_combination(requested: list[str], request: UpdateTableRequest) -> None:
    for member, what in _ALONE.items():
        if member in requested and len(requested) > 1:
            raise ValidationFailed(f"{INVALID}{what} must be the only operation in the request")
    if "WarmThroughput" in requested:
        _check_warm_combination(requested, request)
    if "OnDemandThroughput" in requested and set(requested) - {"OnDemandThroughput", "BillingMode"}:
        raise ValidationFailed(
            f"{INVALID}OnDemandThroughput can only be combined with BillingMode in an "
            "UpdateTable request"
        )
    units_alone = "ProvisionedThroughput" in requested and "BillingMode" not in requested
    if request.moves_index and units_alone:
        raise ValidationFailed(
            f"{INVALID}You cannot create or delete index while updating table IOPS"
        )
    if "StreamSpecification" in requested:
        if request.moves_index:
            raise ValidationFailed(
                f"{INVALID}You cannot create or delete index while changing stream status"
            )
        if "ProvisionedThroughput" in requested:
            raise ValidationFailed(
                f"{INVALID}You cannot modify stream status while updating table IOPS"
            )


def _check_warm_combination(requested: list[str], request: UpdateTableRequest) -> None:
    if any(update.action == "Create" for update in request.updates):
        raise ValidationFailed(
            f"{INVALID}Create global secondary index cannot be specified when updating "
            "WarmThroughput"
        )
    if set(requested) - {"WarmThroughput", "GlobalSecondaryIndexUpdates"}:
        raise ValidationFailed(f"{INVALID}WarmThroughput must be the only operation in the request")


def _check_billing(options: dict[str, Any]) -> None:
    mode, has_units = options.get("BillingMode"), "ProvisionedThroughput" in options
    if mode == "PROVISIONED" and not has_units:
        raise ValidationFailed(
            f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
        )
    if mode == "PAY_PER_REQUEST" and has_units:
        raise ValidationFailed(
            f"{INVALID}ProvisionedThroughput cannot be specified when BillingMode is "
            "PAY_PER_REQUEST"
        )


def _check_stream(specification: dict[str, Any] | None) -> None:
    if specification is None:
        return
    has_type = "StreamViewType" in specification
    if specification["StreamEnabled"] and not has_type:
        raise ValidationFailed(
            f"{INVALID}If stream is being enabled then UpdateViewType is required"
        )
    if not specification["StreamEnabled"] and has_type:
        raise ValidationFailed(
            f"{INVALID}If stream is being disabled, then UpdateViewType must not be specified"
        )


# -- with the table


def update_table(context: RequestContext, request: UpdateTableRequest) -> dict[str, Any]:
    database, parts, options = context.database, context.parts, request.options
    table = context.table_in_any_state(options["TableName"])
    _check_admission(table.definition, request)
    if database.meter.is_on:  # the former settings apply until the change is complete
        database.meter.of(table)
    now = database.clock.now()
    before = describe(table, now)
    if database.meter.is_on:
        database.meter.of(table)  # the old units count for warm throughput, even if never used
    definition = copy.deepcopy(table.definition)
    switches_to = _change_billing(definition, options, now)
    created = apply_updates(
        definition, request.updates, IndexChange(request.attributes, switches_to, now)
    )
    _change_settings(definition, options, now)
    check_throughput_quotas(definition)
    check_account_quota(database.catalog, definition)
    _begin(context, definition, request)
    changes: Changes = {}
    parts.streams.apply_definition(definition, changes)
    table = database.catalog.put(definition, changes)
    context.write(changes)
    parts.housekeeping.wake()
    if database.meter.is_on:
        database.meter.of(table)
    description = _as_answered(describe(table, now), before, options)
    if created is not None:
        parts.lifecycle.fill(table)
    return {"TableDescription": description}


def _check_admission(definition: TableDefinition, request: UpdateTableRequest) -> None:
    check_changeable(definition)
    if definition.status is None:
        return
    if "DeletionProtectionEnabled" in request.options:
        raise ResourceInUse(
            "Table needs to be in ACTIVE status to modify deletion protection setting."
        )
    raise in_use(f"Table IOPS are currently being updated. Table: {definition.name}")


def _change_billing(definition: TableDefinition, options: dict[str, Any], now: float) -> str | None:
    """Change the billing mode or the provisioned units.

    Returns the new mode if it changes, else None.
    """
    mode, provisioned = (
        options.get("BillingMode", definition.billing_mode),
        options.get("ProvisionedThroughput"),
    )
    if mode != definition.billing_mode:
        _switch(definition, mode, provisioned, now)
        return str(mode)
    if provisioned is None:
        return None
    if mode == "PAY_PER_REQUEST":
        raise ValidationFailed(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
            "BillingMode is PAY_PER_REQUEST"
        )
    throughput.check_changes(definition, provisioned, throughput.TABLE)
    throughput.change_units(definition, provisioned, now)
    return None


def _switch(
    definition: TableDefinition, mode: str, provisioned: dict[str, int] | None, now: float
) -> None:
    """Switch the billing mode of a table and its indexes.

    The table takes the provisioned units of the request, or 0 if there are none. The units of
    indexes become 0. On-demand maxima are removed.
    """
    definition.billing_mode = mode
    definition.read_units, definition.write_units = (
        (0, 0) if provisioned is None else throughput.units(provisioned)
    )
    definition.on_demand = None
    for index in definition.indexes:
        index.read_units = index.write_units = 0
        index.on_demand = None
    if mode == "PAY_PER_REQUEST":
        definition.billing_changed = now


def _change_settings(definition: TableDefinition, options: dict[str, Any], now: float) -> None:
    if "OnDemandThroughput" in options:
        _change_maxima(definition, options["OnDemandThroughput"])
    if "WarmThroughput" in options:
        base = throughput.warm_base(definition.billing_mode, definition)
        current = throughput.warm_units(definition.warm, base)
        throughput.check_warm_rises(options["WarmThroughput"], current, throughput.TABLE)
        definition.warm = throughput.merge_warm(current, options["WarmThroughput"])
    if "StreamSpecification" in options:
        _change_stream(definition, options["StreamSpecification"], now)
    if "SSESpecification" in options:
        _change_encryption(definition, options["SSESpecification"])
    if "TableClass" in options:
        definition.table_class, definition.table_class_changed = options["TableClass"], now
    if "DeletionProtectionEnabled" in options:
        definition.deletion_protection = options["DeletionProtectionEnabled"]


def _change_maxima(definition: TableDefinition, requested: dict[str, int]) -> None:
    member = throughput.first_maximum(requested)
    if member is not None and definition.billing_mode == "PROVISIONED":
        raise ValidationFailed(
            f"{INVALID}{member} for OnDemandThroughput cannot be specified when the "
            "table BillingMode is PROVISIONED"
        )
    definition.on_demand = throughput.merge_maxima(definition.on_demand, requested)


def _change_stream(definition: TableDefinition, specification: dict[str, Any], now: float) -> None:
    if specification["StreamEnabled"]:
        if definition.stream is not None:
            raise ValidationFailed(
                f"Table already has an enabled stream: TableName: {definition.name}"
            )
        table_settings.start_stream(definition, specification["StreamViewType"], now)
        return
    if definition.stream is None:
        raise ValidationFailed(f"Table has no stream to disable: TableName: {definition.name}")
    definition.stream = None


def _change_encryption(definition: TableDefinition, specification: dict[str, Any]) -> None:
    encryption = table_settings.read_encryption(specification, definition.scope)
    if encryption is None and definition.sse is None:
        raise ValidationFailed(f"{INVALID}Table is already encrypted by default")
    if encryption == definition.sse:
        raise ValidationFailed(
            f"{INVALID}Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId "
            "parameter if you want to change Master Key"
        )
    definition.sse = encryption


def _begin(
    context: RequestContext, definition: TableDefinition, request: UpdateTableRequest
) -> None:
    """Set the table's status to UPDATING if the request contains a change that takes time.

    Such changes are the members in ``_SLOW``, and a new or deleted index. If only an index changes
    its throughput, only the index is UPDATING.
    """
    context.parts.lifecycle.begin(definition, "UPDATING")
    if not request.moves_index and not any(member in request.options for member in _SLOW):
        definition.status = None


def _as_answered(
    description: dict[str, Any], before: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Return the table description as AWS's UpdateTable returns it.

    It has the provisioned units from before the change, and on-demand maxima as sent, even -1.
    Encryption that the request turns off is still shown, as UPDATING (recorded from AWS in
    LocalStack's snapshots).
    """
    description["ProvisionedThroughput"] = before["ProvisionedThroughput"]
    former = {index["IndexName"]: index for index in before.get("GlobalSecondaryIndexes", ())}
    for index in description.get("GlobalSecondaryIndexes", ()):
        if index["IndexName"] in former:
            index["ProvisionedThroughput"] = former[index["IndexName"]]["ProvisionedThroughput"]
    sent = throughput.plain_members(options.get("OnDemandThroughput"))
    if sent is not None:
        description["OnDemandThroughput"] = description.get("OnDemandThroughput", {}) | sent
    if "SSEDescription" in before and "SSEDescription" not in description:
        description["SSEDescription"] = before["SSEDescription"] | {"Status": "UPDATING"}
    return description


OPERATIONS = (Operation("UpdateTable", parse, update_table),)
