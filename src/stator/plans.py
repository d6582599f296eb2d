"""Plans, lock files and reports: what ``Design.plan``, ``check`` and ``explain`` return.

``read_lock`` and ``write_lock`` handle lock files, ``compare`` tells what a new plan means for
stored data, and ``drift`` compares a plan with live tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.lazy_names import homes_of, lazy_names

if TYPE_CHECKING:
    from stator.design.lint.finding import Finding as Finding
    from stator.design.lint.finding import Report as Report
    from stator.design.lint.location import Location as Location
    from stator.design.patterns.explanation import Explanation as Explanation
    from stator.design.plan.drift import Difference as Difference
    from stator.design.plan.drift import drift as drift
    from stator.design.plan.lock_file import LockChange as LockChange
    from stator.design.plan.lock_file import compare as compare
    from stator.design.plan.lock_file import lock_path as lock_path
    from stator.design.plan.lock_file import read_lock as read_lock
    from stator.design.plan.lock_file import write_lock as write_lock
    from stator.design.plan.plan import EntityPlan as EntityPlan
    from stator.design.plan.plan import IndexPlan as IndexPlan
    from stator.design.plan.plan import PatternPlan as PatternPlan
    from stator.design.plan.plan import Plan as Plan
    from stator.design.plan.plan import TablePlan as TablePlan

_HOME_OF = homes_of(
    {
        "stator.design.lint.finding": "Finding Report",
        "stator.design.lint.location": "Location",
        "stator.design.patterns.explanation": "Explanation",
        "stator.design.plan.drift": "Difference drift",
        "stator.design.plan.lock_file": "LockChange compare lock_path read_lock write_lock",
        "stator.design.plan.plan": "EntityPlan IndexPlan PatternPlan Plan TablePlan",
    }
)
__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
