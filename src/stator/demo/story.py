"""The results of a demo run: the numbers behind the report in the terminal and on the page."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sample:
    """Rates and lag at one moment while the routers report tests.

    ``at`` is in seconds since they began. ``lag_seconds`` is None until a worker has reported how
    far it is behind.
    """

    at: float
    written: int
    handled: int
    lag_seconds: float | None
    hottest_share: float
    hottest: str


@dataclass(frozen=True, slots=True)
class Event:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class PatternSeen:
    """An access pattern that the demo called several times, with its planned and measured cost.

    ``planned_items`` is the number of items that a call returns according to the design;
    ``items`` is the number that it did return. The two differ if the demo runs with more or fewer
    tests than the design assumes.
    """

    name: str
    request: str
    calls: int
    items: int
    milliseconds: float
    planned_units: float
    planned_items: int
    measured_units: float


@dataclass(frozen=True, slots=True)
class IspSummary:
    isp: str
    tests: int
    mean: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Checked:
    """One comparison of the recount: an expected total and the counted total."""

    what: str
    expected: int
    found: int

    @property
    def is_right(self) -> bool:
        return self.expected == self.found


@dataclass(slots=True)
class Story:
    """The whole run. ``throttle_reason`` is why DynamoDB refused writes of the hot provider's feed.

    ``spreads`` are the numbers of shards that the feed got then, one after the other.
    ``refused_before`` and ``refused_after`` count the refused writes until the last of these
    spreads and since, in ``seconds_before`` and ``seconds_after``.
    """

    dollars_per_month: float = 0.0
    findings: list[str] = field(default_factory=list)
    plan_lines: list[str] = field(default_factory=list)
    routers: int = 0
    history_tests: int = 0
    parquet_bytes: int = 0
    load_seconds: float = 0.0
    load_units: float = 0.0
    summary_seconds: float = 0.0
    patterns: list[PatternSeen] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    throttle_reason: str = ""
    spreads: list[int] = field(default_factory=list)
    refused_before: int = 0
    refused_after: int = 0
    seconds_before: float = 0.0
    seconds_after: float = 0.0
    heat_before: dict[str, int] = field(default_factory=dict)
    heat_after: dict[str, int] = field(default_factory=dict)
    summaries: list[IspSummary] = field(default_factory=list)
    hours: list[tuple[str, int, float]] = field(default_factory=list)
    alerts: int = 0
    archived: int = 0
    checks: list[Checked] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def refusals(self) -> str:
        """What DynamoDB refused before the hot feed was spread, and since, as text."""
        return (
            f"{self.refused_before:,} writes refused in {self.seconds_before:.1f} s until the "
            f"feed was spread, {self.refused_after:,} in the {self.seconds_after:.1f} s since"
        )

    @property
    def is_whole(self) -> bool:
        return bool(self.checks) and all(check.is_right for check in self.checks)
