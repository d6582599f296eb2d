"""Eventually consistent reads that see the past, on demand."""

from __future__ import annotations

from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ConfigurationError
from stator.testing import delay_reads

from .test_enforced import create, item, put


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_790_000_000.0)


def scanned(engine: Engine, **options: Any) -> list[str]:
    found = engine.call("Scan", {"TableName": "tab", **options})["Items"]
    return sorted(each["p"]["S"] + each.get("v", {"S": ""})["S"] for each in found)


def got(engine: Engine, p: str, *, consistent: bool = False) -> str | None:
    request = {"TableName": "tab", "Key": item(p), "ConsistentRead": consistent}
    found = engine.call("GetItem", request).get("Item")
    return None if found is None else found["v"]["S"]


def test_reads_see_the_past_until_the_delay_is_over(clock: VirtualClock) -> None:
    with Engine.open(clock=clock) as engine:
        create(engine)
        put(engine, "a", v="1")
        put(engine, "b", v="1")
        delay_reads(engine, 2.0)
        put(engine, "a", v="2")
        put(engine, "c", v="1")
        engine.call("DeleteItem", {"TableName": "tab", "Key": item("b")})
        assert (got(engine, "a"), got(engine, "b"), got(engine, "c")) == ("1", "1", None)
        assert got(engine, "a", consistent=True) == "2"
        assert scanned(engine) == ["a1", "b1"]
        assert scanned(engine, ConsistentRead=True) == ["a2", "c1"]
        keys = {"Keys": [item("a"), item("c")]}
        answer = engine.call("BatchGetItem", {"RequestItems": {"tab": keys}})
        assert [each["v"]["S"] for each in answer["Responses"]["tab"]] == ["1"]
        statement = {"Statement": "SELECT * FROM tab"}
        assert len(engine.call("ExecuteStatement", statement)["Items"]) == 2
        clock.advance(1.0)
        put(engine, "a", v="3")
        clock.advance(1.0)
        assert got(engine, "a") == "2"
        assert scanned(engine) == ["a2", "c1"]
        clock.advance(1.0)
        assert got(engine, "a") == "3"


def test_an_index_lags_and_conditions_do_not(clock: VirtualClock) -> None:
    with Engine.open(clock=clock) as engine:
        create(engine, (100, 100), (100, 100))
        delay_reads(engine, 5.0)
        put(engine, "a", g="x", v="1")
        request = {
            "TableName": "tab",
            "IndexName": "by-g",
            "KeyConditionExpression": "g = :g",
            "ExpressionAttributeValues": {":g": {"S": "x"}},
        }
        assert engine.call("Query", request)["Count"] == 0
        condition = {"ConditionExpression": "attribute_exists(p)"}
        engine.call("PutItem", {"TableName": "tab", "Item": item("a", v="2", g="x"), **condition})
        clock.advance(5.0)
        assert engine.call("Query", request)["Count"] == 1


def test_pages_of_the_past_are_in_order_both_ways(clock: VirtualClock) -> None:
    with Engine.open(clock=clock) as engine:
        create(engine)
        for number in range(0, 10, 2):
            put(engine, "p", str(number))
        delay_reads(engine, 5.0)
        for number in range(10):
            put(engine, "p", str(number), v="new")
        engine.call("DeleteItem", {"TableName": "tab", "Key": item("p", "4")})
        for forward in (True, False):
            found = engine.call(
                "Query",
                {
                    "TableName": "tab",
                    "KeyConditionExpression": "p = :p",
                    "ExpressionAttributeValues": {":p": {"S": "p"}},
                    "ScanIndexForward": forward,
                },
            )["Items"]
            expected = ["0", "2", "4", "6", "8"]
            assert [each["s"]["S"] for each in found] == (expected if forward else expected[::-1])
            assert all("v" not in each for each in found)


def test_a_delay_is_a_number_of_seconds(clock: VirtualClock) -> None:
    with Engine.open(clock=clock) as engine, pytest.raises(ConfigurationError):
        delay_reads(engine, -1.0)
