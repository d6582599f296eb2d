"""The page that Prometheus reads: the metrics of a registry, over HTTP."""

from __future__ import annotations

from typing import Any

from stator.errors import ConfigurationError
from stator.metrics.catalogue import ExportedMetric


def prometheus(module: str = "prometheus_client") -> Any:
    """Import a module of prometheus-client. Raises ConfigurationError if it is not installed."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConfigurationError(
            "prometheus-client is not installed", hint="pip install 'stator[prometheus]'"
        ) from None


def new_registry() -> Any:
    """Return an empty registry, which ``serve_registry`` can serve."""
    return prometheus().CollectorRegistry()


def registered(metric: ExportedMetric, registry: Any) -> Any:
    """Return a new counter, gauge or histogram of prometheus-client for a metric."""
    client = prometheus()
    if metric.kind == "histogram":
        return client.Histogram(
            metric.name, metric.about, metric.labels, registry=registry, buckets=metric.buckets
        )
    kind = client.Counter if metric.kind == "counter" else client.Gauge
    return kind(metric.name, metric.about, metric.labels, registry=registry)


def family(metric: ExportedMetric) -> Any:
    """Return a metric family that a collector fills with ``add_metric``."""
    core = prometheus("prometheus_client.core")
    kind = core.CounterMetricFamily if metric.kind == "counter" else core.GaugeMetricFamily
    return kind(metric.name.removesuffix("_total"), metric.about, labels=metric.labels)


def serve_registry(registry: Any, port: int, host: str = "0.0.0.0") -> int:  # noqa: S104
    """Serve the metrics of a registry at ``/metrics``, in a thread. Return the port.

    ``port`` 0 chooses a free port. Prometheus usually reads from another machine, so every network
    is the default.
    """
    try:
        server, _ = prometheus().start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise ConfigurationError(
            f"port {port} cannot be used: {error.strerror}",
            hint="choose another port, or 0 for any free one",
        ) from None
    return int(server.server_port)
