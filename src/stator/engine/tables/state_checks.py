"""When a table's state stands in the way of changing it."""

from __future__ import annotations

from stator.engine.tables.table import TableDefinition
from stator.errors import ResourceInUse

_IN_USE = "Attempt to change a resource which is still in use: "
_COMING_AND_GOING = {"CREATING": "created", "DELETING": "deleted"}


def in_use(reason: str) -> ResourceInUse:
    return ResourceInUse(_IN_USE + reason)


def check_stands(definition: TableDefinition) -> None:
    """Refuse a change to a table that is on its way in or out."""
    word = _COMING_AND_GOING.get(definition.status or "")
    if word is not None:
        raise in_use(f"Table is being {word}: {definition.name}")
