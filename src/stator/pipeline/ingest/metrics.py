"""An ingest's metrics for Prometheus: records read, written and refused, and lag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stator.metrics.catalogue import (
    INGEST_COUNTERS,
    INGEST_LAG,
    INGEST_PARTITIONS,
    INGEST_UNREAD,
    INGEST_WAITING,
)
from stator.metrics.endpoint import family, new_registry, serve_registry

if TYPE_CHECKING:
    from stator.pipeline.ingest.running_ingest import RunningIngest


def serve_metrics(running: RunningIngest, port: int, registry: Any = None) -> int:
    """Serve the metrics of a running ingest over HTTP in a thread. Return the port.

    Each metric has the label ``group``. ``port`` 0 chooses a free port. ``registry`` may already
    have other metrics, such as those of the calls.
    """
    shown = new_registry() if registry is None else registry
    shown.register(_Collector(running))
    return serve_registry(shown, port)


class _Collector:
    def __init__(self, running: RunningIngest) -> None:
        self._running = running

    def collect(self) -> Iterator[Any]:
        progress, group = self._running.progress(), self._running.group
        for attribute, metric in INGEST_COUNTERS.items():
            counter = family(metric)
            counter.add_metric([group], getattr(progress, attribute))
            yield counter
        for metric, value in (
            (INGEST_LAG, progress.lag_seconds),
            (INGEST_UNREAD, progress.lag_records),
            (INGEST_WAITING, progress.waiting),
            (INGEST_PARTITIONS, progress.partitions),
        ):
            if value is None:  # unknown: a metric that is absent raises an alarm, a zero would not
                continue
            gauge = family(metric)
            gauge.add_metric([group], float(value))
            yield gauge
