"""Page streams: the items that one request finds, page by page, from where the caller stopped.

Most patterns make one request. A pattern makes several if its partition is sharded, if a field may
have one of several values, or if it reads several entities with one request each. The items of one
step's requests are merged in the pattern's order. The items of the next step follow them.

The position of a stream is the key of the last item taken from it. A page may therefore stop in the
middle of a DynamoDB page and still have an exact cursor.

**Backward.** A stream reads in the pattern's order, or backward from a position to the first item.
DynamoDB starts *after* the ExclusiveStartKey, in either direction.

Example: the items are A B C D E, and a page that began after B received C and D. The page before
it ends with B. A backward read that began at B would leave B out. So it begins at C, the first item
that the page received, whether the caller took it or not. If the page received no items, none
follow B, and the backward read begins at the end. Items inserted or deleted meanwhile do not
matter, because a position need not be the key of an existing item.
"""

from __future__ import annotations

from base64 import b64decode
from collections import deque
from decimal import Decimal
from functools import total_ordering
from typing import Any

from stator.design.plan.filtered_page import filtered_page_items
from stator.design.plan.plan import Step
from stator.model.values import Item, Value
from stator.tables.reads.cursors import Position
from stator.tables.schema.schema import StepRoute
from stator.tables.work import Call, Work


class PageStream:
    """The answers to one request of a pattern, read page by page.

    ``request`` has no ``Limit``, because each call sets its own. A position is the key of an item,
    or "start" or "end" for the two ends of the answers. A forward stream reads from ``position`` to
    the end, a ``backward`` stream from ``position`` to the start.
    """

    def __init__(
        self,
        route: StepRoute,
        request: dict[str, Any],
        label: str,
        position: Position = "start",
        *,
        backward: bool = False,
    ) -> None:
        self.route = route
        self.step = route.step
        self.label = label
        self._request = request
        self._position: Position = position
        self._next: Item | None = position if isinstance(position, dict) else None
        self._origin: Position = "end" if backward else "start"
        self._goal: Position = "start" if backward else "end"
        self._exhausted = position == self._goal
        self._buffer: deque[Item] = deque()
        self._first: Item | None = None
        self._last: Item | None = None

    @property
    def is_done(self) -> bool:
        return self._exhausted and not self._buffer

    @property
    def is_buffered(self) -> bool:
        """Whether items have been read but not yet taken."""
        return bool(self._buffer)

    @property
    def is_fresh(self) -> bool:
        """Whether nothing has been read, in this page or an earlier one."""
        return self.position == self._origin and not self._buffer

    @property
    def position(self) -> Position:
        """Where the caller stopped: the key of the last item taken, or "start" or "end"."""
        if self.is_done:
            return self._goal
        if self._last is None:
            return self._position
        return self.key_of(self._last)

    @property
    def turning_point(self) -> Position:
        """The position from which the opposite direction returns the items before this page."""
        if not isinstance(self._position, dict):
            return self._position
        return self._goal if self._first is None else self.key_of(self._first)

    def key_of(self, item: Item) -> Item:
        """Return the key of an item, as a request continues after it."""
        return {name: item[name] for name in self.route.key if name in item}

    def next_call(self, want: int | None) -> Call:
        """Return the next request, for about ``want`` items. None requests a whole page."""
        request = dict(self._request)
        if self.step.operation == "GetItem":
            return Call("GetItem", request, self.label)
        if self._next is not None:
            request["ExclusiveStartKey"] = self._next
        if want is not None and not self.step.is_count:
            # With a filter, DynamoDB counts the items it reads, not those it returns: ask for more.
            # One item more than a backward page wants shows whether the page is the first one.
            most = want + 1 if self._goal == "start" else want
            request["Limit"] = most if not self.step.is_filtered else self.page_items(want)
        return Call(self.step.operation, request, self.label)

    def page_items(self, want: int) -> int:
        """Return the ``Limit`` with which about ``want`` items should pass the step's filter."""
        return filtered_page_items(want, is_fetched=self.step.fetched_filter is not None)

    def receive(self, reply: dict[str, Any]) -> None:
        """Accept the answer to ``next_call``."""
        if self.step.operation == "GetItem":
            if "Item" in reply:
                self._buffer.append(reply["Item"])
            self._exhausted = True
            return
        self._buffer.extend(reply.get("Items", ()))
        if self._first is None and self._buffer:
            self._first = self._buffer[0]
        self._next = reply.get("LastEvaluatedKey")
        self._exhausted = self._next is None

    def fill(self, want: int | None) -> Work[bool]:
        """Read until there is an item to take. Return True, or False if no items are left."""
        while not self._buffer and not self._exhausted:
            self.receive((yield self.next_call(want)))
        return bool(self._buffer)

    def peek(self) -> Item:
        return self._buffer[0]

    def take(self) -> Item:
        self._last = item = self._buffer.popleft()
        return item

    def take_some(self, want: int | None) -> list[Item]:
        """Take up to ``want`` of the items that have been read. None takes all of them."""
        if want is not None and want < len(self._buffer):
            return [self.take() for _ in range(want)]
        items = list(self._buffer)
        self._buffer.clear()
        self._last = items[-1] if items else self._last
        return items

    @property
    def last(self) -> Item | None:
        """The last item taken, or None."""
        return self._last

    @property
    def returned(self) -> tuple[Item, Item] | None:
        """The first item of this page and the last one taken, or None if none was taken."""
        if self._first is None or self._last is None:
            return None
        return self._first, self._last

    def put_back(self, items: list[Item], last: Item | None) -> None:
        """Put items back at the front of the stream, so that they are taken again.

        ``last`` is the item that was taken before them, or None.
        """
        self._buffer.extendleft(reversed(items))
        self._last = last

    def order(self, item: Item) -> tuple[Any, ...]:
        """Return the value by which the items of several requests are compared and merged.

        Items are ordered by the fields that the pattern sorts by, then by their DynamoDB sort key.
        """
        step = self.step
        named = () if step.order is None else (step.order, *step.then)
        first = [
            Descending(comparable(item[name]))
            if step.descending and (name in step.descending) is step.forward
            else comparable(item[name])
            for name in named
            if name in item
        ]
        sort = (comparable(item[each]) for each in self.route.sort if each in item)
        return (len(first), *first, *sort)


@total_ordering
class Descending:
    """Wraps a value, so that Python sorts larger values first."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self._value == other._value)

    def __lt__(self, other: Descending) -> bool:
        return bool(other._value < self._value)

    __hash__ = None  # type: ignore[assignment]


def in_order(item: Item, step: Step) -> tuple[Any, ...]:
    """Return the value by which an item is compared when a step's items are sorted in memory."""
    named = () if step.order is None else (step.order, *step.then)
    values = [comparable(item[name]) if name in item else None for name in named]
    return tuple(
        Descending((value is not None, value))
        if name in step.descending
        else (
            value is not None,
            value,
        )
        for name, value in zip(named, values)
    )


def comparable(value: Value) -> Any:
    """Return a value as a Python value that sorts as DynamoDB sorts keys: text by its UTF-8."""
    [(kind, content)] = value.items()
    if kind == "N":
        return Decimal(content)
    if kind == "BOOL":
        return content
    return b64decode(content) if kind == "B" else content.encode()
