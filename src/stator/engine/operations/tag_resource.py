"""TagResource."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Call, Operation
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


def run(call: Call, request: Request) -> dict[str, Any]:
    table = find_table(call, request.arn, "TagResource")
    tags = table.definition.tags | request.tags
    check_count(len(tags))
    set_tags(call, table, tags)
    return {}


def set_tags(call: Call, table: Table, tags: dict[str, str]) -> None:
    check_stands(table.definition)
    definition = copy.deepcopy(table.definition)
    definition.tags = tags
    changes: Changes = {}
    call.engine.catalog.put(definition, changes)
    call.engine.commit_changes(call, changes)


OPERATION = Operation("TagResource", parse, run)
