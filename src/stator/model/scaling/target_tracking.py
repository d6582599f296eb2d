"""Target tracking as Application Auto Scaling does it for DynamoDB.

A policy keeps the used share of the provisioned units near a target. It has two alarms on the
units consumed each minute:

- *high*: above the target in 2 of 2 minutes. A peak of a single minute never triggers it.
- *low*: in 15 of 15 minutes more than 20 points below the target (70 -> 50). AWS's text can also
  be read as 20 percent of the target (70 -> 56), but three public captures of alarms, all for a
  target of 70, have the 20 points: 150 a minute for 5 units.

Either alarm asks for the units at which the mean use of its minutes is at the target, rounded up
and kept within the bounds: 150 units used at 70 % are 215. A decrease must also be allowed by the
``DecreaseRecord`` of the table or index.

``decide`` is the whole decision. It does not know when its caller hears of an alarm, nor how long
a change takes: the caller supplies the minutes known to it, and carries the decision out.

    decision = decide(policy, bounds, state, used_units, now, decreases)
    if decision is not None and decision.not_before <= now:
        ...  # UpdateTable with decision.units, and state = state.after(decision, now)

Sources: "Managing throughput capacity automatically with auto scaling" of the Developer Guide, and
recorded alarms (high: Sum over 60 s, 2 periods, threshold = target x units x 60).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final, Literal

from stator.errors import ConfigurationError
from stator.model.scaling.decrease_budget import DecreaseRecord

Direction = Literal["out", "in"]

HIGH_MINUTES: Final = 2
LOW_MINUTES: Final = 15
_MINUTE: Final = 60.0
USUAL_TARGET_PERCENT: Final = 70.0
USUAL_TARGETS: Final = (USUAL_TARGET_PERCENT, 80.0)
_LEAST_TARGET, _MOST_TARGET = 20.0, 90.0
_LOW_POINTS: Final = 20.0
# Sums of floats may lie just above a whole number of units.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class CapacityBounds:
    """The least and the most units that scaling may set (MinCapacity and MaxCapacity)."""

    least: int
    most: int

    def __post_init__(self) -> None:
        if self.least < 1:
            raise ConfigurationError(
                f"the least units are {self.least}, which is too few",
                hint="a table has at least 1 unit",
            )
        if self.most < self.least:
            raise ConfigurationError(
                f"the most units, {self.most}, are below the least, {self.least}",
                hint="raise the most or lower the least",
            )

    def clamp(self, units: int) -> int:
        """Return the units, or the nearest bound if they lie outside."""
        return min(max(units, self.least), self.most)


@dataclass(frozen=True, slots=True)
class TargetTracking:
    """A target-tracking policy: the share of the units to keep in use, in percent.

    ``can_scale_in`` is False if the policy has DisableScaleIn. After a change, a cooldown delays
    the next one in the same direction, and a decrease also waits for the cooldown of an increase
    that came last. AWS's default is 0 for DynamoDB.
    """

    target_percent: float = USUAL_TARGET_PERCENT
    scale_out_cooldown_seconds: float = 0.0
    scale_in_cooldown_seconds: float = 0.0
    can_scale_in: bool = True

    def __post_init__(self) -> None:
        if not _LEAST_TARGET <= self.target_percent <= _MOST_TARGET:
            raise ConfigurationError(
                f"a target of {self.target_percent:g} % is not between {_LEAST_TARGET:g} and "
                f"{_MOST_TARGET:g}",
                hint=f"Application Auto Scaling accepts {_LEAST_TARGET:g} to {_MOST_TARGET:g} for "
                f"DynamoDB; {USUAL_TARGET_PERCENT:g} is usual",
            )
        for name in ("scale_out_cooldown_seconds", "scale_in_cooldown_seconds"):
            if not getattr(self, name) >= 0:
                raise ConfigurationError(
                    f"{name}={getattr(self, name)!r} is not a number of seconds",
                    hint="use 0 or more",
                )

    def high_threshold(self, units: int) -> float:
        """Return the consumed units a minute above which the high alarm counts a minute."""
        return self.target_percent / 100.0 * units * _MINUTE

    def low_threshold(self, units: int) -> float:
        """Return the consumed units a minute below which the low alarm counts a minute."""
        return (self.target_percent - _LOW_POINTS) / 100.0 * units * _MINUTE

    def wanted_units(self, used_units: Sequence[float]) -> int:
        """Return the fewest units for which the mean use of these minutes meets the target."""
        mean = sum(used_units) / len(used_units) / _MINUTE
        return max(1, ceil(mean * 100.0 / self.target_percent - _ROUNDING))


def target_warning(target: float) -> str:
    """Return what is wrong with an unusual target, or ''. ``stator advise`` recommends none."""
    low, high = USUAL_TARGETS
    if low <= target <= high:
        return ""
    if target < low:
        return f"a target of {target:g} % keeps {100 - target:g} % of the units unused and paid"
    return f"a target of {target:g} % leaves little room for the minutes in which scaling is late"


@dataclass(frozen=True, slots=True)
class ScalingState:
    """The state of scaling for a dimension: the units in force, and the last changes."""

    units: int
    last_out: float | None = None
    last_in: float | None = None

    def after(self, decision: ScalingDecision, now: float) -> ScalingState:
        """Return the state once the decision has been carried out."""
        if decision.direction == "out":
            return replace(self, units=decision.units, last_out=now)
        return replace(self, units=decision.units, last_in=now)


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """The units to set, the reason, and the earliest time.

    A decrease has to wait if the decreases of the day are used up. ``alarm`` is "high" or "low", or
    "bounds" if the units lie outside the target's bounds.
    """

    units: int
    direction: Direction
    alarm: Literal["high", "low", "bounds"]
    not_before: float


def is_high(policy: TargetTracking, units: int, used_units: Sequence[float]) -> bool:
    """Whether the high alarm rings. ``used_units`` are those of whole minutes, oldest first."""
    threshold = policy.high_threshold(units)
    last = used_units[-HIGH_MINUTES:]
    return len(last) == HIGH_MINUTES and min(last) > threshold


def is_low(policy: TargetTracking, units: int, used_units: Sequence[float]) -> bool:
    """Whether the low alarm rings. ``used_units`` are those of whole minutes, oldest first."""
    threshold = policy.low_threshold(units)
    last = used_units[-LOW_MINUTES:]
    return len(last) == LOW_MINUTES and max(last) < threshold


def decide(
    policy: TargetTracking,
    bounds: CapacityBounds,
    state: ScalingState,
    used_units: Sequence[float],
    now: float,
    decreases: DecreaseRecord,
) -> ScalingDecision | None:
    """Return the change that the alarms ask for, or None.

    ``used_units`` are the units consumed in each whole minute that is known by ``now``, oldest
    first; the last 15 suffice. Units outside the bounds are not moved here, see ``pull_inside``.
    """
    if is_high(policy, state.units, used_units):
        units = bounds.clamp(policy.wanted_units(used_units[-HIGH_MINUTES:]))
        cools = _cools(state.last_out, policy.scale_out_cooldown_seconds, now)
        if units <= state.units or cools:
            return None
        return ScalingDecision(units, "out", "high", now)
    if not policy.can_scale_in or not is_low(policy, state.units, used_units):
        return None
    units = bounds.clamp(policy.wanted_units(used_units[-LOW_MINUTES:]))
    if (
        units >= state.units
        or _cools(state.last_in, policy.scale_in_cooldown_seconds, now)
        or _cools(state.last_out, policy.scale_out_cooldown_seconds, now)
    ):
        return None
    return ScalingDecision(units, "in", "low", decreases.next_at(now))


def pull_inside(
    bounds: CapacityBounds, units: int, now: float, decreases: DecreaseRecord
) -> ScalingDecision | None:
    """Return the change that brings units inside the bounds, or None if they are inside.

    Bounds change when a target is registered and when a scheduled action runs.
    """
    inside = bounds.clamp(units)
    if inside > units:
        return ScalingDecision(inside, "out", "bounds", now)
    if inside < units:
        return ScalingDecision(inside, "in", "bounds", decreases.next_at(now))
    return None


def _cools(last: float | None, cooldown_seconds: float, now: float) -> bool:
    return last is not None and now - last < cooldown_seconds
