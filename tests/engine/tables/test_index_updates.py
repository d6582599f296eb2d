"""Global indexes created, changed and deleted by UpdateTable. Facts: conformance.md section 12."""

from __future__ import annotations

from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.keyspace import data_prefix
from stator.errors import LimitExceeded, ResourceInUse, ResourceNotFound
from stator.storage.protocol import after_prefix

from .declare import (
    POVI,
    REFER,
    attributes,
    create_index,
    describe,
    global_index,
    index,
    keys,
    on_demand,
    provisioned,
    refusal,
    units,
)


def with_index(**changes: Any) -> dict[str, Any]:
    """A provisioned table with the global index ``by-a`` and the local index ``local``."""
    return provisioned(
        **{
            "KeySchema": keys("pk", ranges=("sk",)),
            "AttributeDefinitions": attributes(pk="S", sk="S", a="S"),
            "GlobalSecondaryIndexes": [index("by-a", keys("a"), ProvisionedThroughput=units(2, 2))],
            "LocalSecondaryIndexes": [index("local", keys("pk", ranges=("a",)))],
        }
        | changes
    )


def updates(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"TableName": "orders", "GlobalSecondaryIndexUpdates": list(entries), **more}


def opened(request: dict[str, Any]) -> Engine:
    engine = Engine.open()
    engine.call("CreateTable", request)
    return engine


def change(name: str, **more: Any) -> dict[str, Any]:
    return {"Update": {"IndexName": name, **more}}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no action": (
        updates({}),
        (
            f"{POVI}One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
            "GlobalSecondaryIndexUpdate.Delete must not be null"
        ),
    ),
    "two actions in one": (
        updates(
            {**change("by-a", ProvisionedThroughput=units(1, 1)), "Delete": {"IndexName": "by-a"}}
        ),
        (
            f"{POVI}Only one global secondary index action is allowed per "
            "GlobalSecondaryIndexUpdate object"
        ),
    ),
    "one index twice": (
        updates(
            change("by-a", ProvisionedThroughput=units(1, 1)), {"Delete": {"IndexName": "by-a"}}
        ),
        (
            f"{POVI}Only one global secondary index update per index is allowed "
            "simultaneously. Index: by-a"
        ),
    ),
    "no definitions": (
        updates({"Create": index("by-b", keys("b"), ProvisionedThroughput=units(1, 1))}),
        f"{POVI}AttributeDefinitions is not specified for index: by-b",
    ),
    "a key without definition": (
        updates({"Create": index("by-b", keys("b"))}, AttributeDefinitions=attributes(c="S")),
        (
            f"{POVI}Some index key attributes are not defined in AttributeDefinitions. "
            "Keys: [b], AttributeDefinitions: [a, c, pk, sk]"
        ),
    ),
    "no units": (
        {"TableName": "orders", **create_index("by-b", "b")},
        f"{POVI}Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: by-b",
    ),
    "a name that is taken": (
        {"TableName": "orders", **create_index("by-a", "b")},
        "Attempting to create an index which already exists",
    ),
    "a local index's name": (
        {"TableName": "orders", **create_index("local", "b")},
        "Attempting to create an index which already exists",
    ),
    "deletion of a local index": (
        updates({"Delete": {"IndexName": "local"}}),
        "Cannot delete an index that is not a GlobalSecondaryIndex: local",
    ),
    "change of a local index": (
        updates(change("local", ProvisionedThroughput=units(1, 1))),
        "Cannot update an index that is not a GlobalSecondaryIndex: local",
    ),
    "the same units": (
        updates(change("by-a", ProvisionedThroughput=units(2, 2))),
        "The provisioned throughput for the index by-a will not change. The requested value "
        "equals the current value. Current ReadCapacityUnits provisioned for index by-a: 2. "
        "Requested ReadCapacityUnits: 2. Current WriteCapacityUnits provisioned for index by-a: "
        "2. Requested WriteCapacityUnits: 2. " + REFER,
    ),
    "maxima": (
        updates(change("by-a", OnDemandThroughput={"MaxReadRequestUnits": 4})),
        (
            f"{POVI}MaxReadRequestUnits for OnDemandThroughput for index : by-a cannot be "
            "specified when the table BillingMode is PROVISIONED"
        ),
    ),
    "units beyond counting": (
        updates(change("by-a", ProvisionedThroughput=units(1_000_000_000_001, 1))),
        "Given value 1000000000001 for ReadCapacityUnits is out of bounds for index by-a",
    ),
    "a bad projection": (
        {
            "TableName": "orders",
            **create_index("by-b", "b", projection={"ProjectionType": "INCLUDE"}),
        },
        f"{POVI}ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    ),
}


@pytest.mark.parametrize(("request_", "text"), BAD.values(), ids=BAD)
def test_a_bad_update_is_refused_with_aws_words(request_: dict[str, Any], text: str) -> None:
    engine = opened(with_index())
    before = describe(engine)
    assert refusal(engine, "UpdateTable", request_) == text
    assert describe(engine) == before


