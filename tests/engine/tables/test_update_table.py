"""UpdateTable of a table's own settings. Facts: conformance.md section 12."""

from __future__ import annotations

from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import LimitExceeded, ResourceInUse, ResourceNotFound

from .declare import (
    ARN,
    POVI,
    REFER,
    attributes,
    create_index,
    describe,
    index,
    keys,
    on_demand,
    provisioned,
    refusal,
    units,
)

NOTHING = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
    "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, "
    "ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, "
    "OnDemandThroughput, WarmThroughput or TableClass is required"
)
STREAM = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}


def update(engine: Engine, **changes: Any) -> dict[str, Any]:
    answer: dict[str, Any] = engine.call("UpdateTable", {"TableName": "orders", **changes})[
        "TableDescription"
    ]
    return answer


def opened(request: dict[str, Any]) -> Engine:
    engine = Engine.open()
    engine.call("CreateTable", request)
    return engine


BEFORE_THE_TABLE: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, NOTHING),
    "definitions alone": ({"AttributeDefinitions": attributes(a="S")}, NOTHING),
    "no index updates": ({"GlobalSecondaryIndexUpdates": []}, NOTHING),
    "no index updates beside a change": (
        {"GlobalSecondaryIndexUpdates": [], "BillingMode": "PAY_PER_REQUEST"},
        f"{POVI}List of GlobalSecondaryIndexUpdates is empty",
    ),
    "PROVISIONED without units": (
        {"BillingMode": "PROVISIONED"},
        f"{POVI}ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
    ),
    "PAY_PER_REQUEST with units": (
        {"BillingMode": "PAY_PER_REQUEST", "ProvisionedThroughput": units(1, 1)},
        f"{POVI}ProvisionedThroughput cannot be specified when BillingMode is PAY_PER_REQUEST",
    ),
    "encryption and more": (
        {
            "SSESpecification": {"Enabled": True},
            "TableClass": "STANDARD",
            "DeletionProtectionEnabled": True,
        },
        f"{POVI}Server-Side Encryption modification must be the only operation in the request",
    ),
    "class and more": (
        {"TableClass": "STANDARD", "DeletionProtectionEnabled": True},
        f"{POVI}TableClass modification must be the only operation in the request",
    ),
    "protection and more": (
        {"DeletionProtectionEnabled": True, "WarmThroughput": {"ReadUnitsPerSecond": 20_000}},
        f"{POVI}DeletionProtection modification must be the only operation in the request",
    ),
    "warm throughput and more": (
        {"WarmThroughput": {"ReadUnitsPerSecond": 20_000}, "StreamSpecification": STREAM},
        f"{POVI}WarmThroughput must be the only operation in the request",
    ),
    "warm throughput and a new index": (
        {"WarmThroughput": {"ReadUnitsPerSecond": 20_000}, **create_index("by-a", "a")},
        f"{POVI}Create global secondary index cannot be specified when updating WarmThroughput",
    ),
    "maxima and a stream": (
        {"OnDemandThroughput": {"MaxReadRequestUnits": 5}, "StreamSpecification": STREAM},
        f"{POVI}OnDemandThroughput can only be combined with BillingMode in an UpdateTable request",
    ),
    "units and a new index": (
        {"ProvisionedThroughput": units(1, 1), **create_index("by-a", "a")},
        f"{POVI}You cannot create or delete index while updating table IOPS",
    ),
    "stream and a deleted index": (
        {
            "StreamSpecification": STREAM,
            "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-a"}}],
        },
        f"{POVI}You cannot create or delete index while changing stream status",
    ),
    "stream and units": (
        {"StreamSpecification": STREAM, "ProvisionedThroughput": units(1, 1)},
        f"{POVI}You cannot modify stream status while updating table IOPS",
    ),
    "stream without a view type": (
        {"StreamSpecification": {"StreamEnabled": True}},
        f"{POVI}If stream is being enabled then UpdateViewType is required",
    ),
    "no stream with a view type": (
        {"StreamSpecification": {"StreamEnabled": False, "StreamViewType": "KEYS_ONLY"}},
        f"{POVI}If stream is being disabled, then UpdateViewType must not be specified",
    ),
    "an encryption type without encryption": (
        {"SSESpecification": {"Enabled": False, "SSEType": "KMS"}},
        f"{POVI}SSEType can not be specified if Enabled is false",
    ),
    "a maximum of zero": (
        {"OnDemandThroughput": {"MaxWriteRequestUnits": 0}},
        (
            f"{POVI}Requested MaxWriteRequestUnits for OnDemandThroughput for table is "
            "outside of valid range"
        ),
    ),
    "replicas": (
        {"ReplicaUpdates": [{"Create": {"RegionName": "eu-west-2"}}]},
        f"{POVI}ReplicaUpdates is not supported by this engine",
    ),
    "strong consistency": (
        {"MultiRegionConsistency": "STRONG"},
        f"{POVI}MultiRegionConsistency is not supported by this engine",
    ),
}


