"""A queried range: the items under one key condition, and what reading them costs.

DynamoDB bills a Query for the items it reads, before any filter, in steps of 4 KB for each page. A
``Limit`` counts items before the filter, too. So without a filter, a limit bounds what is read.
With a filter, the data layer asks for larger pages (``stator.design.plan.filtered_page``) until
enough items have passed, or the range ends. A count, and a call without a limit, read the whole
range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from stator.design.capacity_units import read_units
from stator.design.plan.filtered_page import filtered_page_items

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class QueriedRange:
    """The items that lie under the key conditions of one call, over all its queries.

    ``kept`` is the share of these items that the call may return. ``is_filtered`` means that a
    filter drops the others. Dropped items do not count towards the pattern's limit.
    """

    items: float
    size_bytes: float
    kept: float = 1.0
    is_filtered: bool = False
    is_fetched: bool = False
    """The filter needs whole items, which the reader fetches by their keys."""

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

        Without a limit, everything counts as one page, although DynamoDB ends a page at 1 MB. The
        rounding of each page to 4 KB hardly changes the sum.
        """
        items = self.items / queries
        if limit is None:
            return items, 1
        page = limit
        if self.is_filtered:
            page = filtered_page_items(limit, is_fetched=self.is_fetched)
        # Queries that are merged share the work of finding enough items, but each reads a page.
        enough = limit / max(self.kept, _ROUNDING) / (queries if self.is_filtered else 1)
        pages = max(1, math.ceil(min(enough, items) / page - _ROUNDING))
        return min(items, float(pages * page)), pages
