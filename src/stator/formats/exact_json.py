"""Reads JSON without losing digits: a DynamoDB number has up to 38 of them, a float only 17."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import orjson

# A run this long may be a number that a float cannot hold. Most lines have none, and orjson reads
# those several times faster.
_LONG = re.compile(rb"[0-9.]{16}")


def loads_exact(text: bytes) -> Any:
    """Parse JSON without losing digits.

    If the text contains a number with many digits, every fraction in it becomes a Decimal.
    Otherwise fractions become floats, which is faster.
    """
    if _LONG.search(text) is None:
        return orjson.loads(text)
    return json.loads(text, parse_float=Decimal)
