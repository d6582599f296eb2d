"""DescribeTable: exactly the members AWS shows, and live counts.

Facts: conformance.md section 12.
"""

from __future__ import annotations

from typing import Any

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ResourceNotFound

from .declare import (
    ARN,
    attributes,
    describe,
    global_index,
    index,
    keys,
    on_demand,
    provisioned,
    refusal,
    units,
)


def test_a_plain_table_on_demand_shows_these_members_only(
    timed: Engine, clock: VirtualClock
) -> None:
    table_id = timed.call("CreateTable", on_demand())["TableDescription"]["TableId"]
    created = clock.now()
    clock.advance(10)
    assert describe(timed) == {
        "TableName": "orders",
        "TableStatus": "ACTIVE",
        "TableArn": f"{ARN}orders",
        "TableId": table_id,
        "CreationDateTime": created,
        "KeySchema": keys("pk"),
        "AttributeDefinitions": attributes(pk="S"),
        "ItemCount": 0,
        "TableSizeBytes": 0,
        "DeletionProtectionEnabled": False,
        "ProvisionedThroughput": {"NumberOfDecreasesToday": 0, **units(0, 0)},
        "BillingModeSummary": {
            "BillingMode": "PAY_PER_REQUEST",
            "LastUpdateToPayPerRequestDateTime": created,
        },
        "WarmThroughput": {
            "ReadUnitsPerSecond": 12_000,
            "WriteUnitsPerSecond": 4_000,
            "Status": "ACTIVE",
        },
    }


def test_a_provisioned_table_has_no_billing_summary(engine: Engine) -> None:
    engine.call("CreateTable", provisioned(read=7, write=3))
    described = describe(engine)
    assert "BillingModeSummary" not in described
    assert described["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **units(7, 3)}
    assert described["WarmThroughput"] == {
        "ReadUnitsPerSecond": 7,
        "WriteUnitsPerSecond": 3,
        "Status": "ACTIVE",
    }


def test_settings_come_back(engine: Engine) -> None:
    asked: dict[str, Any] = {
        "TableClass": "STANDARD_INFREQUENT_ACCESS",
        "DeletionProtectionEnabled": True,
        "OnDemandThroughput": {"MaxReadRequestUnits": 100},
        "WarmThroughput": {"ReadUnitsPerSecond": 15_000, "WriteUnitsPerSecond": 5_000},
        "SSESpecification": {"Enabled": True},
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    }
    answer = engine.call("CreateTable", on_demand(**asked))["TableDescription"]
    assert answer["WarmThroughput"]["ReadUnitsPerSecond"] == 15_000
    assert answer["WarmThroughput"]["Status"] == "UPDATING"
    described = describe(engine)
    assert described["TableClassSummary"] == {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
    assert described["DeletionProtectionEnabled"] is True
    assert described["OnDemandThroughput"] == {"MaxReadRequestUnits": 100}
    assert described["WarmThroughput"] == {**asked["WarmThroughput"], "Status": "ACTIVE"}
    assert described["StreamSpecification"] == asked["StreamSpecification"]
    assert described["LatestStreamArn"] == f"{ARN}orders/stream/{described['LatestStreamLabel']}"
    encryption = described["SSEDescription"]
    assert (encryption["Status"], encryption["SSEType"]) == ("ENABLED", "KMS")
    assert encryption["KMSMasterKeyArn"].startswith("arn:aws:kms:us-east-1:123456789012:key/")


def test_indexes_keep_their_order_and_names_are_sorted(engine: Engine) -> None:
    include = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["z", "y"]}
    request = on_demand(
        KeySchema=keys("pk", ranges=("sk",)),
        AttributeDefinitions=attributes(sk="S", pk="S", b="N", a="S"),
        GlobalSecondaryIndexes=[
            index("zebra", keys("b", ranges=("a",)), include),
            index("ant", keys("a"), OnDemandThroughput={"MaxWriteRequestUnits": 9}),
        ],
        LocalSecondaryIndexes=[
            index("local", keys("pk", ranges=("b",)), {"ProjectionType": "KEYS_ONLY"})
        ],
    )
    creating = engine.call("CreateTable", request)["TableDescription"]["GlobalSecondaryIndexes"][0]
    assert creating["IndexStatus"] == "CREATING"
    assert "Backfilling" not in creating
    assert "WarmThroughput" not in creating
    described = describe(engine)
    assert [d["AttributeName"] for d in described["AttributeDefinitions"]] == ["a", "b", "pk", "sk"]
    assert [i["IndexName"] for i in described["GlobalSecondaryIndexes"]] == ["zebra", "ant"]
    assert described["GlobalSecondaryIndexes"][0] == {
        "IndexName": "zebra",
        "IndexArn": f"{ARN}orders/index/zebra",
        "IndexStatus": "ACTIVE",
        "IndexSizeBytes": 0,
        "ItemCount": 0,
        "KeySchema": keys("b", ranges=("a",)),
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["y", "z"]},
        "ProvisionedThroughput": {"NumberOfDecreasesToday": 0, **units(0, 0)},
        "WarmThroughput": {
            "ReadUnitsPerSecond": 12_000,
            "WriteUnitsPerSecond": 4_000,
            "Status": "ACTIVE",
        },
    }
    assert described["GlobalSecondaryIndexes"][1]["OnDemandThroughput"] == {
        "MaxWriteRequestUnits": 9
    }
    assert described["LocalSecondaryIndexes"] == [
        {
            "IndexName": "local",
            "IndexArn": f"{ARN}orders/index/local",
            "IndexSizeBytes": 0,
            "ItemCount": 0,
            "KeySchema": keys("pk", ranges=("b",)),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ]


def test_counts_are_live(engine: Engine) -> None:
    engine.call(
        "CreateTable",
        on_demand(
            AttributeDefinitions=attributes(pk="S", a="S"),
            GlobalSecondaryIndexes=[index("by-a", keys("a"), {"ProjectionType": "KEYS_ONLY"})],
        ),
    )
    engine.call(
        "PutItem",
        {"TableName": "orders", "Item": {"pk": {"S": "1"}, "a": {"S": "x"}, "more": {"S": "yy"}}},
    )
    engine.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": "2"}}})
    described = describe(engine)
    assert (described["ItemCount"], described["TableSizeBytes"]) == (2, 3 + 2 + 6 + 3)
    by_a = global_index(engine, "by-a")
    assert (by_a["ItemCount"], by_a["IndexSizeBytes"]) == (1, 3 + 2)
    engine.call("DeleteItem", {"TableName": "orders", "Key": {"pk": {"S": "1"}}})
    assert describe(engine)["ItemCount"] == 1
    assert global_index(engine, "by-a")["ItemCount"] == 0


def test_a_table_can_be_named_by_its_arn(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    assert describe(engine, f"{ARN}orders") == describe(engine)
    abroad = f"{ARN}orders".replace("us-east-1", "eu-west-2")
    text = f"1 validation error detected: Invalid AWS region in '{abroad}'"
    assert refusal(engine, "DescribeTable", {"TableName": abroad}) == text


def test_a_missing_table_is_not_found(engine: Engine) -> None:
    text = "Requested resource not found: Table: ghost not found"
    for operation in ("DescribeTable", "DeleteTable", "DescribeTimeToLive"):
        assert refusal(engine, operation, {"TableName": "ghost"}, ResourceNotFound) == text
        assert refusal(engine, operation, {"TableName": f"{ARN}ghost"}, ResourceNotFound) == text
