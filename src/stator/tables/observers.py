"""Call records for logs, traces and bills: observers receive one for each call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CallRecord:
    """The record of one call.

    ``started`` and ``seconds`` include retries. ``read_units`` and ``write_units`` are zero unless
    capacity is measured.
    """

    operation: str
    label: str
    table: str
    started: float
    seconds: float
    read_units: float = 0.0
    write_units: float = 0.0
    error: BaseException | None = None


Observer = Callable[[CallRecord], None]

WRITES = frozenset(
    {
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "BatchWriteItem",
        "BatchExecuteStatement",
        "TransactWriteItems",
        "ExecuteTransaction",
    }
)
MEASURED = WRITES | {"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"}


def table_of(request: dict[str, Any]) -> str:
    """Return the table a request reads or writes. Several tables are joined with a comma."""
    if "TableName" in request:
        return str(request["TableName"])
    if "RequestItems" in request:
        return ",".join(request["RequestItems"])
    if "Statements" in request:  # of one table, whose name is the first quoted one
        return str(request["Statements"][0]["Statement"].split('"')[1])
    actions = [action for entry in request.get("TransactItems", ()) for action in entry.values()]
    return ",".join(dict.fromkeys(action["TableName"] for action in actions))


def units_of(reply: dict[str, Any]) -> float:
    """Return the consumed capacity that a reply reports, tables and indexes together."""
    found = reply.get("ConsumedCapacity") or ()
    entries = [found] if isinstance(found, dict) else found
    return float(sum(entry.get("CapacityUnits", 0.0) for entry in entries))


@dataclass(slots=True)
class Usage:
    calls: int = 0
    errors: int = 0
    seconds: float = 0.0
    read_units: float = 0.0
    write_units: float = 0.0


@dataclass(slots=True)
class Meter:
    """An observer that adds up capacity, calls and errors for each label.

    A label is the name of a pattern, or a kind of write such as ``put Order``.
    """

    by_label: dict[str, Usage] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, record: CallRecord) -> None:
        with self._lock:
            usage = self.by_label.setdefault(record.label, Usage())
            usage.calls += 1
            usage.errors += record.error is not None
            usage.seconds += record.seconds
            usage.read_units += record.read_units
            usage.write_units += record.write_units
