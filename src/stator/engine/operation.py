"""What an operation is: a pure ``parse`` and a ``run`` that touches tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stator.engine.tables.table import Table
from stator.errors import ResourceNotFound, ValidationFailed
from stator.model.scope import Scope

if TYPE_CHECKING:
    from stator.engine.engine import Engine


@dataclass(frozen=True, slots=True)
class Operation:
    """``parse`` raises what AWS raises before it looks at any table; ``run`` does the rest.

    AWS's services word the errors of the first kind in two ways since 2026. ``enveloped`` ones (PutItem, UpdateItem,
    DeleteItem) say "1 validation error detected: " before each; ``older_values`` ones kept the texts of before.
    """

    name: str
    parse: Callable[[dict[str, Any]], Any]
    run: Callable[[Call, Any], dict[str, Any]]
    enveloped: bool = False
    older_values: bool = False


class Call:
    """One request under way: whose it is, and the commit it made."""

    __slots__ = ("commit", "engine", "scope")

    def __init__(self, engine: Engine, scope: Scope) -> None:
        self.engine = engine
        self.scope = scope
        self.commit: int | None = None

    def table(self, name: str) -> Table:
        """A table for reading or writing items: one that exists and is not being created or deleted."""
        table = (
            self.engine.catalog.find(self.scope, name) if name[:4] != "arn:" else self._by_arn(name)
        )
        if table is not None and table.definition.status is not None:
            self.engine.lifecycle.settle(table)
            table = self.engine.catalog.find(table.scope, table.name)
            if table is not None and table.definition.status in ("CREATING", "DELETING"):
                table = None
        if table is None:
            raise ResourceNotFound
        return table

    def table_as_a_whole(self, name: str) -> Table:
        """A table for describing or changing it, whatever its status."""
        table = (
            self._by_arn(name)
            if name.startswith("arn:")
            else self.engine.catalog.find(self.scope, name)
        )
        if table is not None:
            self.engine.lifecycle.settle(table)
            table = self.engine.catalog.find(table.scope, table.name)
        if table is None:
            shown = name.rpartition("/")[2]
            raise ResourceNotFound(f"Requested resource not found: Table: {shown} not found")
        return table

    def _by_arn(self, arn: str) -> Table | None:
        """``arn:aws:dynamodb:<region>:<account>:table/<name>``; the region must be the request's."""
        parts = arn.split(":", 5)
        if len(parts) != 6 or parts[1] not in ("aws", "aws-cn", "aws-us-gov"):
            raise _bad_arn("Invalid AWS partition", arn)
        if parts[2] != "dynamodb" or not parts[5].startswith("table/"):
            raise _bad_arn("Invalid resource type", arn)
        if parts[3] != self.scope.region:
            raise _bad_arn("Invalid AWS region", arn)
        return self.engine.catalog.find(Scope(parts[4], parts[3]), parts[5].removeprefix("table/"))


def _bad_arn(problem: str, arn: str) -> ValidationFailed:
    return ValidationFailed(f"1 validation error detected: {problem} in '{arn}'")
