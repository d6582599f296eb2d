"""A worker's metrics for Prometheus: changes handled, changes parked, and lag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stator.errors import ConfigurationError

if TYPE_CHECKING:
    from stator.pipeline.workers.worker_threads import RunningWorker

_COUNTERS = {
    "records": "Changes read from the stream",
    "handled": "Changes handled",
    "set_aside": "Changes set aside for a subscriber, to be retried",
    "parked": "Changes parked because they could not be handled",
    "retried": "Retries of items that were set aside",
    "lost": "Shards with changes that were trimmed before they were read",
}


def serve_metrics(running: RunningWorker, port: int, group: str) -> int:
    """Serve the metrics over HTTP in a thread. Return the port.

    ``port`` 0 chooses a free port.
    """
    try:
        from prometheus_client import start_http_server
        from prometheus_client.core import CollectorRegistry
    except ImportError:
        raise ConfigurationError(
            "prometheus-client is not installed", hint="pip install 'stator[prometheus]'"
        ) from None
    registry = CollectorRegistry()
    registry.register(_Collector(running, group))
    try:
        server, _ = start_http_server(port, registry=registry)
    except OSError as error:
        raise ConfigurationError(
            f"port {port} cannot be used: {error.strerror}",
            hint="choose another port, or 0 for any free one",
        ) from None
    return int(server.server_port)


class _Collector:
    def __init__(self, running: RunningWorker, group: str) -> None:
        self._running = running
        self._group = group

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        progress = self._running.progress()
        for name, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"stator_stream_{name}", text, labels=["group"])
            counter.add_metric([self._group], getattr(progress, name))
            yield counter
        gauges = {
            "lag_seconds": ("Age of the oldest change not yet handled", progress.lag_seconds),
            "trim_seconds": (
                "Time until the oldest change not yet handled is trimmed",
                progress.trim_seconds,
            ),
            "shards": ("Shards this worker reads", float(len(self._running.worker.consumers))),
        }
        for name, (text, value) in gauges.items():
            if value is None:  # unknown: a metric that is absent raises an alarm, a zero would not
                continue
            gauge = GaugeMetricFamily(f"stator_stream_{name}", text, labels=["group"])
            gauge.add_metric([self._group], value)
            yield gauge
