"""Queries of a pattern's own items: the whole result at once, or page by page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from stator.model.values import Item
from stator.tables.schema.place import Place
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions

T = TypeVar("T")


def prefix_query(
    place: Place, partition: str, prefix: str, limit: int | None = None
) -> dict[str, Any]:
    """Return a Query for the items of a partition whose sort keys begin with ``prefix``.

    The Query is strongly consistent.
    """
    written = Expressions()
    condition = f"{written.name(place.partition)} = {written.value({'S': partition})}"
    if prefix:
        condition += f" AND begins_with({written.name(place.sort)}, {written.value({'S': prefix})})"
    request: dict[str, Any] = {
        "TableName": place.table,
        "KeyConditionExpression": condition,
        "ConsistentRead": True,
    }
    if limit is not None:
        request["Limit"] = limit
    return written.into(request)


def range_query(place: Place, partition: str, low: str, high: str) -> dict[str, Any]:
    """Return a Query for a partition's items with sort keys from ``low`` to ``high``, inclusive."""
    written = Expressions()
    sort = written.name(place.sort)
    bounds = f"{written.value({'S': low})} AND {written.value({'S': high})}"
    condition = f"{written.name(place.partition)} = {written.value({'S': partition})}"
    request = {
        "TableName": place.table,
        "KeyConditionExpression": f"{condition} AND {sort} BETWEEN {bounds}",
    }
    return written.into(request)


class ItemPages(Generic[T]):
    """The results of one Query or Scan, page by page.

    ``read`` converts each item to a result, or returns None to leave the item out. ``start`` is
    the key after which to begin.
    """

    def __init__(
        self,
        request: dict[str, Any],
        label: str,
        read: Callable[[Item], T | None],
        operation: str = "Query",
        start: Item | None = None,
    ) -> None:
        self._request = request
        self._label = label
        self._read = read
        self._operation = operation
        self.position = start
        self.is_done = False

    def page(self) -> Work[list[T]]:
        request = dict(self._request)
        if self.position is not None:
            request["ExclusiveStartKey"] = self.position
        reply = yield Call(self._operation, request, self._label)
        self.position = reply.get("LastEvaluatedKey")
        self.is_done = self.position is None
        found = (self._read(item) for item in reply["Items"])
        return [each for each in found if each is not None]


def query_page(
    request: dict[str, Any], label: str, limit: int, start: Item | None = None
) -> Work[tuple[list[Item], bool]]:
    """Return up to ``limit`` items of a Query after the key ``start``, and whether more follow."""
    found: list[Item] = []
    while len(found) <= limit:
        asked = request | {"Limit": limit + 1 - len(found)}
        if start is not None:
            asked["ExclusiveStartKey"] = start
        reply = yield Call("Query", asked, label)
        found += reply["Items"]
        start = reply.get("LastEvaluatedKey")
        if start is None:
            break
    return found[:limit], len(found) > limit


def query_all(request: dict[str, Any], label: str) -> Work[list[Item]]:
    pages = ItemPages[Item](request, label, lambda item: item)
    found: list[Item] = []
    while not pages.is_done:
        found += yield from pages.page()
    return found


def query_count(request: dict[str, Any], label: str) -> Work[int]:
    """Return the number of items that match a Query. The items themselves are not sent."""
    total: int = 0
    start: Item | None = None
    while True:
        counted = request | {"Select": "COUNT"}
        if start is not None:
            counted["ExclusiveStartKey"] = start
        reply = yield Call("Query", counted, label)
        total += int(reply["Count"])
        start = reply.get("LastEvaluatedKey")
        if start is None:
            return total
