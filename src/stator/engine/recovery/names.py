"""Identities of backups, exports and imports: a moment in milliseconds and eight random digits, as AWS makes them."""

from __future__ import annotations

import re
import secrets

from stator.errors import AccessDenied, ValidationFailed
from stator.model.scope import Scope

_TABLE_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")


def new_id(now: float) -> str:
    return f"{int(now * 1000):014d}-{secrets.token_hex(4)}"


def make_arn(table_arn: str, kind: str, identity: str) -> str:
    return f"{table_arn}/{kind}/{identity}"


def check_arn(arn: str, kind: str, scope: Scope) -> None:
    """``arn:aws:dynamodb:<region>:<account>:table/<name>/<kind>/<id>``, of the caller's own account and region.

    Captured from AWS by ScyllaDB's test suite for exports and imports: what is no ARN of DynamoDB is denied, what is no
    ARN of an export, or names a table that cannot be, is invalid.
    """
    parts = arn.split(":", 5)
    if parts[0] == "arn" and parts[1:5] != ["aws", "dynamodb", scope.region, scope.account]:
        raise AccessDenied("Access is denied")
    resource = parts[5].split("/") if len(parts) == 6 else []
    is_of_kind = len(resource) == 4 and resource[0] == "table" and resource[2] == kind
    if parts[0] != "arn" or not is_of_kind or _TABLE_NAME.fullmatch(resource[1]) is None:
        raise ValidationFailed(f"Invalid {kind.capitalize()} ARN")


def newest_first(arn: str) -> tuple[str, int]:
    """The place of an ARN in a list that has the newest of a table first."""
    table_arn, _, identity = arn.rpartition("/")
    return table_arn, -int(identity.replace("-", ""), 16)


def table_name(text: str) -> str:
    """The name in an ARN of a table, or the name itself."""
    return text.rpartition(":table/")[2] if text.startswith("arn:") else text
