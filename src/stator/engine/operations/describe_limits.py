"""DescribeLimits: AWS's default quotas, which this engine keeps to."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.model.limits import (
    ACCOUNT_READ_UNITS,
    ACCOUNT_WRITE_UNITS,
    TABLE_READ_UNITS,
    TABLE_WRITE_UNITS,
)


def parse(request: dict[str, Any]) -> None:
    return None


def run(context: RequestContext, request: None) -> dict[str, Any]:
    return {
        "AccountMaxReadCapacityUnits": ACCOUNT_READ_UNITS,
        "AccountMaxWriteCapacityUnits": ACCOUNT_WRITE_UNITS,
        "TableMaxReadCapacityUnits": TABLE_READ_UNITS,
        "TableMaxWriteCapacityUnits": TABLE_WRITE_UNITS,
    }


OPERATION = Operation("DescribeLimits", parse, run)
