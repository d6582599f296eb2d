"""``Operation`` (a pure ``parse``, and a ``run`` that uses tables) and ``RequestContext``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stator.engine.database import Database
from stator.engine.expiry import Expiry
from stator.engine.housekeeper import Housekeeper
from stator.engine.items import records
from stator.engine.items.actions import ItemAction, prepare
from stator.engine.items.capacity import write_units
from stator.engine.items.request_tokens import RequestTokens
from stator.engine.items.write_path import Mutation, Writer
from stator.engine.items.write_report import collection_bytes
from stator.engine.lifecycle import Lifecycle
from stator.engine.recovery import Recovery
from stator.engine.streams.streams import Streams
from stator.engine.tables.table import Table
from stator.errors import (
    ConditionFailed,
    DuplicateItem,
    ItemCollectionTooLarge,
    ResourceNotFound,
    TableNotFound,
    ValidationFailed,
)
from stator.model.heat.limits import WRITE
from stator.model.scope import Scope
from stator.model.values import Item
from stator.storage import Changes


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of DynamoDB.

    ``parse`` makes the checks that AWS makes before it looks at any table; ``run`` does the rest.

    In 2026, AWS reworded the errors that ``parse`` raises, but not alike for all operations (see
    docs/decisions/0003-new-wording.md). ``enveloped`` operations (PutItem, UpdateItem, DeleteItem)
    now begin each error with "1 validation error detected: ". Operations with ``older_values``
    (BatchWriteItem, Scan) still describe a bad attribute value in the older words.
    """

    name: str
    parse: Callable[[dict[str, Any]], Any]
    run: Callable[[RequestContext, Any], dict[str, Any]]
    enveloped: bool = False
    older_values: bool = False


@dataclass(slots=True)
class EngineParts:
    """The parts of an engine, besides its database, that some operations use."""

    tokens: RequestTokens
    lifecycle: Lifecycle
    streams: Streams
    expiry: Expiry
    recovery: Recovery
    housekeeping: Housekeeper


