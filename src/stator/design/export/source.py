"""What every export starts from: the plan, and the few facts about tables that only the design has.

Beside the tables of the plan there is that of unique values, transaction tokens and pattern objects (``own_table``). An export has it where the
design has unique fields, or where it is asked for: pattern objects and tokens are of the program, and no design tells of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from stator.design.declaration import Declaration
from stator.design.entities.entity import Entity
from stator.design.plan.own_table import needs_own_table, own_table
from stator.design.plan.plan import Plan, TablePlan


@dataclass(frozen=True, slots=True)
class Exported:
    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExportSource:
    design: Declaration
    plan: Plan
    with_patterns: bool = False

    @property
    def own_table(self) -> TablePlan | None:
        wanted = self.with_patterns or needs_own_table(self.design.entities)
        return own_table(self.design.name) if wanted else None

    @property
    def tables(self) -> tuple[TablePlan, ...]:
        own = self.own_table
        return self.plan.tables if own is None else (*self.plan.tables, own)

    def entities(self, table: TablePlan) -> list[type[Entity]]:
        return [
            entity
            for entity in self.design.entities
            if self.plan.entity(entity).table == table.name
        ]


Exporter = Callable[[ExportSource], Exported]


def camel(name: str) -> str:
    """A name of letters and digits: ``shop-order`` becomes ``ShopOrder``."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    joined = "".join(word[0].upper() + word[1:] for word in words)
    return joined if joined[:1].isalpha() else f"Table{joined}"


def snake(name: str) -> str:
    """A name that Python and Terraform take."""
    word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower()
    return word if word[:1].isalpha() else f"table_{word}"