def test_an_unknown_index_is_not_found(engine: Engine) -> None:
    engine.call("CreateTable", with_index())
    text = "Requested resource not found: Index ghost for table orders"
    for entry in (
        {"Delete": {"IndexName": "ghost"}},
        change("ghost", ProvisionedThroughput=units(1, 1)),
    ):
        assert refusal(engine, "UpdateTable", updates(entry), ResourceNotFound) == text


def test_on_demand_an_index_takes_no_units() -> None:
    engine = opened(
        on_demand(
            AttributeDefinitions=attributes(pk="S", a="S"),
            GlobalSecondaryIndexes=[index("by-a", keys("a"))],
        )
    )
    assert refusal(
        engine, "UpdateTable", updates(change("by-a", ProvisionedThroughput=units(1, 1)))
    ) == (
        f"{POVI}The only Updates for index: by-a when TableThroughputMode is PAY_PER_REQUEST can "
        "be to OnDemandThroughput, WarmThroughput"
    )
    request = {
        "TableName": "orders",
        **create_index("by-b", "b", ProvisionedThroughput=units(1, 1)),
    }
    assert refusal(engine, "UpdateTable", request) == (
        f"{POVI}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: "
        "by-b when BillingMode is PAY_PER_REQUEST"
    )
    less = updates(change("by-a", WarmThroughput={"WriteUnitsPerSecond": 3_999}))
    assert refusal(engine, "UpdateTable", less) == (
        f"{POVI}Requested WriteUnitsPerSecond for WarmThroughput for index by-a is lower than "
        "current WarmThroughput, decreasing WarmThroughput is not supported"
    )
    engine.call(
        "UpdateTable", updates(change("by-a", WarmThroughput={"WriteUnitsPerSecond": 5_000}))
    )
    warm = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 5_000, "Status": "ACTIVE"}
    assert global_index(engine, "by-a")["WarmThroughput"] == warm


def test_one_index_is_created_or_deleted_at_a_time(engine: Engine) -> None:
    text = (
        "Subscriber limit exceeded: Only 1 online index can be created or deleted "
        "simultaneously per table"
    )
    engine.call(
        "CreateTable",
        with_index(
            BillingMode="PAY_PER_REQUEST", ProvisionedThroughput=None, GlobalSecondaryIndexes=None
        ),
    )
    two = updates(
        *({"Create": index(f"by-{name}", keys(name))} for name in "bc"),
        AttributeDefinitions=attributes(b="S", c="S"),
    )
    assert refusal(engine, "UpdateTable", two, LimitExceeded) == text
    for name in "bc":
        engine.call("UpdateTable", {"TableName": "orders", **create_index(f"by-{name}", name)})
        assert global_index(engine, f"by-{name}")["IndexStatus"] == "ACTIVE"
    both = updates({"Delete": {"IndexName": "by-b"}}, {"Delete": {"IndexName": "by-c"}})
    assert refusal(engine, "UpdateTable", both, LimitExceeded) == text
    # Whether they are there is asked later (ScyllaDB's test suite, on AWS).
    unknown = updates({"Delete": {"IndexName": "by-x"}}, {"Delete": {"IndexName": "by-y"}})
    assert refusal(engine, "UpdateTable", unknown, LimitExceeded) == text


def test_the_twenty_first_index_is_past_the_limit() -> None:
    names = [f"x{number:02}" for number in range(20)]
    engine = opened(
        on_demand(
            AttributeDefinitions=attributes(pk="S", **dict.fromkeys(names, "S")),
            GlobalSecondaryIndexes=[index(name, keys(name)) for name in names],
        )
    )
    text = (
        "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table "
        "limit of 20"
    )
    assert (
        refusal(
            engine,
            "UpdateTable",
            {"TableName": "orders", **create_index("one-more", "y")},
            LimitExceeded,
        )
        == text
    )


