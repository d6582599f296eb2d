"""Stator: data platforms on DynamoDB.

The names that most programs need can be imported from here. A name imports its module when it is
first used, so ``import stator`` alone loads nothing else. Type checkers read the imports below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stator.design.design import Design as Design
    from stator.design.design import per as per
    from stator.design.entities.adapters import adapt as adapt
    from stator.design.entities.conditions import attr as attr
    from stator.design.entities.custom_codecs import register_codec as register_codec
    from stator.design.entities.derived_parts import day_of as day_of
    from stator.design.entities.derived_parts import hour_of as hour_of
    from stator.design.entities.derived_parts import month_of as month_of
    from stator.design.entities.derived_parts import prefix_of as prefix_of
    from stator.design.entities.derived_parts import year_of as year_of
    from stator.design.entities.entity import Entity as Entity
    from stator.design.entities.entity import upcast as upcast
    from stator.design.entities.hooks import after_load as after_load
    from stator.design.entities.hooks import before_write as before_write
    from stator.design.entities.markers import counter as counter
    from stator.design.entities.markers import created as created
    from stator.design.entities.markers import ident as ident
    from stator.design.entities.markers import large as large
    from stator.design.entities.markers import soft_delete as soft_delete
    from stator.design.entities.markers import stored as stored
    from stator.design.entities.markers import ttl as ttl
    from stator.design.entities.markers import unique as unique
    from stator.design.entities.markers import updated as updated
    from stator.design.entities.markers import version as version
    from stator.design.entities.markers import write_token as write_token
    from stator.design.entities.packed_numbers import packed as packed
    from stator.design.entities.written_keys import IndexKey as IndexKey
    from stator.design.patterns.pattern import Bundle2 as Bundle2
    from stator.design.patterns.pattern import Bundle3 as Bundle3
    from stator.design.patterns.pattern import Bundle4 as Bundle4
    from stator.design.patterns.pattern import BundleMany as BundleMany
    from stator.design.patterns.pattern import Count as Count
    from stator.design.patterns.pattern import Only as Only
    from stator.design.patterns.pattern import Query as Query
    from stator.design.patterns.pattern import creates as creates
    from stator.design.patterns.pattern import deletes as deletes
    from stator.design.patterns.pattern import descending as descending
    from stator.design.patterns.pattern import find as find
    from stator.design.patterns.pattern import read as read
    from stator.design.patterns.pattern import together as together
    from stator.design.patterns.pattern import updates as updates
    from stator.design.patterns.pattern import write as write
    from stator.design.table_settings import ProvisionedCapacity as ProvisionedCapacity
    from stator.design.table_settings import TableSettings as TableSettings
    from stator.design.value_facts import distinct as distinct
    from stator.design.value_facts import largest as largest
    from stator.design.value_facts import share as share
    from stator.engine import Engine as Engine
    from stator.patterns.blob_audit import BlobAudit as BlobAudit
    from stator.patterns.counter import Counter as Counter
    from stator.patterns.leaderboard.leaderboard import Leaderboard as Leaderboard
    from stator.patterns.links import Links as Links
    from stator.patterns.lock import Lock as Lock
    from stator.patterns.once import Once as Once
    from stator.patterns.outbox.outbox import Outbox as Outbox
    from stator.patterns.rollups.rollup import Rollup as Rollup
    from stator.patterns.sequence import Sequence as Sequence
    from stator.patterns.series.series import Series as Series
    from stator.patterns.tree.tree import Tree as Tree
    from stator.patterns.unique_audit import UniqueAudit as UniqueAudit
    from stator.pipeline.sinks.audit import AuditLog as AuditLog
    from stator.pipeline.sinks.change_sink import Message as Message
    from stator.pipeline.sinks.kafka import KafkaSink as KafkaSink
    from stator.pipeline.sinks.kinesis import KinesisSink as KinesisSink
    from stator.pipeline.sinks.parquet import ParquetSink as ParquetSink
    from stator.pipeline.sinks.sink import Refusal as Refusal
    from stator.pipeline.sinks.sink import Sink as Sink
    from stator.pipeline.sinks.sqs_sns import SnsSink as SnsSink
    from stator.pipeline.sinks.sqs_sns import SqsSink as SqsSink
    from stator.pipeline.sinks.table import TableSink as TableSink
    from stator.pipeline.sinks.webhook import WebhookSink as WebhookSink
    from stator.pipeline.views.metrics import avg as avg
    from stator.pipeline.views.metrics import count as count
    from stator.pipeline.views.metrics import latest as latest
    from stator.pipeline.views.metrics import maximum as maximum
    from stator.pipeline.views.metrics import minimum as minimum
    from stator.pipeline.views.metrics import percentiles as percentiles
    from stator.pipeline.views.metrics import sum_of as sum_of
    from stator.pipeline.views.metrics import top as top
    from stator.pipeline.views.projection import Projection as Projection
    from stator.pipeline.views.rebuild.rebuild import RebuildOptions as RebuildOptions
    from stator.pipeline.views.rows import Row as Row
    from stator.pipeline.views.view import View as View
    from stator.pipeline.workers.app import StreamApp as StreamApp
    from stator.pipeline.workers.handlers.change import Change as Change
    from stator.pipeline.workers.handlers.change import Insert as Insert
    from stator.pipeline.workers.handlers.change import Modify as Modify
    from stator.pipeline.workers.handlers.change import Remove as Remove
    from stator.pipeline.workers.options import WorkerOptions as WorkerOptions
    from stator.tables.connection import connect as connect
    from stator.tables.connection import connect_async as connect_async
    from stator.tables.db import AsyncDb as AsyncDb
    from stator.tables.db import Db as Db
    from stator.tables.reads.pattern_read import Page as Page
    from stator.tables.reads.snapshot import Get as Get
    from stator.tables.writes.batches import Delete as Delete
    from stator.tables.writes.pattern_write import PatternWritePreview as PatternWritePreview
    from stator.tables.writes.pattern_write import PatternWriteResult as PatternWriteResult
    from stator.tables.writes.recorder import if_not_exists as if_not_exists

# Where each public name lives. A test compares this table with the imports above.
_HOMES = {
    "stator.design.design": "Design per",
    "stator.design.entities.adapters": "adapt",
    "stator.design.entities.conditions": "attr",
    "stator.design.entities.custom_codecs": "register_codec",
    "stator.design.entities.derived_parts": "day_of hour_of month_of prefix_of year_of",
    "stator.design.entities.entity": "Entity upcast",
    "stator.design.entities.hooks": "after_load before_write",
    "stator.design.entities.markers": (
        "counter created ident large soft_delete stored ttl unique updated version write_token"
    ),
    "stator.design.entities.packed_numbers": "packed",
    "stator.design.entities.written_keys": "IndexKey",
    "stator.design.patterns.pattern": (
        "Bundle2 Bundle3 Bundle4 BundleMany Count Only Query creates deletes descending find read "
        "together updates write"
    ),
    "stator.design.table_settings": "ProvisionedCapacity TableSettings",
    "stator.design.value_facts": "distinct largest share",
    "stator.engine": "Engine",
    "stator.patterns.blob_audit": "BlobAudit",
    "stator.patterns.counter": "Counter",
    "stator.patterns.leaderboard.leaderboard": "Leaderboard",
    "stator.patterns.links": "Links",
    "stator.patterns.lock": "Lock",
    "stator.patterns.once": "Once",
    "stator.patterns.outbox.outbox": "Outbox",
    "stator.patterns.rollups.rollup": "Rollup",
    "stator.patterns.sequence": "Sequence",
    "stator.patterns.series.series": "Series",
    "stator.patterns.tree.tree": "Tree",
    "stator.patterns.unique_audit": "UniqueAudit",
    "stator.pipeline.sinks.audit": "AuditLog",
    "stator.pipeline.sinks.change_sink": "Message",
    "stator.pipeline.sinks.kafka": "KafkaSink",
    "stator.pipeline.sinks.kinesis": "KinesisSink",
    "stator.pipeline.sinks.parquet": "ParquetSink",
    "stator.pipeline.sinks.sink": "Refusal Sink",
    "stator.pipeline.sinks.sqs_sns": "SnsSink SqsSink",
    "stator.pipeline.sinks.table": "TableSink",
    "stator.pipeline.sinks.webhook": "WebhookSink",
    "stator.pipeline.views.metrics": "avg count latest maximum minimum percentiles sum_of top",
    "stator.pipeline.views.projection": "Projection",
    "stator.pipeline.views.rebuild.rebuild": "RebuildOptions",
    "stator.pipeline.views.rows": "Row",
    "stator.pipeline.views.view": "View",
    "stator.pipeline.workers.app": "StreamApp",
    "stator.pipeline.workers.handlers.change": "Change Insert Modify Remove",
    "stator.pipeline.workers.options": "WorkerOptions",
    "stator.tables.connection": "connect connect_async",
    "stator.tables.db": "AsyncDb Db",
    "stator.tables.reads.pattern_read": "Page",
    "stator.tables.reads.snapshot": "Get",
    "stator.tables.writes.batches": "Delete",
    "stator.tables.writes.pattern_write": "PatternWritePreview PatternWriteResult",
    "stator.tables.writes.recorder": "if_not_exists",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'stator' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