@pytest.mark.parametrize(("changes", "text"), BEFORE_THE_TABLE.values(), ids=BEFORE_THE_TABLE)
def test_a_bad_request_is_refused_before_the_table_is_looked_for(
    changes: dict[str, Any], text: str
) -> None:
    assert refusal(Engine.open(), "UpdateTable", {"TableName": "ghost", **changes}) == text


def test_a_missing_table_is_not_found(engine: Engine) -> None:
    request = {"TableName": "ghost", "BillingMode": "PAY_PER_REQUEST"}
    text = "Requested resource not found: Table: ghost not found"
    assert refusal(engine, "UpdateTable", request, ResourceNotFound) == text


ON_DEMAND: dict[str, tuple[dict[str, Any], str]] = {
    "units": (
        {"ProvisionedThroughput": units(1, 1)},
        (
            f"{POVI}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
            "BillingMode is PAY_PER_REQUEST"
        ),
    ),
    "less warm throughput": (
        {"WarmThroughput": {"ReadUnitsPerSecond": 11_000}},
        (
            f"{POVI}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than "
            "current WarmThroughput, decreasing WarmThroughput is not supported"
        ),
    ),
    "no stream to disable": (
        {"StreamSpecification": {"StreamEnabled": False}},
        "Table has no stream to disable: TableName: orders",
    ),
    "default encryption again": (
        {"SSESpecification": {"Enabled": False}},
        f"{POVI}Table is already encrypted by default",
    ),
}
PROVISIONED: dict[str, tuple[dict[str, Any], str]] = {
    "same units": (
        {"ProvisionedThroughput": units(5, 5)},
        "The provisioned throughput for the table will not change. The requested value equals "
        "the current value. Current ReadCapacityUnits provisioned for the table: 5. Requested "
        "ReadCapacityUnits: 5. Current WriteCapacityUnits provisioned for the table: 5. "
        "Requested WriteCapacityUnits: 5. " + REFER,
    ),
    "maxima": (
        {"OnDemandThroughput": {"MaxReadRequestUnits": 5}},
        (
            f"{POVI}MaxReadRequestUnits for OnDemandThroughput cannot be specified when the "
            "table BillingMode is PROVISIONED"
        ),
    ),
}


@pytest.mark.parametrize(("changes", "text"), ON_DEMAND.values(), ids=ON_DEMAND)
def test_an_on_demand_table_refuses_provisioned_settings(
    changes: dict[str, Any], text: str
) -> None:
    assert refusal(opened(on_demand()), "UpdateTable", {"TableName": "orders", **changes}) == text


@pytest.mark.parametrize(("changes", "text"), PROVISIONED.values(), ids=PROVISIONED)
def test_a_provisioned_table_refuses_on_demand_settings(changes: dict[str, Any], text: str) -> None:
    engine = opened(provisioned())
    assert refusal(engine, "UpdateTable", {"TableName": "orders", **changes}) == text
    with_mode = {"TableName": "orders", "BillingMode": "PROVISIONED", **changes}
    if "ProvisionedThroughput" in changes:
        assert refusal(engine, "UpdateTable", with_mode) == text


