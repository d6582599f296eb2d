"""Write plans: the operation of each write pattern and its write units, indexes included."""

from __future__ import annotations

from collections.abc import Iterator

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.declaration import Declaration
from stator.design.entities.entity import info
from stator.design.patterns.write_pattern import DeclaredWrite, WritePattern
from stator.design.plan.own_table import own_table
from stator.design.plan.plan import EntityPlan, Operation, PatternPlan, Step
from stator.design.plan.usage import UnitUse
from stator.design.planner.blueprint.write_usage import Opened, WriteUsage, usage_of
from stator.design.planner.cost_model import CostModel, Placement
from stator.design.planner.needs.need import is_optional
from stator.design.planner.needs.write_rates import item_write
from stator.design.planner.weights import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from stator.model.limits import TRANSACTION_BYTES
from stator.model.quantities import amount

_OPERATIONS: dict[str, Operation] = {
    "create": "PutItem",
    "update": "UpdateItem",
    "delete": "DeleteItem",
}
_TRANSACTION_ITEMS = 100


class WritePlans:
    """Creates the plan of each write pattern, and counts its units in each table and index.

    ``opened`` has the placements of each entity in indexes, by entity name.
    """

    def __init__(
        self,
        design: Declaration,
        costs: CostModel,
        entities: dict[str, EntityPlan],
        opened: dict[str, Opened],
    ) -> None:
        self.design = design
        self.costs = costs
        self.entities = entities
        self.opened = opened
        self.own_table = own_table(design.name).name

    def patterns(self) -> list[PatternPlan]:
        return [self._pattern(pattern) for pattern in self.design.write_patterns]

    def uses(self) -> Iterator[UnitUse]:
        """Yield the units a second of every write pattern, and of ``writes=``."""
        for pattern in self.design.write_patterns:
            changes = pattern.trace()
            for change in changes:
                usage = self._usage(change, len(changes) > 1)
                yield from self._placed(pattern.name, change, usage, pattern.rps * change.times)
        for entity, rate in self.design.declared_writes.items():
            change = DeclaredWrite("create", entity)
            label = f"writes of {info(entity).name}"
            yield from self._placed(label, change, self._usage(change, False), rate)

    def _placed(
        self, label: str, change: DeclaredWrite, usage: WriteUsage, rate: float
    ) -> Iterator[UnitUse]:
        name = info(change.entity).name
        for each in usage.places:
            units = round(each.units * rate, 9)
            yield UnitUse(each.kind, label, name, each.table, each.index, units)

    def _usage(self, change: DeclaredWrite, is_transaction: bool) -> WriteUsage:
        plan = self.entities[info(change.entity).name]
        return usage_of(
            change,
            plan,
            self.opened[plan.name],
            self.costs,
            self.own_table,
            is_transaction=is_transaction,
        )

    def _pattern(self, pattern: WritePattern) -> PatternPlan:
        changes = pattern.trace()
        items = sum(change.times for change in changes)
        is_transaction = len(changes) > 1
        steps, units, reads, reasons = [], 0.0, 0.0, []
        for change in changes:
            plan, usage = (
                self.entities[info(change.entity).name],
                self._usage(change, is_transaction),
            )
            each = usage.units("write")
            units += each * change.times
            reads += usage.units("read") * change.times
            reasons += _guard_reasons(plan.name, usage)
            reasons += [
                _reason(plan.name, placement, usage.in_index(index), change.times)
                for placement, index in self.opened[plan.name]
                if usage.in_index(index)
            ]
            steps.append(
                Step(_OPERATIONS[change.kind], plan.table, (plan.name,), units=round(each, 4))
            )
        if is_transaction:
            reasons.insert(
                0, "a transaction: write units of the table count twice, those of indexes once"
            )
        monthly, seconds = units * pattern.rps * MONTH_SECONDS, pattern.rps * MONTH_SECONDS
        dollars = monthly * WRITE_UNIT_DOLLARS + reads * seconds * READ_UNIT_DOLLARS
        return PatternPlan(
            pattern.name,
            "write",
            tuple(steps),
            (),
            pattern.rps,
            round(units, 4),
            round(monthly, 2),
            round(dollars, 4),
            "tens of milliseconds" if is_transaction else "single-digit milliseconds",
            transaction=is_transaction,
            reasons=tuple(reasons),
            warnings=tuple(_warnings(changes, items, self.costs)) if is_transaction else (),
            guesses=self._guesses(changes),
        )

    def _guesses(self, changes: tuple[DeclaredWrite, ...]) -> tuple[str, ...]:
        """Return the guesses about the shares of items that sparse indexes hold, as text."""
        found = [
            str(guess)
            for change in changes
            for placement, _ in self.opened[info(change.entity).name]
            for guess in (
                *self.costs.presence_guesses(placement.path),
                *self.costs.life(change.entity).guesses(placement.path, item_write(change, 1.0)),
            )
        ]
        return tuple(dict.fromkeys(found))


def _guard_reasons(entity: str, usage: WriteUsage) -> list[str]:
    found = []
    if usage.guards:
        noun = "guard" if usage.guards == 1 else "guards"
        found.append(
            f"{amount(usage.guards)} {noun} of unique values of {entity} in the same transaction: "
            f"the units of the table count twice"
        )
    reads = usage.units("read")
    if reads:
        found.append(f"reads the {entity} first: {amount(reads)} RCU")
    return found


def _reason(entity: str, placement: Placement, units: float, times: float) -> str:
    known = info(placement.path.entity)
    held = ", ".join(placement.path.fields)
    sparse = bool(placement.path.constants) or any(
        is_optional(known, name) for name in placement.path.fields
    )
    note = ", which is sparse" if sparse else ""
    noun = "write unit" if units == 1 else "write units"
    several = "" if times == 1 else f", {times:g} times"
    return f"{units:g} {noun} for the index entry of {entity} by {held}{note}{several}"


def _warnings(changes: tuple[DeclaredWrite, ...], items: float, costs: CostModel) -> list[str]:
    found = []
    if items > _TRANSACTION_ITEMS:
        found.append(f"{items:g} items in one transaction: DynamoDB allows {_TRANSACTION_ITEMS}")
    size = sum(change.times * costs.item_bytes(change.entity) for change in changes)
    if size > TRANSACTION_BYTES:
        found.append(f"about {size / 2**20:.1f} MB in one transaction: DynamoDB allows 4 MB")
    return found
