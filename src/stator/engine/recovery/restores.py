"""Restores: the definition of a restored table, and how its items are copied into it.

As on AWS, a restored table has the keys, indexes, capacity and encryption of its source, or the
overrides of the request. It does not have its source's streams, time to live, tags, policy,
deletion protection or continuous backups. It stays CREATING until it is filled. Its indexes are
built while its items are added.
"""

from __future__ import annotations

import copy
from typing import Any
from uuid import uuid4

from stator.engine import keyspace
from stator.engine.database import Database
from stator.engine.items.write_path import Writer
from stator.engine.recovery.capture import CHUNK_BYTES, CHUNK_ITEMS, Captures
from stator.engine.recovery.tasks import Task, Tasks
from stator.engine.tables import settings as table_settings
from stator.engine.tables import throughput
from stator.engine.tables.account_quotas import (
    check_account_quota,
    check_table_count,
    check_throughput_quotas,
)
from stator.engine.tables.table import IndexDefinition, Table, TableDefinition
from stator.errors import LimitExceeded, TableAlreadyExists, TableInUse, ValidationFailed
from stator.model.limits import CONCURRENT_RESTORES
from stator.model.scope import Scope
from stator.model.values import INVALID
from stator.storage import Changes
from stator.storage.protocol import after_prefix

# A table that is being filled is CREATING until its task ends, not until a moment.
WHILE_FILLED = 1e12
_UNOFFERED = ("VectorIndexOverride",)


class Restores:
    def __init__(self, database: Database, tasks: Tasks, status_delay_seconds: float) -> None:
        self._database = database
        self._status_delay_seconds = status_delay_seconds
        self._tasks = tasks

    def create_table(self, definition: TableDefinition, changes: Changes) -> Table:
        """Add a table that a task will fill, after checking the account's quotas.

        The caller has already checked that the table's name is free.
        """
        database = self._database
        check_table_count(database.catalog, definition.scope)
        check_throughput_quotas(definition)
        check_account_quota(database.catalog, definition)
        definition.number = database.catalog.take_number(changes)
        definition.status, definition.status_until = "CREATING", WHILE_FILLED
        return database.catalog.put(definition, changes)

    def check_target(self, scope: Scope, name: str) -> None:
        """Refuse a restore if its target table exists, or if too many restores are running.

        Call ``Lifecycle.settle_all`` first, so that tables whose deletion is due are gone.
        """
        if sum("fill" in task.stages for task in self._tasks) >= CONCURRENT_RESTORES:
            raise LimitExceeded(
                f"Subscriber limit exceeded: there can be {CONCURRENT_RESTORES} restores at a time"
            )
        existing = self._database.catalog.find(scope, name)
        if existing is None:
            return
        if existing.definition.status in ("CREATING", "DELETING"):
            raise TableInUse(f"Table is being {existing.definition.status.lower()[:-3]}ed: {name}")
        raise TableAlreadyExists(f"Table already exists: {name}")

    def fill(self, task: Task) -> None:
        """Put the next chunk of source items into the new table.

        The source is an area, or the data that a deleted table left behind.
        """
        with self._database.lock:
            source, target = (
                bytes.fromhex(task.facts["source"]),
                self.table_numbered(task.facts["target"]),
            )
            writer = Writer()
            size = 0
            start = source if task.cursor is None else source + bytes.fromhex(task.cursor)
            for count, (key, record) in enumerate(
                self._database.storage.scan(start, after_prefix(source))
            ):
                if count == CHUNK_ITEMS or size >= CHUNK_BYTES:
                    task.cursor = key[len(source) :].hex()
                    break
                if record:
                    writer.copy(target, target.prefix + key[len(source) :], record)
                    size += len(record)
            else:
                task.cursor = None
            changes = writer.finish()
            if task.cursor is None:
                self.finish_table(target, changes)
                self._tasks.advance(task, changes)
            else:
                self._tasks.save(task, changes)
            self._database.storage.write(changes)

    def finish_table(self, table: Table, changes: Changes) -> None:
        """Mark a table as filled. It becomes ACTIVE once the status delay has passed.

        The delay counts from the table's creation.
        """
        definition = copy.deepcopy(table.definition)
        definition.status_until = definition.created + self._status_delay_seconds
        if definition.restored is not None:
            definition.restored["RestoreInProgress"] = False
        self._database.catalog.put(definition, changes)

    def end_failed(self, task: Task, captures: Captures) -> None:
        """Remove the table that a task could not fill: AWS has no state for a failed restore.

        A table that lacks items must not pass for a restored one.
        """
        table = self.table_numbered(task.facts["target"])
        changes: Changes = {}
        self._database.catalog.remove(table, changes)
        captures.give_up(task, changes)
        self._database.storage.write(changes)
        prefix = keyspace.table_prefix(table.definition.number)
        self._database.storage.delete_range(prefix, after_prefix(prefix))

    def table_numbered(self, number: int) -> Table:
        return next(
            table for table in self._database.catalog.all() if table.definition.number == number
        )


