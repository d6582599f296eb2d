"""Turns the traffic of tables into metrics of the namespace AWS/DynamoDB.

``fold`` takes what requests noted (``engine.tables.traffic``) and adds it to the minute in which it
happened. ``end_minute`` adds what is read from the tables themselves: provisioned units, maxima,
the progress of backfills, and the account's quotas. Names, dimensions and units are those of the
Developer Guide, "DynamoDB metrics and dimensions".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from stator.engine import keyspace
from stator.engine.companions.insights.insight_store import InsightStore
from stator.engine.companions.metrics.distribution import Distribution, bucket_of
from stator.engine.companions.metrics.metric_store import MetricStore
from stator.engine.companions.metrics.recorded_time import (
    CONSUMED,
    NAMESPACE,
    Holder,
    RecordedTime,
)
from stator.engine.companions.metrics.series import Metric, MetricSeries, dimensions_of
from stator.engine.database import Database
from stator.engine.partitions.traffic_log import TrafficLog
from stator.engine.tables.table import IndexDefinition, Table, TableDefinition
from stator.model.limits import (
    ACCOUNT_READ_UNITS,
    ACCOUNT_WRITE_UNITS,
    TABLE_READ_UNITS,
    TABLE_WRITE_UNITS,
)
from stator.model.scope import Scope

COUNT: Final = "Count"
MILLISECONDS: Final = "Milliseconds"
PERCENT: Final = "Percent"
_FIVE_MINUTES: Final = 300
_UNITS: Final = {"ReturnedBytes": "Bytes"}
# A histogram of this many latencies of some 5,000 is good enough, and much cheaper.
_SAMPLED_LATENCIES: Final = 1_000


class TrafficRecorder:
    """Records the metrics of every table of one engine. The caller holds the engine's lock."""

    def __init__(
        self,
        database: Database,
        store: MetricStore,
        time: RecordedTime,
        insights: InsightStore,
    ) -> None:
        self._database = database
        self._insights = insights
        self._store = store
        self._time = time
        self._series: dict[tuple[Scope, str, tuple[str, ...]], MetricSeries] = {}
        self.log = TrafficLog(database.clock, self._fold)
        time.start(int(self.log.minute_end) - 60)
        database.record_traffic(self.log)

    # -- what requests noted

    def fold(self, now: float) -> None:
        """Add the noted traffic to the minutes in which it happened."""
        with self._database.lock:
            self.log.fold(now)

    def _fold(self, minute_start: float) -> None:
        minute = int(minute_start)
        with self._database.lock:
            for table in self._database.catalog.all():
                self._fold_table(table, minute)
            for scope, times in self.log.user_errors.items():
                self._add(scope, "UserErrors", COUNT, minute, _counted(times))
            self.log.user_errors.clear()

    def _fold_table(self, table: Table, minute: int) -> None:
        traffic, scope = table.traffic, table.scope
        if traffic.keys is not None:
            self._insights.take(table, minute)
        name = ("TableName", table.name)
        if traffic.reads:
            self._add(scope, CONSUMED[0], COUNT, minute, _units(traffic.reads), *name)
            traffic.reads.clear()
        if traffic.writes:
            self._add(scope, CONSUMED[1], COUNT, minute, _units(traffic.writes), *name)
            traffic.writes.clear()
        for metric, by_index in zip(CONSUMED, (traffic.index_reads, traffic.index_writes)):
            for index, units in by_index.items():
                on_index = (*name, "GlobalSecondaryIndexName", index)
                self._add(scope, metric, COUNT, minute, _units(units), *on_index)
            by_index.clear()
        for operation, seconds in traffic.latencies.items():
            if seconds:
                place: tuple[str, ...] = (*name, "Operation", operation)
                if operation == "GetRecords":
                    place += ("StreamLabel", table.definition.stream_label or "")
                samples = _milliseconds(seconds)
                self._add(scope, "SuccessfulRequestLatency", MILLISECONDS, minute, samples, *place)
                seconds.clear()
        for (metric, dimensions), values in traffic.measured.items():
            unit = _UNITS.get(metric, COUNT)
            self._add(scope, metric, unit, minute, _units(values), *name, *dimensions)
        traffic.measured.clear()
        for (metric, index, operation), times in traffic.events.items():
            place = (
                *name,
                *(("GlobalSecondaryIndexName", index) if index else ()),
                *(("Operation", operation) if operation else ()),
            )
            self._add(scope, metric, COUNT, minute, _counted(times), *place)
        traffic.events.clear()

    def _add(
        self, scope: Scope, name: str, unit: str, minute: int, samples: Distribution, *place: str
    ) -> None:
        """Add samples to a metric.

        ``place`` has the name and the value of each dimension in turn.
        """
        key = (scope, name, place)
        series = self._series.get(key)
        if series is None:
            dimensions = dimensions_of(dict(zip(place[::2], place[1::2])))
            series = self._series[key] = MetricSeries(
                Metric(scope, NAMESPACE, name, dimensions), unit
            )
        self._store.add(series, minute, samples)

    # -- what tables are

    def end_minute(self, end: int) -> None:
        """Add the metrics that are read from the tables themselves at the end of a minute."""
        self._database.meter.watch_keys(self._database.catalog.all())
        holders: list[Holder] = []
        for table in self._database.catalog.all():
            if table.definition.status == "DELETING":
                continue
            names = ["", *(index.name for index in table.global_indexes)]
            holders += [(table.scope, table.name, name) for name in names]
            self._add_progress(table, end - 60)
        self._time.extend(end, holders)
        for scope, name, index in holders:
            self._register(scope, name, index)
        if end % _FIVE_MINUTES == 0:
            self._add_capacity(end)

    def _register(self, scope: Scope, name: str, index: str) -> None:
        """Make the consumed metrics known, so that they are listed even if they are zero."""
        place = ("TableName", name, *(("GlobalSecondaryIndexName", index) if index else ()))
        for metric in CONSUMED:
            if (scope, metric, place) not in self._series:
                dimensions = dimensions_of(dict(zip(place[::2], place[1::2])))
                series = MetricSeries(Metric(scope, NAMESPACE, metric, dimensions), COUNT)
                self._series[scope, metric, place] = series
                self._store.register(series)

    def _add_progress(self, table: Table, minute: int) -> None:
        for index in table.global_indexes:
            if index.backfilled_to is not None:
                place = ("TableName", table.name, "GlobalSecondaryIndexName", index.name)
                share = _hash_share(index.backfilled_to)
                samples = Distribution.of([100.0 * share])
                self._add(
                    table.scope, "OnlineIndexPercentageProgress", COUNT, minute, samples, *place
                )

    def _add_capacity(self, end: int) -> None:
        """Add the units of the five minutes that end now, for tables that existed then."""
        start = end - _FIVE_MINUTES
        reserved: dict[Scope, list[tuple[int, int]]] = defaultdict(list)
        for table in self._database.catalog.all():
            definition = table.definition
            if definition.created >= end:
                continue
            total_read = total_write = 0
            for place, holder in _holders(definition):
                for metric, units in _capacity_of(definition, holder):
                    samples = Distribution.of([float(units)])
                    self._add(table.scope, metric, COUNT, start, samples, *place)
                total_read += holder.read_units
                total_write += holder.write_units
            is_provisioned = definition.billing_mode != "PAY_PER_REQUEST"
            reserved[table.scope].append((total_read, total_write) if is_provisioned else (0, 0))
        for scope, pairs in reserved.items():
            for metric, unit, value in _account_metrics(pairs):
                self._add(scope, metric, unit, start, Distribution.of([value]))


