"""Paged sources: items in pages, from a table or from an export that AWS made.

A source has pieces, which can be read in parallel. Reading can resume after any page.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from stator.clock import Clock
from stator.model.values import Item
from stator.pipeline.bulk.job.governor import Governor
from stator.pipeline.bulk.retried_call import retried_call
from stator.transport import Transport

_FIRST_PAGE_UNITS = 128.0
"""The units of a page of 1 MB, eventually consistent: the most that a page may consume."""


_LARGEST_LIMIT = 4096
"""After a page of so many items, the size of a page is left to DynamoDB."""


@dataclass(frozen=True, slots=True)
class ItemPage:
    """A page of items from one piece of a source, such as a segment of a Scan.

    ``after`` is a JSON value. Pass it to ``pages`` to continue after this page. It is None for the
    last page of a piece. ``units`` are the read units that the page consumed.
    """

    items: list[Item]
    after: Any
    units: float = 0.0


class PagedSource(Protocol):
    @property
    def owned_transport(self) -> Transport | None:
        """The transport that only this source uses, and that an interrupted job may close."""
        ...

    @property
    def pieces(self) -> int: ...

    def stop(self) -> None: ...

    def pages(self, piece: int, after: Any = None) -> Iterator[ItemPage]:
        """Yield the pages of one piece of the source, beginning with the first.

        To continue after a page that was read earlier, pass its ``ItemPage.after``.
        """
        ...


class TableScan:
    """A parallel Scan as a paged source; each segment is a piece.

    ``filters`` are parameters of the request, such as a FilterExpression. ``first_items`` limits
    the first page, and each further page may be twice as large. With small first pages, even a job
    that is killed early has finished some.
    """

    def __init__(
        self,
        transport: Transport,
        table: str,
        segments: int,
        governor: Governor,
        clock: Clock,
        chance: random.Random,
        *,
        consistent: bool = False,
        filters: dict[str, Any] | None = None,
        first_items: int | None = None,
        owned: bool = False,
    ) -> None:
        self._transport = transport
        self.owned_transport = transport if owned else None
        self._stopping = threading.Event()
        self._first_items = first_items
        self._governor = governor
        self._clock = clock
        self._chance = chance
        self.pieces = segments
        self._request: dict[str, Any] = {
            "TableName": table,
            "TotalSegments": segments,
            "ConsistentRead": consistent,
            "ReturnConsumedCapacity": "TOTAL",
            **(filters or {}),
        }

    def stop(self) -> None:
        """Stop retrying: a read in flight that fails from now on raises its error."""
        self._stopping.set()

    def pages(self, piece: int, after: Any = None) -> Iterator[ItemPage]:
        expected, limit = _FIRST_PAGE_UNITS, self._first_items
        while True:
            request = {**self._request, "Segment": piece}
            if limit is not None:
                request["Limit"] = limit
                limit = limit * 2 if limit * 2 <= _LARGEST_LIMIT else None
            if after is not None:
                request["ExclusiveStartKey"] = after
            self._governor.acquire(expected)
            if self._governor.gate.is_stopped:  # while it waited
                return
            reply = retried_call(
                self._transport,
                self._clock,
                self._chance,
                "Scan",
                request,
                self._governor,
                self._stopping.is_set,
            )
            units = float(reply.get("ConsumedCapacity", {}).get("CapacityUnits", expected))
            self._governor.consumed(expected, units)
            expected, after = units, reply.get("LastEvaluatedKey")
            yield ItemPage(reply["Items"], after, units)
            if after is None:
                return
