"""A live table as its owner sees it: DescribeTable, in the words of this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from stator.errors import LiveTableUnreachable
from stator.model.scaling.decrease_budget import DecreaseRecord
from stator.ops.capacity.policies import TableClass
from stator.ops.capacity.service_calls import call
from stator.ops.capacity.use_series import KINDS, Dimension, Kind

UNITS: Final[Mapping[Kind, str]] = {"read": "ReadCapacityUnits", "write": "WriteCapacityUnits"}
MAXIMA: Final[Mapping[Kind, str]] = {
    "read": "MaxReadRequestUnits",
    "write": "MaxWriteRequestUnits",
}


@dataclass(frozen=True, slots=True)
class LiveTable:
    """The capacity of a live table and its global indexes, and what limits a change.

    ``units`` has the provisioned units of each dimension and is empty for on-demand. ``maxima``
    has the on-demand maxima that are set. ``switched_at`` is the last known switch to on-demand.
    """

    name: str
    units: Mapping[Dimension, int]
    indexes: tuple[str, ...] = ()
    maxima: Mapping[Dimension, int] = field(default_factory=dict)
    table_class: TableClass = "standard"
    warm: tuple[float, float] = (0.0, 0.0)
    switched_at: float | None = None
    decreases: Mapping[str | None, DecreaseRecord] = field(default_factory=dict)
    sizes: Mapping[str | None, float] = field(default_factory=dict)
    created_at: float = 0.0
    is_active: bool = True
    is_replicated: bool = False

    @property
    def is_provisioned(self) -> bool:
        """Whether units are bought by the hour rather than by the request."""
        return bool(self.units)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The reads and writes of the table and of each global index."""
        return tuple(Dimension(index, kind) for index in (None, *self.indexes) for kind in KINDS)


def describe_live(client: Any, table: str) -> LiveTable:
    """Describe a table through a botocore or boto3 client for ``dynamodb``."""
    try:
        return read_description(call(client, "describe_table", TableName=table)["Table"])
    except LiveTableUnreachable as error:
        if "ResourceNotFoundException" not in error.message:
            raise
        raise LiveTableUnreachable(
            f"there is no table {table} at {client.meta.endpoint_url}",
            hint="check the name, the prefix and the region",
        ) from None


def is_there(client: Any, table: str) -> bool:
    """Return whether a table exists."""
    try:
        call(client, "describe_table", TableName=table)
    except LiveTableUnreachable as error:
        if "ResourceNotFoundException" not in error.message:
            raise
        return False
    return True


def read_description(description: Mapping[str, Any]) -> LiveTable:
    """Read the answer of DescribeTable."""
    billing = description.get("BillingModeSummary", {})
    places: dict[str | None, Mapping[str, Any]] = {None: description}
    for index in description.get("GlobalSecondaryIndexes") or ():
        places[index["IndexName"]] = index
    is_provisioned = billing.get("BillingMode", "PROVISIONED") == "PROVISIONED"
    warm = description.get("WarmThroughput") or {}
    return LiveTable(
        str(description["TableName"]),
        _members(places, "ProvisionedThroughput", UNITS) if is_provisioned else {},
        tuple(name for name in places if name is not None),
        _members(places, "OnDemandThroughput", MAXIMA),
        _class_of(description),
        (float(warm.get("ReadUnitsPerSecond", 0)), float(warm.get("WriteUnitsPerSecond", 0))),
        _seconds(billing.get("LastUpdateToPayPerRequestDateTime")),
        {name: _decreases(place) for name, place in places.items()},
        _sizes(places),
        _seconds(description.get("CreationDateTime")) or 0.0,
        all(_status(place) == "ACTIVE" for place in places.values()),
        bool(description.get("Replicas")),
    )


def _members(
    places: Mapping[str | None, Mapping[str, Any]], member: str, names: Mapping[Kind, str]
) -> dict[Dimension, int]:
    found = {}
    for index, place in places.items():
        values = place.get(member) or {}
        for kind, name in names.items():
            if values.get(name, 0) > 0:
                found[Dimension(index, kind)] = int(values[name])
    return found


def _class_of(description: Mapping[str, Any]) -> TableClass:
    name = description.get("TableClassSummary", {}).get("TableClass", "STANDARD")
    return "infrequent_access" if name == "STANDARD_INFREQUENT_ACCESS" else "standard"


def _decreases(place: Mapping[str, Any]) -> DecreaseRecord:
    throughput = place.get("ProvisionedThroughput") or {}
    last = _seconds(throughput.get("LastDecreaseDateTime"))
    return DecreaseRecord(int(throughput.get("NumberOfDecreasesToday", 0)), last)


def _sizes(places: Mapping[str | None, Mapping[str, Any]]) -> dict[str | None, float]:
    return {
        name: float(place.get("TableSizeBytes" if name is None else "IndexSizeBytes", 0))
        for name, place in places.items()
    }


def _status(place: Mapping[str, Any]) -> str:
    return str(place.get("TableStatus") or place.get("IndexStatus") or "ACTIVE")


def _seconds(moment: datetime | float | None) -> float | None:
    if moment is None:
        return None
    return moment.timestamp() if isinstance(moment, datetime) else float(moment)
