"""The explanation of one call of a pattern: ``print(orders_of_user("u1").explain())``."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stator.design.plan.plan import PatternPlan, Plan, Request
from stator.design.plan.projection import projected


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
        """Return the full text for a notebook."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def __str__(self) -> str:
        pattern = self.pattern
        costs = (
            f"{pattern.units_per_call:g} read units a call, "
            f"${pattern.dollars_per_month:,.2f} a month"
        )
        where = f"{pattern.operation} on {pattern.steps[0].source}"
        lines = [
            f"{pattern.name}: {where}",
            f"  key      {pattern.key_condition or 'none: the whole table is read'}",
            f"  costs    {costs}",
            *(
                [f"  only     {', '.join(self.only)}: DynamoDB reads and bills whole items"]
                if self.only
                else []
            ),
            *(["  order    sorted in memory, not in pages"] if pattern.in_memory else []),
            f"  latency  {pattern.latency}",
            *(f"  because  {reason}" for reason in pattern.reasons),
            *(f"  beware   {warning}" for warning in pattern.warnings),
            *(f"  guess    {guess}" for guess in pattern.guesses),
        ]
        for request in self.requests:
            lines += [
                "  request",
                *(f"    {line}" for line in json.dumps(request, indent=2).splitlines()),
            ]
        return "\n".join(lines)


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
