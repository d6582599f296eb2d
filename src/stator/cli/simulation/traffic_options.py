"""The texts of ``stator simulate``'s options, such as ``place_order=10x@00:10+5m``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import typer

from stator.design.simulation import (
    BatchWindow,
    HotKey,
    Launch,
    SimulatedLoad,
    Spike,
    ZipfKeys,
)

T = TypeVar("T")

_NUMBER: Final = r"(\d[\d_]*(?:\.\d+)?)"
_CLOCK: Final = r"(\d{1,2}:\d{2}(?::\d{2})?)"
_DURATION: Final = r"(\d+(?:\.\d+)?)(s|m|h)"
_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}

SPIKE_EXAMPLE: Final = "place_order=10x@00:10+5m"
WINDOW_EXAMPLE: Final = "nightly_report=02:00-03:00"
LAUNCH_EXAMPLE: Final = "5x+15m"
LOAD_EXAMPLE: Final = "Order=1000000@5000"
HOT_EXAMPLE: Final = "orders_of_user=0.3"
ZIPF_EXAMPLE: Final = "orders_of_user=1.0"
SHARDS_EXAMPLE: Final = "Order=8"
UNITS_EXAMPLE: Final = "12000,4000"


def spikes(given: Iterable[str] | None) -> tuple[Spike, ...]:
    pattern = re.compile(rf"(.+)={_NUMBER}x@{_CLOCK}\+{_DURATION}")
    return _each("--spike", given, pattern, SPIKE_EXAMPLE, _spike)


def windows(given: Iterable[str] | None) -> tuple[BatchWindow, ...]:
    pattern = re.compile(rf"(.+)={_CLOCK}-{_CLOCK}")
    return _each("--window", given, pattern, WINDOW_EXAMPLE, _window)


def launch(given: str | None) -> Launch | None:
    if given is None:
        return None
    pattern = re.compile(rf"{_NUMBER}x\+{_DURATION}")
    [found] = _each("--launch", [given], pattern, LAUNCH_EXAMPLE, _launch)
    return found


def loads(given: Iterable[str] | None, *, is_shuffled: bool) -> tuple[SimulatedLoad, ...]:
    pattern = re.compile(rf"(.+)={_NUMBER}@{_NUMBER}")

    def load(found: re.Match[str]) -> SimulatedLoad:
        return SimulatedLoad(found[1], _number(found[2]), _number(found[3]), is_shuffled)

    return _each("--load", given, pattern, LOAD_EXAMPLE, load)


def hot_keys(given: Iterable[str] | None) -> tuple[HotKey, ...]:
    pattern = re.compile(rf"(.+)={_NUMBER}")
    found = _each("--hot", given, pattern, HOT_EXAMPLE, _named_number)
    return tuple(HotKey(name, share) for name, share in found)


def zipf_keys(given: Iterable[str] | None) -> tuple[ZipfKeys, ...]:
    pattern = re.compile(rf"(.+)={_NUMBER}")
    found = _each("--zipf", given, pattern, ZIPF_EXAMPLE, _named_number)
    return tuple(ZipfKeys(name, exponent) for name, exponent in found)


def shards(given: Iterable[str] | None) -> dict[str, int]:
    pattern = re.compile(r"(.+)=(\d+)")
    found = _each("--shards", given, pattern, SHARDS_EXAMPLE, _named_number)
    return {name: int(number) for name, number in found}


def units(option: str, given: str | None) -> tuple[float, float] | None:
    """Parse a pair of read and write units."""
    if given is None:
        return None
    pattern = re.compile(rf"{_NUMBER},{_NUMBER}")
    [found] = _each(option, [given], pattern, UNITS_EXAMPLE, _pair)
    return found


def time_of_day(option: str, given: str) -> float:
    [found] = _each(option, [given], re.compile(_CLOCK), "09:30", lambda found: _clock(found[1]))
    return found


def _each(
    option: str,
    given: Iterable[str] | None,
    pattern: re.Pattern[str],
    example: str,
    make: Callable[[re.Match[str]], T],
) -> tuple[T, ...]:
    made = []
    for text in given or ():
        found = pattern.fullmatch(text)
        try:
            if found is None:
                raise ValueError(text)
            made.append(make(found))
        except ValueError:
            raise typer.BadParameter(
                f"{option} {text} is not understood; write it like {option} {example}"
            ) from None
    return tuple(made)


def _spike(found: re.Match[str]) -> Spike:
    seconds = float(found[4]) * _SECONDS[found[5]]
    return Spike(found[1], _number(found[2]), _clock(found[3]), seconds)


def _window(found: re.Match[str]) -> BatchWindow:
    return BatchWindow(found[1], _clock(found[2]), _clock(found[3]))


def _launch(found: re.Match[str]) -> Launch:
    return Launch(_number(found[1]), float(found[2]) * _SECONDS[found[3]])


def _named_number(found: re.Match[str]) -> tuple[str, float]:
    return found[1], _number(found[2])


def _pair(found: re.Match[str]) -> tuple[float, float]:
    return _number(found[1]), _number(found[2])


def _number(text: str) -> float:
    return float(text.replace("_", ""))


def _clock(text: str) -> float:
    """Return seconds after midnight. Raises ValueError for 24:00 and above."""
    hours, minutes, seconds = (*map(int, text.split(":")), 0)[:3]
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(text)
    return float(hours * 3600 + minutes * 60 + seconds)