def test_the_answer_shows_the_old_units_and_updating(engine: Engine) -> None:
    engine.call("CreateTable", provisioned(read=5, write=5))
    answer = update(engine, ProvisionedThroughput=units(9, 5))
    assert answer["TableStatus"] == "UPDATING"
    assert answer["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **units(5, 5)}
    described = describe(engine)
    assert described["TableStatus"] == "ACTIVE"
    shown = described["ProvisionedThroughput"]
    assert (shown["ReadCapacityUnits"], shown["WriteCapacityUnits"]) == (9, 5)
    assert isinstance(shown["LastIncreaseDateTime"], float)
    assert "LastDecreaseDateTime" not in shown


def test_four_decreases_a_day_then_one_an_hour(clock: VirtualClock) -> None:
    engine = Engine.open(clock=clock)
    engine.call("CreateTable", provisioned(read=100))
    for read in (99, 98, 97, 96):
        clock.advance(60)
        update(engine, ProvisionedThroughput=units(read, 5))
    shown = describe(engine)["ProvisionedThroughput"]
    assert shown["NumberOfDecreasesToday"] == 4
    assert shown["LastDecreaseDateTime"] == clock.now()
    request = {"TableName": "orders", "ProvisionedThroughput": units(95, 5)}
    assert refusal(engine, "UpdateTable", request, LimitExceeded) == (
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given "
        "UTC day. After the first 4 decreases, each subsequent decrease in the same UTC day can "
        "be performed at most once every 3600 seconds. Number of decreases today: 4. Last "
        "decrease at Thursday, October 8, 2026 at 8:04:00 PM Coordinated Universal Time. Next "
        "decrease can be made at Thursday, October 8, 2026 at 9:04:00 PM Coordinated Universal "
        "Time."
    )
    # An increase is always possible, and an hour later so is a decrease.
    update(engine, ProvisionedThroughput=units(200, 5))
    clock.advance(3600)
    update(engine, ProvisionedThroughput=units(95, 5))
    assert describe(engine)["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 5


def test_the_next_day_decreases_start_again(clock: VirtualClock) -> None:
    engine = Engine.open(clock=clock)
    engine.call("CreateTable", provisioned(read=100))
    clock.advance(4 * 3600 - 60)  # 23:59
    for read in (99, 98, 97, 96):
        update(engine, ProvisionedThroughput=units(read, 5))
    request = {"TableName": "orders", "ProvisionedThroughput": units(95, 5)}
    text = refusal(engine, "UpdateTable", request, LimitExceeded)
    assert text.endswith(
        "Next decrease can be made at Friday, October 9, 2026 at 12:00:00 AM Coordinated "
        "Universal Time."
    )
    clock.advance(60)
    assert describe(engine)["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 0
    update(engine, ProvisionedThroughput=units(95, 5))


def test_switching_the_billing_mode_there_and_back(timed: Engine, clock: VirtualClock) -> None:
    timed.call("CreateTable", provisioned())
    clock.advance(10)
    switched = clock.now()
    update(timed, BillingMode="PAY_PER_REQUEST")
    clock.advance(10)
    described = describe(timed)
    summary = {"BillingMode": "PAY_PER_REQUEST", "LastUpdateToPayPerRequestDateTime": switched}
    assert described["BillingModeSummary"] == summary
    assert described["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **units(0, 0)}
    update(timed, OnDemandThroughput={"MaxReadRequestUnits": 7})
    update(timed, BillingMode="PROVISIONED", ProvisionedThroughput=units(2, 3))
    clock.advance(10)
    described = describe(timed)
    assert described["BillingModeSummary"] == summary | {"BillingMode": "PROVISIONED"}
    assert described["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **units(2, 3)}
    assert "OnDemandThroughput" not in described


def test_the_same_mode_on_demand_again_changes_nothing(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    before = describe(engine)
    assert update(engine, BillingMode="PAY_PER_REQUEST")["TableStatus"] == "UPDATING"
    assert describe(engine) == before


def test_maxima_merge_and_minus_one_clears(engine: Engine) -> None:
    engine.call("CreateTable", on_demand(OnDemandThroughput={"MaxReadRequestUnits": 5}))
    describe(engine)
    answer = update(engine, OnDemandThroughput={"MaxWriteRequestUnits": 6})
    assert answer["TableStatus"] == "ACTIVE"
    assert describe(engine)["OnDemandThroughput"] == {
        "MaxReadRequestUnits": 5,
        "MaxWriteRequestUnits": 6,
    }
    answer = update(engine, OnDemandThroughput={"MaxReadRequestUnits": -1})
    assert answer["OnDemandThroughput"]["MaxReadRequestUnits"] == -1
    assert describe(engine)["OnDemandThroughput"] == {"MaxWriteRequestUnits": 6}
    update(engine, OnDemandThroughput={"MaxWriteRequestUnits": -1})
    assert "OnDemandThroughput" not in describe(engine)


def test_warm_throughput_rises(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    update(engine, WarmThroughput={"ReadUnitsPerSecond": 20_000})
    warm = {"ReadUnitsPerSecond": 20_000, "WriteUnitsPerSecond": 4_000, "Status": "ACTIVE"}
    assert describe(engine)["WarmThroughput"] == warm


def test_a_stream_can_be_switched_on_off_and_on(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    update(engine, StreamSpecification=STREAM)
    first = describe(engine)
    assert first["StreamSpecification"] == STREAM
    request = {"TableName": "orders", "StreamSpecification": STREAM}
    assert (
        refusal(engine, "UpdateTable", request)
        == "Table already has an enabled stream: TableName: orders"
    )
    update(engine, StreamSpecification={"StreamEnabled": False})
    off = describe(engine)
    assert "StreamSpecification" not in off
    assert off["LatestStreamArn"] == first["LatestStreamArn"]
    update(engine, StreamSpecification=STREAM)
    assert describe(engine)["LatestStreamArn"] != first["LatestStreamArn"]


def test_streams_started_within_a_millisecond_differ(clock: VirtualClock) -> None:
    engine = Engine.open(clock=clock)
    engine.call("CreateTable", on_demand(StreamSpecification=STREAM))
    first = describe(engine)["LatestStreamLabel"]
    assert first == "2026-10-08T20:00:00.000"
    update(engine, StreamSpecification={"StreamEnabled": False})
    describe(engine)
    update(engine, StreamSpecification=STREAM)
    assert describe(engine)["LatestStreamLabel"] == "2026-10-08T20:00:00.001"


def test_encryption_keys_change(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    update(engine, SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "1-2-3"})
    key = "arn:aws:kms:us-east-1:123456789012:key/1-2-3"
    assert describe(engine)["SSEDescription"] == {
        "Status": "ENABLED",
        "SSEType": "KMS",
        "KMSMasterKeyArn": key,
    }
    again = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}
    assert refusal(engine, "UpdateTable", {"TableName": "orders", "SSESpecification": again}) == (
        f"{POVI}Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId "
        "parameter if you want to change Master Key"
    )
    answer = update(engine, SSESpecification={"Enabled": False})
    assert answer["SSEDescription"] == {
        "Status": "UPDATING",
        "SSEType": "KMS",
        "KMSMasterKeyArn": key,
    }
    assert "SSEDescription" not in describe(engine)


def test_the_table_class_changes(timed: Engine, clock: VirtualClock) -> None:
    timed.call("CreateTable", on_demand())
    clock.advance(10)
    changed = clock.now()
    update(timed, TableClass="STANDARD_INFREQUENT_ACCESS")
    clock.advance(10)
    summary = {"TableClass": "STANDARD_INFREQUENT_ACCESS", "LastUpdateDateTime": changed}
    assert describe(timed)["TableClassSummary"] == summary


def test_an_updating_table_refuses_further_changes(timed: Engine, clock: VirtualClock) -> None:
    timed.call("CreateTable", provisioned())
    prefix = "Attempt to change a resource which is still in use: "
    request: dict[str, Any] = {"TableName": f"{ARN}orders", "ProvisionedThroughput": units(6, 6)}
    assert (
        refusal(timed, "UpdateTable", request, ResourceInUse)
        == f"{prefix}Table is being created: orders"
    )
    clock.advance(10)
    timed.call("UpdateTable", request)
    request["ProvisionedThroughput"] = units(7, 7)
    text = f"{prefix}Table IOPS are currently being updated. Table: orders"
    assert refusal(timed, "UpdateTable", request, ResourceInUse) == text
    protect = {"TableName": "orders", "DeletionProtectionEnabled": True}
    text = "Table needs to be in ACTIVE status to modify deletion protection setting."
    assert refusal(timed, "UpdateTable", protect, ResourceInUse) == text
    # A table that is UPDATING goes on serving.
    timed.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": "1"}}})
    clock.advance(10)
    timed.call("UpdateTable", request)


def test_a_refused_change_leaves_the_table_as_it_was(engine: Engine) -> None:
    engine.call(
        "CreateTable",
        provisioned(
            AttributeDefinitions=attributes(pk="S", a="S"),
            GlobalSecondaryIndexes=[index("by-a", keys("a"), ProvisionedThroughput=units(5, 5))],
        ),
    )
    before = describe(engine)
    same = {"IndexName": "by-a", "ProvisionedThroughput": units(5, 5)}
    request = {
        "TableName": "orders",
        "ProvisionedThroughput": units(8, 8),
        "GlobalSecondaryIndexUpdates": [{"Update": same}],
    }
    assert "index by-a will not change" in refusal(engine, "UpdateTable", request)
    assert describe(engine) == before