def test_a_new_index_holds_the_existing_items(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    for number in range(3):
        item = {"pk": {"S": str(number)}} | ({"a": {"S": "x"}} if number else {})
        engine.call("PutItem", {"TableName": "orders", "Item": item})
    request = {"TableName": "orders", **create_index("by-a", "a")}
    answer = engine.call("UpdateTable", request)["TableDescription"]
    assert answer["TableStatus"] == "UPDATING"
    created = answer["GlobalSecondaryIndexes"][0]
    assert (created["IndexStatus"], created["Backfilling"]) == ("CREATING", False)
    by_a = global_index(engine, "by-a")
    assert (by_a["IndexStatus"], by_a["ItemCount"]) == ("ACTIVE", 2)
    assert "Backfilling" not in by_a
    assert describe(engine)["AttributeDefinitions"] == attributes(a="S", pk="S")


def test_definitions_merge_and_a_stored_type_stays(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    definitions = attributes(pk="N", a="N", unused="S")
    new = index("by-a", keys("a"))
    engine.call("UpdateTable", updates({"Create": new}, AttributeDefinitions=definitions))
    assert describe(engine)["AttributeDefinitions"] == attributes(a="N", pk="S")


def test_the_key_of_a_new_index_keeps_existing_types(engine: Engine) -> None:
    """The words are AWS's, as ScyllaDB's test suite quotes them."""
    engine.call("CreateTable", on_demand())
    engine.call("UpdateTable", {"TableName": "orders", **create_index("by-a", "a")})
    request = updates({"Create": index("again", keys("a"))}, AttributeDefinitions=attributes(a="N"))
    assert refusal(engine, "UpdateTable", request) == (
        f"{POVI}Attributes cannot be redefined. Please check that your attribute has the "
        "same type as previously "
        "defined. Existing schema: Schema:[SchemaElement: key{a:S:HASH}] "
        "New schema: Schema:[SchemaElement: key{a:N:HASH}]"
    )
    assert describe(engine)["AttributeDefinitions"] == attributes(a="S", pk="S")


def test_a_deleted_index_takes_its_entries_and_definitions_with_it(engine: Engine) -> None:
    engine.call("CreateTable", with_index(LocalSecondaryIndexes=None))
    engine.call(
        "PutItem",
        {"TableName": "orders", "Item": {"pk": {"S": "1"}, "sk": {"S": "1"}, "a": {"S": "x"}}},
    )
    answer = engine.call("UpdateTable", updates({"Delete": {"IndexName": "by-a"}}))[
        "TableDescription"
    ]
    assert answer["GlobalSecondaryIndexes"][0]["IndexStatus"] == "DELETING"
    described = describe(engine)
    assert "GlobalSecondaryIndexes" not in described
    assert described["AttributeDefinitions"] == attributes(pk="S", sk="S")
    prefix = data_prefix(1, 1)
    assert list(engine.storage.scan(prefix, after_prefix(prefix))) == []
    # The attribute is free again: any type can be written, and the name used for another index.
    engine.call(
        "PutItem",
        {"TableName": "orders", "Item": {"pk": {"S": "1"}, "sk": {"S": "1"}, "a": {"N": "1"}}},
    )
    new = index("by-a", keys("a"), ProvisionedThroughput=units(1, 1))
    engine.call("UpdateTable", updates({"Create": new}, AttributeDefinitions=attributes(a="N")))
    assert global_index(engine, "by-a")["ItemCount"] == 1


def test_only_an_index_that_changes_units_is_updating(timed: Engine, clock: VirtualClock) -> None:
    timed.call("CreateTable", with_index())
    clock.advance(10)
    request = updates(change("by-a", ProvisionedThroughput=units(1, 9)))
    answer = timed.call("UpdateTable", request)["TableDescription"]
    assert answer["TableStatus"] == "ACTIVE"
    shown = answer["GlobalSecondaryIndexes"][0]
    assert shown["IndexStatus"] == "UPDATING"
    assert shown["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **units(2, 2)}
    text = (
        "Attempt to change a resource which is still in use: Index is being updated. Table: "
        "orders Index: by-a"
    )
    assert refusal(timed, "UpdateTable", request, ResourceInUse) == text
    changed = clock.now()
    clock.advance(10)
    by_a = global_index(timed, "by-a")
    assert by_a["IndexStatus"] == "ACTIVE"
    assert by_a["ProvisionedThroughput"] == {
        "NumberOfDecreasesToday": 1,
        "LastDecreaseDateTime": changed,
        "LastIncreaseDateTime": changed,
        **units(1, 9),
    }


def test_a_switch_to_provisioned_needs_units_for_every_index(engine: Engine) -> None:
    engine.call(
        "CreateTable",
        on_demand(
            AttributeDefinitions=attributes(pk="S", a="S"),
            GlobalSecondaryIndexes=[index("by-a", keys("a")), index("also", keys("a"))],
        ),
    )
    switch = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(3, 3)}
    text = f"{POVI}ProvisionedThroughput must be specified for index: by-a,also"
    assert refusal(engine, "UpdateTable", {"TableName": "orders", **switch}) == text
    entries = (change(name, ProvisionedThroughput=units(4, 4)) for name in ("by-a", "also"))
    engine.call("UpdateTable", updates(*entries, **switch))
    assert global_index(engine, "also")["ProvisionedThroughput"] == {
        "NumberOfDecreasesToday": 0,
        **units(4, 4),
    }
    engine.call("UpdateTable", {"TableName": "orders", "BillingMode": "PAY_PER_REQUEST"})
    assert global_index(engine, "also")["ProvisionedThroughput"] == {
        "NumberOfDecreasesToday": 0,
        **units(0, 0),
    }
