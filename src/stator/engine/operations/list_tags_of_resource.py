"""ListTagsOfResource. Fifty tags, the most there can be, fit one page; a NextToken is ignored, as on AWS."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.tables.resource_arn import ResourceArn, find_table, read_arn


def parse(request: dict[str, Any]) -> ResourceArn:
    return read_arn(request["ResourceArn"])


def run(context: RequestContext, arn: ResourceArn) -> dict[str, Any]:
    table = find_table(context, arn, "ListTagsOfResource")
    return {"Tags": [{"Key": key, "Value": value} for key, value in table.definition.tags.items()]}


OPERATION = Operation("ListTagsOfResource", parse, run)
