"""How backups, exports and restores name their source table: by name or ARN."""

from __future__ import annotations

from stator.engine.operation import RequestContext
from stator.engine.tables.table import Table
from stator.errors import ResourceNotFound, TableNotFound


def find_source(context: RequestContext, name: str) -> Table:
    try:
        return context.table_in_any_state(name)
    except ResourceNotFound:
        raise TableNotFound(f"Table not found: {name}") from None
