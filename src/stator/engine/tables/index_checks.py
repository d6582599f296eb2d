"""Secondary indexes as CreateTable and UpdateTable declare them: AWS's checks, texts and order."""

from __future__ import annotations

from typing import Any

from stator.engine.tables import declared_keys, throughput
from stator.engine.tables.table import IndexDefinition
from stator.errors import ValidationFailed
from stator.model.limits import GLOBAL_INDEXES, LOCAL_INDEXES, PROJECTED_ATTRIBUTES
from stator.model.values import INVALID

Spec = dict[str, Any]

_NO_RANGE_KEY = (
    f"{INVALID}Table KeySchema does not have a range key, which is required when "
    "specifying a LocalSecondaryIndex"
)


def check_local_indexes(specs: list[Spec] | None, table_schema: declared_keys.Schema) -> None:
    if specs is None:
        return
    if not specs:
        raise ValidationFailed(f"{INVALID}List of LocalSecondaryIndexes is empty")
    if len(table_schema) < 2:
        raise ValidationFailed(_NO_RANGE_KEY)
    for position, spec in enumerate(specs, 1):
        path = f"localSecondaryIndexes.{position}.member.keySchema"
        declared_keys.check_local_index_keys(
            spec["IndexName"], spec["KeySchema"], table_schema, path
        )
        check_projection(spec["Projection"])
    if len(specs) > LOCAL_INDEXES:
        raise ValidationFailed(
            f"{INVALID}Number of LocalSecondaryIndexes exceeds per-table limit of {LOCAL_INDEXES}"
        )


def check_global_indexes(specs: list[Spec] | None, billing_mode: str) -> None:
    if specs is None:
        return
    if not specs:
        raise ValidationFailed(f"{INVALID}List of GlobalSecondaryIndexes is empty")
    for spec in specs:
        declared_keys.check_global_index_keys(spec["KeySchema"])
        check_projection(spec["Projection"])
        _check_throughput(spec, billing_mode)
    if len(specs) > GLOBAL_INDEXES:
        raise ValidationFailed(
            f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES}"
        )


def check_names_differ(specs: list[Spec]) -> None:
    seen: set[str] = set()
    for spec in specs:
        name = spec["IndexName"]
        if name in seen:
            raise ValidationFailed(f"{INVALID}Duplicate index name: {name}")
        seen.add(name)


def check_projection(projection: Spec) -> None:
    kind, attributes = projection.get("ProjectionType"), projection.get("NonKeyAttributes")
    if kind is None:
        raise ValidationFailed(f"{INVALID}Unknown ProjectionType: null")
    if kind == "INCLUDE" and attributes is None:
        raise ValidationFailed(
            f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified"
        )
    if kind != "INCLUDE" and attributes is not None:
        raise ValidationFailed(
            f"{INVALID}ProjectionType is {kind}, but NonKeyAttributes is specified"
        )
    seen: set[str] = set()
    for name in attributes or ():
        if name in seen:
            raise ValidationFailed(f"{INVALID}Duplicate element in NonKeyAttributes: {name}")
        seen.add(name)


def check_projected_total(counts: list[int]) -> None:
    """Check the number of attributes named in all INCLUDE projections.

    The limit is AWS's; the text is ours.
    """
    if sum(counts) > PROJECTED_ATTRIBUTES:
        raise ValidationFailed(
            f"{INVALID}Number of NonKeyAttributes across all indexes exceeds per-table "
            f"limit of {PROJECTED_ATTRIBUTES}"
        )


def _check_throughput(spec: Spec, billing_mode: str) -> None:
    name, provisioned, on_demand = (
        spec["IndexName"],
        spec.get("ProvisionedThroughput"),
        spec.get("OnDemandThroughput"),
    )
    subject = throughput.Subject(name)
    if billing_mode == "PAY_PER_REQUEST":
        if provisioned is not None:
            raise ValidationFailed(
                f"{INVALID}ProvisionedThroughput should not be specified for index: {name} when "
                "BillingMode is PAY_PER_REQUEST"
            )
    elif provisioned is None:
        raise ValidationFailed(f"{INVALID}ProvisionedThroughput is not specified for index: {name}")
    elif (member := throughput.first_maximum(on_demand)) is not None:
        raise ValidationFailed(
            f"{INVALID}{member} for OnDemandThroughput for index: {name} cannot be specified "
            "when table BillingMode is PROVISIONED."
        )
    throughput.check_bounds(provisioned, subject)
    throughput.check_maxima(on_demand, subject, clearable=False)
    throughput.check_first_warm(spec.get("WarmThroughput"), provisioned, billing_mode, subject)


def read_index(spec: Spec, number: int, *, is_global: bool) -> IndexDefinition:
    """Return the definition of an index that passed the checks."""
    projection = spec["Projection"]
    provisioned = spec.get("ProvisionedThroughput")
    read, write = (0, 0) if provisioned is None else throughput.units(provisioned)
    return IndexDefinition(
        name=spec["IndexName"],
        number=number,
        is_global=is_global,
        key_schema=declared_keys.plain(spec["KeySchema"]),
        projection_type=projection["ProjectionType"],
        non_key_attributes=sorted(projection.get("NonKeyAttributes", ())),
        read_units=read,
        write_units=write,
        on_demand=throughput.plain_members(spec.get("OnDemandThroughput")),
        warm=throughput.plain_members(spec.get("WarmThroughput")),
    )
