"""Members of table requests whose constraints AWS words or orders in its own way.

Facts: conformance.md 5, 11d, 12.
"""

from __future__ import annotations

from typing import Any

import pytest

from stator.engine import Engine

from .declare import ARN, attributes, index, keys, on_demand, refusal

FEW_UNITS = "failed to satisfy constraint: Member must have value greater than or equal to 1"
SHORT = "failed to satisfy constraint: Member must have length greater than or equal to 3"
NO_NAME = "The parameter 'TableName' is required but was not present in the request"
CLASS = (
    "Invalid table-class parameter provided. Please try again with a valid table-class value: "
    "[STANDARD, STANDARD_INFREQUENT_ACCESS]."
)


@pytest.mark.parametrize(
    "operation", ["CreateTable", "UpdateTable", "DeleteTable", "DescribeTable"]
)
def test_a_missing_name_is_reported_first(operation: str) -> None:
    assert refusal(Engine.open(), operation, {"BillingMode": "BOGUS"}) == NO_NAME


MEMBERS: dict[str, tuple[dict[str, Any], str]] = {
    "no units at all": (
        on_demand(ProvisionedThroughput={"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}),
        (
            "2 validation errors detected: Value '0' at "
            f"'provisionedThroughput.writeCapacityUnits' {FEW_UNITS}; Value '0' at "
            f"'provisionedThroughput.readCapacityUnits' {FEW_UNITS}"
        ),
    ),
    "no write units": (
        on_demand(ProvisionedThroughput={"ReadCapacityUnits": 1}),
        (
            "1 validation error detected: Value null at "
            "'provisionedThroughput.writeCapacityUnits' failed to satisfy "
            "constraint: Member must not be null"
        ),
    ),
    "short index names": (
        on_demand(
            KeySchema=keys("pk", ranges=("sk",)),
            AttributeDefinitions=attributes(pk="S", sk="S"),
            LocalSecondaryIndexes=[index("l1", keys("pk", ranges=("sk",)))],
            GlobalSecondaryIndexes=[index("g1", keys("sk"))],
        ),
        (
            "2 validation errors detected: Value 'g1' at "
            f"'globalSecondaryIndexes.1.member.indexName' {SHORT}; Value 'l1' at "
            f"'localSecondaryIndexes.1.member.indexName' {SHORT}"
        ),
    ),
    "an unknown table class": (on_demand(TableClass="GLACIER"), CLASS),
}


@pytest.mark.parametrize(("request_", "text"), MEMBERS.values(), ids=MEMBERS)
def test_members_are_refused_in_aws_order_and_words(request_: dict[str, Any], text: str) -> None:
    assert refusal(Engine.open(), "CreateTable", request_) == text


def test_an_unknown_table_class_is_refused_in_an_update(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    assert refusal(engine, "UpdateTable", {"TableName": "orders", "TableClass": "GLACIER"}) == CLASS


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ({"Key": "", "Value": "v"}, "The Tag Key provided is invalid, Key: "),
        ({"Value": "v"}, "The Tag Key provided is invalid, Key: null"),
        ({"Key": "k" * 129, "Value": "v"}, f"The Tag Key provided is invalid, Key: {'k' * 129}"),
        ({"Key": "k"}, "The Tag Value provided is invalid, Value: null"),
        (
            {"Key": "k", "Value": "v" * 257},
            f"The Tag Value provided is invalid, Value: {'v' * 257}",
        ),
    ],
)
def test_tags_out_of_bounds_have_words_of_their_own(
    engine: Engine, tag: dict[str, str], text: str
) -> None:
    assert refusal(engine, "CreateTable", on_demand(Tags=[tag])) == text
    engine.call("CreateTable", on_demand())
    assert refusal(engine, "TagResource", {"ResourceArn": f"{ARN}orders", "Tags": [tag]}) == text
