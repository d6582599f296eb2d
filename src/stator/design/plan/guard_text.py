"""The keys of guards: items that reserve the value of a ``unique()`` field, or an identity.

    PK  UNIQUE#User#email#ann@example.com      SK  GUARD      owner  the key of the user

``owner`` names the item that has the value, so a guard also leads from a value to its item.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import orjson

from stator.model.values import Item

GUARD: Final = "GUARD"
"""The sort key of every guard."""
OWNER: Final = "owner"
_LONGEST: Final = 1024


def guard_prefix(entity: str, field: str) -> str:
    """Return the start of the partition keys of a field's guards; the field's value follows it."""
    return f"UNIQUE#{entity}#{field}#"


def guard_partition(prefix: str, text: str) -> str:
    """Return the partition key of the guard of a value.

    A long value is hashed, because a key has at most 2,048 bytes.
    """
    if len(text.encode()) > _LONGEST:
        text = "sha256." + hashlib.sha256(text.encode()).hexdigest()
    return prefix + text


def owner_key(guard: Item) -> Item:
    """Return the key of the item that a guard belongs to."""
    found: dict[str, Any] = orjson.loads(guard[OWNER]["S"])
    return found
