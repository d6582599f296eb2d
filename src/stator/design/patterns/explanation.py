"""What one call of a pattern becomes: ``print(orders_of_user("u1").explain())``."""

from __future__ import annotations

import json
from dataclasses import dataclass

from stator.design.plan.plan import PatternPlan, Request


@dataclass(frozen=True, slots=True)
class Explanation:
    """``requests`` are as boto3 takes them; one as a rule, several where shards or tables have to be asked one by one."""

    pattern: PatternPlan
    requests: tuple[Request, ...]

    def __str__(self) -> str:
        pattern = self.pattern
        where = f"{pattern.operation} on {pattern.index or pattern.table}"
        lines = [
            f"{pattern.name}: {where}",
            f"  key      {pattern.key_condition or 'none: the whole table is read'}",
            f"  costs    {pattern.units_per_call:g} read units a call, ${pattern.dollars_per_month:,.2f} a month",
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
