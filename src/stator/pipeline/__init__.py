"""Data in motion: jobs that move items in bulk, and subscribers that follow changes.

``bulk`` loads, exports and copies tables. ``workers`` reads the streams of a design's tables and
hands changes to subscribers: handlers, ``views`` (aggregates), ``sinks`` (other systems) and
``maintenance`` (roll-ups, links, outboxes, guards). ``ingest`` writes the records of Kafka topics.

What does not live here: single reads and writes (``tables``), pattern objects (``patterns``), and
the leases, positions and retries that workers share with patterns (``coordination``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.lazy_names import homes_of, lazy_names

if TYPE_CHECKING:
    from stator.pipeline.ingest.app import Ingest as Ingest
    from stator.pipeline.ingest.dead_records import DeadRecord as DeadRecord
    from stator.pipeline.ingest.dead_records import DeadRecordFile as DeadRecordFile
    from stator.pipeline.ingest.dead_records import DeadRecordList as DeadRecordList
    from stator.pipeline.ingest.dead_records import DeadRecords as DeadRecords
    from stator.pipeline.ingest.dead_records import DeadRecordTable as DeadRecordTable
    from stator.pipeline.ingest.dead_records import DeadRecordTopic as DeadRecordTopic
    from stator.pipeline.ingest.explanation import GuardCost as GuardCost
    from stator.pipeline.ingest.explanation import IngestExplanation as IngestExplanation
    from stator.pipeline.ingest.explanation import RouteExplanation as RouteExplanation
    from stator.pipeline.ingest.intake import IngestProgress as IngestProgress
    from stator.pipeline.ingest.kafka_source import KafkaOptions as KafkaOptions
    from stator.pipeline.ingest.options import IngestOptions as IngestOptions
    from stator.pipeline.ingest.running_ingest import RunningIngest as RunningIngest
    from stator.pipeline.ingest.source_record import Lane as Lane
    from stator.pipeline.ingest.source_record import SourceRecord as SourceRecord
    from stator.pipeline.ingest.values.decoders import Decoder as Decoder
    from stator.pipeline.ingest.values.decoders import Json as Json
    from stator.pipeline.ingest.values.registered_values import Avro as Avro
    from stator.pipeline.ingest.values.registered_values import JsonSchema as JsonSchema
    from stator.pipeline.ingest.values.registered_values import Protobuf as Protobuf
    from stator.pipeline.ingest.values.schema_registry import RegisteredSchema as RegisteredSchema
    from stator.pipeline.ingest.values.schema_registry import SchemaRegistry as SchemaRegistry
    from stator.pipeline.sinks.audit import AuditLog as AuditLog
    from stator.pipeline.sinks.audit_chain import AuditEntry as AuditEntry
    from stator.pipeline.sinks.audit_chain import AuditProblem as AuditProblem
    from stator.pipeline.sinks.audit_chain import AuditReport as AuditReport
    from stator.pipeline.sinks.audit_chain import Seal as Seal
    from stator.pipeline.sinks.change_sink import Message as Message
    from stator.pipeline.sinks.change_sink import SinkOptions as SinkOptions
    from stator.pipeline.sinks.kafka import KafkaSink as KafkaSink
    from stator.pipeline.sinks.kinesis import KinesisSink as KinesisSink
    from stator.pipeline.sinks.parquet import ParquetSink as ParquetSink
    from stator.pipeline.sinks.parquet import read_changes as read_changes
    from stator.pipeline.sinks.sink import Refusal as Refusal
    from stator.pipeline.sinks.sink import Sink as Sink
    from stator.pipeline.sinks.sqs_sns import SnsSink as SnsSink
    from stator.pipeline.sinks.sqs_sns import SqsSink as SqsSink
    from stator.pipeline.sinks.table import TableSink as TableSink
    from stator.pipeline.sinks.webhook import WebhookSink as WebhookSink
    from stator.pipeline.sinks.webhook import verify_signature as verify_signature
    from stator.pipeline.views.metrics import avg as avg
    from stator.pipeline.views.metrics import count as count
    from stator.pipeline.views.metrics import latest as latest
    from stator.pipeline.views.metrics import maximum as maximum
    from stator.pipeline.views.metrics import minimum as minimum
    from stator.pipeline.views.metrics import percentiles as percentiles
    from stator.pipeline.views.metrics import sum_of as sum_of
    from stator.pipeline.views.metrics import top as top
    from stator.pipeline.views.projection import Projection as Projection
    from stator.pipeline.views.projection import ProjectionReader as ProjectionReader
    from stator.pipeline.views.reader import ViewReader as ViewReader
    from stator.pipeline.views.rebuild.rebuild import RebuildOptions as RebuildOptions
    from stator.pipeline.views.rebuild.rebuild import RebuildReport as RebuildReport
    from stator.pipeline.views.rows import Row as Row
    from stator.pipeline.views.view import View as View
    from stator.pipeline.workers.app import StreamApp as StreamApp
    from stator.pipeline.workers.handlers.change import Change as Change
    from stator.pipeline.workers.handlers.change import Insert as Insert
    from stator.pipeline.workers.handlers.change import Modify as Modify
    from stator.pipeline.workers.handlers.change import Remove as Remove
    from stator.pipeline.workers.options import WorkerOptions as WorkerOptions
    from stator.pipeline.workers.shards.lease_holder import ShardProgress as ShardProgress
    from stator.pipeline.workers.worker_threads import RunningWorker as RunningWorker

_HOME_OF = homes_of(
    {
        "stator.pipeline.ingest.app": "Ingest",
        "stator.pipeline.ingest.dead_records": (
            "DeadRecord DeadRecordFile DeadRecordList DeadRecords DeadRecordTable DeadRecordTopic"
        ),
        "stator.pipeline.ingest.values.decoders": "Decoder Json",
        "stator.pipeline.ingest.explanation": "GuardCost IngestExplanation RouteExplanation",
        "stator.pipeline.ingest.intake": "IngestProgress",
        "stator.pipeline.ingest.kafka_source": "KafkaOptions",
        "stator.pipeline.ingest.options": "IngestOptions",
        "stator.pipeline.ingest.values.registered_values": "Avro JsonSchema Protobuf",
        "stator.pipeline.ingest.running_ingest": "RunningIngest",
        "stator.pipeline.ingest.values.schema_registry": "RegisteredSchema SchemaRegistry",
        "stator.pipeline.ingest.source_record": "Lane SourceRecord",
        "stator.pipeline.sinks.audit": "AuditLog",
        "stator.pipeline.sinks.audit_chain": "AuditEntry AuditProblem AuditReport Seal",
        "stator.pipeline.sinks.change_sink": "Message SinkOptions",
        "stator.pipeline.sinks.kafka": "KafkaSink",
        "stator.pipeline.sinks.kinesis": "KinesisSink",
        "stator.pipeline.sinks.parquet": "ParquetSink read_changes",
        "stator.pipeline.sinks.sink": "Refusal Sink",
        "stator.pipeline.sinks.sqs_sns": "SnsSink SqsSink",
        "stator.pipeline.sinks.table": "TableSink",
        "stator.pipeline.sinks.webhook": "WebhookSink verify_signature",
        "stator.pipeline.views.metrics": "avg count latest maximum minimum percentiles sum_of top",
        "stator.pipeline.views.projection": "Projection ProjectionReader",
        "stator.pipeline.views.reader": "ViewReader",
        "stator.pipeline.views.rebuild.rebuild": "RebuildOptions RebuildReport",
        "stator.pipeline.views.rows": "Row",
        "stator.pipeline.views.view": "View",
        "stator.pipeline.workers.app": "StreamApp",
        "stator.pipeline.workers.handlers.change": "Change Insert Modify Remove",
        "stator.pipeline.workers.options": "WorkerOptions",
        "stator.pipeline.workers.shards.lease_holder": "ShardProgress",
        "stator.pipeline.workers.worker_threads": "RunningWorker",
    }
)
__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
