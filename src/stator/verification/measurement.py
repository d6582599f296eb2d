"""A measurement of calls, and the straight line through two of them.

A read of more items than the budget is measured at two sizes, and the line through them is extended
to the declared number of items, unless a range or a limit ends the read before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from stator.model.limits import PAGE_BYTES


@dataclass(frozen=True, slots=True)
class Measurement:
    """The average of several calls. ``units`` has the units of each table and index, by name."""

    units: Mapping[str, float]
    items_read: float
    items_returned: float
    pages: float
    requests: float
    seconds: float
    calls: int
    items_stored: int
    extrapolated: bool = False
    other_units: float = 0.0
    """Read units of a write, for the lookups that it makes first."""
    nearby_units: tuple[float, float] | None = None
    """The units if all items were 1 % smaller, and 1 % larger, if that is known."""
    item_bytes: Mapping[str, float] = field(default_factory=dict)
    """The mean size of a stored item, keys included, by the name of its entity."""


@dataclass(frozen=True, slots=True)
class MeasuredLine:
    """Two measurements of a read, and the straight line through them.

    ``first`` was measured with the share ``start`` of the declared items, ``second`` with the share
    ``end``. ``whole`` is the share to which the line is extended, usually 1.
    """

    first: Measurement
    second: Measurement
    start: float
    end: float
    whole: float
    is_ended: bool
    """Whether a declared range or limit ends the read at both sizes."""

    @property
    def is_bounded(self) -> bool:
        """Whether the read would cost the same with more items under the key.

        That is so if a range or a limit ends the read, or if both measurements read and returned
        the same number of items. Units are not compared, because items differ by a few bytes.
        """
        low, high = self.first, self.second
        return self.is_ended or (
            self.whole == 1.0
            and (
                (low.items_read, low.items_returned, low.requests)
                == (high.items_read, high.items_returned, high.requests)
            )
        )

    def extended(self, unit_bytes: float) -> Measurement:
        """Return the measurement that the line gives for all declared items.

        A page has at most 1 MB. If the line gives fewer pages than the units need, pages are added.
        ``unit_bytes`` is the number of bytes that one unit reads.
        """
        first, second = self.first, self.second
        units = {
            place: self._at_whole(first.units.get(place, 0.0), second.units.get(place, 0.0))
            for place in sorted({*first.units, *second.units})
        }
        pages = math.ceil(self._at_whole(first.pages, second.pages))
        more = max(0, math.ceil(sum(units.values()) * unit_bytes / PAGE_BYTES) - pages)
        return Measurement(
            units,
            self._at_whole(first.items_read, second.items_read),
            self._at_whole(first.items_returned, second.items_returned),
            pages + more,
            math.ceil(self._at_whole(first.requests, second.requests)) + more,
            self._at_whole(first.seconds, second.seconds),
            1,
            second.items_stored,
            extrapolated=True,
        )

    def _at_whole(self, low: float, high: float) -> float:
        slope = (high - low) / (self.end - self.start)
        return high + max(0.0, slope) * (self.whole - self.end)
