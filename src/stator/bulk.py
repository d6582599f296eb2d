"""Bulk jobs for programs: load files into a table, export a table, copy one into another.

The jobs themselves are in ``stator.pipeline.bulk``; the commands ``stator load``, ``export`` and
``copy`` run the same code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.lazy_names import homes_of, lazy_names

if TYPE_CHECKING:
    from stator.pipeline.bulk.copy import Copy as Copy
    from stator.pipeline.bulk.copy import CopyOptions as CopyOptions
    from stator.pipeline.bulk.copy import CopyProgress as CopyProgress
    from stator.pipeline.bulk.copy import CopyReport as CopyReport
    from stator.pipeline.bulk.export.export import ExportJob as ExportJob
    from stator.pipeline.bulk.export.export import ExportOptions as ExportOptions
    from stator.pipeline.bulk.export.export import ExportProgress as ExportProgress
    from stator.pipeline.bulk.export.export import ExportReport as ExportReport
    from stator.pipeline.bulk.export.sources import snapshot_export as snapshot_export
    from stator.pipeline.bulk.export.sources import table_export as table_export
    from stator.pipeline.bulk.job.governor import Pace as Pace
    from stator.pipeline.bulk.job.pending_rows import RowCounts as RowCounts
    from stator.pipeline.bulk.load.load import LoadOptions as LoadOptions
    from stator.pipeline.bulk.load.load import LoadPlan as LoadPlan
    from stator.pipeline.bulk.load.load import LoadProgress as LoadProgress
    from stator.pipeline.bulk.load.load import LoadReport as LoadReport
    from stator.pipeline.bulk.load.load import load as load
    from stator.pipeline.bulk.targets import BulkTarget as BulkTarget

_HOME_OF = homes_of(
    {
        "stator.pipeline.bulk.copy": "Copy CopyOptions CopyProgress CopyReport",
        "stator.pipeline.bulk.export.export": "ExportJob ExportOptions ExportProgress ExportReport",
        "stator.pipeline.bulk.export.sources": "snapshot_export table_export",
        "stator.pipeline.bulk.job.governor": "Pace",
        "stator.pipeline.bulk.job.pending_rows": "RowCounts",
        "stator.pipeline.bulk.load.load": "LoadOptions LoadPlan LoadProgress LoadReport load",
        "stator.pipeline.bulk.targets": "BulkTarget",
    }
)
__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
