"""Streams: the answers of one request after the other, page by page, from wherever the caller stopped.

A pattern is one request as a rule. It is several where its partition is sharded, where a field may have one of several values, or where its
entities live in different tables. Those of one step are merged in order; steps follow one another. A stream knows its position as the key of the last item
that was taken from it, so a page may stop in the middle of what was read and still give an exact cursor.
"""

from __future__ import annotations

from base64 import b64decode
from collections import deque
from decimal import Decimal
from typing import Any

from stator.design.plan.plan import Step
from stator.model.values import Item, Value
from stator.tables.reads.cursors import Position
from stator.tables.schema import Schema
from stator.tables.work import Call, Work


class PageStream:
    """One request of a pattern."""

    def __init__(
        self,
        schema: Schema,
        step: Step,
        request: dict[str, Any],
        label: str,
        position: Position = "start",
    ) -> None:
        self.step = step
        self.label = label
        self.position: Position = position
        self._request = request
        self._next: Item | None = position if isinstance(position, dict) else None
        self._exhausted = position == "end"
        self._buffer: deque[Item] = deque()
        table = schema.tables[step.table]
        index = next((each for each in table.indexes if each.name == step.index), None)
        self._sort = index.sort if index is not None else ((table.sort,) if table.sort else ())
        base = (table.partition, *((table.sort,) if table.sort else ()))
        keys = base if index is None else (*base, *index.partition, *index.sort)
        self._key = tuple(dict.fromkeys(keys))

    @property
    def is_done(self) -> bool:
        return self._exhausted and not self._buffer

    def next_call(self, want: int | None) -> Call:
        """The request for what follows, asking for about ``want`` items."""
        request = dict(self._request)
        if self.step.operation == "GetItem":
            return Call("GetItem", request, self.label)
        if self._next is not None:
            request["ExclusiveStartKey"] = self._next
        request.pop("Limit", None)
        if want is not None and not self.step.is_count:
            # With a filter, DynamoDB counts what it reads, not what it gives: ask for a few more than are wanted.
            request["Limit"] = want if self.step.filter is None else max(want * 2, 100)
        return Call(self.step.operation, request, self.label)

    def took(self, reply: dict[str, Any]) -> None:
        if self.step.operation == "GetItem":
            self._buffer.extend([reply["Item"]] if "Item" in reply else [])
            self._exhausted = True
            return
        self._buffer.extend(reply.get("Items", ()))
        self._next = reply.get("LastEvaluatedKey")
        self._exhausted = self._next is None

    def head(self, want: int | None) -> Work[Item | None]:
        """The item that comes next, read if need be; None at the end."""
        while not self._buffer and not self._exhausted:
            self.took((yield self.next_call(want)))
        return self._buffer[0] if self._buffer else None

    def peek(self) -> Item:
        return self._buffer[0]

    def take(self) -> Item:
        item = self._buffer.popleft()
        self.position = (
            "end" if self.is_done else {name: item[name] for name in self._key if name in item}
        )
        return item

    def drained(self) -> list[Item]:
        """All that has been read and not taken."""
        items = list(self._buffer)
        self._buffer.clear()
        return items

    def buffered(self) -> bool:
        return bool(self._buffer)

    def skip_to_end(self) -> None:
        if self.is_done:
            self.position = "end"

    def order(self, item: Item) -> tuple[Any, ...]:
        """The place of an item among those of other requests: by the field that was asked for, then by the sort key."""
        asked = self.step.order
        first = (comparable(item[asked]),) if asked is not None and asked in item else ()
        return (
            len(first),
            *first,
            *(comparable(item[name]) for name in self._sort if name in item),
        )


def comparable(value: Value) -> Any:
    """A key value as Python compares it in DynamoDB's order."""
    [(kind, content)] = value.items()
    if kind == "N":
        return Decimal(content)
    return b64decode(content) if kind == "B" else content.encode()
