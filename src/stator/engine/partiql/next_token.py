"""NextToken: where a page ended, bound to its statement and parameters.

A token is base64 of JSON: the fingerprint of the statement, and the key of the last item read. A
forged token reveals nothing: its key only says where to continue in the statement's own ranges.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

import orjson

from stator.engine.items.request_tokens import fingerprint
from stator.errors import ServiceError, ValidationFailed
from stator.model.values import Item, check_types, normalise_item

INVALID_TOKEN: Final = "Invalid NextToken"  # noqa: S105 - a message
NO_MATCH: Final = "NextToken does not match request"


def statement_identity(request: dict[str, Any]) -> str:
    """Return a fingerprint of a statement and its parameters.

    A token continues only requests with the same fingerprint.
    """
    return fingerprint([request["Statement"], request.get("Parameters")])[:32]


def encode_token(identity: str, key: Item) -> str:
    return urlsafe_b64encode(orjson.dumps({"statement": identity, "key": key})).decode()


def decode_token(token: str, identity: str) -> Item:
    try:
        content = orjson.loads(urlsafe_b64decode(token.encode("ascii")))
        bound_to, key = content["statement"], content["key"]
        for value in key.values():
            check_types(value)
        normalise_item(key)
    except (ValueError, TypeError, KeyError, AttributeError, UnicodeError, ServiceError):
        raise ValidationFailed(INVALID_TOKEN) from None
    if bound_to != identity:
        raise ValidationFailed(NO_MATCH)
    checked: Item = key
    return checked
