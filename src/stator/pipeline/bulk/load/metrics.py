"""A load's metrics for Prometheus: rows written and failed, throttling, and how much is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stator.metrics.catalogue import (
    LOAD_FAILED,
    LOAD_SHARE,
    LOAD_THROTTLED,
    LOAD_UNITS,
    LOAD_WRITTEN,
)
from stator.metrics.endpoint import family, new_registry, serve_registry

if TYPE_CHECKING:
    from stator.pipeline.bulk.load.load import LoadProgress


class LoadMetrics:
    """Holds a load's latest progress, for Prometheus to collect."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._progress: LoadProgress | None = None

    def note(self, progress: LoadProgress) -> None:
        self._progress = progress

    def serve(self, port: int) -> int:
        """Serve the metrics over HTTP in a thread. Return the port; 0 chooses a free one."""
        registry = new_registry()
        registry.register(self)
        return serve_registry(registry, port)

    def collect(self) -> Iterator[Any]:
        progress = self._progress
        if progress is None:  # before the first rows, nothing is known
            return
        for metric, value in (
            (LOAD_WRITTEN, progress.counts.written),
            (LOAD_FAILED, progress.counts.failed),
            (LOAD_THROTTLED, progress.pace.throttled),
            (LOAD_UNITS, progress.pace.measured),
            (LOAD_SHARE, progress.share),
        ):
            found = family(metric)
            found.add_metric([self._table], float(value))
            yield found
