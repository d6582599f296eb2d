"""Partitions and throttling in tests: look at them, split them, and make the next calls fail.

An engine limits throughput if it is opened with ``throughput="enforced"``. It then refuses what AWS
would refuse, for the same reasons. ``throttle`` needs no load and works in every mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine import Engine
from stator.engine.tables.table import Index, Table
from stator.errors import ConfigurationError
from stator.model.heat.resource import ThroughputResource
from stator.model.heat.splits import PartitionEvent
from stator.model.heat.throttle_cause import CAUSES, ThrottleCause
from stator.model.scope import DEFAULT_ACCOUNT, DEFAULT_REGION, Scope
from stator.model.seconds import check_seconds
from stator.model.values import normalise_item


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition: the key at which it starts, and the units it has served and refused.

    ``start`` is the engine's key as hexadecimal text: eight bytes of hash, then the partition key
    and the sort key. The first partition starts at "". ``splits_at`` is the time at which a split
    that has begun takes effect, or None.
    """

    start: str
    read_units: float
    write_units: float
    refused_read_units: float
    refused_write_units: float
    splits_at: float | None


@dataclass(frozen=True, slots=True)
class TableHeat:
    """The partitions of a table or index, what happened to them, and the refused requests.

    ``events`` are splits with their reasons ("heat", "hot item", "capacity", "size", "test"), and
    decisions against a split ("one key", "sequential", "local index"). ``refused`` counts refused
    requests by DynamoDB's reason, such as TableWriteKeyRangeThroughputExceeded. An engine with
    ``throughput="observed"`` refuses nothing, and counts the requests that AWS would refuse.
    """

    partitions: tuple[PartitionState, ...]
    events: tuple[PartitionEvent, ...]
    refused: dict[str, int]


def heat(engine: Engine, table: str, *, index: str | None = None) -> TableHeat:
    """Return the state of the partitions of a table, or of one of its global indexes."""
    with engine.lock:
        resource = _resource(engine, *_place(engine, table, index))
        return TableHeat(
            tuple(
                PartitionState(
                    each.low.hex(),
                    each.read_served,
                    each.write_served,
                    each.read_refused,
                    each.write_refused,
                    each.split_at,
                )
                for each in resource.partitions
            ),
            tuple(resource.events),
            {
                ThrottleCause(limit, kind, index, resource.settings.on_demand).reason: count
                for (kind, limit), count in sorted(resource.refused.items())
            },
        )


def split_partition(
    engine: Engine, table: str, key: dict[str, Any], *, index: str | None = None
) -> None:
    """Split the partition that holds an item, so that a new partition starts at the item.

    ``key`` is the item's key in DynamoDB JSON: ``{"PK": {"S": "u1"}, "SK": {"S": "2026"}}``. For an
    index, give the index's key and the table's. The shard of the table's stream splits, too.
    """
    with engine.lock:
        found, declared = _place(engine, table, index)
        normalise_item(key)
        at = found.encode_key(key)
        if declared is not None:
            entry = declared.entry_key(key, at)
            if entry is None:
                raise ConfigurationError(f"the key lacks attributes of the index {index}; add them")
            at = entry
        engine.database.meter.split(found, declared, at)


def throttle(
    engine: Engine,
    table: str,
    *,
    reason: str = "TableWriteKeyRangeThroughputExceeded",
    index: str | None = None,
    requests: int = 1,
) -> None:
    """Refuse the next reads or writes of a table for one of DynamoDB's throttling reasons.

    The name of the ``reason`` says whether reads or writes are refused. A reason that begins with
    Index needs the name of the ``index``. ``requests`` is how many are refused; 0 ends the
    throttling. Every refused item of a batch or transaction counts as one request.
    """
    with engine.lock:
        found, declared = _place(engine, table, index)
        cause = _cause(reason, found, declared)
        engine.database.meter.force(found, [cause], requests)


def set_quota(engine: Engine, *, read_units: float = 40_000, write_units: float = 40_000) -> None:
    """Set the account's quota for each on-demand table and index, in units a second."""
    if not (read_units > 0 and write_units > 0):
        raise ConfigurationError(
            f"a quota of {read_units} read and {write_units} write units lets nothing pass",
            hint="use numbers above 0",
        )
    with engine.lock:
        engine.database.meter.change_quota((float(read_units), float(write_units)))


def set_collection_limit(engine: Engine, size_bytes: int) -> None:
    """Set how large an item collection of a table with local indexes may get; 10 GB on AWS.

    Larger writes get ItemCollectionSizeLimitExceededException if the engine enforces limits.
    """
    if size_bytes < 1:
        raise ConfigurationError(f"size_bytes={size_bytes} must be at least 1")
    with engine.lock:
        engine.database.meter.collection_bytes = size_bytes


def delay_reads(engine: Engine, seconds: float) -> None:
    """Let eventually consistent reads see items as they were ``seconds`` ago; 0 ends the delay.

    Reads with ``ConsistentRead``, conditions and transactions see the present, as on AWS. Reads of
    a global index are eventually consistent, so they are always delayed. Writes that were made
    before this call are visible at once.
    """
    check_seconds("delay_reads()", or_zero=True, seconds=seconds)
    with engine.lock:
        engine.database.lag.seconds = seconds


def _cause(reason: str, table: Table, index: Index | None) -> ThrottleCause:
    on_demand = table.definition.billing_mode == "PAY_PER_REQUEST"
    name = None if index is None else index.name
    causes = [ThrottleCause(each, kind, name, on_demand) for each in CAUSES for kind in (0, 1)]
    found = next((cause for cause in causes if cause.reason == reason), None)
    if found is None:
        known = ", ".join(cause.reason for cause in causes)
        raise ConfigurationError(
            f"{reason!r} is no throttling reason of {'a table' if index is None else 'an index'}",
            hint=f"use one of: {known}",
        )
    return found


def _place(engine: Engine, table: str, index: str | None) -> tuple[Table, Index | None]:
    found = engine.database.catalog.get(Scope(DEFAULT_ACCOUNT, DEFAULT_REGION), table)
    if index is None:
        return found, None
    declared = found.index(index)
    if declared is None or not declared.is_global:
        names = ", ".join(each.name for each in found.global_indexes) or "none"
        raise ConfigurationError(
            f"the table {table} has no global index {index!r}; it has: {names}"
        )
    return found, declared


def _resource(engine: Engine, table: Table, index: Index | None) -> ThroughputResource:
    entry = engine.database.meter.of(table)
    return entry.resource if index is None else entry.indexes[index.name]
