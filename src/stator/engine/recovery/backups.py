"""Backups: a table's definition at one moment, and where its items of that moment are stored.

A backup that a user requests has an area, which a task fills. A deleted table with continuous
backups becomes a backup without copying: its items stay where they are, under the number of the
deleted table.
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from typing import Any

from stator.engine import keyspace
from stator.engine.database import Database
from stator.engine.recovery.arns import check_arn, make_arn, new_id
from stator.engine.recovery.capture import Captures
from stator.engine.recovery.registry import Registry
from stator.engine.recovery.tasks import Task, Tasks
from stator.engine.tables.table import IndexDefinition, Table, TableDefinition
from stator.errors import BackupInUse, BackupNotFound
from stator.model.limits import RECOVERY_DAYS
from stator.model.scope import Scope
from stator.storage import Changes
from stator.storage.protocol import after_prefix

Description = dict[str, Any]


@dataclass(slots=True)
class Backup:
    """A backup of one table. ``prefix`` is the storage prefix of its items, in hexadecimal.

    A complete backup is shown as CREATING until ``available_at``.
    """

    number: int
    arn: str
    name: str
    type: str
    created: float
    items: int
    size_bytes: int
    table: dict[str, Any]
    prefix: str
    available_at: float
    expires: float | None = None
    complete: bool = False

    @property
    def definition(self) -> TableDefinition:
        return TableDefinition.from_json(copy.deepcopy(self.table))

    def status(self, now: float) -> str:
        return "AVAILABLE" if self.complete and now >= self.available_at else "CREATING"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Backups:
    def __init__(
        self,
        database: Database,
        tasks: Tasks,
        captures: Captures,
        status_delay_seconds: float,
    ) -> None:
        self._database = database
        self._status_delay_seconds = status_delay_seconds
        self._tasks = tasks
        self._captures = captures
        self.registry: Registry[Backup] = Registry(
            database.storage, b"b", lambda data: Backup(**data)
        )
        tasks.register("keep", self._keep)

    def create(self, table: Table, name: str, changes: Changes) -> tuple[Backup, Task]:
        """Create a backup of the table as it is now. Return the backup and the task to fill it.

        The caller writes ``changes`` and then starts the task.
        """
        now = self._database.clock.now()
        number = self._database.catalog.take_number(changes)
        backup = self._describe(table, number, name, "USER", keyspace.area_prefix(number))
        backup.available_at = now + self._status_delay_seconds
        self.registry.put(backup, changes)
        task = Task(number, ["copy", "count", "keep"])
        self._captures.begin(table, task, changes)
        return backup, task

    def create_of_deleted(self, table: Table, changes: Changes) -> Backup:
        """Create the backup that a deleted table with continuous backups leaves for 35 days."""
        number = self._database.catalog.take_number(changes)
        backup = self._describe(
            table, number, f"{table.name}$DeletedTableBackup", "SYSTEM", table.prefix
        )
        backup.expires = backup.created + RECOVERY_DAYS * 86_400
        backup.complete = True
        self.registry.put(backup, changes)
        return backup

    def _describe(self, table: Table, number: int, name: str, kind: str, prefix: bytes) -> Backup:
        now = self._database.clock.now()
        return Backup(
            number=number,
            arn=make_arn(table.arn, "backup", new_id(now)),
            name=name,
            type=kind,
            created=now,
            items=table.counts.items,
            size_bytes=table.counts.size_bytes,
            table=table.definition.to_json(),
            prefix=prefix.hex(),
            available_at=now,
        )

    def _keep(self, task: Task) -> None:
        """Mark the backup as complete, because its area now holds every item."""
        with self._database.lock:
            changes: Changes = {}
            backup = self.registry.numbered(task.number)
            backup.complete = True
            self.registry.put(backup, changes)
            self._tasks.advance(task, changes)
            self._database.storage.write(changes)

    def end_failed(self, task: Task) -> bool:
        """Remove the backup that a task could not complete: AWS has no state for failed backups.

        Returns False if the task has no backup in progress.
        """
        backup = self.registry.restored(task.number)
        if backup is None or backup.complete:
            return False
        changes: Changes = {}
        self.delete(backup, changes)
        self._captures.give_up(task, changes)
        self._database.storage.write(changes)
        return True

    def get(self, scope: Scope, arn: str) -> Backup:
        check_arn(arn, "backup", scope)
        self.expire()
        backup = self.registry.find(arn)
        if backup is None:
            raise BackupNotFound(f"Backup not found: {arn}")
        return backup

    def get_available(self, scope: Scope, arn: str) -> Backup:
        """Return a complete backup. Raises BackupInUse while the backup is being created."""
        backup = self.get(scope, arn)
        if backup.status(self._database.clock.now()) != "AVAILABLE":
            raise BackupInUse(f"Backup is being created: {arn}")
        return backup

    def check_unused(self, backup: Backup) -> None:
        if any(task.facts.get("backup") == backup.arn for task in self._tasks):
            raise BackupInUse(f"Backup is being used to restore a table: {backup.arn}")

    def delete(self, backup: Backup, changes: Changes) -> None:
        self.registry.remove(backup, changes)

    def remove_data(self, backup: Backup) -> None:
        prefix = bytes.fromhex(backup.prefix)
        self._database.storage.delete_range(prefix, after_prefix(prefix))

    def expire(self) -> None:
        """Remove expired backups of deleted tables."""
        now = self._database.clock.now()
        for backup in self.registry.all():
            if backup.expires is not None and backup.expires <= now:
                changes: Changes = {}
                self.delete(backup, changes)
                self._database.storage.write(changes)
                self.remove_data(backup)

    def prefixes(self) -> set[bytes]:
        """Return the storage prefixes under which the items of backups are stored."""
        return {bytes.fromhex(backup.prefix) for backup in self.registry.all()}


# -- descriptions


def backup_details(backup: Backup, status: str) -> Description:
    shown: Description = {
        "BackupArn": backup.arn,
        "BackupName": backup.name,
        "BackupSizeBytes": backup.size_bytes,
        "BackupStatus": status,
        "BackupType": backup.type,
        "BackupCreationDateTime": round(backup.created, 3),
    }
    if backup.expires is not None:
        shown["BackupExpiryDateTime"] = round(backup.expires, 3)
    return shown


def backup_description(backup: Backup, status: str) -> Description:
    definition = backup.definition
    return {
        "BackupDetails": backup_details(backup, status),
        "SourceTableDetails": _source(backup, definition),
        "SourceTableFeatureDetails": _features(definition),
    }


def backup_summary(backup: Backup, status: str) -> Description:
    definition = backup.definition
    return {
        "TableName": definition.name,
        "TableId": definition.table_id,
        "TableArn": definition.scope.table_arn(definition.name),
        **backup_details(backup, status),
    }


def _source(backup: Backup, definition: TableDefinition) -> Description:
    shown: Description = {
        "TableName": definition.name,
        "TableId": definition.table_id,
        "TableArn": definition.scope.table_arn(definition.name),
        "TableSizeBytes": backup.size_bytes,
        "KeySchema": definition.key_schema,
        "TableCreationDateTime": round(definition.created, 3),
        "ProvisionedThroughput": _throughput(definition),
        "ItemCount": backup.items,
        "BillingMode": definition.billing_mode,
    }
    if definition.on_demand is not None:
        shown["OnDemandThroughput"] = definition.on_demand
    return shown


def _throughput(holder: TableDefinition | IndexDefinition) -> Description:
    return {"ReadCapacityUnits": holder.read_units, "WriteCapacityUnits": holder.write_units}


def _features(definition: TableDefinition) -> Description:
    shown: Description = {}
    for index in definition.indexes:
        member = "GlobalSecondaryIndexes" if index.is_global else "LocalSecondaryIndexes"
        shown.setdefault(member, []).append(_index(index))
    if definition.stream is not None:
        shown["StreamDescription"] = definition.stream
    shown["TimeToLiveDescription"] = {"TimeToLiveStatus": "DISABLED"}
    if definition.ttl_attribute is not None:
        shown["TimeToLiveDescription"] = {
            "TimeToLiveStatus": "ENABLED",
            "AttributeName": definition.ttl_attribute,
        }
    if definition.sse is not None:
        shown["SSEDescription"] = {"Status": "ENABLED", **definition.sse}
    return shown


def _index(index: IndexDefinition) -> Description:
    projection: Description = {"ProjectionType": index.projection_type}
    if index.non_key_attributes:
        projection["NonKeyAttributes"] = index.non_key_attributes
    shown: Description = {
        "IndexName": index.name,
        "KeySchema": index.key_schema,
        "Projection": projection,
    }
    if index.is_global:
        shown["ProvisionedThroughput"] = _throughput(index)
        if index.on_demand is not None:
            shown["OnDemandThroughput"] = index.on_demand
    return shown
