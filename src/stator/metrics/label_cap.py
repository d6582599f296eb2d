"""Limits the number of different values of a label.

Each combination of label values is a time series in the monitoring system. A label whose values
come from data, such as a table per tenant, could make more series than that system can hold.
"""

from __future__ import annotations

import threading
from typing import Final

from stator.errors import ConfigurationError

MAX_LABELS: Final = 200
OTHER: Final = "other"


class LabelCap:
    """Passes the first ``limit`` different values of a label, and turns all later ones to "other".

    A value that passed once always passes.
    """

    __slots__ = ("_limit", "_lock", "_seen")

    def __init__(self, limit: int = MAX_LABELS) -> None:
        if limit < 1:
            raise ConfigurationError(
                f"max_labels={limit} is not positive", hint="use at least 1; the default is 200"
            )
        self._limit = limit
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def capped(self, value: str) -> str:
        if value in self._seen:
            return value
        with self._lock:
            if value not in self._seen:
                if len(self._seen) >= self._limit:
                    return OTHER
                self._seen.add(value)
        return value
