"""DescribeLimits and DescribeEndpoints: what AWS reports about an account and a region."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.model.limits import (
    ACCOUNT_READ_UNITS,
    ACCOUNT_WRITE_UNITS,
    TABLE_READ_UNITS,
    TABLE_WRITE_UNITS,
)

_CACHE_MINUTES = 1440


def parse_nothing(request: dict[str, Any]) -> None:
    return None


def describe_limits(context: RequestContext, request: None) -> dict[str, Any]:
    """Return AWS's default quotas, which this engine enforces."""
    return {
        "AccountMaxReadCapacityUnits": ACCOUNT_READ_UNITS,
        "AccountMaxWriteCapacityUnits": ACCOUNT_WRITE_UNITS,
        "TableMaxReadCapacityUnits": TABLE_READ_UNITS,
        "TableMaxWriteCapacityUnits": TABLE_WRITE_UNITS,
    }


def describe_endpoints(context: RequestContext, request: None) -> dict[str, Any]:
    """Return AWS's public address for the region. The engine does not know its own address."""
    address = f"dynamodb.{context.scope.region}.amazonaws.com"
    return {"Endpoints": [{"Address": address, "CachePeriodInMinutes": _CACHE_MINUTES}]}


OPERATIONS = (
    Operation("DescribeLimits", parse_nothing, describe_limits),
    Operation("DescribeEndpoints", parse_nothing, describe_endpoints),
)
