"""The report of a month: use and cost of every table, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from stator.design.cost.prices import RegionPrices
from stator.model.quantities import cents, plural
from stator.ops.capacity.advice import CapacityAdvice, TableAdvice
from stator.ops.report.month_use import MonthSpan, PlaceMonth
from stator.ops.report.pattern_use import PatternUse

# What each reason of a refusal asks for, by its last word in ``THROTTLE_REASONS``.
_CURES: Final = {
    "hot key": "one key is asked for more than a partition serves (docs/runbooks/hot-key.md)",
    "capacity": "the provisioned units were used up (docs/runbooks/no-capacity.md)",
    "maximum": "the on-demand maximum was used up (docs/runbooks/no-capacity.md)",
    "account": "the account's quota was used up (docs/runbooks/account-limit.md)",
}


@dataclass(frozen=True, slots=True)
class SuggestedChange:
    """A change to make to a table, the reason, and the dollars it saves a month, if known."""

    table: str
    text: str
    saves: float | None = None
    command: str = ""

    def to_data(self) -> dict[str, Any]:
        """Return the change as JSON-ready data."""
        saves = None if self.saves is None else round(self.saves, 2)
        return {"table": self.table, "text": self.text, "saves": saves, "command": self.command}


@dataclass(frozen=True, slots=True)
class MonthReport:
    """The use of tables in a month, its cost, and the changes to make."""

    span: MonthSpan
    prices: RegionPrices
    places: tuple[PlaceMonth, ...]
    patterns: tuple[PatternUse, ...]
    changes: tuple[SuggestedChange, ...]
    notes: tuple[str, ...]

    @property
    def dollars(self) -> float:
        """The cost of the hours that the report covers."""
        return sum(each.dollars for each in self.places)

    @property
    def whole_dollars(self) -> float:
        """The cost of the whole month if it goes on as it began."""
        return self.dollars * self.span.month.hours / self.span.hours

    def to_data(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        return {
            "month": f"{self.span.month.year}-{self.span.month.number:02d}",
            "hours": self.span.hours,
            "of_hours": self.span.month.hours,
            "region": self.prices.region,
            "prices_as_of": self.prices.as_of.isoformat(),
            "dollars": round(self.dollars, 2),
            "whole_month_dollars": round(self.whole_dollars, 2),
            "places": [each.to_data() for each in self.places],
            "patterns": [each.to_data() for each in self.patterns],
            "changes": [each.to_data() for each in self.changes],
            "notes": list(self.notes),
        }


def suggested_changes(
    places: Sequence[PlaceMonth], advice: CapacityAdvice | None
) -> tuple[SuggestedChange, ...]:
    """Return the changes to make: those for refusals first, the others by the dollars they save."""
    found = [
        SuggestedChange(place.table, _refusal(place, reason, events))
        for place in places
        for reason, events in place.throttles.items()
    ]
    saving = [change for each in (advice.tables if advice else ()) for change in _of_table(each)]
    found += sorted(saving, key=lambda each: -(each.saves or 0.0))
    for each in advice.reserved if advice else ():
        text = (
            f"Reserve {plural(each.blocks, 'block')} of {each.block_units} {each.kind} units for "
            f"{plural(each.years, 'year')}, for ${cents(each.upfront)} now, over all tables."
        )
        found.append(SuggestedChange("", text, each.saves))
    return tuple(found)


def _refusal(place: PlaceMonth, reason: str, events: int) -> str:
    kind, _, limit = reason.partition(" ")
    requests = plural(events, kind)
    were = "was" if events == 1 else "were"
    return f"{requests} of {place.name} {were} refused: {_CURES[limit]}."


def _of_table(advice: TableAdvice) -> list[SuggestedChange]:
    found = []
    if advice.is_change:
        text = f"Change to {advice.recommended.name}. {advice.reason}"
        command = f"stator advise --table {advice.table} --calls"
        found.append(SuggestedChange(advice.table, text, advice.saves, command))
    for index in advice.unused:
        text = f"Drop {index.index}: it is written and never read."
        found.append(SuggestedChange(advice.table, text, index.dollars))
    return found
