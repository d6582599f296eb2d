"""How often a table may be switched from provisioned to on-demand capacity.

AWS allows four such switches in any 24 hours; the way back is free ("Considerations when switching
capacity modes" of the Developer Guide).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SWITCHES_TO_ON_DEMAND: Final = 4
SWITCH_WINDOW_SECONDS: Final = 86_400.0


def next_switch_at(switches: Iterable[float], now: float) -> float:
    """Return when a table may next be switched to on-demand: ``now``, or a later time.

    ``switches`` are the times of earlier switches to on-demand, in any order.
    """
    recent = sorted(at for at in switches if now - SWITCH_WINDOW_SECONDS < at <= now)
    if len(recent) < SWITCHES_TO_ON_DEMAND:
        return now
    return recent[-SWITCHES_TO_ON_DEMAND] + SWITCH_WINDOW_SECONDS
