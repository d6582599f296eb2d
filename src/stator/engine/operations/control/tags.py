"""TagResource, UntagResource and ListTagsOfResource, and the ARNs with which they name a table."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.tables.settings import without_nulls
from stator.engine.tables.table import Table, check_changeable
from stator.engine.tables.tag_checks import check_count, check_keys, read_tags
from stator.errors import AccessDenied, ResourceNotFound, ValidationFailed
from stator.model.values import INVALID
from stator.storage import Changes


@dataclass(frozen=True, slots=True)
class ResourceArn:
    text: str
    region: str
    account: str
    table_name: str


@dataclass(frozen=True, slots=True)
class TagResourceRequest:
    arn: ResourceArn
    tags: dict[str, str]


@dataclass(frozen=True, slots=True)
class UntagResourceRequest:
    arn: ResourceArn
    keys: frozenset[str]


def parse_tag(request: dict[str, Any]) -> TagResourceRequest:
    arn = read_arn(request["ResourceArn"])
    tags = without_nulls(request["Tags"])
    if not tags:
        raise ValidationFailed("Atleast one Tag needs to be provided as Input.")
    return TagResourceRequest(arn, read_tags(tags))


def tag_resource(context: RequestContext, request: TagResourceRequest) -> dict[str, Any]:
    table = find_table(context, request.arn, "TagResource")
    tags = table.definition.tags | request.tags
    check_count(len(tags))
    _set_tags(context, table, tags)
    return {}


def parse_untag(request: dict[str, Any]) -> UntagResourceRequest:
    arn = read_arn(request["ResourceArn"])
    keys = without_nulls(request["TagKeys"])
    if not keys:
        raise ValidationFailed("Atleast one Tag Key needs to be provided as Input.")
    check_keys(keys)
    return UntagResourceRequest(arn, frozenset(keys))


def untag_resource(context: RequestContext, request: UntagResourceRequest) -> dict[str, Any]:
    """Remove tags. Tags that the table does not have are ignored."""
    table = find_table(context, request.arn, "UntagResource")
    tags = table.definition.tags
    remaining = {key: value for key, value in tags.items() if key not in request.keys}
    _set_tags(context, table, remaining)
    return {}


def _set_tags(context: RequestContext, table: Table, tags: dict[str, str]) -> None:
    check_changeable(table.definition)
    definition = copy.deepcopy(table.definition)
    definition.tags = tags
    changes: Changes = {}
    context.database.catalog.put(definition, changes)
    context.write(changes)


def parse_list(request: dict[str, Any]) -> ResourceArn:
    return read_arn(request["ResourceArn"])


def list_tags(context: RequestContext, arn: ResourceArn) -> dict[str, Any]:
    """List all tags. A table has at most fifty, which fit on one page.

    NextToken is ignored, as on AWS.
    """
    table = find_table(context, arn, "ListTagsOfResource")
    return {"Tags": [{"Key": key, "Value": value} for key, value in table.definition.tags.items()]}


# -- ARNs


def read_arn(text: str) -> ResourceArn:
    """Parse the ARN of a table.

    Raises the errors that AWS returns before it looks for the table.
    """
    if not text.startswith("arn:"):
        raise ValidationFailed(f"{INVALID}ARNs must start with 'arn:': {text}")
    parts = text.split(":", 5)
    if len(parts) < 6 or parts[2] != "dynamodb":
        raise ValidationFailed(f"{INVALID}Provided Arn is not a DynamoDB resource arn: {text}")
    kind, _, rest = parts[5].partition("/")
    name, _, part = rest.partition("/")
    if part.startswith("stream/"):
        raise ValidationFailed(
            f"{INVALID}Tags of streams are not supported by this engine. "
            f"Provided resource arn: {text}",
            hint="tag the table instead",
        )
    if kind != "table" or part:
        raise ValidationFailed(
            f"{INVALID}Invalid resource arn provided, only table or stream is accepted. "
            f"Provided resource arn: {text}"
        )
    return ResourceArn(text, parts[3], parts[4], name)


def find_table(context: RequestContext, arn: ResourceArn, action: str) -> Table:
    scope = context.scope
    # The account comes first: AWS denies access to another account's table even if the region
    # differs, too (captured by the paritysuite conformance suite).
    if arn.account != scope.account:
        raise AccessDenied(
            f"User: arn:aws:iam::{scope.account}:root is not authorized to perform: "
            f"dynamodb:{action} on resource: {arn.text} because no resource-based policy allows "
            f"the dynamodb:{action} action"
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


OPERATIONS = (
    Operation("TagResource", parse_tag, tag_resource),
    Operation("UntagResource", parse_untag, untag_resource),
    Operation("ListTagsOfResource", parse_list, list_tags),
)
