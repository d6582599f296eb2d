"""Differences between a plan and what DescribeTable says."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from stator.design.plan.drift import drift
from stator.design.plan.plan import Plan
from stator.engine.engine import Engine

from . import models


@pytest.fixture(scope="module")
def plan() -> Plan:
    return models.shop().plan()


@pytest.fixture(scope="module")
def described(plan: Plan) -> dict[str, Any]:
    with Engine.open() as engine:
        for request in plan.create_table_requests():
            engine.call("CreateTable", request)
        return {
            table.name: engine.call("DescribeTable", {"TableName": table.name})["Table"]
            for table in plan.tables
        }


def test_a_table_made_from_the_plan_has_no_drift(plan: Plan, described: dict[str, Any]) -> None:
    assert drift(plan, described) == []


def test_a_missing_table(plan: Plan) -> None:
    [found] = drift(plan, {})
    assert (found.severity, found.remedy) == ("missing", "create it")


def test_a_missing_index_can_be_added(plan: Plan, described: dict[str, Any]) -> None:
    changed = copy.deepcopy(described)
    [table] = changed.values()
    gone = table["GlobalSecondaryIndexes"].pop()
    [found] = drift(plan, changed)
    assert found.severity == "missing"
    assert gone["IndexName"] in found.where
    assert "UpdateTable" in found.remedy


def test_an_index_nobody_planned_is_extra(plan: Plan, described: dict[str, Any]) -> None:
    changed = copy.deepcopy(described)
    [table] = changed.values()
    table["GlobalSecondaryIndexes"].append(
        {**table["GlobalSecondaryIndexes"][0], "IndexName": "Old"}
    )
    assert [(each.severity, each.where) for each in drift(plan, changed)] == [("extra", "shop/Old")]


def test_a_key_or_its_type_cannot_be_changed(plan: Plan, described: dict[str, Any]) -> None:
    changed = copy.deepcopy(described)
    [table] = changed.values()
    table["KeySchema"] = table["KeySchema"][:1]
    table["AttributeDefinitions"][0]["AttributeType"] = "B"
    found = drift(plan, changed)
    assert [each.severity for each in found] == ["different", "different"]
    assert all("cannot be changed" in each.remedy for each in found)


def test_an_index_of_another_shape(plan: Plan, described: dict[str, Any]) -> None:
    changed = copy.deepcopy(described)
    [table] = changed.values()
    index = random.Random(1).choice(table["GlobalSecondaryIndexes"])
    index["Projection"] = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["b", "a"]}
    index["KeySchema"] = [{"AttributeName": "other", "KeyType": "HASH"}]
    index["IndexStatus"] = "CREATING"
    messages = [each.message for each in drift(plan, changed)]
    assert any("its key is other" in message for message in messages)
    assert any("INCLUDE (a, b)" in message for message in messages)
    assert "it is CREATING" in messages
