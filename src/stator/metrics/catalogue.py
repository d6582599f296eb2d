"""The metrics that Stator exports to Prometheus: names, kinds, labels and meanings.

Names follow Prometheus's rules: base units (seconds, bytes), ``_total`` on counters. Recorders
create their metrics from these entries, and dashboards and alarms query them.
https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class ExportedMetric:
    """A metric: its name, kind, meaning and labels. ``buckets`` are a histogram's upper bounds."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    about: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()


SECONDS_BUCKETS: Final = (
    *(0.001, 0.0025, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.075),
    *(0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)
"""OpenTelemetry advises these bounds for ``db.client.operation.duration``, from 1 ms; finer here
below 0.1 s, where DynamoDB answers."""
_KIB: Final = 1024
BYTES_BUCKETS: Final = tuple(
    float(each * _KIB) for each in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 100, 200, 300, 400)
)
"""A write unit is 1 KB, a read unit 4 KB, and an item has at most 400 KB."""

_PLACE: Final = ("table", "index", "pattern", "entity")

REQUESTS: Final = ExportedMetric(
    "stator_requests_total",
    "counter",
    "Requests to DynamoDB; result is ok, or the error that ended the request",
    ("table", "operation", "pattern", "entity", "result"),
)
SECONDS: Final = ExportedMetric(
    "stator_request_seconds",
    "histogram",
    "Duration of requests, retries included",
    ("table", "operation", "pattern"),
    SECONDS_BUCKETS,
)
READ_UNITS: Final = ExportedMetric(
    "stator_read_units_total", "counter", "Consumed read capacity units", _PLACE
)
WRITE_UNITS: Final = ExportedMetric(
    "stator_write_units_total", "counter", "Consumed write capacity units", _PLACE
)
THROTTLES: Final = ExportedMetric(
    "stator_throttles_total",
    "counter",
    "Refusals for throughput, those that were retried included",
    ("table", "index", "reason", "pattern"),
)
RETRIES: Final = ExportedMetric(
    "stator_retries_total", "counter", "Attempts after the first", ("table", "pattern")
)
ITEM_BYTES: Final = ExportedMetric(
    "stator_item_bytes",
    "histogram",
    "Size of items, one of each request that reads or writes whole items",
    ("table", "entity"),
    BYTES_BUCKETS,
)
PAGES: Final = ExportedMetric(
    "stator_pages_total", "counter", "Pages of queries and scans", ("table", "pattern")
)
ITEMS_SCANNED: Final = ExportedMetric(
    "stator_items_scanned_total",
    "counter",
    "Items that queries and scans read, before filters",
    ("table", "pattern"),
)
ITEMS_RETURNED: Final = ExportedMetric(
    "stator_items_returned_total",
    "counter",
    "Items that requests returned, after filters",
    ("table", "pattern"),
)
KEY_UNITS: Final = ExportedMetric(
    "stator_hot_key_units_per_second",
    "gauge",
    "Capacity units a second of the busiest partition keys; key is a hash unless keys are shown",
    ("table", "key"),
)
CALL_METRICS: Final = (
    REQUESTS,
    SECONDS,
    READ_UNITS,
    WRITE_UNITS,
    THROTTLES,
    RETRIES,
    ITEM_BYTES,
    PAGES,
    ITEMS_SCANNED,
    ITEMS_RETURNED,
    KEY_UNITS,
)

SERVER_REQUESTS: Final = ExportedMetric(
    "stator_server_requests_total",
    "counter",
    "Requests that `stator serve` answered; result is ok, or the error code",
    ("operation", "table", "result"),
)
SERVER_SECONDS: Final = ExportedMetric(
    "stator_server_request_seconds",
    "histogram",
    "Time that the engine took for a request, without the wait for the disk",
    ("operation", "table"),
    (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0),
)
SERVER_THROTTLES: Final = ExportedMetric(
    "stator_server_throttles_total",
    "counter",
    "Requests that `stator serve --throughput enforced` refused, by DynamoDB's reason",
    ("table", "reason"),
)
SERVER_METRICS: Final = (SERVER_REQUESTS, SERVER_SECONDS, SERVER_THROTTLES)

