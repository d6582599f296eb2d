"""Single items read: by GetItem, BatchGetItem and TransactGetItems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stator.engine.items import records
from stator.engine.tables.key_schema import KeySchema
from stator.errors import ValidationFailed
from stator.expr.paths import project
from stator.expr.tree import Path, Projection


def shown(record: bytes, projection: Projection | None) -> Any:
    """An item as a reply shows it: its stored JSON, or the part of it that was asked for."""
    if projection is None:
        return records.fragment(record)
    return project(records.unpack(record), projection.paths)


def check_key_paths(schema: KeySchema, paths: Sequence[Path]) -> None:
    """A key attribute is a scalar: nothing is inside it."""
    for path in paths:
        if len(path.parts) > 1 and path.parts[0] in schema.names:
            raise ValidationFailed(
                "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
                f"Key: {path.parts[0]}"
            )
