"""ListTables: names in the order of their bytes, a hundred to a page."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext

_MOST = 100


@dataclass(frozen=True, slots=True)
class Request:
    after: str
    limit: int


def parse(request: dict[str, Any]) -> Request:
    return Request(request.get("ExclusiveStartTableName") or "", request.get("Limit") or _MOST)


def run(context: RequestContext, request: Request) -> dict[str, Any]:
    context.parts.lifecycle.settle_all()
    names = context.database.catalog.names(context.scope)
    start = bisect_right(names, request.after)
    page = names[start : start + request.limit]
    response: dict[str, Any] = {"TableNames": page}
    if start + request.limit < len(names):
        response["LastEvaluatedTableName"] = page[-1]
    return response


OPERATION = Operation("ListTables", parse, run)
