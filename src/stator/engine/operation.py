"""An operation (a pure ``parse``, and a ``run`` that uses tables), and the context of a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stator.engine.database import Database
from stator.engine.expiry import Expiry
from stator.engine.housekeeper import Housekeeper
from stator.engine.items.request_tokens import RequestTokens
from stator.engine.items.write_path import Writer
from stator.engine.lifecycle import Lifecycle
from stator.engine.recovery import Recovery
from stator.engine.streams.streams import Streams
from stator.engine.tables.table import Table
from stator.errors import ResourceNotFound, TableNotFound, ValidationFailed
from stator.model.scope import Scope
from stator.storage import Changes


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of DynamoDB.

    ``parse`` makes the checks that AWS makes before it looks at any table; ``run`` does the rest.

    Since 2026, AWS has two forms of the errors that ``parse`` raises. Operations that are
    ``enveloped`` (PutItem, UpdateItem, DeleteItem) put "1 validation error detected: " before each
    of them. Operations with ``older_values`` keep the earlier texts about attribute values.
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
    """One request in flight: its account and region, and the commit it made."""

    __slots__ = ("commit_number", "database", "parts", "scope")

    def __init__(self, database: Database, parts: EngineParts, scope: Scope) -> None:
        self.database = database
        self.parts = parts
        self.scope = scope
        self.commit_number: int | None = None

    def commit(self, writer: Writer) -> None:
        """Write item changes as one batch; the answer waits until they are durable."""
        number = self.database.commit(writer)
        if number is not None:
            self.commit_number = number

    def write(self, changes: Changes) -> None:
        """Write changes other than item changes as one batch: definitions, tasks, registries."""
        self.commit_number = self.database.storage.write(changes)

    def table(self, name: str) -> Table:
        """Return a table whose items can be read or written.

        Raises ResourceNotFound if there is none, or if it is being created or deleted.
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
        return table

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
        """Return the table with this ARN, or None. The ARN must be in the request's region.

        Its form is ``arn:aws:dynamodb:<region>:<account>:table/<name>``.
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
