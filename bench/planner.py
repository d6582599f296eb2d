"""The time that planning takes: 60 entities with 200 patterns, and 200 entities with 400.

python bench/planner.py

The times are those of the process, so that other work on the machine does not count. A blow-up of
the search is noticed by tests/design/test_planner_effort.py, which counts candidates.
"""

from __future__ import annotations

import inspect
import random
import time
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from stator.design.design import Design, Layout
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident, unique
from stator.design.patterns.pattern import read
from stator.design.patterns.query import find, together
from stator.design.patterns.write_pattern import creates, updates, write


def make_entity(number: int) -> type[Any]:
    annotations = {
        f"e{number}_id": str,
        "owner": str,
        "mail": str,
        "state": Literal["new", "open", "done"],
        "at": datetime,
        "amount": Decimal,
        "flag": bool,
        "note": str,
        f"e{number // 3 * 3}_id": str,
    }
    body: dict[str, Any] = {
        "__annotations__": annotations,
        f"e{number}_id": ident(),
        "mail": unique(),
        "__module__": __name__,
    }
    metaclass: Any = type(Entity)
    return metaclass(f"E{number}", (Entity,), body)


def make_read(chance: random.Random, entity: type[Any], number: int) -> Any:
    fields = chance.sample(
        ["owner", "mail", "state", "flag", next(iter(entity.__annotations__))],
        chance.choice([1, 1, 2, 3]),
    )
    order = chance.choice([None, "at", "amount"])
    constant = chance.random() < 0.3

    def ask(p0: Any = None, p1: Any = None, p2: Any = None, p3: Any = None) -> Any:
        values = [
            ("open" if constant and name == "state" else value)
            for name, value in zip(fields, (p0, p1, p2))
        ]
        query = find(entity).where(
            *(getattr(entity, name) == value for name, value in zip(fields, values))
        )
        return (
            query.order_by(getattr(entity, order)).where(getattr(entity, order) >= p3)
            if order
            else query
        )

    ask.__name__ = f"read{number}"
    used = ["p0", "p1", "p2"][: len(fields)]
    used = [name for name, field in zip(used, fields) if not (constant and field == "state")]
    used += ["p3"] if order else []
    ask.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            each.replace(default=inspect.Parameter.empty)
            for name, each in inspect.signature(ask).parameters.items()
            if name in used
        ]
    )
    return read(rps=chance.choice([1, 20, 300]), returns=chance.choice([1, 20, 200]))(ask)


def make_group(entities: list[type[Any]], field: str, number: int) -> Any:
    def ask(p0: Any) -> Any:
        return together(*entities).where(getattr(entities[0], field) == p0)

    ask.__name__ = f"group{number}"
    return read(rps=20, returns=30)(ask)


def make_write(chance: random.Random, entity: type[Any], number: int) -> Any:
    kind = chance.random()

    def change() -> Any:
        return creates(entity) if kind < 0.5 else updates(entity.state, entity.amount)

    change.__name__ = f"write{number}"
    return write(rps=chance.choice([1, 50]))(change)


def make_design(layout: Layout, entities: int = 60, patterns: int = 200) -> Design:
    chance = random.Random(1)
    made = [make_entity(number) for number in range(entities)]
    asked: list[Any] = [
        make_group(made[at : at + 3], f"e{at}_id", at) for at in range(0, entities, 3)
    ]
    asked += [make_write(chance, entity, at) for at, entity in enumerate(made)]
    while len(asked) < patterns:
        asked.append(make_read(chance, chance.choice(made), len(asked)))
    return Design("big", made, asked, volumes=dict.fromkeys(made, 1_000_000.0), layout=layout)


def main() -> None:
    layouts: tuple[Layout, ...] = ("single-table", "aggregate", "table-per-entity")
    for entities, patterns in ((60, 200), (200, 400)):
        for layout in layouts:
            design = make_design(layout, entities, patterns)
            label = f"{entities} entities, {patterns} patterns, {layout}"
            start = time.process_time()
            plan = design.plan()
            seconds = time.process_time() - start
            indexes = sum(len(table.indexes) for table in plan.tables)
            print(
                f"{label}: {seconds:.2f} s, {len(plan.tables)} tables, {indexes} indexes,"
                f" proven optimal: {plan.proven}"
            )
            start = time.process_time()
            kept = design.plan(previous=plan)
            print(
                f"{label}, again with its lock: {time.process_time() - start:.2f} s,"
                f" unchanged: {kept == plan}"
            )


if __name__ == "__main__":
    main()
