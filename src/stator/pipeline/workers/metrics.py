"""A worker's metrics for Prometheus: changes handled, changes parked, and lag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stator.metrics.catalogue import STREAM_COUNTERS, STREAM_LAG, STREAM_SHARDS, STREAM_TRIM
from stator.metrics.endpoint import family, new_registry, serve_registry

if TYPE_CHECKING:
    from stator.pipeline.workers.worker_threads import RunningWorker


def serve_metrics(running: RunningWorker, port: int, group: str, registry: Any = None) -> int:
    """Serve the metrics of a running worker over HTTP in a thread. Return the port.

    Each metric has the label ``group``. ``port`` 0 chooses a free port. ``registry`` may already
    have other metrics, such as those of the worker's calls.
    """
    shown = new_registry() if registry is None else registry
    shown.register(_Collector(running, group))
    return serve_registry(shown, port)


class _Collector:
    def __init__(self, running: RunningWorker, group: str) -> None:
        self._running = running
        self._group = group

    def collect(self) -> Iterator[Any]:
        progress = self._running.progress()
        for attribute, metric in STREAM_COUNTERS.items():
            counter = family(metric)
            counter.add_metric([self._group], getattr(progress, attribute))
            yield counter
        for metric, value in (
            (STREAM_LAG, progress.lag_seconds),
            (STREAM_TRIM, progress.trim_seconds),
            (STREAM_SHARDS, float(len(self._running.worker.consumers))),
        ):
            if value is None:  # unknown: a metric that is absent raises an alarm, a zero would not
                continue
            gauge = family(metric)
            gauge.add_metric([self._group], value)
            yield gauge
