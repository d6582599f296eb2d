"""CreateTable: what it refuses and with which words.

Facts: conformance.md sections 5, 11d and 12.
"""

from __future__ import annotations

from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import LimitExceeded, ResourceInUse, ServiceError
from stator.model import limits

from .declare import POVI, attributes, describe, index, keys, on_demand, provisioned, refusal, units

TWO_KEYS: dict[str, Any] = {
    "KeySchema": keys("pk", ranges=("sk",)),
    "AttributeDefinitions": attributes(pk="S", sk="S"),
}
WITH_A: dict[str, Any] = {**TWO_KEYS, "AttributeDefinitions": attributes(pk="S", sk="S", a="S")}


def with_global(*specs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return on_demand(**{**WITH_A, "GlobalSecondaryIndexes": list(specs)} | changes)


def with_local(*specs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return on_demand(**{**WITH_A, "LocalSecondaryIndexes": list(specs)} | changes)


def of_many(hashes: int, ranges: int) -> dict[str, Any]:
    """A table whose global index has this many key attributes."""
    names = [f"h{n}" for n in range(hashes)], [f"r{n}" for n in range(ranges)]
    schema = keys(*names[0], ranges=tuple(names[1]))
    definitions = attributes(pk="S", **dict.fromkeys(names[0] + names[1], "S"))
    return on_demand(
        AttributeDefinitions=definitions, GlobalSecondaryIndexes=[index("g-a", schema)]
    )


KEY_RULES = {
    "no key schema": (
        on_demand(KeySchema=None),
        (
            "1 validation error detected: Value null at 'keySchema' failed to satisfy "
            "constraint: Member must not be null"
        ),
    ),
    "empty key schema": (
        on_demand(KeySchema=[]),
        (
            "1 validation error detected: Value '[]' at 'keySchema' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1"
        ),
    ),
    "no definitions": (
        on_demand(AttributeDefinitions=None),
        (
            "1 validation error detected: Value null at 'attributeDefinitions' failed to "
            "satisfy constraint: Member must not be null"
        ),
    ),
    "empty definitions": (
        on_demand(AttributeDefinitions=[]),
        "Invalid KeySchema: Some index key attribute have no definition",
    ),
    "same attribute twice in the key": (
        on_demand(KeySchema=keys("pk", ranges=("pk",))),
        "Invalid KeySchema: Some index key attribute have no definition",
    ),
    "same attribute twice, another defined": (
        on_demand(
            KeySchema=keys("pk", ranges=("pk",)), AttributeDefinitions=attributes(pk="S", x="S")
        ),
        "Both the Hash Key and the Range Key element in the KeySchema have the same name",
    ),
    "three key attributes": (
        on_demand(KeySchema=keys("pk", ranges=("sk", "extra"))),
        (
            "1 validation error detected: Value '[KeySchemaElement(attributeName=pk, "
            "keyType=HASH), KeySchemaElement(attributeName=sk, keyType=RANGE), "
            "KeySchemaElement(attributeName=extra, keyType=RANGE)]' at 'keySchema' failed to "
            "satisfy constraint: Member must have length less than or equal to 2"
        ),
    ),
    "range before hash": (
        on_demand(**{**TWO_KEYS, "KeySchema": keys("sk", ranges=("pk",))[::-1]}),
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
    ),
    "range alone": (
        on_demand(KeySchema=keys(ranges=("pk",))),
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
    ),
    "two hashes": (
        on_demand(**{**TWO_KEYS, "KeySchema": keys("pk", "sk")}),
        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
    ),
    "undefined key": (
        on_demand(KeySchema=keys("PK")),
        (
            f"{POVI}Some index key attributes are not defined in AttributeDefinitions. "
            "Keys: [PK], AttributeDefinitions: [pk]"
        ),
    ),
    "attribute defined twice": (
        on_demand(AttributeDefinitions=[*attributes(pk="S"), *attributes(pk="N")]),
        "Attribute Name is duplicated: pk",
    ),
    "unused definition": (
        on_demand(AttributeDefinitions=attributes(pk="S", x="S")),
        (
            f"{POVI}Number of attributes in KeySchema does not exactly match number of "
            "attributes defined in AttributeDefinitions"
        ),
    ),
    "unused definition beside an index": (
        with_global(
            index("g-a", keys("a")), AttributeDefinitions=attributes(pk="S", sk="S", a="S", b="S")
        ),
        (
            f"{POVI}Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, pk, "
            "sk], keys used: [a, pk, sk]"
        ),
    ),
    "undefined index key": (
        with_global(index("g-a", keys("q")), AttributeDefinitions=attributes(pk="S", sk="S")),
        (
            f"{POVI}Some index key attributes are not defined in AttributeDefinitions. "
            "Keys: [q], AttributeDefinitions: [pk, sk]"
        ),
    ),
    "bad key type": (
        on_demand(KeySchema=[{"AttributeName": "pk", "KeyType": "INVALID"}]),
        (
            "1 validation error detected: Value 'INVALID' at 'keySchema.1.member.keyType' "
            "failed to satisfy constraint: Member must satisfy enum value set: [HASH, RANGE]"
        ),
    ),
    "bad attribute type": (
        on_demand(AttributeDefinitions=attributes(pk="INVALID")),
        (
            "1 validation error detected: Value 'INVALID' at "
            "'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: Member "
            "must satisfy enum value set: [B, N, S]"
        ),
    ),
    "short name": (
        on_demand("ab"),
        (
            "1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 3"
        ),
    ),
}

INDEX_RULES = {
    "local index without a range key in the table": (
        on_demand(LocalSecondaryIndexes=[index("l-a", keys("pk"))]),
        (
            f"{POVI}Table KeySchema does not have a range key, which is required when "
            "specifying a LocalSecondaryIndex"
        ),
    ),
    "local index without a range key": (
        with_local(index("l-a", keys("pk")), AttributeDefinitions=TWO_KEYS["AttributeDefinitions"]),
        f"{POVI}Index KeySchema does not have a range key for index: l-a",
    ),
    "local index with another hash key": (
        with_local(index("l-a", keys("a", ranges=("sk",)))),
        (
            f"{POVI}Index KeySchema does not have the same leading hash key as table KeySchema "
            "for index: l-a. index hash key: a, table hash key: pk"
        ),
    ),
    "no local index in the list": (
        on_demand(LocalSecondaryIndexes=[]),
        f"{POVI}List of LocalSecondaryIndexes is empty",
    ),
    "no global index in the list": (
        on_demand(GlobalSecondaryIndexes=[]),
        f"{POVI}List of GlobalSecondaryIndexes is empty",
    ),
    "six local indexes": (
        with_local(*(index(f"l-{n}", keys("pk", ranges=("a",))) for n in range(6))),
        f"{POVI}Number of LocalSecondaryIndexes exceeds per-table limit of 5",
    ),
    "twenty-one global indexes": (
        with_global(*(index(f"g-{n}", keys("a")) for n in range(21))),
        f"{POVI}GlobalSecondaryIndex count exceeds the per-table limit of 20",
    ),
    "one name twice": (
        with_global(
            index("dup", keys("a")), LocalSecondaryIndexes=[index("dup", keys("pk", ranges=("a",)))]
        ),
        f"{POVI}Duplicate index name: dup",
    ),
    "five hash attributes": (
        of_many(5, 0),
        f"{POVI}The KeySchema exceeds the maximum allowed number of HASH key attributes",
    ),
    "five range attributes": (
        of_many(1, 5),
        f"{POVI}The KeySchema exceeds the maximum allowed number of RANGE key attributes",
    ),
    "hash after range": (
        with_global(index("g-a", [*keys("a", ranges=("sk",)), *keys("pk")])),
        f"{POVI}All HASH key attributes must precede RANGE key attributes in the KeySchema",
    ),
    "one attribute twice in an index key": (
        with_global(index("g-a", keys("a", ranges=("a",)))),
        "The KeySchema contains multiple key attributes with the same name",
    ),
    "one attribute twice among the hash attributes": (
        with_global(index("g-a", keys("a", "a"))),
        f"{POVI}Duplicate key attributes in the KeySchema",
    ),
    "index key without a hash": (
        with_global(index("g-a", keys(ranges=("a",)))),
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
    ),
    "INCLUDE of nothing": (
        with_global(index("g-a", keys("a"), {"ProjectionType": "INCLUDE"})),
        f"{POVI}ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    ),
    "KEYS_ONLY of something": (
        with_local(
            index(
                "l-a",
                keys("pk", ranges=("a",)),
                {"ProjectionType": "KEYS_ONLY", "NonKeyAttributes": ["x"]},
            )
        ),
        f"{POVI}ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified",
    ),
    "ALL of something": (
        with_global(index("g-a", keys("a"), {"ProjectionType": "ALL", "NonKeyAttributes": ["x"]})),
        f"{POVI}ProjectionType is ALL, but NonKeyAttributes is specified",
    ),
    "INCLUDE of one attribute twice": (
        with_global(
            index("g-a", keys("a"), {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x", "x"]})
        ),
        f"{POVI}Duplicate element in NonKeyAttributes: x",
    ),
    "no projection type": (
        with_global(index("g-a", keys("a"), {})),
        f"{POVI}Unknown ProjectionType: null",
    ),
    "six times twenty included attributes": (
        with_global(
            *(
                index(
                    f"g-{n}",
                    keys("a"),
                    {
                        "ProjectionType": "INCLUDE",
                        "NonKeyAttributes": [f"x{n}-{m}" for m in range(20)],
                    },
                )
                for n in range(6)
            )
        ),
        f"{POVI}Number of NonKeyAttributes across all indexes exceeds per-table limit of 100",
    ),
    "units for an index on demand": (
        with_global(index("g-a", keys("a"), ProvisionedThroughput=units(1, 1))),
        (
            f"{POVI}ProvisionedThroughput should not be specified for index: g-a when "
            "BillingMode is PAY_PER_REQUEST"
        ),
    ),
    "an index without units": (
        provisioned(**{**WITH_A, "GlobalSecondaryIndexes": [index("g-a", keys("a"))]}),
        f"{POVI}ProvisionedThroughput is not specified for index: g-a",
    ),
    "maxima for a provisioned index": (
        provisioned(
            **{
                **WITH_A,
                "GlobalSecondaryIndexes": [
                    index(
                        "g-a",
                        keys("a"),
                        ProvisionedThroughput=units(1, 1),
                        OnDemandThroughput={"MaxReadRequestUnits": 1},
                    )
                ],
            }
        ),
        (
            f"{POVI}MaxReadRequestUnits for OnDemandThroughput for index: g-a cannot be "
            "specified when table BillingMode is PROVISIONED."
        ),
    ),
    "no maximum for an index": (
        with_global(index("g-a", keys("a"), OnDemandThroughput={"MaxReadRequestUnits": 0})),
        (
            f"{POVI}Requested MaxReadRequestUnits for OnDemandThroughput for index : g-a is "
            "outside of valid range"
        ),
    ),
}

SETTING_RULES = {
    "no units": (
        on_demand(BillingMode=None),
        (
            f"{POVI}ReadCapacityUnits and WriteCapacityUnits must both be specified when "
            "BillingMode is PROVISIONED"
        ),
    ),
    "no units beats three key attributes": (
        on_demand(BillingMode=None, KeySchema=keys("pk", ranges=("sk", "extra"))),
        (
            f"{POVI}ReadCapacityUnits and WriteCapacityUnits must both be specified when "
            "BillingMode is PROVISIONED"
        ),
    ),
    "units on demand": (
        on_demand(ProvisionedThroughput=units(1, 1)),
        (
            f"{POVI}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
            "BillingMode is PAY_PER_REQUEST"
        ),
    ),
    "units beyond counting": (
        provisioned(read=1_000_000_000_001),
        "Given value 1000000000001 for ReadCapacityUnits is out of bounds",
    ),
    "maxima of a provisioned table": (
        provisioned(OnDemandThroughput={"MaxReadRequestUnits": 10}),
        (
            f"{POVI}MaxReadRequestUnits for OnDemandThroughput cannot be specified when "
            "table BillingMode is PROVISIONED."
        ),
    ),
    "second maximum of a provisioned table": (
        provisioned(OnDemandThroughput={"MaxWriteRequestUnits": 10}),
        (
            f"{POVI}MaxWriteRequestUnits for OnDemandThroughput cannot be specified when "
            "table BillingMode is PROVISIONED."
        ),
    ),
    "a maximum of -1": (
        on_demand(OnDemandThroughput={"MaxReadRequestUnits": -1}),
        (
            f"{POVI}Requested MaxReadRequestUnits for OnDemandThroughput for table is "
            "outside of valid range"
        ),
    ),
    "too little warm throughput on demand": (
        on_demand(WarmThroughput={"ReadUnitsPerSecond": 11_999}),
        (
            f"{POVI}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than "
            "initial throughput for OnDemand. See: "
            "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
            "on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
        ),
    ),
    "less warm throughput than units": (
        provisioned(read=5, WarmThroughput={"ReadUnitsPerSecond": 4}),
        (
            f"{POVI}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than "
            "ReadCapacityUnits of ProvisionedThroughput"
        ),
    ),
    "stream without a view type": (
        on_demand(StreamSpecification={"StreamEnabled": True}),
        f"{POVI}Table is being created with a stream enabled, UpdateViewType is required",
    ),
    "no stream with a view type": (
        on_demand(StreamSpecification={"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"}),
        (
            f"{POVI}Table is being created with a stream disabled, UpdateViewType should not "
            "be specified"
        ),
    ),
    "encryption type without encryption": (
        on_demand(SSESpecification={"Enabled": False, "SSEType": "KMS"}),
        f"{POVI}SSEType can not be specified if Enabled is false",
    ),
    "a key without encryption": (
        on_demand(SSESpecification={"Enabled": False, "KMSMasterKeyId": "k"}),
        f"{POVI}KMSMasterKeyId can not be specified if Enabled is false",
    ),
    "a key without its type": (
        on_demand(SSESpecification={"Enabled": True, "KMSMasterKeyId": "k"}),
        f"{POVI}SSEType KMS is required if KMSMasterKeyId is specified",
    ),
    "AES256": (
        on_demand(SSESpecification={"Enabled": True, "SSEType": "AES256"}),
        f"{POVI}SSEType AES256 is not supported",
    ),
    "a duplicate tag": (
        on_demand(Tags=[{"Key": "dup", "Value": "1"}, {"Key": "dup", "Value": "2"}]),
        "Duplicate Tag Keys provided as input: Duplicate Tag Key found dup",
    ),
}


@pytest.mark.parametrize(
    ("request_", "text"),
    [*KEY_RULES.values(), *INDEX_RULES.values(), *SETTING_RULES.values()],
    ids=[*KEY_RULES, *INDEX_RULES, *SETTING_RULES],
)
def test_a_bad_declaration_is_refused_with_aws_words(request_: dict[str, Any], text: str) -> None:
    engine = Engine.open()
    assert refusal(engine, "CreateTable", request_) == text
    assert engine.call("ListTables", {}) == {"TableNames": []}


@pytest.mark.parametrize(
    "member", ["GlobalTableSourceArn", "VectorIndexes", "GlobalTableSettingsReplicationMode"]
)
def test_unsupported_members_are_refused_by_name(member: str) -> None:
    vector = {
        "IndexName": "v-a",
        "VectorAttribute": {"AttributeName": "v"},
        "Projection": {"ProjectionType": "ALL"},
        "Dimensions": 2,
        "DistanceFunction": "COSINE",
    }
    given: Any = {"VectorIndexes": [vector], "GlobalTableSettingsReplicationMode": "ENABLED"}.get(
        member, "arn:aws:x"
    )
    text = refusal(Engine.open(), "CreateTable", on_demand(**{member: given}))
    assert text == f"{POVI}{member} is not supported by this engine"


ACCEPTED: dict[str, dict[str, Any]] = {
    "a local index on the table's own key": with_local(
        index("l-a", keys("pk", ranges=("sk",))),
        AttributeDefinitions=TWO_KEYS["AttributeDefinitions"],
    ),
    "a global index on the table's own key": with_global(
        index("g-a", keys("pk", ranges=("sk",))),
        AttributeDefinitions=TWO_KEYS["AttributeDefinitions"],
    ),
    "a global index named like the table": with_global(index("orders", keys("a"))),
    "four and four key attributes": of_many(4, 4),
    "key attributes among those included": with_global(
        index("g-a", keys("a"), {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["pk", "a"]})
    ),
    "empty maxima": on_demand(OnDemandThroughput={}),
    "no tags": on_demand(Tags=[]),
    "null members": on_demand() | {"LocalSecondaryIndexes": None, "GlobalSecondaryIndexes": None},
    "a name that is an ARN": on_demand("arn:aws:dynamodb:us-east-1:123456789012:table/orders"),
}


@pytest.mark.parametrize("request_", ACCEPTED.values(), ids=ACCEPTED)
def test_declarations_that_aws_accepts_are_accepted(request_: dict[str, Any]) -> None:
    engine = Engine.open()
    engine.call("CreateTable", request_)
    assert describe(engine)["TableStatus"] == "ACTIVE"


def test_the_answer_shows_creating_and_the_next_look_active(engine: Engine) -> None:
    answer = engine.call("CreateTable", on_demand())["TableDescription"]
    assert answer["TableStatus"] == "CREATING"
    assert answer["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}
    assert "WarmThroughput" not in answer
    described = describe(engine)
    assert described["TableStatus"] == "ACTIVE"
    assert described["TableId"] == answer["TableId"]


def test_a_name_can_be_taken_once(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    assert (
        refusal(engine, "CreateTable", on_demand(), ResourceInUse) == "Table already exists: orders"
    )
    # The declaration is checked first.
    bad = on_demand(KeySchema=keys("PK"))
    assert refusal(engine, "CreateTable", bad).startswith(f"{POVI}Some index key attributes")


def test_a_name_being_created_is_in_use(timed: Engine, clock: VirtualClock) -> None:
    timed.call("CreateTable", on_demand())
    text = "Attempt to change a resource which is still in use: Table is being created: orders"
    assert refusal(timed, "CreateTable", on_demand(), ResourceInUse) == text
    clock.advance(10)
    assert (
        refusal(timed, "CreateTable", on_demand(), ResourceInUse) == "Table already exists: orders"
    )


def test_regions_and_accounts_have_tables_of_their_own(engine: Engine) -> None:
    for account, region in (
        ("1" * 12, "us-east-1"),
        ("1" * 12, "eu-west-2"),
        ("2" * 12, "us-east-1"),
    ):
        answer = engine.call("CreateTable", on_demand(), account=account, region=region)
        assert (
            answer["TableDescription"]["TableArn"]
            == f"arn:aws:dynamodb:{region}:{account}:table/orders"
        )


QUOTAS = {
    "table": (
        provisioned(read=40_001),
        (
            "The requested ReadCapacityUnits, 40001, is above the per table maximum for the "
            "account in us-east-1. Per table maximum: 40000. Refer to the Amazon DynamoDB "
            "Developer Guide for current limits and how to request higher limits."
        ),
    ),
    "index": (
        provisioned(
            AttributeDefinitions=attributes(pk="S", a="S"),
            GlobalSecondaryIndexes=[
                index("g-a", keys("a"), ProvisionedThroughput=units(1, 40_001))
            ],
        ),
        (
            "The requested WriteCapacityUnits for index g-a, 40001, is above the per index "
            "maximum for the account in us-east-1. Per index maximum: 40000. Refer to the "
            "Amazon DynamoDB Developer Guide for current limits and how to request higher "
            "limits."
        ),
    ),
    "maximum": (
        on_demand(OnDemandThroughput={"MaxReadRequestUnits": 40_001}),
        (
            "Subscriber limit exceeded: Requested MaxReadRequestUnits for OnDemandThroughput "
            "for table exceeds TableMaxReadCapacityUnits of the account in region us-east-1"
        ),
    ),
}


@pytest.mark.parametrize(("request_", "text"), QUOTAS.values(), ids=QUOTAS)
def test_units_past_the_quota_are_refused(request_: dict[str, Any], text: str) -> None:
    assert refusal(Engine.open(), "CreateTable", request_, LimitExceeded) == text


def test_an_account_has_eighty_thousand_units_per_region() -> None:
    engine = Engine.open()
    engine.call("CreateTable", provisioned("first", read=40_000))
    engine.call("CreateTable", provisioned("second", read=39_999))
    text = refusal(engine, "CreateTable", provisioned("third", read=2), LimitExceeded)
    assert text.startswith(
        "This request would have caused the ReadCapacityUnits limit to be exceeded for the "
        "account in us-east-1. Current ReadCapacityUnits reserved by the account: 79999. Limit: "
        "80000. Requested: 2."
    )
    engine.call("CreateTable", provisioned("third", read=1))
    engine.call("CreateTable", provisioned("elsewhere", read=40_000), region="eu-west-2")


def test_a_region_holds_two_thousand_five_hundred_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stator.engine.tables.account_quotas.TABLES_PER_REGION", 3)
    engine = Engine.open()
    for name in ("one", "two", "three"):
        engine.call("CreateTable", on_demand(name))
    text = "Subscriber limit exceeded: There is a limit of 3 tables per subscriber"
    assert refusal(engine, "CreateTable", on_demand("four"), LimitExceeded) == text
    # A deleted table makes room at once.
    engine.call("DeleteTable", {"TableName": "one"})
    engine.call("CreateTable", on_demand("four"))
    assert limits.TABLES_PER_REGION == 2500


def test_a_refused_table_leaves_nothing_behind(engine: Engine) -> None:
    with pytest.raises(ServiceError):
        engine.call("CreateTable", provisioned(read=40_001))
    assert engine.call("ListTables", {}) == {"TableNames": []}
    engine.call("CreateTable", provisioned())
