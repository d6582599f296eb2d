"""TagResource."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.engine.tables.resource_arn import ResourceArn, find_table, read_arn
from stator.engine.tables.settings import without_nulls
from stator.engine.tables.state_checks import check_stands
from stator.engine.tables.table import Table
from stator.engine.tables.tag_checks import check_count, read_tags
from stator.errors import ValidationFailed
from stator.storage import Changes


@dataclass(frozen=True, slots=True)
class Request:
    arn: ResourceArn
    tags: dict[str, str]


def parse(request: dict[str, Any]) -> Request:
    arn = read_arn(request["ResourceArn"])
    tags = without_nulls(request["Tags"])
    if not tags:
        raise ValidationFailed("Atleast one Tag needs to be provided as Input.")
    return Request(arn, read_tags(tags))


def run(context: RequestContext, request: Request) -> dict[str, Any]:
    table = find_table(context, request.arn, "TagResource")
    tags = table.definition.tags | request.tags
    check_count(len(tags))
    set_tags(context, table, tags)
    return {}


def set_tags(context: RequestContext, table: Table, tags: dict[str, str]) -> None:
    check_stands(table.definition)
    definition = copy.deepcopy(table.definition)
    definition.tags = tags
    changes: Changes = {}
    context.database.catalog.put(definition, changes)
    context.write(changes)


OPERATION = Operation("TagResource", parse, run)
