"""Tables as the backup operations name them, by name or ARN, and what they say when there is none."""

from __future__ import annotations

from stator.engine.operation import Call
from stator.engine.tables.table import Table
from stator.errors import ResourceNotFound, TableNotFound


def find_source(call: Call, name: str) -> Table:
    try:
        return call.table_as_a_whole(name)
    except ResourceNotFound:
        raise TableNotFound(f"Table not found: {name}") from None
