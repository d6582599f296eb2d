"""Values without a declared type, such as the attributes of a link.

Only types that DynamoDB returns unchanged are accepted. A float, for example, is refused.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from stator.design.entities.wire import DEEPEST, decode_number
from stator.errors import RequestRefused
from stator.model.values import Value


def encode_plain(value: Any, level: int = 0) -> Value:
    """Encode a value as a DynamoDB value.

    It may be None, a bool, int, Decimal, str or bytes, or a list or dictionary of these. ``level``
    is the number of lists and dictionaries around the value.
    """
    if level > DEEPEST:
        raise RequestRefused(
            f"the value contains itself, or has more than {DEEPEST} levels of lists and "
            "dictionaries",
            hint="store a value of fewer levels",
        )
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case int() | Decimal():
            return {"N": str(value)}
        case str():
            return {"S": value}
        case bytes():
            return {"B": b64encode(value).decode()}
        case list() | tuple():
            return {"L": [encode_plain(each, level + 1) for each in value]}
        case Mapping():
            for name in value:
                if not isinstance(name, str):
                    raise RequestRefused(
                        f"a key of a dictionary must be text, not {type(name).__name__}",
                        hint="turn the keys into text before the call",
                    )
            return {
                "M": {
                    str.__str__(name): encode_plain(each, level + 1) for name, each in value.items()
                }
            }
    raise RequestRefused(
        f"a {type(value).__name__} cannot be stored without a declared type",
        hint="use text, an int, a Decimal, bytes, or lists and dictionaries of these;"
        " store a time as value.isoformat()",
    )


def decode_plain(value: Value) -> Any:
    """Return the Python value of a DynamoDB value.

    A whole number is returned as an int, any other number as a Decimal.
    """
    [(kind, content)] = value.items()
    match kind:
        case "NULL":
            return None
        case "N":
            return decode_number(content)
        case "B":
            return b64decode(content)
        case "L":
            return [decode_plain(each) for each in content]
        case "M":
            return {name: decode_plain(each) for name, each in content.items()}
    return content
