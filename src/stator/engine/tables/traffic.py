"""The traffic of a table and its global indexes since the recorder of metrics last took it.

Requests append to plain lists, which is the cheapest thing a request can do. The recorder of the
engine's metrics (``engine.companions.metrics.recorder``) takes the lists, and turns them into
aggregates, at the end of each minute and after every few thousand requests.
"""

from __future__ import annotations


class KeyTraffic:
    """The keys of one table or global index that requests used, for Contributor Insights.

    ``accessed`` has storage keys with their weight, which is three times the write units or the
    read units. It is None if only throttled keys are wanted. ``throttled`` has the keys of requests
    that were refused.
    """

    __slots__ = ("accessed", "throttled")

    def __init__(self, *, counts_access: bool) -> None:
        self.accessed: list[tuple[bytes, float]] | None = [] if counts_access else None
        self.throttled: list[bytes] = []


class TableTraffic:
    """The samples of one table. The caller holds the engine's lock.

    ``latencies`` has seconds by operation. ``measured`` has values by metric and dimensions, whose
    names and values take turns in a tuple. ``events`` counts what happened, by metric, global index
    and operation; the last two are empty if they do not apply. ``keys`` has the keys of the table
    (under "") and of its indexes with Contributor Insights, or is None if there are none.
    """

    __slots__ = (
        "events",
        "index_reads",
        "index_writes",
        "keys",
        "latencies",
        "measured",
        "reads",
        "writes",
    )

    def __init__(self) -> None:
        self.reads: list[float] = []
        self.writes: list[float] = []
        self.index_reads: dict[str, list[float]] = {}
        self.index_writes: dict[str, list[float]] = {}
        self.latencies: dict[str, list[float]] = {}
        self.measured: dict[tuple[str, tuple[str, ...]], list[float]] = {}
        self.events: dict[tuple[str, str, str], int] = {}
        self.keys: dict[str, KeyTraffic] | None = None

    def read(self, index_name: str, units: float) -> None:
        """Add the read units of one request; ``index_name`` is empty for the table itself."""
        if not index_name:
            self.reads.append(units)
        else:
            self.index_reads.setdefault(index_name, []).append(units)

    def write(self, index_name: str, units: float) -> None:
        """Add the write units of one request; ``index_name`` is empty for the table itself."""
        if not index_name:
            self.writes.append(units)
        else:
            self.index_writes.setdefault(index_name, []).append(units)

    def measure(self, metric: str, dimensions: tuple[str, ...], value: float) -> None:
        """Add a value that an operation measured, such as the number of items it returned."""
        self.measured.setdefault((metric, dimensions), []).append(value)

    def count(self, metric: str, index_name: str = "", operation: str = "", times: int = 1) -> None:
        """Count an event, such as a throttled item."""
        key = (metric, index_name, operation)
        self.events[key] = self.events.get(key, 0) + times
