"""Why an option is recommended: one sentence, with the figures that it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from stator.model.quantities import amount, dollars
from stator.model.scaling.scheduled_action import zone
from stator.ops.capacity.options import CapacityOption, OptionSearch
from stator.ops.capacity.use_series import DAY_MINUTES, MINUTE, TableHistory

_DAYS: Final = (
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
)  # fmt: skip
_MOST: Final = 0.8
"""A weekday is named if this share of the minutes lies on it."""

_LATE_MINUTES: Final = 30
"""Units that rise within this time after a refusal were on their way, and late."""


def reason(
    search: OptionSearch,
    now: CapacityOption,
    chosen: CapacityOption,
    options: Sequence[CapacityOption],
) -> str:
    """Return why ``chosen`` is recommended."""
    use = _use(search.history)
    if now.is_provisioned and now.throttled_share.low > search.most_throttled:
        use += f" Now {share_text(now.throttled_share.low)} of what is asked for is refused."
    use += _late_schedule(search, chosen, options)
    if chosen is now:
        return f"{_no_better(search, now, options)} {use}"
    if chosen.table_class != now.table_class:
        stored, whole = now.bills[0].storage, now.bills[0].total
        return (
            f"Storage is {dollars(stored)} of {dollars(whole)} a month, and this class stores for "
            f"less and charges more for throughput: {dollars(chosen.dollars.middle)} together. "
            f"{use}"
        )
    compared = f"{dollars(chosen.dollars.middle)} a month instead of {dollars(now.dollars.middle)}"
    if chosen.kind == "on_demand":
        return (
            f"Provisioned units would mostly be idle; on demand, the same use is {compared}. {use}"
        )
    if chosen.kind == "fixed":
        return f"Use is even enough for units that never change: {compared}. {use}"
    if chosen.kind == "scheduled":
        return f"{_scheduled(search, options)} {use}"
    fixed = next(each for each in options if each.kind == "fixed")
    return (
        f"Use rises slowly enough for auto scaling to follow, and units that follow it cost "
        f"{dollars(chosen.dollars.middle)} a month; units for the busiest minute would cost "
        f"{dollars(fixed.dollars.middle)}. {use}"
    )


def _no_better(search: OptionSearch, now: CapacityOption, options: Sequence[CapacityOption]) -> str:
    """Say what the cheapest of the other acceptable options would cost."""
    limit = share_text(search.most_throttled)
    others = [
        each
        for each in options
        if each is not now
        and each.is_eligible
        and each.throttled_share.high <= search.most_throttled
    ]
    if not others:
        return f"No other option keeps refusals within {limit}."
    best = min(others, key=lambda each: each.dollars.middle)
    return (
        f"Of the other options that refuse at most {limit}, the cheapest ({best.name}) would cost "
        f"{dollars(best.dollars.middle)} a month, which does not save 5 %."
    )


def _late_schedule(
    search: OptionSearch, chosen: CapacityOption, options: Sequence[CapacityOption]
) -> str:
    """Say why a schedule that would cost less is not recommended: when, and what, is refused."""
    found = [
        each
        for each in options
        if each.kind == "scheduled"
        and each.is_eligible
        and each.table_class == chosen.table_class
        and each.dollars.middle < chosen.dollars.middle
        and each.throttled_share.high > search.most_throttled
    ]
    if chosen.kind == "scheduled" or not found:
        return ""
    best = min(found, key=lambda each: each.throttled_share.high)
    refused = max(best.worst.front, key=lambda each: each.throttled_units)
    first = max(range(len(refused.throttled)), key=lambda minute: refused.throttled[minute])
    moment = datetime.fromtimestamp(search.history.start + first * MINUTE, zone(search.timezone))
    said = (
        f" {best.name[0].upper()}{best.name[1:]} would cost {dollars(best.dollars.middle)}, but "
        f"refuses up to {share_text(best.throttled_share.high)}, the {refused.dimension} most, "
        f"worst on {_DAYS[moment.weekday()]} at {moment:%H:%M}."
    )
    late = [
        str(each.dimension)
        for each in best.worst.dimensions
        if each.capacity and each.capacity[first] < max(each.capacity[first:][:_LATE_MINUTES])
    ]
    if not late:
        return said
    return (
        f"{said} Only then do the units of the {' and '.join(late)} rise, for those of a table and "
        "its indexes change one after another: begin the window earlier with stator scale, or "
        "accept it with --most-throttled."
    )


def _scheduled(search: OptionSearch, options: Sequence[CapacityOption]) -> str:
    plain = min(
        (each for each in options if each.kind == "scaled" and each.is_eligible),
        key=lambda each: each.throttled_share.high,
    )
    if plain.throttled_share.high <= search.most_throttled:
        return (
            "Use has the same shape every week, so a schedule can follow it more closely than "
            f"{plain.name}, which would cost {dollars(plain.dollars.middle)} a month."
        )
    when = throttled_when(search.history, plain, search.timezone)
    return (
        "Use has the same shape every week, and a schedule raises units before it rises. "
        f"At best, {plain.name} alone would be late and refuse up to "
        f"{share_text(plain.throttled_share.high)} in {amount(plain.throttled_minutes.high)} "
        f"minutes, mostly {when}."
    )


def _use(history: TableHistory) -> str:
    """Say how the mean use compares with the busiest minute, for the busiest of the table."""
    found = [
        (max(demand), sum(demand) / len(demand), each.dimension.kind)
        for each in history.series
        if each.dimension.index is None and any(demand := each.demand())
    ]
    if not found:
        return "The table is not used."
    highest, mean, kind = max(found)
    return (
        f"On average {amount(mean / MINUTE)} {kind} units a second are used, and "
        f"{amount(highest / MINUTE)} in the busiest minute."
    )


def share_text(share: float) -> str:
    """Return a refused share in words: ``nothing``, ``0.33 %``."""
    if share <= 0:
        return "nothing"
    return "less than 0.01 %" if share < 0.0001 else f"{share * 100:.2g} %"


def throttled_when(history: TableHistory, option: CapacityOption, timezone: str) -> str:
    """Return the hour of the day in which most of the minutes with refusals lie, or ''.

    The weekday is named if most of them lie on one, and the history has a whole week:
    ``Sunday 02:00-03:00``.
    """
    minutes = option.worst.throttled_minutes()
    if not minutes:
        return ""
    where = zone(timezone)
    moments = [datetime.fromtimestamp(history.start + at * MINUTE, where) for at in minutes]
    ((hour, _),) = Counter(each.hour for each in moments).most_common(1)
    found = f"{hour:02d}:00-{(hour + 1) % 24:02d}:00"
    ((day, count),) = Counter(each.weekday() for each in moments).most_common(1)
    if history.minutes >= 7 * DAY_MINUTES and count >= _MOST * len(moments):
        return f"{_DAYS[day]} {found}"
    return found
