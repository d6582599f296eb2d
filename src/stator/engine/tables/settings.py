"""Settings that CreateTable and UpdateTable share: streams, encryption, unsupported members."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from stator.engine.tables.table import TableDefinition
from stator.errors import ValidationFailed
from stator.model.scope import Scope
from stator.model.values import INVALID

_CLASSES = ("STANDARD", "STANDARD_INFREQUENT_ACCESS")


def without_nulls(value: Any) -> Any:
    """Return a request without its null members, which AWS treats as absent."""
    if isinstance(value, dict):
        return {
            member: without_nulls(content)
            for member, content in value.items()
            if content is not None
        }
    if isinstance(value, list):
        return [without_nulls(content) for content in value if content is not None]
    return value


def refuse_unoffered(request: dict[str, Any], members: tuple[str, ...]) -> None:
    """Refuse members that this engine does not support, instead of ignoring them."""
    for member in members:
        if member in request:
            raise ValidationFailed(
                f"{INVALID}{member} is not supported by this engine",
                hint=f"leave {member} out, or run this request on AWS DynamoDB",
            )


def check_table_class(table_class: str | None) -> None:
    if table_class not in (None, *_CLASSES):
        raise ValidationFailed(
            "Invalid table-class parameter provided. Please try again with a valid table-class "
            f"value: [{', '.join(_CLASSES)}]."
        )


# -- streams


def start_stream(definition: TableDefinition, view_type: str, now: float) -> None:
    definition.stream = {"StreamEnabled": True, "StreamViewType": view_type}
    label = _stream_label(now)
    # A stream's label is its identity: two streams of one millisecond must differ.
    definition.stream_label = (
        label if label != definition.stream_label else _stream_label(now + 0.001)
    )


def _stream_label(now: float) -> str:
    return datetime.fromtimestamp(round(now, 3), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]


# -- encryption


def check_encryption(specification: dict[str, Any] | None) -> None:
    if specification is None:
        return
    if not specification.get("Enabled"):
        for member in ("SSEType", "KMSMasterKeyId"):
            if member in specification:
                raise ValidationFailed(
                    f"{INVALID}{member} can not be specified if Enabled is false"
                )
        return
    kind = specification.get("SSEType")
    if kind == "AES256":
        raise ValidationFailed(f"{INVALID}SSEType AES256 is not supported")
    if "KMSMasterKeyId" in specification and kind != "KMS":
        raise ValidationFailed(f"{INVALID}SSEType KMS is required if KMSMasterKeyId is specified")


def read_encryption(specification: dict[str, Any] | None, scope: Scope) -> dict[str, Any] | None:
    """Return the encryption settings to record, or None if KMS encryption is not enabled.

    The settings become the SSEDescription of DescribeTable; nothing is encrypted.
    """
    if specification is None or not specification.get("Enabled"):
        return None
    return {
        "SSEType": "KMS",
        "KMSMasterKeyArn": _key_arn(specification.get("KMSMasterKeyId"), scope),
    }


def _key_arn(key: str | None, scope: Scope) -> str:
    """Return the ARN of a KMS key given by ARN, id or alias.

    If ``key`` is None, it is the key that AWS manages for DynamoDB in the account.
    """
    prefix = f"arn:aws:kms:{scope.region}:{scope.account}:"
    named = "alias/aws/dynamodb" if key is None else key
    if named.startswith("arn:") and ":alias/" not in named:
        return named
    alias = named.rpartition(":")[2]
    if alias.startswith("alias/"):
        return f"{prefix}key/{uuid5(NAMESPACE_URL, prefix + alias)}"
    return f"{prefix}key/{alias.removeprefix('key/')}"
