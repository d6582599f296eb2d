"""The units of each access pattern in a month, from Prometheus.

CloudWatch knows tables and indexes, but no patterns. Programs that serve Stator's metrics
(``--metrics-port``, ``metrics_observer``) count units by pattern, and a Prometheus server that
scrapes them remembers the month.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from stator.errors import ConfigurationError, LiveTableUnreachable
from stator.ops.capacity.use_series import KINDS
from stator.ops.report.month_use import MonthSpan, PlaceMonth

_TIMEOUT_SECONDS: Final = 30
_STEP_SECONDS: Final = 86_400
"""Increases are asked for day by day: a restarted counter then loses little."""


_Key = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class PatternUse:
    """The units of one pattern on one table or index, and its part of what they cost."""

    pattern: str
    table: str
    index: str | None
    read_units: float
    write_units: float
    dollars: float

    def to_data(self) -> dict[str, Any]:
        """Return the use as JSON-ready data."""
        return {
            "pattern": self.pattern,
            "table": self.table,
            "index": self.index,
            "read_units": round(self.read_units, 3),
            "write_units": round(self.write_units, 3),
            "dollars": round(self.dollars, 4),
        }


def pattern_use(
    address: str, places: Sequence[PlaceMonth], span: MonthSpan
) -> tuple[PatternUse, ...]:
    """Return the use of patterns on these tables and indexes, the most expensive first.

    Each pattern bears its share of the cost of a place. Units of programs without metrics belong to
    no pattern.
    """
    counted: dict[_Key, dict[str, float]] = {}
    for kind in KINDS:
        for labels, units in _increases(address, f"stator_{kind}_units_total", span):
            index = labels.get("index") or None
            key = labels.get("table", ""), index, labels.get("pattern", "")
            found = counted.setdefault(key, dict.fromkeys(KINDS, 0.0))
            found[kind] += units
    shown = [found for place in places for found in _of_place(place, counted)]
    return tuple(sorted(shown, key=lambda each: (-each.dollars, each.pattern)))


def _of_place(place: PlaceMonth, counted: Mapping[_Key, Mapping[str, float]]) -> list[PatternUse]:
    own = {
        pattern: units
        for (table, index, pattern), units in counted.items()
        if (table, index) == (place.table, place.index)
    }
    whole = {
        kind: max(place.of(kind).units, sum(each[kind] for each in own.values())) for kind in KINDS
    }
    return [
        PatternUse(
            pattern or "(none)",
            place.table,
            place.index,
            units["read"],
            units["write"],
            sum(
                place.of(kind).dollars * units[kind] / whole[kind] for kind in KINDS if whole[kind]
            ),
        )
        for pattern, units in own.items()
    ]


def _increases(address: str, counter: str, span: MonthSpan) -> list[tuple[dict[str, str], float]]:
    """Return the increase of a counter over the span, by table, index and pattern."""
    found: dict[tuple[tuple[str, str], ...], float] = {}
    start = span.start
    while start < span.end:
        end = min(start + _STEP_SECONDS, span.end)
        query = f"sum by (table, index, pattern) (increase({counter}[{end - start}s]))"
        for each in _ask(address, query, end):
            labels = tuple(sorted((str(k), str(v)) for k, v in each["metric"].items()))
            found[labels] = found.get(labels, 0.0) + float(each["value"][1])
        start = end
    return [(dict(labels), units) for labels, units in found.items() if units > 0]


def _ask(address: str, query: str, at: int) -> list[dict[str, Any]]:
    if urlsplit(address).scheme not in ("http", "https"):
        raise ConfigurationError(
            f"{address} is not the address of a Prometheus server",
            hint="for example http://localhost:9090",
        )
    url = f"{address.rstrip('/')}/api/v1/query?{urlencode({'query': query, 'time': at})}"
    try:
        with urlopen(url, timeout=_TIMEOUT_SECONDS) as reply:  # noqa: S310 - checked above
            answer = json.load(reply)
        result: list[dict[str, Any]] = answer["data"]["result"]
    except (URLError, OSError, ValueError, KeyError, TypeError) as error:
        raise LiveTableUnreachable(
            f"Prometheus at {address} does not answer a query: {error}",
            hint="check the address; the report also works without --prometheus",
        ) from None
    return result
