"""The ARNs of backups, exports and imports, and the pages in which they are listed.

The id in an ARN is a time in milliseconds and eight random digits, as on AWS. A page token is the
last ARN of a page in hexadecimal: ListImports accepts no other characters.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any, TypeVar

from stator.engine.recovery.registry import RegistryEntry
from stator.errors import AccessDenied, ValidationFailed
from stator.model.scope import Scope

_MOST = 25
_WIDTH = 8
_SHORTEST = 56  # bytes; the service model requires 112 digits

T = TypeVar("T", bound=RegistryEntry)
_TABLE_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")


def new_id(now: float) -> str:
    return f"{int(now * 1000):014d}-{secrets.token_hex(4)}"


def make_arn(table_arn: str, kind: str, identity: str) -> str:
    return f"{table_arn}/{kind}/{identity}"


def check_arn(arn: str, kind: str, scope: Scope) -> None:
    """Refuse an ARN that is not of this kind, or not of the caller's own account and region.

    The form is ``arn:aws:dynamodb:<region>:<account>:table/<name>/<kind>/<id>``. An ARN of another
    service, account or region is denied. An ARN of another kind, or with an impossible table name,
    is invalid. ScyllaDB's test suite recorded this on AWS for exports and imports.
    """
    parts = arn.split(":", 5)
    if parts[0] == "arn" and parts[1:5] != ["aws", "dynamodb", scope.region, scope.account]:
        raise AccessDenied("Access is denied")
    resource = parts[5].split("/") if len(parts) == 6 else []
    is_of_kind = len(resource) == 4 and resource[0] == "table" and resource[2] == kind
    if parts[0] != "arn" or not is_of_kind or _TABLE_NAME.fullmatch(resource[1]) is None:
        raise ValidationFailed(f"Invalid {kind.capitalize()} ARN")


def newest_first(arn: str) -> tuple[str, int]:
    """Return a sort key that puts the newest entry of each table first."""
    table_arn, _, identity = arn.rpartition("/")
    return table_arn, -int(identity.replace("-", ""), 16)


def table_name(text: str) -> str:
    """Return the table name from a name or a table ARN."""
    return text.rpartition(":table/")[2] if text.startswith("arn:") else text


# -- pages


def page_of(
    entries: list[T], limit: int | None, token: str | None, place: Callable[[str], Any] = str
) -> tuple[list[T], str | None]:
    """Return the page that ``token`` asks for, and the token for the page after it.

    Without a token, the first page is returned. After the last page, the new token is None.
    ``place`` returns the sort key of an ARN.
    """
    left = sorted(entries, key=lambda each: place(each.arn))
    if token is not None:
        after = _after(token, place)
        left = [each for each in left if place(each.arn) > after]
    page = left[: limit or _MOST]
    return page, _encode(page[-1].arn) if len(page) < len(left) else None


def _after(token: str, place: Callable[[str], Any]) -> Any:
    try:
        return place(_decode(token))
    except ValueError:  # an ARN that is cut off
        raise ValidationFailed("Invalid NextToken") from None


def _encode(arn: str) -> str:
    raw = arn.encode()
    size = max(_SHORTEST, -(-len(raw) // _WIDTH) * _WIDTH)
    return raw.ljust(size, b"\0").hex()


def _decode(token: str) -> str:
    try:
        arn = bytes.fromhex(token).rstrip(b"\0").decode()
    except ValueError:
        arn = ""
    if not arn.startswith("arn:"):
        raise ValidationFailed("Invalid NextToken")
    return arn
