"""Recovery as a whole: continuous backups, and access to backups, restores, exports and imports."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stator.engine import keyspace
from stator.engine.database import Database
from stator.engine.recovery.backups import Backups
from stator.engine.recovery.capture import Captures
from stator.engine.recovery.log import Log
from stator.engine.recovery.objects import ObjectStore
from stator.engine.recovery.tasks import Task, Tasks
from stator.engine.tables.table import Table, TableDefinition
from stator.storage import Changes
from stator.storage.protocol import after_prefix

if TYPE_CHECKING:
    from stator.engine.items.write_path import Writer
    from stator.engine.recovery.exports import Exports
    from stator.engine.recovery.imports import Imports
    from stator.engine.recovery.restores import Restores

DAY_SECONDS = 86_400
# AWS can restore up to about five minutes ago.
DEFAULT_LAG_SECONDS = 300.0
_TRIM_EVERY = 1_000


class Recovery:
    """Copies, restores, exports and imports tables.

    ``buckets`` receives exports and provides imports. ``lag_seconds`` is the age of a table's
    latest restorable moment.
    """

    def __init__(
        self,
        database: Database,
        *,
        buckets: ObjectStore,
        lag_seconds: float = DEFAULT_LAG_SECONDS,
        status_delay_seconds: float = 0.0,
    ) -> None:
        self._database = database
        self.lag_seconds = lag_seconds
        self.log = Log(database.storage)
        self.tasks = Tasks(database)
        self.captures = Captures(database, self.tasks, self.log)
        self.backups = Backups(database, self.tasks, self.captures, status_delay_seconds)
        self._buckets = buckets
        self._status_delay_seconds = status_delay_seconds
        self._logged = 0
        self.tasks.register("fill", lambda task: self.restores.fill(task))
        self.tasks.register("begin export", lambda task: self.exports.begin(task))
        self.tasks.register("write export", lambda task: self.exports.write(task))
        self.tasks.register("import", lambda task: self.imports.read(task))
        self.tasks.on_damage = lambda task, error: self.exports.fail_damaged(task, error)
        self.tasks.on_failure = self._end_failed

    # -- parts that few engines need, loaded on first use

    @cached_property
    def restores(self) -> Restores:
        from stator.engine.recovery.restores import Restores

        return Restores(self._database, self.tasks, self._status_delay_seconds)

    @cached_property
    def exports(self) -> Exports:
        from stator.engine.recovery.exports import Exports

        return Exports(self._database, self.tasks, self.captures, self._buckets)

    @cached_property
    def imports(self) -> Imports:
        from stator.engine.recovery.imports import Imports

        return Imports(self._database, self.tasks, self.restores, self._buckets)

    def resume(self) -> None:
        """Continue after opening: remove crash leftovers and expired history, then resume tasks."""
        self._remove_orphans()
        self.forget_old()
        if any(self.tasks):
            _ = self.exports, self.imports  # loaded here, before several threads need them
        self.tasks.resume()

    def any(self) -> bool:
        """Whether anything here can expire: a recovery log, or the backup of a deleted table."""
        return any(map(_has_log, self._database.catalog.all())) or any(
            backup.expires is not None for backup in self.backups.registry.all()
        )

    def forget_old(self) -> None:
        """Trim logs to their recovery windows, and remove expired backups of deleted tables."""
        self.backups.expire()
        for table in list(self._database.catalog.all()):
            self.trim(table)

    def wait(self) -> None:
        """Return once no backup, restore, export or import is in flight. For tests."""
        self.tasks.wait()

    def stop(self) -> None:
        self.tasks.stop()

    def _end_failed(self, task: Task) -> None:
        """End a task after an unexpected error, and release its table."""
        if task.stage == "drop":  # opening the folder removes areas that no task has
            self.tasks.forget(task)
        elif not (
            self.exports.end_failed(task)
            or self.imports.end_failed(task)
            or self.backups.end_failed(task)
        ):
            self.restores.end_failed(task, self.captures)

    # -- continuous backups

    def observe(self, writer: Writer, changes: Changes) -> None:
        """Add the changes of a write to the logs of their tables and to copies in flight."""
        now = self._database.clock.now()
        for change in writer.item_changes:
            definition = change.table.definition
            if definition.recovery is not None:
                self.log.add(change, now, changes)
                self._logged += 1
                if self._logged % _TRIM_EVERY == 0:
                    self.trim(change.table)
            if definition.captures:
                self.captures.observe(change, changes)

    def enable(self, table: Table, period_days: int, changes: Changes) -> Table:
        definition = copy.deepcopy(table.definition)
        since = (
            self._database.clock.now()
            if definition.recovery is None
            else definition.recovery["since"]
        )
        definition.recovery = {"since": since, "period_days": period_days}
        return self._database.catalog.put(definition, changes)

    def disable(self, table: Table, changes: Changes) -> Table:
        """Turn point-in-time recovery off, and return the changed table.

        The caller deletes the log after the changes are written.
        """
        definition = copy.deepcopy(table.definition)
        definition.recovery = None
        return self._database.catalog.put(definition, changes)

    def earliest(self, definition: TableDefinition) -> float:
        assert definition.recovery is not None
        period: float = definition.recovery["period_days"] * DAY_SECONDS
        since: float = definition.recovery["since"]
        return max(since, self._database.clock.now() - period)

    def latest(self, definition: TableDefinition) -> float:
        return max(self.earliest(definition), self._database.clock.now() - self.lag_seconds)

    def trim(self, table: Table) -> None:
        """Trim the log to the recovery window, unless a task still needs it."""
        definition = table.definition
        if definition.recovery is not None and definition.captures == 0:
            self.log.trim(definition.number, self.earliest(definition))

    # -- deleted tables

    def leave_backup(self, table: Table, changes: Changes) -> None:
        """Create the backup that a deleted table with continuous backups leaves behind."""
        if table.definition.recovery is not None:
            self.backups.create_of_deleted(table, changes)

    def keeps_data_of(self, prefix: bytes) -> bool:
        return prefix in self.backups.prefixes()

    def _remove_orphans(self) -> None:
        """Delete areas and logs without an owner, which a crash can leave behind."""
        areas = {keyspace.area_prefix(task.number) for task in self.tasks} | self.backups.prefixes()
        logs = {
            keyspace.log_prefix(table.definition.number)
            for table in self._database.catalog.all()
            if _has_log(table)
        }
        for space, known in ((keyspace.AREAS, areas), (keyspace.LOG, logs)):
            position, end = space, after_prefix(space)
            while found := next(iter(self._database.storage.scan(position, end)), None):
                prefix = found[0][:5]
                if prefix not in known:
                    self._database.storage.delete_range(prefix, after_prefix(prefix))
                position = after_prefix(prefix)


def _has_log(table: Table) -> bool:
    return table.definition.recovery is not None


def describe_continuous(recovery: Recovery, definition: TableDefinition) -> dict[str, Any]:
    """Return a ContinuousBackupsDescription.

    As on AWS, continuous backups are always ENABLED. Only point-in-time recovery can be DISABLED.
    """
    shown: dict[str, Any] = {"PointInTimeRecoveryStatus": "DISABLED"}
    if definition.recovery is not None:
        shown = {
            "PointInTimeRecoveryStatus": "ENABLED",
            "RecoveryPeriodInDays": definition.recovery["period_days"],
            "EarliestRestorableDateTime": round(recovery.earliest(definition), 3),
            "LatestRestorableDateTime": round(recovery.latest(definition), 3),
        }
    return {"ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": shown}
