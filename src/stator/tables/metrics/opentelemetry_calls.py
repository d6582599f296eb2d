"""Calls as metrics of OpenTelemetry, by its semantic conventions for databases.

``db.client.operation.duration`` is stable. The conventions have no metric for capacity units,
throttling or retries, so those have names of Stator's own.
https://opentelemetry.io/docs/specs/semconv/database/database-metrics/
"""

from __future__ import annotations

from typing import Any, Final

from stator.errors import ConfigurationError
from stator.metrics.catalogue import BYTES_BUCKETS, SECONDS_BUCKETS
from stator.tables.metrics.call_facts import CallFacts

SYSTEM: Final = "aws.dynamodb"


def opentelemetry(module: str) -> Any:
    """Import a module of OpenTelemetry's API, such as ``trace``.

    Raises ConfigurationError if it is not installed.
    """
    import importlib

    try:
        return importlib.import_module(f"opentelemetry.{module}")
    except ImportError:
        raise ConfigurationError(
            "OpenTelemetry is not installed", hint="pip install 'stator[opentelemetry]'"
        ) from None


class OpenTelemetryCalls:
    """Records calls with a meter of OpenTelemetry. None takes the global meter provider's."""

    def __init__(self, meter: Any = None) -> None:
        made = meter or opentelemetry("metrics").get_meter("stator")
        self._seconds = made.create_histogram(
            "db.client.operation.duration",
            unit="s",
            description="Duration of database client operations.",
            explicit_bucket_boundaries_advisory=SECONDS_BUCKETS,
        )
        self._returned = made.create_histogram(
            "db.client.response.returned_rows",
            unit="{row}",
            description="The actual number of records returned by the database operation.",
        )
        self._read_units = made.create_counter(
            "stator.read_units", unit="{unit}", description="Consumed read capacity units."
        )
        self._write_units = made.create_counter(
            "stator.write_units", unit="{unit}", description="Consumed write capacity units."
        )
        self._throttles = made.create_counter(
            "stator.throttles",
            unit="{refusal}",
            description="Refusals for throughput, those that were retried included.",
        )
        self._retries = made.create_counter(
            "stator.retries", unit="{attempt}", description="Attempts after the first."
        )
        self._item_bytes = made.create_histogram(
            "stator.item.size",
            unit="By",
            description="Size of items, one of each request.",
            explicit_bucket_boundaries_advisory=BYTES_BUCKETS,
        )

    def record(self, facts: CallFacts) -> None:
        place = {
            "db.system.name": SYSTEM,
            "db.collection.name": facts.table,
            "db.operation.name": facts.operation,
            "stator.pattern": facts.pattern,
        }
        if facts.entity:
            place["stator.entity"] = facts.entity
        ended = place if facts.result == "ok" else place | {"error.type": facts.result}
        self._seconds.record(facts.seconds, ended)
        if not facts.is_write and facts.result == "ok":
            self._returned.record(facts.item_count, place)
        units = self._write_units if facts.is_write else self._read_units
        for each in facts.used:
            named = {} if each.index is None else {"aws.dynamodb.index_name": each.index}
            units.add(each.units, place | {"db.collection.name": each.table} | named)
        for index, reason in facts.throttles:
            named = {"aws.dynamodb.index_name": index} if index else {}
            self._throttles.add(1, place | named | {"stator.throttle.reason": reason})
        if facts.retries:
            self._retries.add(facts.retries, place)
        if facts.item_bytes is not None:
            self._item_bytes.record(facts.item_bytes, place)
