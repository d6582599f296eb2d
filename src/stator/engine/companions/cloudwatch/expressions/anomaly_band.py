"""The band of expected values: ANOMALY_DETECTION_BAND(m1, 2).

AWS learns a model of up to two weeks and does not publish it. This one is simple: the values of the
same time of the day, half an hour before and after, on the days of the two weeks before. If both
weeks have that weekday, only it counts. The band is their mean, plus and minus so many standard
deviations; a spread of less than a twentieth of the mean counts as that much. There is no band
before three days are known.
"""

from __future__ import annotations

from statistics import fmean, pstdev
from typing import Final

from stator.engine.companions.cloudwatch.expressions.lines import Line

TRAINING_DAYS: Final = 14
DEFAULT_WIDTH: Final = 2.0
_DAY: Final = 86_400
_LEAST_DAYS: Final = 3
AROUND_SECONDS: Final = 1800
_LEAST_SPREAD: Final = 0.05


def anomaly_band(history: Line, times: range, width: float) -> tuple[Line, Line]:
    """Return the lower and the upper line at these times, as far as there is enough history."""
    lower: dict[int, float] = {}
    upper: dict[int, float] = {}
    for at in times:
        found = _usual(history, at)
        if found is not None:
            mean, spread = found
            lower[at], upper[at] = mean - width * spread, mean + width * spread
    return (
        Line(f"{history.label} lower", history.period, lower),
        Line(f"{history.label} upper", history.period, upper),
    )


def _usual(history: Line, at: int) -> tuple[float, float] | None:
    """Return the mean and the spread of what is usual at a time."""
    by_day = {day: _near(history, at - day * _DAY) for day in range(1, TRAINING_DAYS + 1)}
    known = {day: values for day, values in by_day.items() if values}
    if len(known) < _LEAST_DAYS:
        return None
    weekday = [known[day] for day in (7, 14) if day in known]
    chosen = weekday if len(weekday) == 2 else list(known.values())
    values = [value for each in chosen for value in each]
    mean = fmean(values)
    return mean, max(pstdev(values), abs(mean) * _LEAST_SPREAD)


def _near(history: Line, at: int) -> list[float]:
    steps = AROUND_SECONDS // history.period
    times = (at + step * history.period for step in range(-steps, steps + 1))
    return [history.points[each] for each in times if each in history.points]
