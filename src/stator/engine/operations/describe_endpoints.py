"""DescribeEndpoints: the region's public address, as AWS answers. The engine does not know where it is served."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext

_CACHE_MINUTES = 1440


def parse(request: dict[str, Any]) -> None:
    return None


def run(context: RequestContext, request: None) -> dict[str, Any]:
    address = f"dynamodb.{context.scope.region}.amazonaws.com"
    return {"Endpoints": [{"Address": address, "CachePeriodInMinutes": _CACHE_MINUTES}]}


OPERATION = Operation("DescribeEndpoints", parse, run)
