"""Requests that AWS still answers in its words from before 2026 (captured by paritysuite)."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Answers

NO_KEY = "Value null at 'key' failed to satisfy constraint: Member must not be null"
NO_NAME = (
    "Value '' at 'tableName' failed to satisfy constraint: Member must have length "
    "greater than or equal to 1"
)
OLD_RETURN_VALUES = (
    "Value '{}' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value "
    "set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
)
OLD_XOR = (
    "Value 'XOR' at 'conditionalOperator' failed to satisfy constraint: Member must "
    "satisfy enum value set: [OR, AND]"
)
NEW_XOR = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "leaf"}
    for _ in range(levels):
        value = {"M": {"n": value}}
    return value


@pytest.mark.parametrize(
    ("levels", "expected"), [(40, NEW_XOR), (62, NEW_XOR), (63, OLD_XOR), (100, OLD_XOR)]
)
def test_a_value_of_63_levels_brings_the_old_words_back(
    aws: Answers, levels: int, expected: str
) -> None:
    request = {
        "TableName": "nowhere",
        "Item": {"pk": {"S": "a"}},
        "Expected": {"a": {"Value": nested(levels)}, "b": {"Exists": False}},
        "ConditionalOperator": "XOR",
    }
    assert aws.refusal("PutItem", request) == f"1 validation error detected: {expected}"


def test_return_values_of_a_delete_with_a_deep_key(aws: Answers) -> None:
    request = {"TableName": "nowhere", "Key": {"pk": nested(100)}, "ReturnValues": "BOGUS"}
    expected = f"1 validation error detected: {OLD_RETURN_VALUES.format('BOGUS')}"
    assert aws.refusal("DeleteItem", request) == expected


def test_the_return_values_error_of_a_deep_delete_has_no_envelope(aws: Answers) -> None:
    request = {
        "TableName": "nowhere",
        "Key": {"pk": {"S": "a"}},
        "ConditionExpression": "d = :deep",
        "ExpressionAttributeValues": {":deep": nested(100)},
        "ReturnValues": "UPDATED_NEW",
    }
    assert aws.refusal("DeleteItem", request) == "ReturnValues can only be ALL_OLD or NONE"


def test_an_update_without_a_key_lists_all_violations(aws: Answers) -> None:
    request = {"TableName": "", "ReturnConsumedCapacity": "INVALID", "ReturnValues": "INVALID"}
    capacity = (
        "Value 'INVALID' at 'returnConsumedCapacity' failed to satisfy constraint: "
        "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
    )
    expected = "; ".join([capacity, NO_NAME, OLD_RETURN_VALUES.format("INVALID"), NO_KEY])
    assert aws.refusal("UpdateItem", request) == f"4 validation errors detected: {expected}"


def test_an_update_with_a_key_stops_at_the_first(aws: Answers) -> None:
    request = {
        "TableName": "hash",
        "Key": {},
        "ReturnConsumedCapacity": "INVALID",
        "ReturnValues": "INVALID",
    }
    assert aws.refusal("UpdateItem", request) == (
        "1 validation error detected: Failed to satisfy constraint: Member must satisfy enum "
        "value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
    )


def test_an_operator_in_an_update_without_a_key_stands_before_the_key(aws: Answers) -> None:
    request = {
        "TableName": "hash",
        "AttributeUpdates": {"x": {"Action": "PUT", "Value": {"S": "1"}}},
        "Expected": {"a": {"Exists": False}, "b": {"Exists": False}},
        "ConditionalOperator": "XOR",
    }
    assert (
        aws.refusal("UpdateItem", request) == f"2 validation errors detected: {OLD_XOR}; {NO_KEY}"
    )
