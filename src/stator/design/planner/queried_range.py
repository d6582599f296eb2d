"""A queried range: the items under one key condition, and what reading them costs.

DynamoDB bills a Query for the items it reads, before any filter, in steps of 4 KB for each page. A
``Limit`` counts items before the filter, too. So a limit bounds what is read only without a filter.
With one, the data layer asks for pages of ``max(2 * limit, 100)`` items (see
``stator.tables.reads.page_stream``) until enough of them passed, or the range ends. A count, and a
call without a limit, read the whole range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from stator.design.capacity_units import read_units

FILTERED_PAGE_ITEMS: Final = 100
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class QueriedRange:
    """The items that lie under a key condition, all queries of a call together.

    ``kept`` is the share of them that the call may return. ``is_filtered`` means that DynamoDB
    drops the others by a filter, so that a limit does not count them.
    """

    items: float
    size_bytes: float
    kept: float = 1.0
    is_filtered: bool = False

    def items_read(self, limit: int | None, queries: float = 1) -> float:
        """Return how many items one call reads."""
        return self._read(limit, queries)[0] * queries

    def units(self, limit: int | None, queries: float = 1, *, consistent: bool) -> float:
        """Return the read units of one call that makes this many queries."""
        items, pages = self._read(limit, queries)
        each = self.size_bytes / self.items if self.items else 0.0
        return queries * pages * read_units(items * each / pages, consistent=consistent)

    def _read(self, limit: int | None, queries: float) -> tuple[float, int]:
        """Return the items and the pages that each query reads.

        Without a limit, a page is counted as one however large it is: pages of 1 MB hardly change
        the sum.
        """
        items = self.items / queries
        if limit is None:
            return items, 1
        page = limit if not self.is_filtered else max(2 * limit, FILTERED_PAGE_ITEMS)
        # Queries that are merged share the work of finding enough items, but each reads a page.
        enough = limit / max(self.kept, _ROUNDING) / (queries if self.is_filtered else 1)
        pages = max(1, math.ceil(min(enough, items) / page - _ROUNDING))
        return min(items, float(pages * page)), pages
