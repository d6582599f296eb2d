"""Observers of calls, for ``connect(..., observers=[...])``: logs, spans, metrics and sums.

An observer is any function that takes a ``CallRecord``. Those here write log lines, create spans of
OpenTelemetry, count for Prometheus and OpenTelemetry, or add up capacity in the program itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.lazy_names import homes_of, lazy_names

if TYPE_CHECKING:
    from stator.metrics.endpoint import new_registry as new_registry
    from stator.metrics.endpoint import serve_registry as serve_registry
    from stator.tables.metrics.metrics_observer import MetricsObserver as MetricsObserver
    from stator.tables.metrics.metrics_observer import metrics_observer as metrics_observer
    from stator.tables.observers import CallRecord as CallRecord
    from stator.tables.observers import Meter as Meter
    from stator.tables.observers import Observer as Observer
    from stator.tables.observers import Usage as Usage
    from stator.tables.observers import UsedUnits as UsedUnits
    from stator.tables.telemetry import log_calls as log_calls
    from stator.tables.telemetry import trace_calls as trace_calls

_HOME_OF = homes_of(
    {
        "stator.metrics.endpoint": "new_registry serve_registry",
        "stator.tables.metrics.metrics_observer": "MetricsObserver metrics_observer",
        "stator.tables.observers": "CallRecord Meter Observer Usage UsedUnits",
        "stator.tables.telemetry": "log_calls trace_calls",
    }
)
__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
