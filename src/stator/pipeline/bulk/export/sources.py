"""Export jobs by their source: a table, or a snapshot that AWS made."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from stator.clock import Clock, SystemClock
from stator.errors import ConfigurationError
from stator.model.values import Item
from stator.pipeline.bulk.export.export import ExportJob, ExportOptions
from stator.pipeline.bulk.export.field_columns import FieldColumns
from stator.pipeline.bulk.export.paged_source import TableScan
from stator.pipeline.bulk.export.snapshots import Snapshot
from stator.pipeline.bulk.job.governor import Governor
from stator.pipeline.bulk.load.attribute_types import table_key
from stator.pipeline.bulk.targets import BulkTarget, described
from stator.tables.schema.schema import Schema

DEFAULT_SEGMENTS = 8


def table_export(
    target: BulkTarget,
    out: str,
    options: ExportOptions | None = None,
    *,
    rate: float | None = None,
    segments: int = DEFAULT_SEGMENTS,
    consistent: bool = False,
    clock: Clock | None = None,
) -> ExportJob:
    """Return a job that exports a table through a parallel Scan.

    ``rate`` is in read capacity units a second. If the target names an entity, only items of that
    entity are exported. If it has a design, each entity gets a folder.
    """
    clock, chance = clock or SystemClock(), random.Random()  # noqa: S311 - for jitter
    description = described(target, clock, chance)
    scan = TableScan(
        target.transport,
        target.table,
        segments,
        Governor(clock, rate),
        clock,
        chance,
        consistent=consistent,
        filters=_filters(target),
        owned=target.owned_transport is not None,
    )
    job = {
        "address": target.address,
        "table": target.table,
        "entity": target.entity_name,
        "consistent": consistent,
    }
    return ExportJob(
        scan,
        out,
        job,
        options,
        first=table_key(description).names,
        kind_of=None if target.schema is None else _kind_of(target.schema, target.table),
        fields=_fields(target),
        clock=clock,
    )


def snapshot_export(
    path: str, out: str, options: ExportOptions | None = None, *, clock: Clock | None = None
) -> ExportJob:
    """Return a job that converts an export that AWS wrote to S3, full or incremental."""
    snapshot = Snapshot(path)
    job = {"snapshot": path, "export": snapshot.summary.get("exportArn"), "items": snapshot.items}
    return ExportJob(snapshot, out, job, options, expected=snapshot.items, clock=clock)


def _filters(target: BulkTarget) -> dict[str, Any]:
    """Return the filter of a Scan for items of the target's entity.

    The filter is empty if the target names no entity. It is also empty if the table has items of
    one entity only. A filtered Scan costs just as much, but returns less.
    """
    entity = target.entity
    if entity is not None and entity.told_by_key is not None:
        raise ConfigurationError(
            f"no attribute of the items in {target.table} names their entity, so a Scan cannot "
            f"select {entity.name}",
            hint="export the whole table",
        )
    if entity is None or entity.plan.discriminator is None:
        return {}
    return {
        "FilterExpression": "#type = :type",
        "ExpressionAttributeNames": {"#type": entity.plan.discriminator},
        "ExpressionAttributeValues": {":type": {"S": entity.name}},
    }


def _fields(target: BulkTarget) -> dict[str, FieldColumns]:
    """Return the columns of each entity to export: the target's, or all entities of its table."""
    if target.schema is None:
        return {}
    names = target.schema.tables[target.table].entities
    maps = [target.schema.named(name) for name in names]
    return {
        each.name: FieldColumns(each, target.blob_store)
        for each in (maps if target.entity is None else [target.entity])
    }


def _kind_of(schema: Schema, table: str) -> Callable[[Item], str | None]:
    def kind(item: Item) -> str | None:
        found = schema.of_item(item, table)
        return None if found is None else found.name

    return kind
