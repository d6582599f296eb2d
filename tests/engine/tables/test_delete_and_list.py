"""DeleteTable and ListTables."""

from __future__ import annotations

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.keyspace import DATA
from stator.errors import ResourceInUse, ResourceNotFound
from stator.storage.protocol import after_prefix

from .declare import ARN, attributes, create_index, describe, index, keys, on_demand, refusal, units

IN_USE = "Attempt to change a resource which is still in use: "


def entries(engine: Engine) -> int:
    return sum(1 for _ in engine.storage.scan(DATA, after_prefix(DATA)))


def test_a_deleted_table_is_gone_with_its_data(engine: Engine) -> None:
    request = on_demand(
        AttributeDefinitions=attributes(pk="S", a="S"),
        GlobalSecondaryIndexes=[index("by-a", keys("a"))],
    )
    first = engine.call("CreateTable", request)["TableDescription"]
    engine.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": "1"}, "a": {"S": "x"}}})
    assert entries(engine) == 2
    answer = engine.call("DeleteTable", {"TableName": f"{ARN}orders"})["TableDescription"]
    assert answer == {
        "TableName": "orders",
        "TableStatus": "DELETING",
        "TableArn": f"{ARN}orders",
        "TableId": first["TableId"],
        "ItemCount": 1,
        "TableSizeBytes": 5,
        "DeletionProtectionEnabled": False,
        "ProvisionedThroughput": {"NumberOfDecreasesToday": 0, **units(0, 0)},
        "BillingModeSummary": {
            "BillingMode": "PAY_PER_REQUEST",
            "LastUpdateToPayPerRequestDateTime": answer["BillingModeSummary"][
                "LastUpdateToPayPerRequestDateTime"
            ],
        },
    }
    refusal(engine, "DescribeTable", {"TableName": "orders"}, ResourceNotFound)
    assert entries(engine) == 0
    again = engine.call("CreateTable", request)["TableDescription"]
    assert again["TableArn"] == first["TableArn"]
    assert again["TableId"] != first["TableId"]
    assert describe(engine)["ItemCount"] == 0


def test_deletion_protection_holds_until_it_is_lifted(engine: Engine) -> None:
    engine.call("CreateTable", on_demand(DeletionProtectionEnabled=True))
    describe(engine)
    text = (
        "Resource cannot be deleted as it is currently protected against deletion. Disable "
        "deletion protection first."
    )
    assert refusal(engine, "DeleteTable", {"TableName": "orders"}) == text
    engine.call("UpdateTable", {"TableName": "orders", "DeletionProtectionEnabled": False})
    engine.call("DeleteTable", {"TableName": "orders"})
    refusal(engine, "DescribeTable", {"TableName": "orders"}, ResourceNotFound)


def test_a_table_on_its_way_cannot_be_deleted(timed: Engine, clock: VirtualClock) -> None:
    timed.call("CreateTable", on_demand())
    name = {"TableName": "orders"}
    assert (
        refusal(timed, "DeleteTable", name, ResourceInUse)
        == f"{IN_USE}Table is being created: orders"
    )
    assert refusal(timed, "PutItem", {**name, "Item": {"pk": {"S": "1"}}}, ResourceNotFound)
    clock.advance(10)
    timed.call(
        "UpdateTable", {**name, "BillingMode": "PROVISIONED", "ProvisionedThroughput": units(1, 1)}
    )
    text = f"{IN_USE}Table: orders is in the process of being updated."
    assert refusal(timed, "DeleteTable", name, ResourceInUse) == text
    clock.advance(10)
    timed.call("DeleteTable", name)
    assert describe(timed)["TableStatus"] == "DELETING"
    assert (
        refusal(timed, "DeleteTable", name, ResourceInUse)
        == f"{IN_USE}Table is being deleted: orders"
    )
    assert refusal(
        timed, "UpdateTable", {**name, **create_index("by-a", "a")}, ResourceInUse
    ).endswith("Table is being deleted: orders")
    clock.advance(10)
    refusal(timed, "DescribeTable", name, ResourceNotFound)


def test_a_table_whose_index_changes_cannot_be_deleted(timed: Engine, clock: VirtualClock) -> None:
    global_index = index("by-a", keys("a"), OnDemandThroughput={"MaxReadRequestUnits": 5})
    timed.call(
        "CreateTable",
        on_demand(
            AttributeDefinitions=attributes(pk="S", a="S"), GlobalSecondaryIndexes=[global_index]
        ),
    )
    clock.advance(10)
    update = {"IndexName": "by-a", "OnDemandThroughput": {"MaxReadRequestUnits": 6}}
    timed.call(
        "UpdateTable", {"TableName": "orders", "GlobalSecondaryIndexUpdates": [{"Update": update}]}
    )
    assert describe(timed)["TableStatus"] == "ACTIVE"
    text = f"{IN_USE}Cannot delete table while indexes are being created, updated, or deleted."
    assert refusal(timed, "DeleteTable", {"TableName": "orders"}, ResourceInUse) == text


# -- ListTables


def test_names_come_in_the_order_of_their_bytes_page_by_page(engine: Engine) -> None:
    for name in ("beta", "Zed", "alpha", "a-1", "a.1", "a_1"):
        engine.call("CreateTable", on_demand(name))
    pages = []
    start: dict[str, str] = {}
    while True:
        page = engine.call("ListTables", {"Limit": 2, **start})
        pages.append(page["TableNames"])
        if "LastEvaluatedTableName" not in page:
            break
        assert page["LastEvaluatedTableName"] == page["TableNames"][-1]
        start = {"ExclusiveStartTableName": page["LastEvaluatedTableName"]}
    assert pages == [["Zed", "a-1"], ["a.1", "a_1"], ["alpha", "beta"]]


def test_a_start_may_name_a_missing_table(engine: Engine) -> None:
    for name in ("alpha", "gamma"):
        engine.call("CreateTable", on_demand(name))
    assert engine.call("ListTables", {"ExclusiveStartTableName": "beta"}) == {
        "TableNames": ["gamma"]
    }
    assert engine.call("ListTables", {"ExclusiveStartTableName": "zzz"}) == {"TableNames": []}


def test_a_table_being_deleted_is_listed_until_it_is_gone(
    timed: Engine, clock: VirtualClock
) -> None:
    timed.call("CreateTable", on_demand())
    clock.advance(10)
    timed.call("DeleteTable", {"TableName": "orders"})
    assert timed.call("ListTables", {})["TableNames"] == ["orders"]
    clock.advance(10)
    assert timed.call("ListTables", {})["TableNames"] == []


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (
            {"Limit": 0},
            (
                "Value '0' at 'limit' failed to satisfy constraint: Member must have value "
                "greater than or equal to 1"
            ),
        ),
        (
            {"Limit": 101},
            (
                "Value '101' at 'limit' failed to satisfy constraint: Member must have value "
                "less than or equal to 100"
            ),
        ),
        (
            {"ExclusiveStartTableName": f"{ARN}orders"},
            (
                f"Value '{ARN}orders' at 'exclusiveStartTableName' failed to satisfy constraint: "
                "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
            ),
        ),
    ],
)
def test_a_bad_page_is_refused(request_: dict[str, object], text: str) -> None:
    assert refusal(Engine.open(), "ListTables", request_) == f"1 validation error detected: {text}"
