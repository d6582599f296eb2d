"""JSON read without losing digits: DynamoDB's numbers have 38 of them, and a float 17."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import orjson

# A run this long may be a number that a float cannot hold; most lines have none, and are read the fast way.
_LONG = re.compile(rb"[0-9.]{16}")


def loads_exact(text: bytes) -> Any:
    """Python values; numbers of many digits as Decimal or int, exactly."""
    if _LONG.search(text) is None:
        return orjson.loads(text)
    return json.loads(text, parse_float=Decimal)
