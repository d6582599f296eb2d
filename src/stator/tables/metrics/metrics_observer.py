"""The observer that counts calls, for Prometheus, for OpenTelemetry, or for both."""

from __future__ import annotations

from typing import Any, Protocol

from stator.clock import Clock
from stator.design.design import Design
from stator.metrics.label_cap import MAX_LABELS
from stator.tables.metrics.call_facts import CallFacts, FactReader
from stator.tables.metrics.opentelemetry_calls import OpenTelemetryCalls
from stator.tables.metrics.prometheus_calls import PrometheusCalls
from stator.tables.observers import CallRecord


class CallSink(Protocol):
    """A monitoring system that receives the facts of every call."""

    def record(self, facts: CallFacts) -> None: ...


class MetricsObserver:
    """An observer that passes the facts of each call to its sinks. Threads may share it."""

    by_index = True

    def __init__(self, reader: FactReader, sinks: tuple[CallSink, ...]) -> None:
        self._reader = reader
        self._sinks = sinks

    def __call__(self, record: CallRecord) -> None:
        facts = self._reader.of(record)
        for sink in self._sinks:
            sink.record(facts)


def metrics_observer(
    design: Design | None = None,
    *,
    registry: Any = None,
    meter: Any = None,
    prefix: str = "",
    max_labels: int = MAX_LABELS,
    top_keys: int = 10,
    show_keys: bool = False,
    clock: Clock | None = None,
) -> MetricsObserver:
    """Return an observer that counts calls by pattern, entity and table.

    ``registry`` is a registry of prometheus-client, and ``meter`` a meter of OpenTelemetry; the
    calls are counted in each of them that is given. Without both, they are counted in
    prometheus-client's own ``REGISTRY``.

    ``design`` tells the entity of each pattern, and which keys are busy; ``prefix`` is the text
    before its table names, as in ``connect``. The ``top_keys`` busiest partition keys are shown as
    hashes, or as they are with ``show_keys``. A label has at most ``max_labels`` values; calls with
    any further value are counted as "other".
    """
    reader = FactReader(
        None if design is None else design.plan(),
        prefix=prefix,
        max_labels=max_labels,
        show_keys=show_keys,
    )
    sinks: list[CallSink] = []
    if meter is not None:
        sinks.append(OpenTelemetryCalls(meter))
    if registry is not None or meter is None:
        sinks.append(PrometheusCalls(_registry(registry), top_keys=top_keys, clock=clock))
    return MetricsObserver(reader, tuple(sinks))


def _registry(given: Any) -> Any:
    if given is not None:
        return given
    from stator.metrics.endpoint import prometheus

    return prometheus().REGISTRY
