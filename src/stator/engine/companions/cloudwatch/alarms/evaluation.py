"""Decides the state of an alarm from its data points. A pure function, and the text of its reason.

An alarm looks at the last N periods (EvaluationPeriods), and M of them (DatapointsToAlarm) must
breach the threshold. If points are missing, older ones are looked at, too: the evaluation range is
two periods longer. With at least N real points the newest N decide. With fewer, TreatMissingData
decides what stands for the missing ones:

- ``breaching`` and ``notBreaching`` fill up to N points.
- ``ignore`` keeps the state, unless the real points decide.
- ``missing`` is INSUFFICIENT_DATA without any point. If the only points breach, and the oldest of
  them is at least M periods old, the alarm goes off with fewer than M.

Source: CloudWatch User Guide, "Configuring how CloudWatch alarms treat missing data", whose tables
are the tests. The length of the evaluation range is documented only by these tables. The reasons
follow a public capture.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from stator.engine.companions.cloudwatch.alarms.alarm import ALARM, INSUFFICIENT, OK

EXTRA_PERIODS: Final = 2
# The lower and the upper limit of a band.
Limits = tuple[float, float]
COMPARISONS: Final[dict[str, tuple[Callable[[float, float], bool], str]]] = {
    "GreaterThanOrEqualToThreshold": (operator.ge, "greater than or equal to"),
    "GreaterThanThreshold": (operator.gt, "greater than"),
    "LessThanThreshold": (operator.lt, "less than"),
    "LessThanOrEqualToThreshold": (operator.le, "less than or equal to"),
}
BANDS: Final[dict[str, tuple[Callable[[float, Limits], bool], str]]] = {
    "LessThanLowerOrGreaterThanUpperThreshold": (
        lambda value, limits: not limits[0] <= value <= limits[1],
        "outside",
    ),
    "LessThanLowerThreshold": (lambda value, limits: value < limits[0], "less than"),
    "GreaterThanUpperThreshold": (lambda value, limits: value > limits[1], "greater than"),
}
"""Comparisons with the band of anomaly detection, which has two limits at each time."""
MISSING_TREATMENTS: Final = ("missing", "ignore", "breaching", "notBreaching")


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """The rule of an alarm: M of N periods, the comparison, and the meaning of missing points.

    ``band`` has the limits of each period instead of the threshold, for anomaly detection. A point
    without limits is a missing point.
    """

    periods: int
    needed: int
    comparison: str
    threshold: float
    missing: str
    band: Mapping[int, Limits] | None = None

    def breaches(self, at: int, value: float) -> bool:
        """Return whether the value of a period breaches the threshold or the band."""
        if self.band is None:
            return COMPARISONS[self.comparison][0](value, self.threshold)
        return BANDS[self.comparison][0](value, self.band[at])


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state that the points lead to. ``state`` is None if the alarm stays as it is."""

    state: str | None
    reason: str
    # The real points that decided, newest first.
    evaluated: list[tuple[int, float]]


def judge(rule: AlarmRule, points: list[tuple[int, float | None]], current: str) -> Verdict:
    """Return the verdict on the periods of the evaluation range, newest first.

    Each period has its start, and its value or None if it has no point. ``current`` is the alarm's
    state.
    """
    if rule.band is not None:
        points = [(at, value if at in rule.band else None) for at, value in points]
    real = [(at, value) for at, value in points if value is not None]
    evaluated = real[: rule.periods]
    breaching = [value for at, value in evaluated if rule.breaches(at, value)]
    lacking = rule.periods - len(evaluated)
    if lacking > 0 and not evaluated:
        return _without_points(rule, current)
    count = len(breaching) + (lacking if rule.missing == "breaching" else 0)
    state: str | None
    if count >= rule.needed:
        state = ALARM
    elif (
        lacking == 0
        or rule.missing in ("breaching", "notBreaching")
        or len(breaching) < len(evaluated)
    ):
        state = OK
    elif rule.missing == "missing" and _age_of_oldest(points, rule.periods) >= rule.needed:
        state = ALARM
    else:
        state = None
    return Verdict(state, _reason(rule, evaluated, state, current), evaluated)


def _age_of_oldest(points: list[tuple[int, float | None]], periods: int) -> int:
    """Return how many periods ago the oldest point of the newest ``periods`` periods is."""
    return max(
        (age for age, (_, value) in enumerate(points[:periods], 1) if value is not None), default=0
    )


def _without_points(rule: AlarmRule, current: str) -> Verdict:
    periods = _plural(rule.periods, "period")
    if rule.missing == "missing":
        was = "was" if rule.periods == 1 else "were"
        reason = f"Insufficient Data: {_plural(rule.periods, 'datapoint')} {was} unknown."
        return Verdict(INSUFFICIENT, reason, [])
    if rule.missing == "ignore":
        return Verdict(None, f"No datapoints were received for {periods}.", [])
    treated = "Breaching" if rule.missing == "breaching" else "NonBreaching"
    points = (
        "1 missing datapoint was"
        if rule.periods == 1
        else (f"{rule.periods} missing datapoints were")
    )
    reason = (
        f"Threshold Crossed: no datapoints were received for {periods} and {points} treated as "
        f"[{treated}]."
    )
    return Verdict(ALARM if rule.missing == "breaching" else OK, reason, [])


def _reason(
    rule: AlarmRule, evaluated: list[tuple[int, float]], state: str | None, current: str
) -> str:
    went_off = state == ALARM
    told = [
        (at, value) for at, value in evaluated if rule.breaches(at, value) == went_off
    ] or evaluated
    listed = ", ".join(f"{value} ({_short(at)})" for at, value in told)
    was = "was" if len(told) == 1 else "were"
    relation = f"{was} {'' if went_off else 'not '}{_compared(rule, told)}"
    crossed = "Threshold Crossed" if rule.band is None else "Thresholds Crossed"
    if rule.needed == rule.periods and len(told) == rule.periods:
        return f"{crossed}: {_plural(len(told), 'datapoint')} [{listed}] {relation}."
    least = rule.needed if went_off else rule.periods - rule.needed + 1
    last = _plural(len(evaluated), "datapoint")
    return (
        f"{crossed}: {len(told)} out of the last {last} [{listed}] {relation} "
        f"(minimum {_plural(least, 'datapoint')} for {current} -> {state or current} transition)."
    )


def _compared(rule: AlarmRule, told: list[tuple[int, float]]) -> str:
    """Return how points were compared: greater than the threshold (5.0)."""
    if rule.band is None:
        return f"{COMPARISONS[rule.comparison][1]} the threshold ({rule.threshold})"
    lower = ", ".join(str(rule.band[at][0]) for at, _ in told)
    upper = ", ".join(str(rule.band[at][1]) for at, _ in told)
    words = BANDS[rule.comparison][1]
    if words == "outside":
        return f"outside the lower thresholds [{lower}] and the upper thresholds [{upper}]"
    side, limits = ("lower", lower) if words == "less than" else ("upper", upper)
    return f"{words} the {side} thresholds [{limits}]"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _short(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%d/%m/%y %H:%M:%S")
