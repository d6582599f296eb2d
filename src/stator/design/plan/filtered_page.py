"""The page size of a reader whose filter drops some items, for a pattern with a limit.

DynamoDB's ``Limit`` counts items before the filter. So a reader asks for more items than it wants,
and for another page if too few pass the filter. The planner prices calls with the same page sizes.
"""

from __future__ import annotations

from typing import Final

_LEAST: Final = 100
_LEAST_FETCHED: Final = 25
"""Smaller, because each item of the page is fetched by its key before it is filtered."""


def filtered_page_items(wanted: int, *, is_fetched: bool = False) -> int:
    """Return how many items to ask for so that about ``wanted`` of them pass a filter.

    ``is_fetched`` means that the reader fetches the items and filters them itself.
    """
    return max(2 * wanted, _LEAST_FETCHED if is_fetched else _LEAST)