def _holders(
    definition: TableDefinition,
) -> Iterator[tuple[tuple[str, ...], TableDefinition | IndexDefinition]]:
    yield ("TableName", definition.name), definition
    for index in definition.indexes:
        if index.is_global:
            yield ("TableName", definition.name, "GlobalSecondaryIndexName", index.name), index


def _capacity_of(
    definition: TableDefinition, holder: TableDefinition | IndexDefinition
) -> Iterator[tuple[str, int]]:
    if definition.billing_mode != "PAY_PER_REQUEST":
        yield "ProvisionedReadCapacityUnits", holder.read_units
        yield "ProvisionedWriteCapacityUnits", holder.write_units
        return
    maxima = holder.on_demand or {}
    for kind in ("Read", "Write"):
        units = maxima.get(f"Max{kind}RequestUnits", -1)
        if units > 0:
            yield f"OnDemandMax{kind}RequestUnits", units


def _account_metrics(units: list[tuple[int, int]]) -> Iterator[tuple[str, str, float]]:
    """Yield the metrics of an account from the units of each of its tables with its indexes."""
    yield "AccountMaxReads", COUNT, float(ACCOUNT_READ_UNITS)
    yield "AccountMaxWrites", COUNT, float(ACCOUNT_WRITE_UNITS)
    yield "AccountMaxTableLevelReads", COUNT, float(TABLE_READ_UNITS)
    yield "AccountMaxTableLevelWrites", COUNT, float(TABLE_WRITE_UNITS)
    for at, (kind, account, table) in enumerate(
        (
            ("Read", ACCOUNT_READ_UNITS, TABLE_READ_UNITS),
            ("Write", ACCOUNT_WRITE_UNITS, TABLE_WRITE_UNITS),
        )
    ):
        reserved = [pair[at] for pair in units]
        share = 100.0 * sum(reserved) / account
        yield f"AccountProvisioned{kind}CapacityUtilization", PERCENT, share
        highest = 100.0 * max(reserved) / table
        yield f"MaxProvisionedTable{kind}CapacityUtilization", PERCENT, highest


def _units(values: list[float]) -> Distribution:
    found = Distribution()
    for value, times in Counter(values).items():  # few distinct values: most requests are alike
        found.add(value, times)
    return found


def _counted(times: int) -> Distribution:
    found = Distribution()
    found.add(1.0, times)
    return found


def _milliseconds(seconds: list[float]) -> Distribution:
    """Return the distribution of latencies.

    Number, sum and extremes are exact. If there are many latencies, the histogram has only every
    n-th of them.
    """
    found = Distribution()
    found.count = float(len(seconds))
    found.total = sum(seconds) * 1000.0
    found.minimum, found.maximum = min(seconds) * 1000.0, max(seconds) * 1000.0
    buckets: dict[int, float] = {}
    sampled = seconds[:: max(1, len(seconds) // _SAMPLED_LATENCIES)]
    weight = len(seconds) / len(sampled)
    for microseconds, times in Counter([int(each * 1e6) for each in sampled]).items():
        bucket = bucket_of(microseconds / 1000.0)
        buckets[bucket] = buckets.get(bucket, 0.0) + times * weight
    found.buckets = buckets
    return found


def _hash_share(storage_key: bytes) -> float:
    """Return how far into a table a storage key lies, from 0 to 1: keys are ordered by hash."""
    start = keyspace.PREFIX_BYTES
    hashed = storage_key[start : start + keyspace.HASH_BYTES]
    return int.from_bytes(hashed.ljust(keyspace.HASH_BYTES, b"\0"), "big") / 2**64
