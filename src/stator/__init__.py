"""Stator: data platforms on DynamoDB.

The names that most programs need can be imported from here. Others are grouped by topic:
``stator.data`` (what the methods of ``Db`` return), ``stator.patterns`` (counters, locks, series,
trees, ...), ``stator.pipeline`` (handlers of changes, views, sinks), ``stator.bulk`` (loads,
exports, copies), ``stator.plans`` and ``stator.costs`` (what a design returns), ``stator.testing``,
``stator.engine`` and ``stator.errors``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.lazy_names import homes_of, lazy_names

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
    from stator.design.patterns.ask import descending as descending
    from stator.design.patterns.pattern import read as read
    from stator.design.patterns.query import Bundle2 as Bundle2
    from stator.design.patterns.query import Bundle3 as Bundle3
    from stator.design.patterns.query import Bundle4 as Bundle4
    from stator.design.patterns.query import BundleMany as BundleMany
    from stator.design.patterns.query import Count as Count
    from stator.design.patterns.query import Only as Only
    from stator.design.patterns.query import Query as Query
    from stator.design.patterns.query import find as find
    from stator.design.patterns.query import together as together
    from stator.design.patterns.write_pattern import creates as creates
    from stator.design.patterns.write_pattern import deletes as deletes
    from stator.design.patterns.write_pattern import updates as updates
    from stator.design.patterns.write_pattern import write as write
    from stator.design.table_settings import ProvisionedCapacity as ProvisionedCapacity
    from stator.design.table_settings import TableSettings as TableSettings
    from stator.design.value_facts import distinct as distinct
    from stator.design.value_facts import largest as largest
    from stator.design.value_facts import moving as moving
    from stator.design.value_facts import share as share
    from stator.engine import Engine as Engine
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

_HOME_OF = homes_of(
    {
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
        "stator.design.patterns.ask": "descending",
        "stator.design.patterns.pattern": "read",
        "stator.design.patterns.query": (
            "Bundle2 Bundle3 Bundle4 BundleMany Count Only Query find together"
        ),
        "stator.design.patterns.write_pattern": "creates deletes updates write",
        "stator.design.table_settings": "ProvisionedCapacity TableSettings",
        "stator.design.value_facts": "distinct largest moving share",
        "stator.engine": "Engine",
        "stator.tables.connection": "connect connect_async",
        "stator.tables.db": "AsyncDb Db",
        "stator.tables.reads.pattern_read": "Page",
        "stator.tables.reads.snapshot": "Get",
        "stator.tables.writes.batches": "Delete",
        "stator.tables.writes.pattern_write": "PatternWritePreview PatternWriteResult",
        "stator.tables.writes.recorder": "if_not_exists",
    }
)
__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names(
    __name__,
    _HOME_OF,
    (
        "stator.patterns",
        "stator.pipeline",
        "stator.bulk",
        "stator.data",
        "stator.plans",
        "stator.costs",
        "stator.testing",
    ),
)
