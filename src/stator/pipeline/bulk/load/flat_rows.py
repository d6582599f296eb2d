"""Nested objects as dotted names: ``{"a": {"b": 1}}`` becomes ``{"a.b": 1}``.

Only objects are taken apart. Lists stay lists, with whatever they hold, and an empty object stays
an empty map, so nothing is lost. A name that ``--map`` mentions is taken as it is: ``a=a`` keeps
the object ``a`` whole, ``a=`` drops it with everything below, and ``a.b=city`` renames a part.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from stator.errors import RowRefused

Members = Callable[[Any], Any]


def plain_members(value: Any) -> Any:
    """Return the members of a JSON object, or None if the value is not one."""
    return value if type(value) is dict else None


def map_members(value: Any) -> Any:
    """Return the members of a map in DynamoDB JSON, or None if the value is not one."""
    return value.get("M") if type(value) is dict and len(value) == 1 else None


def flattened(
    row: dict[str, Any], mapped: Container[str], members: Members = plain_members
) -> dict[str, Any]:
    """Return a row in which nested objects are replaced by fields with dotted names.

    ``mapped`` are the names in ``--map``; an object with such a name stays whole. ``members``
    returns the members of a nested object, or None for any other value. Raises RowRefused if two
    fields get the same name.
    """
    flat: dict[str, Any] = {}
    _flatten(row, "", mapped, members, flat)
    return flat


def _flatten(
    row: dict[str, Any], prefix: str, mapped: Container[str], members: Members, flat: dict[str, Any]
) -> None:
    for name, value in row.items():
        path = prefix + name
        inner = None if path in mapped else members(value)
        if inner:
            _flatten(inner, path + ".", mapped, members, flat)
        elif path in flat:
            raise RowRefused(f"two fields become {path}: one is nested, one has a dot in its name")
        else:
            flat[path] = value
