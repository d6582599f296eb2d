"""Everything known about a table survives closing the engine."""

from __future__ import annotations

from pathlib import Path

from stator.engine import Engine
from stator.engine.keyspace import DATA
from stator.errors import ResourceNotFound
from stator.storage.protocol import after_prefix

from .declare import (
    ARN,
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


def test_a_table_with_everything_is_the_same_after_a_restart(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    with Engine.open(folder) as engine:
        engine.call(
            "CreateTable",
            provisioned(
                KeySchema=keys("pk", ranges=("sk",)),
                AttributeDefinitions=attributes(pk="S", sk="N", a="B", b="S"),
                GlobalSecondaryIndexes=[
                    index("by-a", keys("a", "b"), ProvisionedThroughput=units(3, 3))
                ],
                LocalSecondaryIndexes=[
                    index("local", keys("pk", ranges=("b",)), {"ProjectionType": "KEYS_ONLY"})
                ],
                StreamSpecification={"StreamEnabled": True, "StreamViewType": "OLD_IMAGE"},
                SSESpecification={"Enabled": True},
                TableClass="STANDARD",
                Tags=[{"Key": "team", "Value": "data"}],
                ResourcePolicy='{"Version":"2012-10-17","Statement":[]}',
            ),
        )
        engine.call("UpdateTable", {"TableName": "orders", "ProvisionedThroughput": units(4, 9)})
        engine.call("UpdateTable", {"TableName": "orders", "DeletionProtectionEnabled": True})
        ttl = {"Enabled": True, "AttributeName": "expires"}
        engine.call("UpdateTimeToLive", {"TableName": "orders", "TimeToLiveSpecification": ttl})
        item = {"pk": {"S": "1"}, "sk": {"N": "1"}, "a": {"B": "eA=="}, "b": {"S": "x"}}
        engine.call("PutItem", {"TableName": "orders", "Item": item})
        before = describe(engine)
    with Engine.open(folder) as engine:
        assert describe(engine) == before
        assert before["GlobalSecondaryIndexes"][0]["ItemCount"] == 1
        [table] = list(engine.database.catalog.all())
        assert table.definition.resource_policy == '{"Version":"2012-10-17","Statement":[]}'
        assert table.definition.ttl_attribute == "expires"
        tags = engine.call("ListTagsOfResource", {"ResourceArn": f"{ARN}orders"})["Tags"]
        assert tags == [{"Key": "team", "Value": "data"}]


def test_a_table_deleted_just_before_a_stop_does_not_come_back(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    with Engine.open(folder) as engine:
        engine.call("CreateTable", on_demand())
        engine.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": "1"}}})
        engine.call("DeleteTable", {"TableName": "orders"})
    with Engine.open(folder) as engine:
        assert list(engine.storage.scan(DATA, after_prefix(DATA))) == []
        refusal(engine, "DescribeTable", {"TableName": "orders"}, ResourceNotFound)
        engine.call("CreateTable", on_demand())
        assert describe(engine)["ItemCount"] == 0
        assert "Item" not in engine.call(
            "GetItem", {"TableName": "orders", "Key": {"pk": {"S": "1"}}}
        )


def test_an_index_deleted_just_before_a_stop_does_not_come_back(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    with Engine.open(folder) as engine:
        engine.call("CreateTable", on_demand())
        engine.call("UpdateTable", {"TableName": "orders", **create_index("by-a", "a")})
        describe(engine)
        gone = {
            "TableName": "orders",
            "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-a"}}],
        }
        engine.call("UpdateTable", gone)
    with Engine.open(folder) as engine:
        assert "GlobalSecondaryIndexes" not in describe(engine)
        assert describe(engine)["AttributeDefinitions"] == attributes(pk="S")