def restored_definition(
    source: TableDefinition,
    options: dict[str, Any],
    scope: Scope,
    now: float,
    summary: dict[str, Any],
) -> TableDefinition:
    """Return the definition of a restored table, with the request's overrides applied.

    ``options`` are the members of the request. ``summary`` becomes the table's RestoreSummary.
    """
    table_settings.refuse_unoffered(options, _UNOFFERED)
    billing_mode = options.get("BillingModeOverride") or source.billing_mode
    definition = TableDefinition(
        name=options["TargetTableName"],
        number=0,
        table_id=str(uuid4()),
        account=scope.account,
        region=scope.region,
        created=now,
        key_schema=source.key_schema,
        attributes=dict(source.attributes),
        indexes=[_fresh(index) for index in source.indexes if index.status != "DELETING"],
        next_index=source.next_index,
        billing_mode=billing_mode,
        billing_changed=now if billing_mode == "PAY_PER_REQUEST" else None,
        read_units=source.read_units,
        write_units=source.write_units,
        on_demand=source.on_demand,
        table_class=source.table_class,
        sse=source.sse,
        restored=summary,
    )
    _override_indexes(definition, options)
    _override_capacity(definition, options)
    if (encryption := options.get("SSESpecificationOverride")) is not None:
        table_settings.check_encryption(encryption)
        definition.sse = table_settings.read_encryption(encryption, scope)
    return definition


def _fresh(index: IndexDefinition) -> IndexDefinition:
    return IndexDefinition(
        name=index.name,
        number=index.number,
        is_global=index.is_global,
        key_schema=index.key_schema,
        projection_type=index.projection_type,
        non_key_attributes=index.non_key_attributes,
        read_units=index.read_units,
        write_units=index.write_units,
        on_demand=index.on_demand,
    )


# -- overrides


def _override_indexes(definition: TableDefinition, options: dict[str, Any]) -> None:
    leaving: set[int] = set()
    for member, is_global in (
        ("GlobalSecondaryIndexOverride", True),
        ("LocalSecondaryIndexOverride", False),
    ):
        overrides = options.get(member)
        if overrides is None:
            continue
        there = {index.name: index for index in definition.indexes if index.is_global is is_global}
        for spec in overrides:
            _override_index(there.get(spec["IndexName"]), spec, member)
        names = {spec["IndexName"] for spec in overrides}
        leaving |= {index.number for name, index in there.items() if name not in names}
    definition.drop_indexes(leaving)


def _override_index(index: IndexDefinition | None, spec: dict[str, Any], member: str) -> None:
    """Apply the request's override of one index, which may change only the index's capacity.

    ``index`` is the source's index with the name in ``spec``, or None. Raises ValidationFailed
    unless both indexes have the same keys and projection. ``member`` is the request's member that
    holds the override, for error messages.
    """
    if "WarmThroughput" in spec:
        raise ValidationFailed(f"{INVALID}WarmThroughput is not supported in {member}")
    if index is None or not _same_index(index, spec):
        raise ValidationFailed(
            f"{INVALID}{member} must match an index of the source table: {spec['IndexName']}",
            hint="leave an index out to restore without it; its keys and projection cannot change",
        )
    if (provisioned := spec.get("ProvisionedThroughput")) is not None:
        throughput.check_bounds(provisioned, throughput.Subject(index.name))
        index.read_units, index.write_units = throughput.units(provisioned)
    if (on_demand := spec.get("OnDemandThroughput")) is not None:
        throughput.check_maxima(on_demand, throughput.Subject(index.name), clearable=False)
        index.on_demand = throughput.plain_members(on_demand)


def _same_index(index: IndexDefinition, spec: dict[str, Any]) -> bool:
    projection = spec["Projection"]
    keys = [(element["AttributeName"], element["KeyType"]) for element in spec["KeySchema"]]
    return (
        keys == [(element["AttributeName"], element["KeyType"]) for element in index.key_schema]
        and projection.get("ProjectionType") == index.projection_type
        and sorted(projection.get("NonKeyAttributes", ())) == index.non_key_attributes
    )


def _override_capacity(definition: TableDefinition, options: dict[str, Any]) -> None:
    provisioned, on_demand = (
        options.get("ProvisionedThroughputOverride"),
        options.get("OnDemandThroughputOverride"),
    )
    if definition.billing_mode == "PAY_PER_REQUEST":
        if provisioned is not None:
            raise ValidationFailed(
                f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
                "BillingMode is PAY_PER_REQUEST"
            )
        definition.read_units = definition.write_units = 0
        for index in definition.indexes:
            index.read_units = index.write_units = 0
        if on_demand is not None:
            throughput.check_maxima(on_demand, throughput.TABLE, clearable=False)
            definition.on_demand = throughput.plain_members(on_demand)
        return
    if (maximum := throughput.first_maximum(on_demand)) is not None:
        raise ValidationFailed(
            f"{INVALID}{maximum} for OnDemandThroughput cannot be specified when table BillingMode "
            "is PROVISIONED."
        )
    definition.on_demand = None
    if provisioned is not None:
        throughput.check_bounds(provisioned, throughput.TABLE)
        definition.read_units, definition.write_units = throughput.units(provisioned)
    _check_provisioned(definition, options)


def _check_provisioned(definition: TableDefinition, options: dict[str, Any]) -> None:
    """Refuse a provisioned table without units, and remove its indexes' on-demand maxima.

    An on-demand source has no units to restore. The request must then name the units of the table
    and of every global index.
    """
    if not definition.read_units or not definition.write_units:
        raise ValidationFailed(
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when "
            "BillingMode is PROVISIONED"
        )
    for index in definition.indexes:
        if index.is_global and (not index.read_units or not index.write_units):
            # Recorded from AWS by ExtendDB's test suite.
            if "GlobalSecondaryIndexOverride" not in options:
                raise ValidationFailed(
                    f"{INVALID}GlobalSecondaryIndexOverride must be specified for index: "
                    f"{index.name} when BillingModeOverride is PROVISIONED"
                )
            raise ValidationFailed(
                f"{INVALID}ProvisionedThroughput is not specified for index: {index.name}"
            )
        index.on_demand = None
