"""Deletes a generation that is no longer read."""

from __future__ import annotations

from typing import Any

from stator.coordination.retry import retry_call
from stator.pipeline.views.batch_writes import write_all
from stator.pipeline.views.layout import LABEL, ViewLayout
from stator.tables.context import Context
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions


def retire(context: Context, layout: ViewLayout, generation: int) -> Work[int]:
    """Scan the table for the items of a generation and delete them. Return how many there were."""
    deleted = 0
    for request in (
        _scan(layout, layout.prefix(generation), None),
        _scan(layout, layout.directory, layout.start_prefix(generation)),
    ):
        while True:
            operation = "Query" if "KeyConditionExpression" in request else "Scan"
            page = yield from retry_call(context, None, Call(operation, dict(request), LABEL))
            deleted += len(page["Items"])
            requests = [{"DeleteRequest": {"Key": item}} for item in page["Items"]]
            yield from write_all(context, layout.place.table, requests, None)
            if "LastEvaluatedKey" not in page:
                break
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    return deleted


def _scan(layout: ViewLayout, partition: str, sort: str | None) -> dict[str, Any]:
    written = Expressions()
    names = (written.name(layout.place.partition), written.name(layout.place.sort))
    value = written.value({"S": partition})
    if sort is None:
        which = {"FilterExpression": f"begins_with({names[0]}, {value})"}
    else:
        prefix = written.value({"S": sort})
        which = {
            "KeyConditionExpression": f"{names[0]} = {value} AND begins_with({names[1]}, {prefix})"
        }
    return written.into(
        {
            "TableName": layout.place.table,
            "ProjectionExpression": ", ".join(names),
            "ConsistentRead": True,
            **which,
        }
    )
