"""A design as something to watch: the names, rates, units and capacities of its plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from stator.design.export.source import ExportSource
from stator.design.plan.plan import PatternPlan, TablePlan
from stator.design.table_settings import ProvisionedCapacity

DEFAULT_SLOW_SECONDS: Final = 0.1
BUDGET_OF_PLAN: Final = 1.5
"""The default budget, as a multiple of the plan's dollars a month."""
_PAGE_UNITS: Final = 128
"""Read units of a full page: 1 MB, read eventually consistently."""

Kind = Literal["read", "write"]
KINDS: Final[tuple[Kind, ...]] = ("read", "write")


@dataclass(frozen=True, slots=True)
class MonitoredPlace:
    """A table, or a global index of one, and what is planned for it.

    ``capacity`` is None if the place is billed by request.
    """

    table: str
    index: str | None
    capacity: ProvisionedCapacity | None
    planned_units: dict[Kind, float]

    @property
    def name(self) -> str:
        return self.table if self.index is None else f"{self.table}/{self.index}"

    @property
    def dimensions(self) -> tuple[tuple[str, str], ...]:
        """The dimensions of the place's metrics in CloudWatch."""
        table = (("TableName", self.table),)
        return table if self.index is None else (*table, ("GlobalSecondaryIndexName", self.index))

    def units(self, kind: Kind) -> int | None:
        """The units that the place may reach: the most that it scales to, or those it has."""
        capacity = self.capacity
        if capacity is None:
            return None
        if kind == "read":
            return capacity.most_read_units or capacity.read_units
        return capacity.most_write_units or capacity.write_units


@dataclass(frozen=True, slots=True)
class MonitoredDesign:
    """A design to watch, and the limits from which on it needs attention.

    ``prefix`` is the text before the tables' names. ``budget_dollars`` is a month's budget for
    capacity; None stands for half as much again as the plan costs. A request that takes longer than
    ``slow_seconds`` is slow.
    """

    source: ExportSource
    prefix: str = ""
    budget_dollars: float | None = None
    slow_seconds: float = DEFAULT_SLOW_SECONDS

    @property
    def name(self) -> str:
        return self.prefix + self.source.plan.name

    @property
    def tables(self) -> tuple[TablePlan, ...]:
        return self.source.tables

    @property
    def patterns(self) -> tuple[PatternPlan, ...]:
        return self.source.plan.patterns

    @property
    def budget(self) -> float:
        """The budget for capacity, in dollars a month."""
        if self.budget_dollars is not None:
            return self.budget_dollars
        return BUDGET_OF_PLAN * self.source.plan.dollars_per_month

    @property
    def is_on_demand(self) -> bool:
        return self.source.settings.capacity is None

    @property
    def has_windows(self) -> bool:
        """Whether a pattern runs for a part of the day only."""
        return bool(self.source.design.windows)

    def call_rate(self, pattern: PatternPlan) -> float:
        """Return how often a pattern is called each second while it is called.

        The plan has the mean of a day. A pattern with a window is called at its declared rate in
        the window, and not at all outside it.
        """
        window = self.source.design.windows.get(pattern.name)
        return pattern.requests_per_second / (1.0 if window is None else window.share)

    def table_name(self, table: TablePlan) -> str:
        return self.prefix + table.name

    @property
    def calls(self) -> str:
        """The PromQL matcher of the design's calls. A batch names several tables, with commas."""
        one = _any_of(self.table_name(each) for each in self.tables)
        return f'table=~"({one})(,({one}))*"'

    def calls_of(self, pattern: PatternPlan) -> str:
        return f'{self.calls},pattern="{pattern.name}"'

    def places(self, table: TablePlan) -> list[MonitoredPlace]:
        """The table and its global indexes. A local index uses the table's units."""
        capacity = self.source.settings.capacity
        name = self.table_name(table)
        found = [MonitoredPlace(name, None, capacity, self._planned(table, None))]
        for index in table.indexes:
            if index.kind == "GSI":
                own = None if capacity is None else capacity.of_index(index.name)
                planned = self._planned(table, index.name)
                found.append(MonitoredPlace(name, index.name, own, planned))
        return found

    def _planned(self, table: TablePlan, index: str | None) -> dict[Kind, float]:
        """Return the units a second that the plan counts for a table or index."""
        local = {each.name for each in table.indexes if each.kind == "LSI"}
        planned: dict[Kind, float] = {"read": 0.0, "write": 0.0}
        for use in self.source.plan.uses:
            used = None if use.index in local else use.index
            if (use.table, used) == (table.name, index):
                planned[use.kind] += use.units
        for pattern in self.patterns:
            if pattern.kind == "read":
                for step in pattern.steps:
                    used = None if step.index in local else step.index
                    if (step.table, used) == (table.name, index):
                        planned["read"] += step.units * pattern.requests_per_second
        return planned


def requests_per_call(pattern: PatternPlan) -> float:
    """Return the requests that one call of a pattern makes, as planned.

    Each shard and each alternative of a read is a request, and so is each page after the first.
    """
    if pattern.kind == "write":
        return 1.0 if pattern.transaction else float(len(pattern.steps))
    count = 0
    for step in pattern.steps:
        count += step.shards * len(step.conditions) + bool(step.fetch or step.guard)
    return float(max(count, math.ceil(pattern.units_per_call / _PAGE_UNITS)))


def _any_of(names: Iterator[str]) -> str:
    """Return a regular expression of table names, whose only special character is the dot."""
    return "|".join(name.replace(".", "[.]") for name in names)
