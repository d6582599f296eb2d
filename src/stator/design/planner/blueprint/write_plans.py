"""Write plans: the operation of each write pattern and its write units, indexes included."""

from __future__ import annotations

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.declaration import Declaration
from stator.design.entities.entity import info
from stator.design.patterns.pattern import DeclaredWrite, WritePattern
from stator.design.plan.plan import EntityPlan, Operation, PatternPlan, Step
from stator.design.planner.cost_model import CostModel, Placement
from stator.design.planner.needs import is_optional
from stator.design.planner.weights import WRITE_UNIT_DOLLARS
from stator.model.limits import TRANSACTION_BYTES

_OPERATIONS: dict[str, Operation] = {
    "create": "PutItem",
    "update": "UpdateItem",
    "delete": "DeleteItem",
}
_TRANSACTION_ITEMS = 100
Opened = dict[str, tuple[Placement, ...]]


def write_plans(
    design: Declaration, costs: CostModel, entities: dict[str, EntityPlan], opened: Opened
) -> list[PatternPlan]:
    """Return the plans of the write patterns.

    ``opened`` has the placements of each entity in indexes, by entity name.
    """
    return [_write_plan(pattern, costs, entities, opened) for pattern in design.write_patterns]


def _write_plan(
    pattern: WritePattern, costs: CostModel, entities: dict[str, EntityPlan], opened: Opened
) -> PatternPlan:
    changes = pattern.trace()
    items = sum(change.times for change in changes)
    is_transaction = len(changes) > 1
    steps, units, reasons = [], 0.0, []
    for change in changes:
        plan = entities[info(change.entity).name]
        table, indexes = _units(change, costs, opened[plan.name])
        each = table * (2 if is_transaction else 1) + sum(cost for _, cost in indexes)
        units += each * change.times
        reasons += [_reason(plan.name, placement, cost) for placement, cost in indexes if cost]
        steps.append(Step(_OPERATIONS[change.kind], plan.table, (plan.name,), units=round(each, 4)))
    if is_transaction:
        reasons.insert(
            0, "a transaction: write units of the table count twice, those of indexes once"
        )
    monthly = units * pattern.rps * MONTH_SECONDS
    return PatternPlan(
        pattern.name,
        "write",
        tuple(steps),
        (),
        pattern.rps,
        round(units, 4),
        round(monthly, 2),
        round(monthly * WRITE_UNIT_DOLLARS, 4),
        "tens of milliseconds" if is_transaction else "single-digit milliseconds",
        transaction=is_transaction,
        reasons=tuple(reasons),
        warnings=tuple(_warnings(changes, items, costs)) if is_transaction else (),
    )


def _units(
    change: DeclaredWrite, costs: CostModel, opened: tuple[Placement, ...]
) -> tuple[float, list[tuple[Placement, float]]]:
    table = costs.base_write_units(change.entity)
    if change.kind != "update":
        return table, [(placement, costs.write_units_of_item(placement)) for placement in opened]
    always = {
        name
        for name, each in info(change.entity).fields.items()
        if each.role in ("version", "updated")
    }
    fields = frozenset(change.fields) | always
    return table, [
        (placement, costs.write_units_of_update(placement, fields)) for placement in opened
    ]


def _reason(entity: str, placement: Placement, units: float) -> str:
    known = info(placement.path.entity)
    held = ", ".join(placement.path.fields)
    sparse = bool(placement.path.constants) or any(
        is_optional(known, name) for name in placement.path.fields
    )
    note = ", which is sparse" if sparse else ""
    noun = "write unit" if units == 1 else "write units"
    return f"{units:g} {noun} for the index entry of {entity} by {held}{note}"


def _warnings(changes: tuple[DeclaredWrite, ...], items: float, costs: CostModel) -> list[str]:
    found = []
    if items > _TRANSACTION_ITEMS:
        found.append(f"{items:g} items in one transaction: DynamoDB allows {_TRANSACTION_ITEMS}")
    size = sum(change.times * costs.item_bytes(change.entity) for change in changes)
    if size > TRANSACTION_BYTES:
        found.append(f"about {size / 2**20:.1f} MB in one transaction: DynamoDB allows 4 MB")
    return found
