"""ARNs that name a table where a request takes nothing else: ``ResourceArn`` of the tag operations."""

from __future__ import annotations

from dataclasses import dataclass

from stator.engine.operation import RequestContext
from stator.engine.tables.table import Table
from stator.errors import AccessDenied, ResourceNotFound, ValidationFailed
from stator.model.values import INVALID


@dataclass(frozen=True, slots=True)
class ResourceArn:
    text: str
    region: str
    account: str
    table_name: str


def read_arn(text: str) -> ResourceArn:
    """An ARN of a table; raises what AWS says before it looks for the table."""
    if not text.startswith("arn:"):
        raise ValidationFailed(f"{INVALID}ARNs must start with 'arn:': {text}")
    parts = text.split(":", 5)
    if len(parts) < 6 or parts[2] != "dynamodb":
        raise ValidationFailed(f"{INVALID}Provided Arn is not a DynamoDB resource arn: {text}")
    kind, _, rest = parts[5].partition("/")
    name, _, part = rest.partition("/")
    if part.startswith("stream/"):
        raise ValidationFailed(
            f"{INVALID}Tags of streams are not supported by this engine. Provided resource arn: {text}",
            hint="tag the table instead",
        )
    if kind != "table" or part:
        raise ValidationFailed(
            f"{INVALID}Invalid resource arn provided, only table or stream is accepted. Provided resource arn: {text}"
        )
    return ResourceArn(text, parts[3], parts[4], name)


def find_table(context: RequestContext, arn: ResourceArn, action: str) -> Table:
    scope = context.scope
    # The account first: AWS denies access to another's table even if it would be in another region (captured by the
    # paritysuite conformance suite).
    if arn.account != scope.account:
        raise AccessDenied(
            f"User: arn:aws:iam::{scope.account}:root is not authorized to perform: dynamodb:{action} on resource: "
            f"{arn.text} because no resource-based policy allows the dynamodb:{action} action"
        )
    if arn.region != scope.region:
        raise ValidationFailed(
            f"Invalid TableArn: Invalid ResourceArn provided as input {arn.text}"
        )
    try:
        return context.table_in_any_state(arn.table_name)
    except ResourceNotFound:
        raise ResourceNotFound(
            f"Requested resource not found: ResourceArn: {arn.text} not found"
        ) from None
