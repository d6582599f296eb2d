"""The difference between two cost reports: what a change adds or saves, and why.

Each line of a report has one cause. For a line about an index, the cause is the entity's key in
that index, because the number in an index's name (GSI1) may change between plans. For any other
request, it is the pattern that makes the request. For storage, it is the entity. The differences of
the causes add up to the difference of the totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from stator.design.cost.origin import CostChange, Origin, origin_of
from stator.design.cost.report import CostLine, CostReport
from stator.design.plan.plan import Plan
from stator.errors import DesignError
from stator.model.quantities import signed_dollars

_SHOWN: Final = 3
_CENT: Final = Decimal("0.005")


@dataclass(frozen=True, slots=True)
class CostDiff:
    before: CostReport
    after: CostReport
    changes: tuple[CostChange, ...]
    """The causes whose cost changed, largest first."""
    origin: Origin | None = None
    """The shares of the workload and of the keys; None if a plan has no demand."""

    @property
    def dollars(self) -> Decimal:
        return self.after.total - self.before.total

    @property
    def sentence(self) -> str:
        """A sentence that says what the change does to the bill, and why."""
        telling = [each for each in self.changes if abs(each.dollars) >= _CENT]
        if abs(self.dollars) < _CENT:
            if not telling:
                return f"This change costs nothing: it stays at ${self.after.total:,.2f} a month."
            total = f"${self.after.total:,.2f} a month"
            return f"This change evens out at {total}: {self._because(telling)}."
        verb = "adds" if self.dollars > 0 else "saves"
        before = self.before.total
        share = f", {self.dollars / before:+.0%} of ${before:,.2f}" if before else ""
        amount = f"${abs(self.dollars):,.2f} a month{share}"
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
        return {
            "before_dollars_per_month": float(self.before.total),
            "after_dollars_per_month": float(self.after.total),
            "dollars_per_month": float(self.dollars),
            "sentence": self.sentence,
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


def compare(
    before: CostReport, after: CostReport, plans: tuple[Plan, Plan] | None = None
) -> CostDiff:
    """Return the difference between two reports.

    Both reports must have the same region, billing mode and other options. ``plans`` are the plans
    of the two reports. If they are passed, the difference is also split by origin.
    """
    if before.basis != after.basis:
        raise DesignError(
            "the two costs do not have the same basis",
            hint="price both with the same region, mode and options",
        )
    old, new = before.by(cause_of), after.by(cause_of)
    changes = [CostChange(cause, old.get(cause), new.get(cause)) for cause in {**old, **new}]
    telling = [each for each in changes if each.dollars]
    ordered = tuple(sorted(telling, key=lambda each: (-abs(each.dollars), each.cause)))
    return CostDiff(before, after, ordered, None if plans is None else origin_of(ordered, *plans))


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
