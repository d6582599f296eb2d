"""What patterns that run for a part of the day mean for provisioned capacity.

A report prices capacity by the mean of a day and a utilisation. Units that stay the same all day
must cover the busiest moment, so the windows that a design declares bound their utilisation.
"""

from __future__ import annotations

from stator.design.cost.workload import Workload
from stator.design.declaration import Declaration
from stator.design.patterns.daily_window import clock_text
from stator.model.quantities import amount

_EVEN = 1.001
"""A busiest moment below this many times the mean is no peak."""


def window_notes(design: Declaration, workload: Workload) -> tuple[str, ...]:
    """Return a sentence for reads and one for writes, where windows make a peak of the day."""
    found = []
    for kind in ("read", "write"):
        means: dict[str, float] = {}
        for use in workload.uses:
            if use.kind == kind:
                means[use.pattern] = means.get(use.pattern, 0.0) + float(use.units)
        mean = sum(means.values())
        clock, busiest = design.busiest(means)
        if busiest <= mean * _EVEN:
            continue
        share = mean / busiest
        found.append(
            f"{kind}s take {amount(busiest)} units a second from {clock_text(clock)}, and "
            f"{amount(mean)} in the mean of a day: fixed or reserved units that cover it are used "
            f"to {share:.1%} at most (--utilisation {share:.3g} prices them); a higher utilisation "
            "needs units that follow the windows, by a schedule"
        )
    return tuple(found)
