"""The input of every export: the plan, and the facts about tables that only the design has.

In addition to the tables of the plan there is ``own_table``, which stores unique values,
transaction tokens and pattern objects. An export includes it if the design has unique fields or if
the caller asks for it: a design does not say whether its program uses tokens or pattern objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from stator.design.declaration import Declaration
from stator.design.entities.entity import Entity
from stator.design.plan.own_table import needs_own_table, own_table
from stator.design.plan.plan import Plan, TablePlan
from stator.design.table_settings import ProvisionedCapacity, TableSettings
from stator.model.scaling.scheduled_action import ScheduledAction


@dataclass(frozen=True, slots=True)
class Exported:
    """The text of an export, and notes on what its format cannot express."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scaled:
    """The read or write capacity of a table or index, and the bounds between which it scales.

    ``index`` is None for the table itself. ``target`` is the utilisation that scaling aims at.
    """

    index: str | None
    dimension: Literal["Read", "Write"]
    least: int
    most: int
    target: float
    actions: tuple[ScheduledAction, ...] = ()

    @property
    def name(self) -> str:
        """The scalable dimension, as Application Auto Scaling names it."""
        what = "table" if self.index is None else "index"
        return f"dynamodb:{what}:{self.dimension}CapacityUnits"

    @property
    def metric(self) -> str:
        return f"DynamoDB{self.dimension}CapacityUtilization"

    def scheduled(self) -> list[dict[str, Any]]:
        """Return the members of each scheduled action, in AWS's words."""
        return [
            {
                "ScheduledActionName": each.name,
                "Schedule": each.schedule,
                "Timezone": each.timezone,
                "ScalableTargetAction": {
                    member: value
                    for member, value in (("MinCapacity", each.least), ("MaxCapacity", each.most))
                    if value is not None
                },
            }
            for each in self.actions
        ]

    def resource(self, table: str) -> str:
        return f"table/{table}" if self.index is None else f"table/{table}/index/{self.index}"


@dataclass(frozen=True)
class ExportSource:
    """The input of one export.

    ``with_patterns`` means that the export includes the table ``<design>-stator`` in any case,
    because the program uses pattern objects.
    """

    design: Declaration
    plan: Plan
    with_patterns: bool = False

    @property
    def settings(self) -> TableSettings:
        """The design's table settings, or the defaults."""
        return self.design.settings or TableSettings()

    def create_request(self, table: TablePlan) -> dict[str, Any]:
        """Return the CreateTable request of a table, with its settings."""
        request: dict[str, Any] = table.create_request()
        self.settings.create_members(request, table.name)
        return request

    def scaled(self, table: TablePlan) -> list[Scaled]:
        """Return each read and write capacity that Application Auto Scaling changes."""
        capacity = self.settings.capacity
        if capacity is None:
            return []
        places: list[tuple[str | None, ProvisionedCapacity]] = [(None, capacity)]
        indexes = [each.name for each in table.indexes if each.kind == "GSI"]
        places += [(name, capacity.of_index(name)) for name in indexes]
        return [
            Scaled(index, dimension, least, most, own.target, own.schedule(dimension))
            for index, own in places
            for dimension, least, most in own.scaled
        ]

    @property
    def own_table(self) -> TablePlan | None:
        """The table ``<design>-stator``, or None if the export leaves it out."""
        included = self.with_patterns or needs_own_table(self.design.entities, self.plan)
        return own_table(self.design.name) if included else None

    @property
    def tables(self) -> tuple[TablePlan, ...]:
        """The tables to export, with the design's own table last."""
        own = self.own_table
        return self.plan.tables if own is None else (*self.plan.tables, own)

    def entities(self, table: TablePlan) -> list[type[Entity]]:
        """Return the entities whose items are in a table."""
        return [
            entity
            for entity in self.design.entities
            if self.plan.entity(entity).table == table.name
        ]


Exporter = Callable[[ExportSource], Exported]


def camel(name: str) -> str:
    """Return the name as letters and digits only: ``shop-order`` becomes ``ShopOrder``."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    joined = "".join(word[0].upper() + word[1:] for word in words)
    return joined if joined[:1].isalpha() else f"Table{joined}"


def snake(name: str) -> str:
    """Return the name in a form that is valid in Python and Terraform.

    For example, ``Shop-Order`` becomes ``shop_order``.
    """
    word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower()
    return word if word[:1].isalpha() else f"table_{word}"
