"""The difference between two cost reports: what a change adds or saves, and why.

Two plans may name the same index differently (GSI1, GSI2), so lines are not compared by name. Each
line of a report is assigned to a cause. A line about an index belongs to the entity's key in that
index (``index of Order by status``). Any other request belongs to its pattern, and storage belongs
to its entity. The differences of the causes add up to the difference of the totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from stator.design.cost.origin import CostChange, Origin, origin_of
from stator.design.cost.report import CostLine, CostReport
from stator.design.plan.lock_file import backfill_text, backfill_units
from stator.design.plan.plan import Plan
from stator.errors import DesignError
from stator.model.quantities import cents, signed_dollars

_SHOWN: Final = 3
_CENT: Final = Decimal("0.005")


@dataclass(frozen=True, slots=True)
class CostDiff:
    """How the monthly cost differs between two plans, by cause."""

    before: CostReport
    after: CostReport
    changes: tuple[CostChange, ...]
    """The causes whose cost changed, largest first."""
    origin: Origin | None = None
    """How much of the difference comes from the workload, and how much from the keys.

    None if a plan stores no workload (demand).
    """
    filled_units: float = 0.0
    """The write units that filling new indexes with the stored items takes once."""

    @property
    def dollars(self) -> Decimal:
        """How many dollars a month the second plan costs more."""
        return self.after.total - self.before.total

    @property
    def sentence(self) -> str:
        """The result in words: "This change adds $12.40 a month, +8% of $150.00: ...".

        If the change adds indexes, a second sentence says what filling them costs once.
        """
        once = backfill_text(self.filled_units)
        return f"{self._monthly} In addition, {once}, for new indexes." if once else self._monthly

    @property
    def _monthly(self) -> str:
        telling = [each for each in self.changes if abs(each.dollars) >= _CENT]
        if abs(self.dollars) < _CENT:
            if not telling:
                return f"This change costs nothing: it stays at ${cents(self.after.total)} a month."
            total = f"${cents(self.after.total)} a month"
            return f"This change evens out at {total}: {self._because(telling)}."
        verb = "adds" if self.dollars > 0 else "saves"
        before = self.before.total
        share = f", {self.dollars / before:+.0%} of ${cents(before)}" if before else ""
        amount = f"${cents(abs(self.dollars))} a month{share}"
        return f"This change {verb} {amount}: {self._because(telling)}."

    def _because(self, telling: list[CostChange]) -> str:
        count = (
            len(telling) if len(telling) == _SHOWN + 1 else _SHOWN
        )  # "1 smaller change" says less than the change
        shown = [str(each) for each in telling[:count]]
        if len(telling) > count:
            rest = self.dollars - sum((each.dollars for each in telling[:count]), Decimal(0))
            shown.append(f"{len(telling) - count} smaller changes ({signed_dollars(rest)})")
        return ", ".join(shown[:-1]) + (" and " if len(shown) > 1 else "") + shown[-1]

    def to_data(self) -> dict[str, Any]:
        """Return the difference and its causes as JSON data."""
        return {
            "before_dollars_per_month": float(self.before.total),
            "after_dollars_per_month": float(self.after.total),
            "dollars_per_month": float(self.dollars),
            "sentence": self.sentence,
            "backfill_write_units": self.filled_units,
            "origin": None if self.origin is None else _origin_data(self.origin),
            "changes": [
                {
                    "cause": each.cause,
                    "before": None if each.before is None else float(each.before),
                    "after": None if each.after is None else float(each.after),
                    "dollars_per_month": float(each.dollars),
                }
                for each in self.changes
            ],
        }


def _origin_data(origin: Origin) -> dict[str, Any]:
    return {
        "workload_dollars_per_month": float(origin.workload),
        "keys_dollars_per_month": float(origin.keys),
        "new_or_gone_dollars_per_month": float(origin.new_or_gone),
        "asked_otherwise": list(origin.asked),
        "sentence": origin.sentence,
    }


def compare_costs(
    before: CostReport, after: CostReport, plans: tuple[Plan, Plan] | None = None
) -> CostDiff:
    """Return the difference between two reports.

    Both reports must have the same region, billing mode and other options. ``plans`` are the plans
    of the two reports. If they are passed, the difference is also split by origin.
    """
    if before.basis != after.basis:
        raise DesignError(
            "the two cost reports cannot be compared, because their options differ",
            hint="price both with the same region, mode and options",
        )
    old, new = before.by(cause_of), after.by(cause_of)
    changes = [CostChange(cause, old.get(cause), new.get(cause)) for cause in {**old, **new}]
    telling = [each for each in changes if each.dollars]
    ordered = tuple(sorted(telling, key=lambda each: (-abs(each.dollars), each.cause)))
    if plans is None:
        return CostDiff(before, after, ordered)
    filled = sum(backfill_units(*plans).values())
    return CostDiff(before, after, ordered, origin_of(ordered, *plans), filled)


def cause_of(line: CostLine) -> str:
    if line.kind in ("streams", "backups"):
        return f"{'the streams' if line.kind == 'streams' else 'backup'} of {line.table}"
    if line.index is not None and line.kind != "reads":
        return (
            f"index of {line.entity} by {line.by}"
            if line.by
            else f"idle capacity of {line.table}/{line.index}"
        )
    if line.pattern is not None:
        return line.pattern
    return (
        f"storage of {line.entity}" if line.kind == "storage" else f"idle capacity of {line.table}"
    )
