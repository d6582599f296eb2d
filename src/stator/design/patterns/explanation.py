"""The explanation of one call of a pattern: ``print(orders_of_user("u1").explain())``."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass

from stator.design.plan.plan import PatternPlan, Request


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """A pattern's plan and the requests of one call, in the form boto3 takes.

    Most calls make one request. A call that reads several shards, tables or key values makes one
    request for each of them.
    """

    pattern: PatternPlan
    requests: tuple[Request, ...]

    def __repr__(self) -> str:
        pattern = self.pattern
        where = f"{pattern.operation} on {pattern.index or pattern.table}"
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
        where = f"{pattern.operation} on {pattern.index or pattern.table}"
        lines = [
            f"{pattern.name}: {where}",
            f"  key      {pattern.key_condition or 'none: the whole table is read'}",
            f"  costs    {costs}",
            f"  latency  {pattern.latency}",
            *(f"  because  {reason}" for reason in pattern.reasons),
            *(f"  beware   {warning}" for warning in pattern.warnings),
        ]
        for request in self.requests:
            lines += [
                "  request",
                *(f"    {line}" for line in json.dumps(request, indent=2).splitlines()),
            ]
        return "\n".join(lines)
