"""UntagResource: a key that is not there is fine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.operations.tag_resource import set_tags
from stator.engine.tables.resource_arn import ResourceArn, find_table, read_arn
from stator.engine.tables.settings import without_nulls
from stator.engine.tables.tag_checks import check_keys
from stator.errors import ValidationFailed


@dataclass(frozen=True, slots=True)
class Request:
    arn: ResourceArn
    keys: frozenset[str]


def parse(request: dict[str, Any]) -> Request:
    arn = read_arn(request["ResourceArn"])
    keys = without_nulls(request["TagKeys"])
    if not keys:
        raise ValidationFailed("Atleast one Tag Key needs to be provided as Input.")
    check_keys(keys)
    return Request(arn, frozenset(keys))


def run(context: RequestContext, request: Request) -> dict[str, Any]:
    table = find_table(context, request.arn, "UntagResource")
    tags = table.definition.tags
    set_tags(context, table, {key: value for key, value in tags.items() if key not in request.keys})
    return {}


OPERATION = Operation("UntagResource", parse, run)
