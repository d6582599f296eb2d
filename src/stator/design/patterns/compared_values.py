"""Checks the values that a pattern compares fields with: types of arguments, and constants.

Only what can never match is refused. An ``int`` may be compared with a Decimal field, a ``date``
with a datetime field, and an argument without a type with any field.
"""

from __future__ import annotations

import typing
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from stator.design.entities.conditions import Comparison
from stator.design.entities.derived_parts import PartComparison
from stator.design.entities.entity import EntityInfo
from stator.design.entities.shapes import Choice, Maybe, Scalar
from stator.design.entities.symbols import Symbol
from stator.errors import DesignError

_KINDS: Final[dict[type, str]] = {
    str: "text", UUID: "text", int: "a number", float: "a number", Decimal: "a number",
    bool: "a bool", bytes: "bytes", datetime: "a time", date: "a time", time: "a time of day",
}  # fmt: skip
_COMPARED: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "between", "begins_with", "in"})


def check_compared(known: EntityInfo, test: Comparison) -> None:
    """Raise DesignError for a value that a field can never equal, because of its type."""
    if isinstance(test, PartComparison) or len(test.field.path) > 1:
        return
    declared = known.fields.get(test.field.name)
    if declared is None:
        return
    shape = declared.shape.inner if isinstance(declared.shape, Maybe) else declared.shape
    if not isinstance(shape, (Scalar, Choice)):
        return
    python = shape.python if isinstance(shape, Scalar) else shape.scalar.python
    wanted = _KINDS.get(python)
    for value in test.values:
        if isinstance(value, Symbol):
            annotation: Any = getattr(value, "annotation", Any)
            if test.operator == "in_list":
                [annotation] = typing.get_args(annotation)[:1] or (Any,)
            elif test.operator not in _COMPARED:
                continue
            given = _KINDS.get(annotation) if isinstance(annotation, type) else None
            if wanted is not None and given is not None and given != wanted:
                raise DesignError(
                    f"{test.field!r} is {wanted} ({python.__name__}), and the argument "
                    f"{value!r} is declared as {annotation.__name__}: they are never equal",
                    hint=f"declare the argument as {python.__name__}",
                )
        elif python is datetime and type(value) is datetime and value.tzinfo is None:
            raise DesignError(
                f"{test.field!r} is compared with {value!r}, which has no time zone",
                hint="write datetime(2026, 1, 1, tzinfo=UTC)",
            )
