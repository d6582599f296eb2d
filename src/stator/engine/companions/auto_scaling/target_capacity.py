"""The provisioned capacity of tables and indexes, as scaling reads and changes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from stator.engine.companions.auto_scaling.target_key import TargetKey
from stator.engine.companions.companion import EngineCall
from stator.engine.companions.metrics.metric_store import MetricStore
from stator.engine.companions.metrics.recorded_time import NAMESPACE
from stator.engine.companions.metrics.series import Metric, dimensions_of
from stator.engine.database import Database
from stator.engine.tables.table import IndexDefinition, Table, TableDefinition
from stator.engine.tables.throughput import decrease_record
from stator.model.scaling.decrease_budget import DecreaseRecord

_MINUTE: Final = 60


@dataclass(frozen=True, slots=True)
class HeldCapacity:
    """The units of a target's table or index. ``is_busy`` says that they cannot be changed now."""

    read: int
    write: int
    is_busy: bool
    decreases: DecreaseRecord

    def units(self, key: TargetKey) -> int:
        return self.read if key.kind == "read" else self.write


class TargetCapacity:
    """Reads and changes capacity of one engine. The caller holds the engine's lock."""

    def __init__(self, database: Database, call_engine: EngineCall, store: MetricStore) -> None:
        self._database = database
        self._call_engine = call_engine
        self._store = store

    def exists(self, key: TargetKey) -> bool:
        """Whether the table or global index exists, in any capacity mode."""
        return self._holder(key) is not None

    def held(self, key: TargetKey, now: float) -> HeldCapacity | None:
        """Return the capacity of a target, or None if it is gone or its table is on-demand."""
        found = self._holder(key)
        if found is None or found[0].definition.billing_mode == "PAY_PER_REQUEST":
            return None
        table, holder = found
        definition = table.definition
        changes = definition.status is not None or holder.status is not None
        return HeldCapacity(
            holder.read_units,
            holder.write_units,
            definition.status == "DELETING" or (changes and now < definition.status_until),
            decrease_record(holder),
        )

    def _holder(self, key: TargetKey) -> tuple[Table, TableDefinition | IndexDefinition] | None:
        table = self._database.catalog.find(key.scope, key.table)
        if table is None:
            return None
        if key.index is None:
            return table, table.definition
        index = table.definition.index(key.index)
        return None if index is None or not index.is_global else (table, index)

    def change(self, key: TargetKey, units: int, now: HeldCapacity) -> None:
        """Send UpdateTable. Raises the ServiceError with which DynamoDB refuses it."""
        throughput = {
            "ReadCapacityUnits": units if key.kind == "read" else now.read,
            "WriteCapacityUnits": units if key.kind == "write" else now.write,
        }
        request: dict[str, Any] = {"TableName": key.table}
        if key.index is None:
            request["ProvisionedThroughput"] = throughput
        else:
            update = {"IndexName": key.index, "ProvisionedThroughput": throughput}
            request["GlobalSecondaryIndexUpdates"] = [{"Update": update}]
        account, region = key.scope
        self._call_engine("UpdateTable", request, account=account, region=region)

    def used(self, key: TargetKey, end: int, minutes: int) -> list[float]:
        """Return the units consumed in each of the last minutes before ``end``, oldest first.

        The list begins after the last minute without data.
        """
        metric = consumed_metric(key)
        series = self._store.series_of(metric)
        found = self._store.aggregate(series, end - minutes * _MINUTE, end, _MINUTE, float(end))
        used: list[float] = []
        for start in range(end - _MINUTE, end - (minutes + 1) * _MINUTE, -_MINUTE):
            if start not in found:
                break
            used.append(found[start].total)
        return used[::-1]


def consumed_metric(key: TargetKey) -> Metric:
    """Return the metric of the units that a target's table or index consumes."""
    name = f"Consumed{key.kind.capitalize()}CapacityUnits"
    return Metric(key.scope, NAMESPACE, name, dimensions_of(metric_dimensions(key)))


def metric_dimensions(key: TargetKey) -> dict[str, str]:
    names = {"TableName": key.table}
    return names if key.index is None else {**names, "GlobalSecondaryIndexName": key.index}
