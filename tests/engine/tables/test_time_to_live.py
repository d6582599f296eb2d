"""UpdateTimeToLive and DescribeTimeToLive."""

from __future__ import annotations

from typing import Any

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ResourceInUse, ResourceNotFound

from .declare import ARN, on_demand, refusal


def setting(enabled: bool, attribute: str = "expires", table: str = "orders") -> dict[str, Any]:
    return {
        "TableName": table,
        "TimeToLiveSpecification": {"Enabled": enabled, "AttributeName": attribute},
    }


def described(engine: Engine, table: str = "orders") -> dict[str, Any]:
    answer: dict[str, Any] = engine.call("DescribeTimeToLive", {"TableName": table})[
        "TimeToLiveDescription"
    ]
    return answer


def test_it_is_switched_on_and_off(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    assert described(engine) == {"TimeToLiveStatus": "DISABLED"}
    answer = engine.call("UpdateTimeToLive", setting(True))
    assert answer == {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "expires"}}
    assert described(engine, f"{ARN}orders") == {
        "TimeToLiveStatus": "ENABLED",
        "AttributeName": "expires",
    }
    engine.call("UpdateTimeToLive", setting(False, table=f"{ARN}orders"))
    assert described(engine) == {"TimeToLiveStatus": "DISABLED"}


def test_a_change_without_effect_is_refused(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    assert refusal(engine, "UpdateTimeToLive", setting(False)) == "TimeToLive is already disabled"
    engine.call("UpdateTimeToLive", setting(True))
    assert refusal(engine, "UpdateTimeToLive", setting(True)) == "TimeToLive is already enabled"
    text = "TimeToLive is active on a different AttributeName: current AttributeName is expires"
    assert refusal(engine, "UpdateTimeToLive", setting(True, "other")) == text
    assert refusal(engine, "UpdateTimeToLive", setting(False, "other")) == text


def test_an_incomplete_setting_is_refused_before_the_table_is_looked_for(engine: Engine) -> None:
    text = (
        "1 validation error detected: Value '' at 'timeToLiveSpecification.attributeName' "
        "failed to satisfy constraint: Member must have length greater than or equal to 1"
    )
    assert refusal(engine, "UpdateTimeToLive", setting(True, "", "ghost")) == text
    empty = {"TableName": "ghost", "TimeToLiveSpecification": {}}
    assert refusal(engine, "UpdateTimeToLive", empty).startswith("2 validation errors detected: ")


def test_a_missing_or_changing_table_is_refused(timed: Engine, clock: VirtualClock) -> None:
    text = "Requested resource not found: Table: orders not found"
    assert refusal(timed, "UpdateTimeToLive", setting(True), ResourceNotFound) == text
    timed.call("CreateTable", on_demand())
    assert refusal(timed, "UpdateTimeToLive", setting(True), ResourceNotFound) == text
    assert refusal(timed, "DescribeTimeToLive", {"TableName": "orders"}) == (
        "Cannot describe time to live while table is in CREATING state: Current table "
        "state is CREATING"
    )
    clock.advance(10)
    timed.call("DeleteTable", {"TableName": "orders"})
    assert refusal(timed, "UpdateTimeToLive", setting(True), ResourceInUse)
    assert refusal(timed, "DescribeTimeToLive", {"TableName": "orders"}) == (
        "Cannot describe time to live while table is in DELETING state: Current table "
        "state is DELETING"
    )
