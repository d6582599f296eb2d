"""What the methods of ``Db`` take and return, and stores of large values.

A program receives most of these objects: ``db.transaction()`` gives a ``Transaction``,
``db.write_many(...)`` a ``BatchResult``, ``db.dry_run().put(...)`` a ``WriteExplanation``. Import
their classes to name them in annotations. ``Db`` itself is in ``stator``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.lazy_names import homes_of, lazy_names

if TYPE_CHECKING:
    from stator.errors.data import FailedWrite as FailedWrite
    from stator.tables.blobs.stores import BlobStore as BlobStore
    from stator.tables.blobs.stores import FolderStore as FolderStore
    from stator.tables.blobs.stores import S3Store as S3Store
    from stator.tables.connection import ConnectOptions as ConnectOptions
    from stator.tables.dry_run import DryRun as DryRun
    from stator.tables.dry_run import ExplainedTransaction as ExplainedTransaction
    from stator.tables.dry_run import ExplainedUpdate as ExplainedUpdate
    from stator.tables.dry_run import WriteExplanation as WriteExplanation
    from stator.tables.writes.batches import BatchResult as BatchResult
    from stator.tables.writes.open_update import AsyncUpdate as AsyncUpdate
    from stator.tables.writes.open_update import SyncUpdate as SyncUpdate
    from stator.tables.writes.pattern_write import FailedItem as FailedItem
    from stator.tables.writes.transactions import Transaction as Transaction

_HOME_OF = homes_of(
    {
        "stator.errors.data": "FailedWrite",
        "stator.tables.blobs.stores": "BlobStore FolderStore S3Store",
        "stator.tables.connection": "ConnectOptions",
        "stator.tables.dry_run": "DryRun ExplainedTransaction ExplainedUpdate WriteExplanation",
        "stator.tables.writes.batches": "BatchResult",
        "stator.tables.writes.open_update": "AsyncUpdate SyncUpdate",
        "stator.tables.writes.pattern_write": "FailedItem",
        "stator.tables.writes.transactions": "Transaction",
    }
)
__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