_GROUP: Final = ("group",)
STREAM_COUNTERS: Final = {
    "records": ExportedMetric(
        "stator_stream_records_total", "counter", "Changes read from the stream", _GROUP
    ),
    "handled": ExportedMetric("stator_stream_handled_total", "counter", "Changes handled", _GROUP),
    "set_aside": ExportedMetric(
        "stator_stream_set_aside_total",
        "counter",
        "Changes set aside for a subscriber, to be retried",
        _GROUP,
    ),
    "parked": ExportedMetric(
        "stator_stream_parked_total",
        "counter",
        "Changes parked because they could not be handled",
        _GROUP,
    ),
    "retried": ExportedMetric(
        "stator_stream_retried_total", "counter", "Retries of items that were set aside", _GROUP
    ),
    "lost": ExportedMetric(
        "stator_stream_lost_total",
        "counter",
        "Shards with changes that were trimmed before they were read",
        _GROUP,
    ),
}
"""Each counter of a worker by the name of its attribute in ``ShardProgress``."""
STREAM_LAG: Final = ExportedMetric(
    "stator_stream_lag_seconds", "gauge", "Age of the oldest change not yet handled", _GROUP
)
STREAM_TRIM: Final = ExportedMetric(
    "stator_stream_trim_seconds",
    "gauge",
    "Time until the oldest change not yet handled is trimmed",
    _GROUP,
)
STREAM_SHARDS: Final = ExportedMetric(
    "stator_stream_shards", "gauge", "Shards this worker reads", _GROUP
)
STREAM_METRICS: Final = (*STREAM_COUNTERS.values(), STREAM_LAG, STREAM_TRIM, STREAM_SHARDS)

_LOADED: Final = ("table",)
LOAD_WRITTEN: Final = ExportedMetric(
    "stator_load_rows_written_total", "counter", "Rows that a load has written", _LOADED
)
LOAD_FAILED: Final = ExportedMetric(
    "stator_load_rows_failed_total", "counter", "Rows that a load could not write", _LOADED
)
LOAD_THROTTLED: Final = ExportedMetric(
    "stator_load_throttles_total", "counter", "Throttled writes of a load", _LOADED
)
LOAD_UNITS: Final = ExportedMetric(
    "stator_load_write_units_per_second", "gauge", "Write units a second of a load", _LOADED
)
LOAD_SHARE: Final = ExportedMetric(
    "stator_load_done_ratio", "gauge", "Share of the input that a load has done", _LOADED
)
LOAD_METRICS: Final = (LOAD_WRITTEN, LOAD_FAILED, LOAD_THROTTLED, LOAD_UNITS, LOAD_SHARE)

INGEST_COUNTERS: Final = {
    "records": ExportedMetric(
        "stator_ingest_records_total", "counter", "Records read from topics", _GROUP
    ),
    "written": ExportedMetric(
        "stator_ingest_writes_total", "counter", "Writes of an ingest that were applied", _GROUP
    ),
    "folded": ExportedMetric(
        "stator_ingest_folded_total",
        "counter",
        "Records that were written together with another record of their key",
        _GROUP,
    ),
    "stale": ExportedMetric(
        "stator_ingest_stale_total",
        "counter",
        "Records that the table had already, or something newer",
        _GROUP,
    ),
    "dead": ExportedMetric(
        "stator_ingest_dead_letters_total",
        "counter",
        "Records that could not be decoded or written",
        _GROUP,
    ),
    "unrouted": ExportedMetric(
        "stator_ingest_unrouted_total", "counter", "Records that no route takes", _GROUP
    ),
    "lost": ExportedMetric(
        "stator_ingest_lost_total",
        "counter",
        "Records that were deleted from their topic before they were read",
        _GROUP,
    ),
}
"""Each counter of an ingest by the name of its attribute in ``IngestProgress``."""
INGEST_LAG: Final = ExportedMetric(
    "stator_ingest_lag_seconds", "gauge", "Age of the oldest record not yet written", _GROUP
)
INGEST_UNREAD: Final = ExportedMetric(
    "stator_ingest_unread_records", "gauge", "Records in this process's partitions to read", _GROUP
)
INGEST_WAITING: Final = ExportedMetric(
    "stator_ingest_waiting_records", "gauge", "Records read and not yet written", _GROUP
)
INGEST_PARTITIONS: Final = ExportedMetric(
    "stator_ingest_partitions", "gauge", "Partitions this process reads", _GROUP
)
INGEST_METRICS: Final = (
    *INGEST_COUNTERS.values(),
    INGEST_LAG,
    INGEST_UNREAD,
    INGEST_WAITING,
    INGEST_PARTITIONS,
)

EXPORTED_METRICS: Final = (
    *CALL_METRICS,
    *SERVER_METRICS,
    *STREAM_METRICS,
    *LOAD_METRICS,
    *INGEST_METRICS,
)
