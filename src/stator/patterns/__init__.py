"""The classic DynamoDB patterns as objects: a counter, a series, a tree, links, a lock and others.

Each pattern stores its items in the design's own table (``<design>-stator``) or in the tables of
the entities, and works on a ``Db`` and on an ``AsyncDb`` alike. It plans its requests as work
(``tables.work``) and never performs I/O itself. Each pattern's ``explain()`` returns its keys and
its cost in units.

A small pattern is one file, a larger one is a package. Four modules serve several patterns:
``item_pages`` and ``consistent_read`` (reads), ``identities`` and ``plain_values`` (encodings).

Not here: jobs that keep patterns up to date from a stream (``pipeline.maintenance``), and the
leases and retries that patterns share with workers (``coordination``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.lazy_names import homes_of, lazy_names

if TYPE_CHECKING:
    from stator.patterns.blob_audit import BlobAudit as BlobAudit
    from stator.patterns.counter import Counter as Counter
    from stator.patterns.explanation import OperationCost as OperationCost
    from stator.patterns.explanation import PatternExplanation as PatternExplanation
    from stator.patterns.leaderboard.items import Standing as Standing
    from stator.patterns.leaderboard.leaderboard import Leaderboard as Leaderboard
    from stator.patterns.links import Link as Link
    from stator.patterns.links import Links as Links
    from stator.patterns.lock import HeldLock as HeldLock
    from stator.patterns.lock import Lock as Lock
    from stator.patterns.lock import LockLease as LockLease
    from stator.patterns.once import Attempt as Attempt
    from stator.patterns.once import Once as Once
    from stator.patterns.outbox.delivery import RelayResult as RelayResult
    from stator.patterns.outbox.items import OutboxMessage as OutboxMessage
    from stator.patterns.outbox.outbox import Outbox as Outbox
    from stator.patterns.rollups.rollup import Rollup as Rollup
    from stator.patterns.rollups.rollup import Summary as Summary
    from stator.patterns.sequence import Sequence as Sequence
    from stator.patterns.series.series import Series as Series
    from stator.patterns.series.series import SeriesRollup as SeriesRollup
    from stator.patterns.tree.tree import Node as Node
    from stator.patterns.tree.tree import Tree as Tree
    from stator.patterns.unique_audit import UniqueAudit as UniqueAudit
    from stator.patterns.unique_audit import UniqueAuditReport as UniqueAuditReport
    from stator.patterns.unique_audit import UniqueFinding as UniqueFinding
    from stator.patterns.unique_audit import UniqueRepairReport as UniqueRepairReport
    from stator.tables.shards.adaptive_shards import AdaptiveShards as AdaptiveShards
    from stator.tables.shards.contributor_insights import (
        ContributorInsights as ContributorInsights,
    )
    from stator.tables.shards.contributor_insights import MeasuredKey as MeasuredKey
    from stator.tables.shards.shard_change import ShardChange as ShardChange

_HOME_OF = homes_of(
    {
        "stator.patterns.blob_audit": "BlobAudit",
        "stator.patterns.counter": "Counter",
        "stator.patterns.explanation": "OperationCost PatternExplanation",
        "stator.patterns.leaderboard.items": "Standing",
        "stator.patterns.leaderboard.leaderboard": "Leaderboard",
        "stator.patterns.links": "Link Links",
        "stator.patterns.lock": "HeldLock Lock LockLease",
        "stator.patterns.once": "Attempt Once",
        "stator.patterns.outbox.delivery": "RelayResult",
        "stator.patterns.outbox.items": "OutboxMessage",
        "stator.patterns.outbox.outbox": "Outbox",
        "stator.patterns.rollups.rollup": "Rollup Summary",
        "stator.patterns.sequence": "Sequence",
        "stator.patterns.series.series": "Series SeriesRollup",
        "stator.tables.shards.adaptive_shards": "AdaptiveShards",
        "stator.tables.shards.contributor_insights": "ContributorInsights MeasuredKey",
        "stator.tables.shards.shard_change": "ShardChange",
        "stator.patterns.tree.tree": "Node Tree",
        "stator.patterns.unique_audit": (
            "UniqueAudit UniqueAuditReport UniqueFinding UniqueRepairReport"
        ),
    }
)
__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
