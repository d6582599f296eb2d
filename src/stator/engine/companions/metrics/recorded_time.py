"""When the engine recorded metrics, and since when each table and global index has existed.

DynamoDB reports consumed units of zero for each minute in which a table is idle. The engine does
not store these zeros. It derives them: a minute without data is zero if metrics were recorded and
the table existed. While the engine is closed, or open without metrics, there are no data points.

The state is stored as JSON under ``c m i``. The caller holds the engine's lock.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from stator.engine import keyspace
from stator.engine.companions.metrics.series import Metric
from stator.model.scope import Scope
from stator.storage import Storage

NAMESPACE: Final = "AWS/DynamoDB"
CONSUMED: Final = ("ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits")
_KEY: Final = keyspace.COMPANIONS + b"mi"
_MINUTE: Final = 60
_KEPT_SECONDS: Final = 15 * 86_400

# The scope, the table's name, and the global index's name or an empty string.
Holder = tuple[Scope, str, str]


class RecordedTime:
    """When metrics were recorded, and when each table and global index existed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._spans: list[tuple[int, int]] = []
        # When each table or index was first seen, and when it was gone.
        self._lives: dict[Holder, tuple[int, int | None]] = {}
        self._changed = False
        record = storage.get(_KEY)
        if record is not None:
            self._read(orjson.loads(record))

    def _read(self, state: dict[str, Any]) -> None:
        self._spans = [(low, high) for low, high in state["spans"]]
        for account, region, table, index, since, until in state["lives"]:
            self._lives[Scope(account, region), table, index] = (since, until)

    def start(self, minute: int) -> None:
        """Note that metrics are recorded from this minute on."""
        if not self._spans or self._spans[-1][1] < minute:
            self._spans.append((minute, minute))

    def extend(self, end: int, holders: list[Holder]) -> None:
        """Record that a minute has ended, and which tables and global indexes exist."""
        low, high = self._spans[-1]
        self._spans[-1] = (low, max(high, end))
        self._changed = True
        present = set(holders)
        for holder in present:
            since, until = self._lives.get(holder, (end - _MINUTE, None))
            if holder not in self._lives or until is not None:
                self._lives[holder] = (since if until is None else end - _MINUTE, None)
        for holder, (since, until) in self._lives.items():
            if until is None and holder not in present:
                self._lives[holder] = (since, end - _MINUTE)

    def forget(self, now: float) -> None:
        """Forget the spans and tables that ended before the oldest minute still kept."""
        horizon = int(now) - _KEPT_SECONDS
        self._spans = [span for span in self._spans if span[1] > horizon] or self._spans[-1:]
        self._lives = {
            holder: (since, until)
            for holder, (since, until) in self._lives.items()
            if until is None or until > horizon
        }

    def store(self) -> None:
        if not self._changed:
            return
        state = {
            "version": 1,
            "spans": self._spans,
            "lives": [
                [*scope, table, index, since, until]
                for (scope, table, index), (since, until) in self._lives.items()
            ],
        }
        self._storage.write({_KEY: orjson.dumps(state)}, undoable=True)
        self._changed = False

    def idle_spans(self, metric: Metric, low: int, high: int) -> list[range]:
        """Return the minutes in which a consumed metric was zero unless it has data."""
        if metric.namespace != NAMESPACE or metric.name not in CONSUMED:
            return []
        dimensions = dict(metric.dimensions)
        table = dimensions.pop("TableName", "")
        index = dimensions.pop("GlobalSecondaryIndexName", "")
        life = self._lives.get((metric.scope, table, index))
        if dimensions or life is None:
            return []
        since, until = life
        spans: list[range] = []
        for first, end in self._spans:
            begin = -(-max(first, since, low) // _MINUTE) * _MINUTE
            spans.append(range(begin, min(end, high, end if until is None else until), _MINUTE))
        return [span for span in spans if span]
