"""Call records for logs, traces and bills: observers receive one for each call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stator.design.plan.html_table import html_table
from stator.throttle_reason import ThrottleReason


@dataclass(frozen=True, slots=True)
class UsedUnits:
    """The units that a call consumed in one table, or in one index of it.

    ``index`` is None for the table itself, and for a call whose observers ask for totals only.
    """

    table: str
    index: str | None
    units: float


@dataclass(frozen=True, slots=True)
class CallRecord:
    """The record of one call, which observers receive.

    ``label`` names the pattern, or the kind of write such as ``put Order``. ``started`` is the time
    of the first attempt, in seconds since the epoch, and ``seconds`` the duration, retries
    included. ``table`` names the table, or several joined with commas. ``read_units`` and
    ``write_units`` are zero if DynamoDB reports no capacity for the operation.

    ``attempts`` counts the attempts, and ``throttles`` are the limits that refused any of them.
    ``request`` and ``reply`` are what was sent and received, not copies: observers must not change
    them, and ones that keep records keep the items in them.
    """

    operation: str
    label: str
    table: str
    started: float
    seconds: float
    read_units: float = 0.0
    write_units: float = 0.0
    error: BaseException | None = None
    attempts: int = 1
    throttles: tuple[ThrottleReason, ...] = ()
    request: Mapping[str, Any] = field(default_factory=dict, repr=False)
    reply: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def used(self) -> tuple[UsedUnits, ...]:
        """The units by table, and by index if an observer of the call asks for indexes."""
        return tuple(_used(self.reply))

    @property
    def item_count(self) -> int:
        """The number of items that the call returned, or that it counted."""
        if "Count" in self.reply:
            return int(self.reply["Count"])
        if self.operation == "BatchGetItem":
            return sum(map(len, self.reply.get("Responses", {}).values()))
        if self.operation == "TransactGetItems":
            return sum("Item" in each for each in self.reply.get("Responses", ()))
        return int(self.operation == "GetItem" and "Item" in self.reply)

    @property
    def scanned_count(self) -> int:
        """The number of items that a Query or Scan read before its filter, otherwise 0."""
        return int(self.reply.get("ScannedCount", 0))

    @property
    def is_page(self) -> bool:
        """Whether the call read a page of a Query or a Scan."""
        return "ScannedCount" in self.reply


def _used(reply: Mapping[str, Any]) -> Iterator[UsedUnits]:
    for entry in _consumed(reply):
        table = str(entry.get("TableName", ""))
        if "Table" not in entry and "GlobalSecondaryIndexes" not in entry:
            yield UsedUnits(table, None, float(entry.get("CapacityUnits", 0.0)))
            continue
        if "Table" in entry:
            yield UsedUnits(table, None, float(entry["Table"].get("CapacityUnits", 0.0)))
        for member in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            for index, units in entry.get(member, {}).items():
                yield UsedUnits(table, index, float(units.get("CapacityUnits", 0.0)))


Observer = Callable[[CallRecord], None]
"""A function that receives the record of every call, for ``connect(..., observers=[...])``.

If it has an attribute ``by_index`` that is true, calls ask DynamoDB for the units of each index.
"""

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
    return float(sum(entry.get("CapacityUnits", 0.0) for entry in _consumed(reply)))


def _consumed(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = reply.get("ConsumedCapacity") or ()
    return [found] if isinstance(found, dict) else list(found)


@dataclass(slots=True)
class Usage:
    """Units, calls and time that a meter has added up for one label."""

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

    def _repr_html_(self) -> str:
        """Return an HTML table of the usage of each label, for a notebook."""
        return html_table(
            "Meter",
            ("label", "calls", "errors", "seconds", "read units", "write units"),
            (
                (
                    label,
                    each.calls,
                    each.errors,
                    f"{each.seconds:.3f}",
                    f"{each.read_units:g}",
                    f"{each.write_units:g}",
                )
                for label, each in list(self.by_label.items())
            ),
        )

    def __call__(self, record: CallRecord) -> None:
        with self._lock:
            usage = self.by_label.setdefault(record.label, Usage())
            usage.calls += 1
            usage.errors += record.error is not None
            usage.seconds += record.seconds
            usage.read_units += record.read_units
            usage.write_units += record.write_units
