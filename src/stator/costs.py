"""What a design costs a month, and how the costs of two plans differ.

``cost`` prices a plan; ``Design.cost`` and ``stator cost`` do the same. ``prices`` are those of a
region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.lazy_names import homes_of, lazy_names

if TYPE_CHECKING:
    from stator.design.cost.difference import CostDiff as CostDiff
    from stator.design.cost.difference import compare_costs as compare_costs
    from stator.design.cost.origin import CostChange as CostChange
    from stator.design.cost.origin import Origin as Origin
    from stator.design.cost.prices import prices as prices
    from stator.design.cost.report import Basis as Basis
    from stator.design.cost.report import CostLine as CostLine
    from stator.design.cost.report import CostOptions as CostOptions
    from stator.design.cost.report import CostReport as CostReport
    from stator.design.cost.report import cost as cost

_HOME_OF = homes_of(
    {
        "stator.design.cost.difference": "CostDiff compare_costs",
        "stator.design.cost.origin": "CostChange Origin",
        "stator.design.cost.prices": "prices",
        "stator.design.cost.report": "Basis CostLine CostOptions CostReport cost",
    }
)
__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
