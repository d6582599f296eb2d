"""The shape of simulated traffic: its length, its profile over the day, and what happens in it.

A design declares average rates. A ``TrafficShape`` adds how they vary: by the hour, in a spike, in
a window of a batch job, at a launch, and during a bulk load. It also changes how calls spread over
keys (``HotKey``, ``ZipfKeys``) and how many shards a key has.

Times of day are seconds after midnight. The run starts at ``start``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal

from stator.errors import ConfigurationError

Profile = Literal["flat", "day", "office"]

DAY_SECONDS: Final = 86_400
_HOUR: Final = 3600
_MOST_MINUTES: Final = 7 * 24 * 60
_MOST_SHARDS: Final = 10_000
_PROFILES: Final[dict[Profile, tuple[float, ...]]] = {
    "flat": (1.0,) * 24,
    # People at home: quiet before dawn, busiest in the evening.
    "day": (5, 3, 2, 2, 2, 3, 4, 7, 10, 11, 12, 12, 13, 13, 12, 12, 13, 14, 16, 18, 19, 17, 12, 8),
    # People at work: almost nothing at night, a dip at noon.
    "office": (1, 1, 1, 1, 1, 1, 2, 5, 20, 27, 28, 26, 20, 24, 27, 26, 22, 14, 6, 3, 2, 2, 1, 1),
}
PROFILES: Final = tuple(_PROFILES)


@dataclass(frozen=True, slots=True)
class Spike:
    """From time of day ``at``, a pattern is called ``factor`` times as often for ``seconds``."""

    pattern: str
    factor: float
    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class BatchWindow:
    """A pattern is called only from ``start`` to ``end``, at its declared rate.

    Both are times of day. The window may extend past midnight. It replaces one that the pattern
    declares (``between=``), and the profile of the day does not apply to the pattern.
    """

    pattern: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Launch:
    """All rates rise from almost zero to ``factor`` times the declared rates.

    The rise starts with the run and takes ``seconds``.
    """

    factor: float
    seconds: float


@dataclass(frozen=True, slots=True)
class SimulatedLoad:
    """A bulk load that puts items of one entity, as fast as ``per_second`` and the table allow.

    Items come in the order of the table's keys, as in a file that an export or a Scan wrote, unless
    ``is_shuffled``. The load puts refused items again.
    """

    entity: str
    items: float
    per_second: float
    is_shuffled: bool = False


@dataclass(frozen=True, slots=True)
class HotKey:
    """A hot value: a ``share`` of a pattern's calls concerns one item, or one value of its key."""

    pattern: str
    share: float


@dataclass(frozen=True, slots=True)
class ZipfKeys:
    """The calls of a pattern follow Zipf's law over the values of its key.

    The value of rank n gets calls in proportion to 1/n**exponent.
    """

    pattern: str
    exponent: float = 1.0


