"""Answers to requests that are nearly right, as AWS or, where noted, DynamoDB Local words them."""

from __future__ import annotations

from typing import Any

import pytest

import stator.errors
from stator.engine import Engine
from stator.errors import ServiceError, UnknownOperation, ValidationFailed
from stator.model.service import service_model

from ...fuzz.world import TABLE, item

MUSIC: dict[str, Any] = {"TableName": "music"}
KEY = {"pk": {"S": "p"}, "sk": {"N": "1"}}
EQUAL = {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]}


@pytest.fixture
def engine() -> Any:
    with Engine.open() as engine:
        engine.call("CreateTable", TABLE)
        engine.call("PutItem", {**MUSIC, "Item": item("p", 1)})
        yield engine


def refusal(engine: Engine, operation: str, request: dict[str, Any]) -> str:
    with pytest.raises(ValidationFailed) as caught:
        engine.call(operation, request)
    return caught.value.message


def test_a_segment_past_the_last_is_named(engine: Engine) -> None:
    # dynalite's tests, which run on AWS.
    assert refusal(engine, "Scan", {**MUSIC, "Segment": 3, "TotalSegments": 2}) == (
        "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
        "Segment: 3 is not less than TotalSegments: 2"
    )


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"Select": "SPECIFIC_ATTRIBUTES"},
            (
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
                "SPECIFIC_ATTRIBUTES"
            ),
        ),
        (
            {"Select": "ALL_PROJECTED_ATTRIBUTES"},
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
        ),
        (
            {"Select": "COUNT", "AttributesToGet": ["n"]},
            "Cannot specify the AttributesToGet when choosing to get only the Count",
        ),
    ],
)
def test_select_is_checked_by_query_in_an_envelope_and_by_scan_without(
    engine: Engine, more: dict[str, Any], text: str
) -> None:
    assert refusal(engine, "Scan", {**MUSIC, **more}) == text
    query = {**MUSIC, "KeyConditions": {"pk": EQUAL}, **more}
    assert refusal(engine, "Query", query) == f"1 validation error detected: {text}"


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("UpdateItem", {"Key": KEY, "AttributeUpdates": {"": {"Value": {"S": "x"}}}}),
        ("UpdateItem", {"Key": KEY, "AttributeUpdates": {"": {"Action": "DELETE"}}}),
        ("UpdateItem", {"Key": KEY, "Expected": {"": {"Exists": False}}}),
        ("PutItem", {"Item": item("p", 1), "Expected": {"": {"Exists": False}}}),
        ("DeleteItem", {"Key": KEY, "Expected": {"": {"Value": {"S": "x"}}}}),
        ("GetItem", {"Key": KEY, "AttributesToGet": [""]}),
        ("Scan", {"ScanFilter": {"": {"ComparisonOperator": "NULL"}}}),
        ("Scan", {"AttributesToGet": ["n", ""]}),
        ("Query", {"KeyConditions": {"": EQUAL}}),
        (
            "Query",
            {"KeyConditions": {"pk": EQUAL}, "QueryFilter": {"": {"ComparisonOperator": "NULL"}}},
        ),
    ],
)
def test_an_empty_name_in_a_legacy_parameter_is_refused(
    engine: Engine, operation: str, request_: dict[str, Any]
) -> None:
    text = refusal(engine, operation, {**MUSIC, **request_})
    assert text.removeprefix("1 validation error detected: ") == "Empty attribute name"


@pytest.mark.parametrize(
    ("condition", "missing"),
    [
        ("g = :a", "h"),
        ("g = :a AND h > :n", "h"),
        ("begins_with(g, :a) AND h = :n", "g"),
        ("pk = :a AND sk = :n", "g, h"),
    ],
)
def test_every_partition_attribute_of_a_wide_index_takes_an_equality(
    engine: Engine, condition: str, missing: str
) -> None:
    values = {":a": {"S": "g1"}, ":n": {"N": "1"}}
    request = {
        **MUSIC,
        "IndexName": "wide",
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {
            name: value for name, value in values.items() if name in condition
        },
    }
    assert refusal(engine, "Query", request) == (
        f"HASH key attributes {missing} must have equality conditions specified in the query"
    )


INVALID_START = "The provided starting key is invalid"
MISMATCH = "The provided key element does not match the schema"
EMPTY_KEY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
    "contain an empty string value. Key: pk"
)


@pytest.mark.parametrize(
    ("start", "text"),
    [
        ({"pk": {"S": "p"}}, f"{INVALID_START}: {MISMATCH}"),
        ({"sk": {"N": "1"}}, f"{INVALID_START}: {MISMATCH}"),
        ({**KEY, "more": {"S": "x"}}, INVALID_START),
        ({"pk": {"S": ""}, "sk": {"N": "1"}}, f"{INVALID_START}: {EMPTY_KEY}"),
    ],
)
def test_the_starting_key_of_a_scan(engine: Engine, start: dict[str, Any], text: str) -> None:
    assert refusal(engine, "Scan", {**MUSIC, "ExclusiveStartKey": start}) == text


def test_children_of_no_shard_are_refused(engine: Engine) -> None:
    [stream] = engine.call("ListStreams", {})["Streams"]
    request = {"StreamArn": stream["StreamArn"], "ShardFilter": {"Type": "CHILD_SHARDS"}}
    assert "'shardFilter.shardId' failed to satisfy constraint: Member must not be null" in refusal(
        engine, "DescribeStream", request
    )


def test_an_operation_of_aws_that_is_missing_here_is_named(engine: Engine) -> None:
    with pytest.raises(UnknownOperation) as caught:
        engine.call("UpdateGlobalTable", {})
    assert caught.value.message == "Stator does not support the operation UpdateGlobalTable."
    with pytest.raises(UnknownOperation) as caught:
        engine.call("Nonsense", {})
    assert caught.value.message == ""


def test_errors_spell_message_as_the_service_model_does() -> None:
    for service in ("dynamodb", "dynamodbstreams"):
        shapes = service_model(service).shapes
        for name in vars(stator.errors):
            error = getattr(stator.errors, name)
            if not (isinstance(error, type) and issubclass(error, ServiceError)):
                continue
            members = shapes.get(error.code, {}).get("members", {})
            spelt = [member for member in members if member.lower() == "message"]
            if spelt:
                assert error.message_member == spelt[0], error.code
