"""Deleting a generation that is read no more."""

from __future__ import annotations

from functools import partial
from typing import Any

from stator.pipeline.views.batches import write_all
from stator.pipeline.views.layout import LABEL, Layout
from stator.pipeline.workers.steady_call import steadily
from stator.tables.context import Context
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions


def retire(context: Context, layout: Layout, generation: int) -> Work[int]:
    """Its items, found by a scan of the design's own table: how many there were."""
    deleted = 0
    for request in (
        _scan(layout, layout.prefix(generation), None),
        _scan(layout, layout.directory, layout.start_prefix(generation)),
    ):
        while True:
            page = yield from steadily(context, _always, partial(_made, dict(request)))
            deleted += len(page["Items"])
            requests = [{"DeleteRequest": {"Key": item}} for item in page["Items"]]
            yield from write_all(context, layout.place.table, requests, _always)
            if "LastEvaluatedKey" not in page:
                break
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    return deleted


def _scan(layout: Layout, partition: str, sort: str | None) -> dict[str, Any]:
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


def _made(request: dict[str, Any]) -> Work[dict[str, Any]]:
    reply: dict[str, Any] = yield Call(
        "Query" if "KeyConditionExpression" in request else "Scan", request, LABEL
    )
    return reply


def _always() -> None:
    return None
