"""GlobalSecondaryIndexUpdates of UpdateTable: create, change and delete indexes of a live table.

``read_updates`` is pure. ``apply_updates`` changes a copy of the table's definition.
``Lifecycle.fill`` writes the entries of a new index; ``Lifecycle.settle`` removes those of a
deleted one. A request can create or delete one index, and change the throughput of any number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.tables import declared_keys, index_checks, throughput
from stator.engine.tables.description import index_status
from stator.engine.tables.table import IndexDefinition, TableDefinition, in_use
from stator.errors import LimitExceeded, ResourceNotFound, ValidationFailed
from stator.model.limits import GLOBAL_INDEXES
from stator.model.values import INVALID

Spec = dict[str, Any]

_ACTIONS = ("Update", "Create", "Delete")
_ONE_AT_A_TIME = (
    "Subscriber limit exceeded: Only 1 online index can be created or deleted "
    "simultaneously per table"
)


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    action: str
    name: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class IndexChange:
    """The context of index updates: attribute definitions, a new billing mode, and the time."""

    attributes: dict[str, str] | None
    switches_to: str | None
    now: float


# -- before the table is known


def read_updates(entries: list[Spec]) -> list[IndexUpdate]:
    updates = [_read_update(entry) for entry in entries]
    seen: set[str] = set()
    for update in updates:
        if update.name in seen:
            raise ValidationFailed(
                f"{INVALID}Only one global secondary index update per index is allowed "
                f"simultaneously. Index: {update.name}"
            )
        seen.add(update.name)
        _check_alone(update)
    return updates


def _read_update(entry: Spec) -> IndexUpdate:
    actions = [action for action in _ACTIONS if action in entry]
    if not actions:
        raise ValidationFailed(
            f"{INVALID}One of GlobalSecondaryIndexUpdate.Update, "
            "GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be "
            "null"
        )
    if len(actions) > 1:
        raise ValidationFailed(
            f"{INVALID}Only one global secondary index action is allowed per "
            "GlobalSecondaryIndexUpdate object"
        )
    spec = entry[actions[0]]
    return IndexUpdate(actions[0], spec["IndexName"], spec)


def _check_alone(update: IndexUpdate) -> None:
    """Check one index update on its own, before the table is known."""
    spec, subject = update.spec, throughput.Subject(update.name)
    throughput.check_bounds(spec.get("ProvisionedThroughput"), subject)
    throughput.check_maxima(
        spec.get("OnDemandThroughput"), subject, clearable=update.action == "Update"
    )


# -- with the table


def apply_updates(
    definition: TableDefinition, updates: list[IndexUpdate], change: IndexChange
) -> IndexDefinition | None:
    """Apply index updates to the definition. Return the index that was created, or None.

    The caller backfills the new index.
    """
    if sum(update.action != "Update" for update in updates) > 1:
        raise LimitExceeded(_ONE_AT_A_TIME)
    for update in updates:
        if update.action != "Create":
            _existing(definition, update)
    created: IndexDefinition | None = None
    for update in updates:
        match update.action:
            case "Create":
                created = _create(definition, update, change)
            case "Delete":
                _delete(definition, update)
            case _:
                _update(definition, update, change)
    _check_all_provisioned(definition, updates, change)
    return created


def _existing(definition: TableDefinition, update: IndexUpdate) -> IndexDefinition:
    index = definition.index(update.name)
    if index is None:
        raise ResourceNotFound(
            f"Requested resource not found: Index {update.name} for table {definition.name}"
        )
    if not index.is_global:
        verb = update.action.lower()
        raise ValidationFailed(
            f"Cannot {verb} an index that is not a GlobalSecondaryIndex: {update.name}"
        )
    return index


def _check_nothing_moves(definition: TableDefinition, except_for: str | None = None) -> None:
    for index in definition.indexes:
        if index.name != except_for and index_status(definition, index) in ("CREATING", "DELETING"):
            raise LimitExceeded(_ONE_AT_A_TIME)


def _create(
    definition: TableDefinition, update: IndexUpdate, change: IndexChange
) -> IndexDefinition:
    name, spec = update.name, update.spec
    # AWS checks the name before the index's schema.
    if definition.index(name) is not None:
        raise ValidationFailed("Attempting to create an index which already exists")
    _check_nothing_moves(definition)
    attributes = _merged_attributes(definition, update, change)
    declared_keys.check_global_index_keys(spec["KeySchema"])
    index_checks.check_projection(spec["Projection"])
    _check_new_throughput(definition, update)
    if sum(index.is_global for index in definition.indexes) >= GLOBAL_INDEXES:
        raise LimitExceeded(
            "Subscriber limit exceeded: Number of global secondary indexes exceeds "
            f"per-table limit of {GLOBAL_INDEXES}"
        )
    index = index_checks.read_index(spec, definition.next_index, is_global=True)
    index.status = "CREATING"
    index.backfilled_to = ""
    definition.next_index += 1
    definition.attributes |= {key: attributes[key] for key in declared_keys.names(index.key_schema)}
    definition.indexes.append(index)
    index_checks.check_projected_total(
        [len(each.non_key_attributes) for each in definition.indexes]
    )
    return index


def _merged_attributes(
    definition: TableDefinition, update: IndexUpdate, change: IndexChange
) -> dict[str, str]:
    """Return the attribute definitions of the table and of the request together.

    The request must define the index's whole key, including attributes that the table already
    defines (captured from AWS by the paritysuite conformance suite). It may not change the type of
    a key attribute that the table defines (captured by ScyllaDB's test suite).
    """
    if change.attributes is None:
        raise ValidationFailed(
            f"{INVALID}AttributeDefinitions is not specified for index: {update.name}"
        )
    merged = change.attributes | definition.attributes
    declared_keys.check_defined(update.spec["KeySchema"], merged)
    declared_keys.check_defined(update.spec["KeySchema"], change.attributes)
    _check_not_redefined(definition, update.spec["KeySchema"], change.attributes)
    return merged


def _check_not_redefined(
    definition: TableDefinition, key_schema: list[Spec], attributes: dict[str, str]
) -> None:
    known = definition.attributes
    for name in declared_keys.names(key_schema):
        if known.get(name, attributes[name]) != attributes[name]:
            schemas = [definition.key_schema, *(index.key_schema for index in definition.indexes)]
            existing = next(schema for schema in schemas if name in declared_keys.names(schema))
            raise ValidationFailed(
                f"{INVALID}Attributes cannot be redefined. Please check that your attribute has "
                "the same type as previously defined. Existing schema: "
                f"{_shown_schema(existing, known)} New schema: "
                f"{_shown_schema(key_schema, attributes)}"
            )


def _shown_schema(key_schema: list[Spec], attributes: dict[str, str]) -> str:
    elements = [
        "SchemaElement: "
        f"key{{{element['AttributeName']}:{attributes[element['AttributeName']]}:"
        f"{element['KeyType']}}}"
        for element in key_schema
    ]
    return f"Schema:[{', '.join(elements)}]"


def _check_new_throughput(definition: TableDefinition, update: IndexUpdate) -> None:
    name, provisioned = update.name, update.spec.get("ProvisionedThroughput")
    if definition.billing_mode == "PAY_PER_REQUEST":
        if provisioned is not None:
            raise ValidationFailed(
                f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for "
                f"index: {name} when BillingMode is PAY_PER_REQUEST"
            )
    elif provisioned is None:
        raise ValidationFailed(
            f"{INVALID}Both ReadCapacityUnits and WriteCapacityUnits must be specified "
            f"for index: {name}"
        )
    _check_maxima_fit(definition, update)
    throughput.check_maxima(
        update.spec.get("OnDemandThroughput"), throughput.Subject(name), clearable=False
    )
    throughput.check_first_warm(
        update.spec.get("WarmThroughput"),
        provisioned,
        definition.billing_mode,
        throughput.Subject(name),
    )


def _check_maxima_fit(definition: TableDefinition, update: IndexUpdate) -> None:
    member = throughput.first_maximum(update.spec.get("OnDemandThroughput"))
    if member is not None and definition.billing_mode == "PROVISIONED":
        raise ValidationFailed(
            f"{INVALID}{member} for OnDemandThroughput for index : {update.name} cannot be "
            "specified when the table BillingMode is PROVISIONED"
        )


def _delete(definition: TableDefinition, update: IndexUpdate) -> None:
    index = _existing(definition, update)
    if index.status == "DELETING":
        raise in_use(f"Index is being deleted. Table: {definition.name} Index: {index.name}")
    _check_nothing_moves(definition, except_for=index.name)
    index.status = "DELETING"


def _update(definition: TableDefinition, update: IndexUpdate, change: IndexChange) -> None:
    index, spec = _existing(definition, update), update.spec
    if index.status == "UPDATING":
        raise in_use(f"Index is being updated. Table: {definition.name} Index: {index.name}")
    _check_maxima_fit(definition, update)
    provisioned = spec.get("ProvisionedThroughput")
    on_demand, warm = (
        throughput.plain_members(spec.get(m)) for m in ("OnDemandThroughput", "WarmThroughput")
    )
    if provisioned is not None:
        _change_units(definition, index, provisioned, change)
    elif on_demand is None and warm is None:
        raise _nothing_asked(definition, index)
    if on_demand is not None:
        index.on_demand = throughput.merge_maxima(index.on_demand, on_demand)
    if warm is not None:
        base = throughput.warm_base(definition.billing_mode, index)
        current = throughput.warm_units(index.warm, base)
        throughput.check_warm_rises(warm, current, throughput.Subject(index.name))
        index.warm = throughput.merge_warm(current, warm)
    if provisioned is not None or on_demand is not None:
        index.status = "UPDATING"


def _change_units(
    definition: TableDefinition,
    index: IndexDefinition,
    provisioned: dict[str, int],
    change: IndexChange,
) -> None:
    if definition.billing_mode == "PAY_PER_REQUEST":
        raise _nothing_asked(definition, index)
    if change.switches_to == "PROVISIONED":
        index.read_units, index.write_units = throughput.units(provisioned)
        return
    throughput.check_changes(index, provisioned, throughput.Subject(index.name))
    throughput.change_units(index, provisioned, change.now)


def _nothing_asked(definition: TableDefinition, index: IndexDefinition) -> ValidationFailed:
    if definition.billing_mode == "PAY_PER_REQUEST":
        return ValidationFailed(
            f"{INVALID}The only Updates for index: {index.name} when TableThroughputMode is "
            "PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput"
        )
    return ValidationFailed(
        f"{INVALID}Both ReadCapacityUnits and WriteCapacityUnits must be specified for "
        f"index: {index.name}"
    )


def _check_all_provisioned(
    definition: TableDefinition, updates: list[IndexUpdate], change: IndexChange
) -> None:
    """Check that a table that becomes PROVISIONED has units for each global index."""
    if change.switches_to != "PROVISIONED":
        return
    given = {update.name for update in updates}
    missing = [
        index.name for index in definition.indexes if index.is_global and index.name not in given
    ]
    if missing:
        raise ValidationFailed(
            f"{INVALID}ProvisionedThroughput must be specified for index: {','.join(missing)}"
        )
