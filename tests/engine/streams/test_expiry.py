"""Expired items: when they go, which stay, and what the stream records."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ValidationFailed

from .reading import create, put, read_all

YEAR = 365.25 * 86400


def switch(engine: Engine, enabled: bool = True, attribute: str = "expires") -> None:
    setting = {"Enabled": enabled, "AttributeName": attribute}
    engine.call("UpdateTimeToLive", {"TableName": "orders", "TimeToLiveSpecification": setting})


def keys(engine: Engine) -> set[str]:
    found: set[str] = set()
    request: dict[str, Any] = {"TableName": "orders"}
    while True:
        page = engine.call("Scan", request)
        found |= {item["pk"]["S"] for item in page["Items"]}
        if "LastEvaluatedKey" not in page:
            return found
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def write(engine: Engine, key: str, expires: dict[str, Any]) -> None:
    engine.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": key}, "expires": expires}})


def test_items_go_when_their_time_is_over_and_not_before(
    engine: Engine, clock: VirtualClock
) -> None:
    create(engine, view=None)
    switch(engine)
    now = int(clock.now())
    put(engine, "soon", expires=now + 10)
    put(engine, "later", expires=now + 20)
    put(engine, "never")
    engine.sweep()
    assert keys(engine) == {"soon", "later", "never"}
    clock.advance(9.7)
    engine.sweep()
    assert keys(engine) == {"soon", "later", "never"}
    clock.advance(1)
    assert keys(engine) == {"soon", "later", "never"}  # still read until it is deleted
    engine.sweep()
    assert keys(engine) == {"later", "never"}
    described = engine.call("DescribeTable", {"TableName": "orders"})["Table"]
    assert described["ItemCount"] == 2


def test_the_stream_names_the_service(engine: Engine, clock: VirtualClock) -> None:
    arn = create(engine)
    switch(engine)
    put(engine, "a", expires=int(clock.now()) + 1)
    put(engine, "b", expires=int(clock.now()) + 1)
    engine.call("DeleteItem", {"TableName": "orders", "Key": {"pk": {"S": "b"}}})
    clock.advance(5)
    engine.sweep()
    removed = {
        r["dynamodb"]["Keys"]["pk"]["S"]: r
        for r in read_all(engine, arn)
        if r["eventName"] == "REMOVE"
    }
    assert removed["a"]["userIdentity"] == {
        "PrincipalId": "dynamodb.amazonaws.com",
        "Type": "Service",
    }
    assert removed["a"]["dynamodb"]["OldImage"]["pk"] == {"S": "a"}
    assert "userIdentity" not in removed["b"]


def test_values_that_are_not_times_are_left_alone(engine: Engine, clock: VirtualClock) -> None:
    create(engine, view=None)
    switch(engine)
    now = int(clock.now())
    write(engine, "text", {"S": str(now - 10)})
    write(engine, "set", {"NS": [str(now - 10)]})
    write(engine, "six years", {"N": str(now - int(6 * YEAR))})
    write(engine, "negative", {"N": "-5"})
    write(engine, "huge", {"N": "1E+100"})
    write(engine, "milliseconds", {"N": str((now - 10) * 1000)})
    write(engine, "four years", {"N": str(now - int(4 * YEAR))})
    write(engine, "fraction", {"N": f"{now - 10}.5"})
    engine.sweep()
    assert keys(engine) == {"text", "set", "six years", "negative", "huge", "milliseconds"}


def test_an_item_with_an_extended_time_stays(engine: Engine, clock: VirtualClock) -> None:
    create(engine, view=None)
    switch(engine)
    now = int(clock.now())
    for key in ("longer", "without", "again"):
        put(engine, key, expires=now + 10)
    put(engine, "longer", expires=now + 100)
    engine.call(
        "UpdateItem",
        {
            "TableName": "orders",
            "Key": {"pk": {"S": "without"}},
            "UpdateExpression": "REMOVE expires",
        },
    )
    engine.call("DeleteItem", {"TableName": "orders", "Key": {"pk": {"S": "again"}}})
    put(engine, "again", expires=now + 50)
    clock.advance(20)
    engine.sweep()
    assert keys(engine) == {"longer", "without", "again"}
    clock.advance(40)
    engine.sweep()
    assert keys(engine) == {"longer", "without"}


def test_items_from_before_the_setting_expire_too(engine: Engine, clock: VirtualClock) -> None:
    create(engine, view=None)
    now = int(clock.now())
    for number in range(450):
        put(engine, f"k{number}", expires=now + (10 if number % 2 else 1000))
    switch(engine)
    clock.advance(20)
    engine.sweep()
    assert keys(engine) == {f"k{number}" for number in range(0, 450, 2)}


def test_switched_off_nothing_expires(engine: Engine, clock: VirtualClock) -> None:
    create(engine, view=None)
    switch(engine)
    put(engine, "a", expires=int(clock.now()) + 10, other=int(clock.now()) + 500)
    switch(engine, enabled=False)
    clock.advance(100)
    engine.sweep()
    assert keys(engine) == {"a"}
    switch(engine, attribute="other")
    engine.sweep()
    assert keys(engine) == {"a"}
    clock.advance(500)
    engine.sweep()
    assert keys(engine) == set()


def test_the_setting_takes_as_long_as_other_changes_do() -> None:
    clock = VirtualClock()
    with Engine.open(clock=clock, status_delay_seconds=60) as engine:
        create(engine, view=None)
        clock.advance(60)
        switch(engine)
        shown = engine.call("DescribeTimeToLive", {"TableName": "orders"})["TimeToLiveDescription"]
        assert shown == {"TimeToLiveStatus": "ENABLING", "AttributeName": "expires"}
        with pytest.raises(
            ValidationFailed, match="modified multiple times within a fixed interval"
        ):
            switch(engine, enabled=False)
        clock.advance(60)
        shown = engine.call("DescribeTimeToLive", {"TableName": "orders"})["TimeToLiveDescription"]
        assert shown["TimeToLiveStatus"] == "ENABLED"
        switch(engine, enabled=False)
        shown = engine.call("DescribeTimeToLive", {"TableName": "orders"})["TimeToLiveDescription"]
        assert shown == {"TimeToLiveStatus": "DISABLING", "AttributeName": "expires"}
        clock.advance(60)
        shown = engine.call("DescribeTimeToLive", {"TableName": "orders"})["TimeToLiveDescription"]
        assert shown == {"TimeToLiveStatus": "DISABLED"}


def test_items_due_while_the_engine_was_closed_go_after_it_opens(
    tmp_path: Path, clock: VirtualClock
) -> None:
    path = str(tmp_path / "data")
    with Engine.open(path, clock=clock) as engine:
        create(engine, view=None)
        for number in range(150):
            put(engine, f"k{number}", expires=int(clock.now()) + 10)
        switch(engine)
        put(engine, "new", expires=int(clock.now()) + 10)
        put(engine, "stays")
    clock.advance(1000)
    with Engine.open(path, clock=clock) as engine:
        engine.sweep()
        assert keys(engine) == {"stays"}


def test_on_the_systems_clock_it_happens_by_itself() -> None:
    with Engine.open() as engine:
        create(engine, view=None)
        switch(engine)
        put(engine, "a", expires=int(time.time()) - 5)
        put(engine, "stays", expires=int(time.time()) + 1000)
        deadline = time.monotonic() + 30
        while keys(engine) != {"stays"} and time.monotonic() < deadline:
            time.sleep(0.05)
        assert keys(engine) == {"stays"}


def test_a_deleted_table_leaves_no_list(clock: VirtualClock) -> None:
    with Engine.open(clock=clock) as engine:
        create(engine, view=None)
        switch(engine)
        put(engine, "a", expires=int(clock.now()) + 10)
        engine.call("DeleteTable", {"TableName": "orders"})
        create(engine, view=None)
        switch(engine)
        put(engine, "a", expires=int(clock.now()) + 1000)
        clock.advance(100)
        engine.sweep()
        assert keys(engine) == {"a"}
        assert list(engine.storage.scan(b"x", b"y")) != []
        engine.call("DeleteTable", {"TableName": "orders"})
        assert engine.call("ListTables", {}) == {"TableNames": []}
        assert list(engine.storage.scan(b"x", b"y")) == []
