"""The explanation of one call of a pattern: ``print(orders_of_user("u1").explain())``."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stator.design.plan.html_table import html_facts
from stator.design.plan.plan import PatternPlan, Plan, Request
from stator.design.plan.projection import projected
from stator.model.quantities import cents


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """A pattern's plan and the requests of one call, in the form boto3 takes.

    Most calls make one request. A call that reads several shards, tables or key values makes one
    request for each of them.
    """

    pattern: PatternPlan
    requests: tuple[Request, ...]
    only: tuple[str, ...] = ()
    """The fields that the call asks for; empty for whole items."""

    def __repr__(self) -> str:
        pattern = self.pattern
        where = f"{pattern.operation} on {pattern.steps[0].source}"
        return f"<Explanation of {pattern.name}: {where}, {len(self.requests)} requests>"

    def _repr_html_(self) -> str:
        """Return the facts as a table for a notebook, and the requests as JSON below it."""
        pattern = self.pattern
        where = f"{pattern.operation} on {pattern.steps[0].source}"
        requests = "\n".join(json.dumps(each, indent=2) for each in self.requests)
        return html_facts(f"{pattern.name}: {where}", self._facts()) + (
            f"<pre>{html.escape(requests)}</pre>"
        )

    def __str__(self) -> str:
        pattern = self.pattern
        where = f"{pattern.operation} on {pattern.steps[0].source}"
        lines = [f"{pattern.name}: {where}"]
        lines += [f"  {name:7}  {fact}" for name, fact in self._facts()]
        for request in self.requests:
            lines += [
                "  request",
                *(f"    {line}" for line in json.dumps(request, indent=2).splitlines()),
            ]
        return "\n".join(lines)

    def _facts(self) -> list[tuple[str, str]]:
        pattern = self.pattern
        costs = (
            f"{pattern.units_per_call:g} read units a call, "
            f"${cents(pattern.dollars_per_month)} a month"
        )
        fields = f"{', '.join(self.only)}: DynamoDB reads and bills whole items"
        return [
            ("key", pattern.key_condition or "none: the whole table is read"),
            ("costs", costs),
            *([("only", fields)] if self.only else []),
            *([("order", "sorted in memory, not in pages")] if pattern.in_memory else []),
            ("latency", pattern.latency),
            *(("because", reason) for reason in pattern.reasons),
            *(("beware", warning) for warning in pattern.warnings),
            *(("guess", guess) for guess in pattern.guesses),
        ]


def explain_call(
    plan: Plan, pattern: str, arguments: Mapping[str, Any], only: tuple[str, ...] = ()
) -> Explanation:
    """Explain one call of a pattern. ``only`` names the fields to return, or is empty."""
    planned = plan.pattern(pattern)
    requests = planned.requests(**arguments)  # raises if an argument is missing
    if only:
        requests = tuple(
            projected(plan, step, request, only)
            for step in planned.steps
            for request in step.requests(arguments)
        )
    return Explanation(planned, requests, only)