@dataclass(frozen=True, slots=True)
class TrafficShape:
    """How a simulation varies the declared rates. Raises ConfigurationError for impossible values.

    ``minutes`` is the length of the run. The default is an hour. It is a day if ``profile`` is not
    flat, if a pattern has a window, declared or here, or if a spike comes after the hour. ``start``
    is the time of day at which the run begins. ``shards`` maps entities to the number of shards
    that each of their partition keys gets. ``warm`` and ``maximum`` are the warm throughput and the
    on-demand maximum of each table and index, as pairs of read and write units. ``seed`` decides
    where keys and examples fall: equal seeds give equal results.
    """

    minutes: float | None = None
    start: float = 0.0
    profile: Profile = "flat"
    spikes: tuple[Spike, ...] = ()
    windows: tuple[BatchWindow, ...] = ()
    launch: Launch | None = None
    loads: tuple[SimulatedLoad, ...] = ()
    hot: tuple[HotKey, ...] = ()
    zipf: tuple[ZipfKeys, ...] = ()
    shards: Mapping[str, int] = field(default_factory=dict)
    warm: tuple[float, float] | None = None
    maximum: tuple[float, float] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.profile not in _PROFILES:
            raise ConfigurationError(
                f"{self.profile!r} is not a profile of traffic",
                hint=f"use one of {', '.join(PROFILES)}",
            )
        if self.minutes is not None and not 1 <= self.minutes <= _MOST_MINUTES:
            raise ConfigurationError(
                f"minutes={self.minutes:g} is not between 1 and {_MOST_MINUTES}",
                hint="a simulation runs for a minute at least, and for a week at most",
            )
        if not 0 <= self.start < DAY_SECONDS:
            raise ConfigurationError(
                f"start={self.start:g} is not a time of day",
                hint="use seconds after midnight, 0 to 86,399",
            )
        for spike in self.spikes:
            _check(f"the factor of the spike of {spike.pattern}", spike.factor, or_zero=True)
            _check(f"the length of the spike of {spike.pattern}", spike.seconds)
        if self.launch is not None:
            _check("the factor of the launch", self.launch.factor)
            _check("the length of the launch", self.launch.seconds)
        for load in self.loads:
            _check(f"the number of items of the load of {load.entity}", load.items)
            _check(f"the rate of the load of {load.entity}", load.per_second)
        for hot in self.hot:
            if not 0 < hot.share <= 1:
                raise ConfigurationError(
                    f"the share of the hot key of {hot.pattern} is {hot.share:g}, "
                    "which is out of range",
                    hint="use a share above 0 and up to 1, for example 0.3",
                )
        for zipf in self.zipf:
            if not 0 < zipf.exponent <= 5:
                raise ConfigurationError(
                    f"the exponent of {zipf.pattern} is {zipf.exponent:g}, which is out of range",
                    hint="use a number above 0 and up to 5; 1 is common",
                )
        for entity, shards in self.shards.items():
            if not 1 <= shards <= _MOST_SHARDS:
                raise ConfigurationError(
                    f"shards of {entity}: {shards} is not between 1 and {_MOST_SHARDS:,}",
                    hint="use a whole number such as 8",
                )
        for name, pair in (("warm", self.warm), ("maximum", self.maximum)):
            for units in pair or ():
                _check(f"{name}={pair}: {units:g}", units, or_zero=name == "warm")

    @property
    def seconds(self) -> int:
        """The length of the run: ``minutes``, or an hour, or a day if an hour misses something."""
        if self.minutes is not None:
            return round(self.minutes * 60)
        ends = [(each.at - self.start) % DAY_SECONDS + each.seconds for each in self.spikes]
        is_hour = self.profile == "flat" and not self.windows and max(ends, default=0) <= _HOUR
        return _HOUR if is_hour else DAY_SECONDS

    def factor(self, pattern: str, second: float) -> float:
        """Return the factor on a pattern's declared rate at this second of the run."""
        clock = (self.start + second) % DAY_SECONDS
        windows = [each for each in self.windows if each.pattern == pattern]
        found = 1.0 if windows else _profile_factor(self.profile, clock // 60)
        if self.launch is not None:
            found *= self.launch.factor * min(1.0, (second + 1) / self.launch.seconds)
        for spike in self.spikes:
            if spike.pattern == pattern and (clock - spike.at) % DAY_SECONDS < spike.seconds:
                found *= spike.factor
        return found if all(_is_within(each, clock) for each in windows) else 0.0

    def change_times(self) -> frozenset[int]:
        """Return the seconds of the run at which the factor of any pattern may change."""
        times = {0}
        if self.profile != "flat":
            times.update(range(0, self.seconds, 60))
        if self.launch is not None:
            step = max(1, round(self.launch.seconds / 40))
            times.update(range(0, math.ceil(self.launch.seconds) + step, step))
        edges = [at for each in self.spikes for at in (each.at, each.at + each.seconds)]
        edges += [at for each in self.windows for at in (each.start, each.end)]
        for edge in edges:
            first = math.ceil((edge - self.start) % DAY_SECONDS)
            times.update(range(first, self.seconds, DAY_SECONDS))
        return frozenset(times)


def _is_within(window: BatchWindow, clock: float) -> bool:
    if window.start <= window.end:
        return window.start <= clock < window.end
    return clock >= window.start or clock < window.end


@cache
def _profile_factor(profile: Profile, minute: float) -> float:
    """Return the factor of a profile at a minute of the day, interpolated between full hours.

    The mean over a day is 1.
    """
    hours = _PROFILES[profile]
    hour, part = divmod(minute / 60, 1.0)
    before, after = hours[int(hour) % 24], hours[(int(hour) + 1) % 24]
    return (before + (after - before) * part) / (sum(hours) / 24)


def _check(what: str, value: float, *, or_zero: bool = False) -> None:
    if math.isfinite(value) and (value > 0 or (or_zero and value == 0)):
        return
    raise ConfigurationError(
        f"{what} is {value:g}, which is out of range",
        hint=f"use a number {'of 0 or more' if or_zero else 'above 0'}",
    )
