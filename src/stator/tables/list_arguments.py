"""Arguments that are lists: several identities, changes or reads in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stator.errors import RequestRefused
from stator.tables.schema.entity_map import EntityMap


def listed(call: str, what: str, given: Any, example: str) -> Iterable[Any]:
    """Return an argument that must be a list or another iterable. Raises RequestRefused if not.

    Text, bytes and mappings are refused, although Python can iterate over them: they are single
    values here. ``call`` (``db.write_many``), ``what`` and ``example`` are words for the message.
    """
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes, bytearray, Mapping)):
        return given
    raise RequestRefused(
        f"{call}() takes a list of {what}, not one {type(given).__name__}",
        hint=f"pass a list: [{example}]",
    )


def identities_in(call: str, of: EntityMap, given: Any) -> Iterable[Any]:
    """Return the identities that a caller passed in ``given``.

    If ``given`` is a dict by identity, such as ``{"u1": ..., "u2": ...}``, its keys are taken. A
    single identity, such as ``{"user_id": "u1"}``, is refused with RequestRefused.
    """
    if isinstance(given, Mapping) and not set(given) <= set(of.identity):
        given = list(given)
    example = ", ".join(f'"{name}": ...' for name in of.identity)
    return listed(f"db.{call}", f"identities of {of.name}", given, f"{{{example}}}")


def as_identity(names: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {names[0]: value}
