"""A plan priced like the bill: with the table class, capacity mode and recovery of its design.

The planner ranks layouts by the on-demand prices of one region, because the best keys should not
change with a billing mode. What a plan shows is what the cost report says, so that the plan, the
report, the documents and the explanations have one total.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from stator.design.cost.report import DEFAULT_REGION, CostLine, cost, settings_options
from stator.design.declaration import Declaration
from stator.design.plan.plan import IndexPlan, PatternPlan, Plan, TablePlan

_DIGITS = 4


def billed_plan(plan: Plan, design: Declaration, region: str = DEFAULT_REGION) -> Plan:
    """Return a plan with the dollars that ``cost(design, region=region)`` says.

    A plan on demand without recovery, in the default region, has these dollars already.
    """
    if not settings_options(design) and region == DEFAULT_REGION:
        return plan
    priced = cost(plan, facts=design, region=region)
    indexes, patterns = priced.by_index(), priced.by_pattern()
    names = {each.name for each in plan.patterns}
    rest = [each for each in priced.lines if each.pattern not in names]
    tables = []
    for table in plan.tables:
        own = [each for each in rest if _table_of(each, plan) == table.name]
        tables.append(_billed_table(table, own, indexes))
    found = tuple(
        _billed_pattern(each, float(patterns.get(each.name, 0))) for each in plan.patterns
    )
    total = sum(each.dollars_per_month for each in found) + sum(
        each.storage_dollars_per_month + each.other_dollars_per_month for each in tables
    )
    return replace(
        plan, tables=tuple(tables), patterns=found, dollars_per_month=round(total, _DIGITS)
    )


def _billed_pattern(pattern: PatternPlan, dollars: float) -> PatternPlan:
    return replace(pattern, dollars_per_month=round(dollars, _DIGITS))


def _billed_table(
    table: TablePlan, lines: list[CostLine], indexes: dict[str, Decimal]
) -> TablePlan:
    storage = sum(each.dollars for each in lines if each.kind == "storage")
    other = sum(each.dollars for each in lines if each.kind != "storage")
    return replace(
        table,
        indexes=tuple(_billed_index(table, each, indexes) for each in table.indexes),
        storage_dollars_per_month=round(float(storage), _DIGITS),
        other_dollars_per_month=round(float(other), _DIGITS),
    )


def _billed_index(table: TablePlan, index: IndexPlan, dollars: dict[str, Decimal]) -> IndexPlan:
    found = dollars.get(f"{table.name}/{index.name}", Decimal(0))
    return replace(index, dollars_per_month=round(float(found), _DIGITS))


def _table_of(line: CostLine, plan: Plan) -> str:
    """Return the table under which the plan shows a line that belongs to no pattern.

    The guards of an entity are in the design's own table, and are shown with the entity's table.
    """
    for entity in plan.entities:
        if entity.name == line.entity:
            return entity.table
    names = [each.name for each in plan.tables]
    return line.table if line.table in names else names[0]