class RequestContext:
    """One request in flight: its account and region, its tables, and the commit it made."""

    __slots__ = ("commit_number", "database", "further_tables", "named_table", "parts", "scope")

    def __init__(self, database: Database, parts: EngineParts, scope: Scope) -> None:
        self.database = database
        self.parts = parts
        self.scope = scope
        self.commit_number: int | None = None
        # The tables that the request named, in its order, for metrics.
        self.named_table: Table | None = None
        self.further_tables: list[Table] | None = None

    def prepare(
        self, table: Table, action: ItemAction, *, needs_old: bool
    ) -> tuple[Mutation, Item | None]:
        """Apply a single-item action without writing. Return the mutation and the item before it.

        See ``items.actions.prepare``. If the condition fails, the request is charged as much as
        writing the stored item, and the error is raised.
        """
        database = self.database
        try:
            return prepare(
                database.storage, database.transaction_locks, table, action, needs_old=needs_old
            )
        except (ConditionFailed, DuplicateItem):
            if database.meter.is_needed:
                key = action.locate(table)
                self.charge_refused(table, key, database.storage.get(key))
            raise

    def charge_refused(self, table: Table, key: bytes, old: bytes | None) -> None:
        """Charge a failed conditional write: as much as writing the stored record ``old``."""
        units = write_units(0 if old is None else records.size_of(old))
        self.database.meter.write([(table, None, key, float(units))])

    def writer(self) -> Writer:
        """Return a writer for one write. It also collects the charges if throughput is metered."""
        return Writer(charges=[] if self.database.meter.is_needed else None)

    def commit(self, writer: Writer) -> None:
        """Write item changes as one batch. The answer is sent once they are durable.

        Raises SlowDown if a throughput limit refuses the write, and ItemCollectionTooLarge if an
        item collection would become larger than a partition. Nothing is written then.
        """
        if writer.growing:
            self.check_collections(writer)
        if writer.charges:
            meter = self.database.meter
            if meter.charges_keys:
                meter.write(writer.charges)
            else:
                meter.count(WRITE, writer.charges)
        number = self.database.commit(writer)
        if number is not None:
            self.commit_number = number

    def check_collections(self, writer: Writer) -> None:
        """Refuse a write that makes an item collection larger than a partition (10 GB).

        Raises ItemCollectionTooLarge. As on AWS, only tables with local indexes have this limit.
        Only an engine that enforces limits checks it. The check reads the whole collection, so it
        skips tables that are smaller than the limit.
        """
        database = self.database
        if not database.meter.enforces:
            return
        most = database.meter.collection_bytes
        for mutation in writer.growing:
            table = mutation.table
            stored = table.counts.size_bytes
            stored += sum(index.counts.size_bytes for index in table.local_indexes)
            if stored + mutation.new_size > most and mutation.new_item is not None:
                size = collection_bytes(database.storage, table, mutation.new_item)
                before = 0 if mutation.old is None else records.size_of(mutation.old)
                if size + mutation.new_size - before > most:
                    raise ItemCollectionTooLarge

    def write(self, changes: Changes) -> None:
        """Write changes that touch no items, such as definitions and tasks, as one batch."""
        self.commit_number = self.database.storage.write(changes)

    def table(self, name: str) -> Table:
        """Return a table whose items can be read or written.

        Raises ResourceNotFound if there is no such table, or if it is being created or deleted.
        """
        catalog = self.database.catalog
        table = catalog.find(self.scope, name) if name[:4] != "arn:" else self._by_arn(name)
        if table is not None and table.definition.status is not None:
            self.parts.lifecycle.settle(table)
            table = catalog.find(table.scope, table.name)
            if table is not None and table.definition.status in ("CREATING", "DELETING"):
                table = None
        if table is None:
            raise ResourceNotFound
        if self.named_table is None:
            self.named_table = table
        else:
            self._name_further(table)
        return table

    def _name_further(self, table: Table) -> None:
        if self.further_tables is None:
            self.further_tables = []
        self.further_tables.append(table)

    def table_in_any_state(self, name: str) -> Table:
        """Return a table in any status, for operations that describe or change it.

        Raises ResourceNotFound if there is no such table.
        """
        catalog = self.database.catalog
        table = self._by_arn(name) if name.startswith("arn:") else catalog.find(self.scope, name)
        if table is not None:
            self.parts.lifecycle.settle(table)
            table = catalog.find(table.scope, table.name)
        if table is None:
            shown = name.rpartition("/")[2]
            raise ResourceNotFound(f"Requested resource not found: Table: {shown} not found")
        return table

    def recovery_source(self, name: str) -> Table:
        """Return the table that a backup, restore or export names by table name or ARN.

        Raises TableNotFound if there is no such table.
        """
        try:
            return self.table_in_any_state(name)
        except ResourceNotFound:
            raise TableNotFound(f"Table not found: {name}") from None

    def _by_arn(self, arn: str) -> Table | None:
        """Return the table with this ARN, or None if there is no such table.

        The form is ``arn:aws:dynamodb:<region>:<account>:table/<name>``. Raises ValidationFailed if
        the ARN has another form, or another region than the request.
        """
        parts = arn.split(":", 5)
        if len(parts) != 6 or parts[1] not in ("aws", "aws-cn", "aws-us-gov"):
            raise _bad_arn("Invalid AWS partition", arn)
        if parts[2] != "dynamodb" or not parts[5].startswith("table/"):
            raise _bad_arn("Invalid resource type", arn)
        if parts[3] != self.scope.region:
            raise _bad_arn("Invalid AWS region", arn)
        name = parts[5].removeprefix("table/")
        return self.database.catalog.find(Scope(parts[4], parts[3]), name)


def _bad_arn(problem: str, arn: str) -> ValidationFailed:
    return ValidationFailed(f"1 validation error detected: {problem} in '{arn}'")
