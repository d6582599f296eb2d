"""Calls as metrics of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stator.clock import Clock
from stator.metrics.busy_keys import BusyKeys
from stator.metrics.catalogue import (
    ITEM_BYTES,
    ITEMS_RETURNED,
    ITEMS_SCANNED,
    KEY_UNITS,
    PAGES,
    READ_UNITS,
    REQUESTS,
    RETRIES,
    SECONDS,
    THROTTLES,
    WRITE_UNITS,
)
from stator.metrics.endpoint import family, registered
from stator.tables.metrics.call_facts import CallFacts


class PrometheusCalls:
    """Counts calls in a registry of prometheus-client."""

    def __init__(self, registry: Any, *, top_keys: int, clock: Clock | None = None) -> None:
        self._requests = registered(REQUESTS, registry)
        self._seconds = registered(SECONDS, registry)
        self._read_units = registered(READ_UNITS, registry)
        self._write_units = registered(WRITE_UNITS, registry)
        self._throttles = registered(THROTTLES, registry)
        self._retries = registered(RETRIES, registry)
        self._item_bytes = registered(ITEM_BYTES, registry)
        self._pages = registered(PAGES, registry)
        self._scanned = registered(ITEMS_SCANNED, registry)
        self._returned = registered(ITEMS_RETURNED, registry)
        self._keys = BusyKeys(clock)
        registry.register(_KeyCollector(self._keys, top_keys))

    def record(self, facts: CallFacts) -> None:
        table, pattern, entity = facts.table, facts.pattern, facts.entity
        self._requests.labels(table, facts.operation, pattern, entity, facts.result).inc()
        self._seconds.labels(table, facts.operation, pattern).observe(facts.seconds)
        units = self._write_units if facts.is_write else self._read_units
        for each in facts.used:
            units.labels(each.table or table, each.index or "", pattern, entity).inc(each.units)
        for index, reason in facts.throttles:
            self._throttles.labels(table, index, reason, pattern).inc()
        if facts.retries:
            self._retries.labels(table, pattern).inc(facts.retries)
        if facts.item_bytes is not None:
            self._item_bytes.labels(table, entity).observe(facts.item_bytes)
        if facts.is_page:
            self._pages.labels(table, pattern).inc()
            self._scanned.labels(table, pattern).inc(facts.scanned_count)
        if not facts.is_write:
            self._returned.labels(table, pattern).inc(facts.item_count)
        for key, key_units in facts.keys:
            self._keys.add(table, key, key_units)


class _KeyCollector:
    def __init__(self, keys: BusyKeys, count: int) -> None:
        self._keys = keys
        self._count = count

    def collect(self) -> Iterator[Any]:
        gauge = family(KEY_UNITS)
        for table, key, rate in self._keys.busiest(self._count):
            gauge.add_metric([table, key], rate)
        yield gauge
