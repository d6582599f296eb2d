"""The charges of a request, one for each key."""

from __future__ import annotations

from stator.engine.tables.table import Index, Table

# The table, its global index or None, the storage key of the item or entry, and the units.
Charge = tuple[Table, Index | None, bytes, float]
