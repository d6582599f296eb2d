"""What ``stator scale`` asks for: target, bounds and schedule of some dimensions of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from stator.errors import ConfigurationError
from stator.model.scaling.capacity_window import CapacityWindow, window_actions
from stator.model.scaling.scheduled_action import ScheduledAction
from stator.model.scaling.target_tracking import CapacityBounds, TargetTracking
from stator.ops.capacity.capacity_state import CapacityState, ScaledDimension
from stator.ops.capacity.use_series import MINUTE, Dimension, TableHistory
from stator.ops.capacity.week.schedule import WeekSchedule, week_needs, week_schedule

_CEILING: Final = 3.0


@dataclass(frozen=True, slots=True)
class ScalingRequest:
    """The settings to give to dimensions. None leaves what is registered, or takes the default.

    ``windows`` replace the schedule; an empty tuple removes it. With ``from_week``, the schedule
    and the bounds come from a history.
    """

    target: float | None = None
    least: int | None = None
    most: int | None = None
    windows: tuple[CapacityWindow, ...] | None = None
    from_week: bool = False
    timezone: str = "UTC"

    @property
    def is_empty(self) -> bool:
        """Whether the request changes nothing, so that a command only shows the present scaling."""
        given = (self.target, self.least, self.most, self.windows)
        return all(each is None for each in given) and not self.from_week


def scaled_state(
    before: CapacityState,
    dimensions: tuple[Dimension, ...],
    request: ScalingRequest,
    history: TableHistory | None = None,
) -> CapacityState:
    """Return the state in which dimensions scale as requested."""
    if not before.is_provisioned:
        raise ConfigurationError(
            f"{before.table} is on-demand, and on-demand capacity does not scale by a target",
            hint="stator advise says whether provisioned capacity pays, and --apply switches to it",
        )
    unknown = [each for each in dimensions if each not in before.units]
    if unknown:
        known = sorted({each.index for each in before.units if each.index is not None})
        raise ConfigurationError(
            f"{before.table} has no index {unknown[0].index}",
            hint=f"it has {', '.join(known) or 'no global index'}",
        )
    scaling = dict(before.scaling)
    for each in dimensions:
        scaling[each] = _scaled(before, each, request, history)
    return replace(before, scaling=scaling)


def _scaled(
    before: CapacityState,
    dimension: Dimension,
    request: ScalingRequest,
    history: TableHistory | None,
) -> ScaledDimension:
    there = before.scaling.get(dimension)
    tracking = TargetTracking() if there is None or there.tracking is None else there.tracking
    if request.target is not None:
        tracking = replace(tracking, target_percent=request.target)
    least, most = (None, None) if there is None else (there.bounds.least, there.bounds.most)
    least = least if request.least is None else request.least
    most = most if request.most is None else request.most
    actions: tuple[ScheduledAction, ...] = () if there is None else there.actions
    if request.from_week:
        if history is None:
            raise ConfigurationError(
                "a schedule from the week needs a history", hint="pass --at, or a --history file"
            )
        week = _week(history, dimension, tracking.target_percent, request.timezone)
        least = week.base if request.least is None else request.least
        if request.most is None:
            highest = max(history.of(dimension).demand(), default=0.0) / MINUTE
            room = ceil(highest * _CEILING * 100.0 / tracking.target_percent)
            most = max(room, most or 0, *week.levels)
        assert most is not None
        actions = week.actions()
        _check_schedule(dimension, max(least, *week.levels), most)
    if least is None or most is None:
        raise ConfigurationError(
            f"the {dimension} of {before.table} do not scale yet, so their bounds are not known",
            hint="give --min and --max, or --schedule auto to take them from the history",
        )
    bounds = CapacityBounds(least, most)
    if request.windows is not None:
        actions = window_actions(request.windows, bounds, request.timezone)
    if request.from_week or request.most is not None or request.least is not None:
        _check_actions(dimension, bounds, actions)
    name = "" if there is None else there.policy_name
    return ScaledDimension(bounds, tracking, actions, name)


def _check_actions(
    dimension: Dimension, bounds: CapacityBounds, actions: tuple[ScheduledAction, ...]
) -> None:
    """Refuse actions whose least units are above the most that are in force with them."""
    for each in actions:
        _check_schedule(dimension, each.least or bounds.least, each.most or bounds.most)


def _check_schedule(dimension: Dimension, least: int, most: int) -> None:
    if least > most:
        raise ConfigurationError(
            f"the schedule of the {dimension} needs at least {least:,} units, which is above the "
            f"max of {most:,}",
            hint="raise --max, or write lower windows with --schedule",
        )


def _week(
    history: TableHistory, dimension: Dimension, target: float, timezone: str
) -> WeekSchedule:
    if history.days < 7:
        raise ConfigurationError(
            f"{history.table} has {history.days:.1f} days of history; a schedule needs a week",
            hint="write the schedule yourself: --schedule 'weekdays 17:50-22:30 min=160'",
        )
    return week_schedule(week_needs(history, dimension, target, timezone), timezone)


def unscaled_state(before: CapacityState, dimensions: tuple[Dimension, ...]) -> CapacityState:
    """Return the state in which dimensions do not scale; their units stay as they are."""
    kept: Mapping[Dimension, ScaledDimension] = {
        each: scaled for each, scaled in before.scaling.items() if each not in dimensions
    }
    return replace(before, scaling=kept)
