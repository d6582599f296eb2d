"""A design inferred from a published table has its schema, and reads and writes its items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stator import Engine, connect
from stator.design.design import Design
from stator.design.infer import TableSample, design_file, infer_tables
from stator.design.infer.fit import loaded
from stator.design.plan.drift import drift

from .published_tables import TABLES, PublishedTable, item


def create(engine: Engine, table: PublishedTable) -> None:
    engine.call("CreateTable", table.request())
    for each in table.items:
        engine.call("PutItem", {"TableName": table.name, "Item": item(each)})
    if table.ttl is not None:
        setting = {"AttributeName": table.ttl, "Enabled": True}
        request = {"TableName": table.name, "TimeToLiveSpecification": setting}
        engine.call("UpdateTimeToLive", request)


def described(engine: Engine, table: str) -> dict[str, Any]:
    found = engine.call("DescribeTable", {"TableName": table})["Table"]
    return found | engine.call("DescribeTimeToLive", {"TableName": table})


def scanned(engine: Engine, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = engine.call("Scan", {"TableName": table})["Items"]
    return found


def sample(engine: Engine, table: str) -> TableSample:
    return TableSample(table, scanned(engine, table), described(engine, table))


def inferred(engine: Engine, tables: Sequence[str], name: str) -> tuple[str, Design]:
    text = design_file(infer_tables([sample(engine, each) for each in tables], name=name))
    design = loaded(text)
    assert isinstance(design, Design)
    return text, design


def check(engine: Engine, tables: Sequence[str], text: str, design: Design) -> None:
    """Check that the design has the tables' schema, and that items survive a read and a write."""
    plan = design.plan()
    assert {each.name for each in plan.tables} == set(tables), text
    assert not drift(plan, {each: described(engine, each) for each in tables}), text
    before = {name: scanned(engine, name) for name in tables}
    with connect(design, engine) as db:
        objects = [each for entity in design.entities for each in db.scan(entity, allow=True)]
        assert len(objects) == sum(map(len, before.values())), text
        for each in objects:
            db.put(each)
    for name in tables:
        after = scanned(engine, name)
        assert len(after) == len(before[name]), text
        for old in before[name]:
            # NULL means the same as no attribute.
            kept = {each: value for each, value in old.items() if "NULL" not in value}
            assert any(kept.items() <= new.items() for new in after), (old, after, text)


@pytest.mark.parametrize("table", TABLES, ids=lambda each: each.name)
def test_a_published_table(table: PublishedTable) -> None:
    with Engine.open() as engine:
        create(engine, table)
        text, design = inferred(engine, [table.name], table.name)
        assert tuple(sorted(each.__name__ for each in design.entities)) == table.expected, text
        check(engine, [table.name], text, design)


def test_one_design_for_several_tables() -> None:
    names = [each.name for each in TABLES]
    with Engine.open() as engine:
        for each in TABLES:
            create(engine, each)
        text, design = inferred(engine, names, "everything")
        check(engine, names, text, design)
