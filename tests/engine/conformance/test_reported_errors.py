"""Which of several errors in a request is reported (captured from AWS by paritysuite)."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Answers

ENVELOPE = "1 validation error detected: "
CAPACITY = (
    "Value 'BOGUS' at 'returnConsumedCapacity' failed to satisfy constraint: "
    "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
)
TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested "
    "levels beyond supported limit"
)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "leaf"}
    for _ in range(levels):
        value = {"M": {"n": value}}
    return value


def test_a_batch_of_writes_names_a_bad_table_only_when_nothing_else_is_wrong(aws: Answers) -> None:
    request: dict[str, Any] = {
        "RequestItems": {"bad!name": [{"PutRequest": {"Item": {"pk": {"S": "a"}}}}]}
    }
    assert "Map keys must satisfy constraint" in aws.refusal("BatchWriteItem", request)
    assert (
        aws.refusal("BatchWriteItem", {**request, "ReturnConsumedCapacity": "BOGUS"})
        == ENVELOPE + CAPACITY
    )


def test_a_batch_of_reads_names_it_with_the_rest(aws: Answers) -> None:
    request = {
        "RequestItems": {"bad!name": {"Keys": [{"pk": {"S": "a"}}]}},
        "ReturnConsumedCapacity": "BOGUS",
    }
    message = aws.refusal("BatchGetItem", request)
    assert message.startswith('2 validation errors detected: Value \'{"bad!name"')
    assert message.endswith(f"; {CAPACITY}")


@pytest.mark.parametrize("operation", ["BatchGetItem", "BatchWriteItem"])
def test_an_empty_batch(aws: Answers, operation: str) -> None:
    assert aws.refusal(operation, {"RequestItems": {}}) == (
        f"{ENVELOPE}Value at 'RequestItems' failed to satisfy constraint: Member must have "
        "length greater than or equal to 1"
    )


def test_a_token_that_is_too_long_is_reported_alone(aws: Answers) -> None:
    request = {
        "TransactItems": [{"Put": {"TableName": "hash", "Item": {"pk": {"S": "a"}}}}],
        "ClientRequestToken": "x" * 37,
        "ReturnConsumedCapacity": "BOGUS",
    }
    assert aws.refusal("TransactWriteItems", request) == (
        f"{ENVELOPE}Value at 'ClientRequestToken' failed to satisfy constraint: "
        "Member must have length less than or equal to 36"
    )


def test_the_operator_of_a_query_is_reported_alone_and_bare(aws: Answers) -> None:
    request = {
        "TableName": "hash",
        "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}},
        "QueryFilter": {"b": {"ComparisonOperator": "NULL"}, "c": {"ComparisonOperator": "NULL"}},
        "ConditionalOperator": "XOR",
        "Select": "BOGUS",
    }
    expected = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"
    assert aws.refusal("Query", request) == expected


@pytest.mark.parametrize("kind", ["Delete", "ConditionCheck"])
def test_an_action_of_a_transaction_has_its_expression_checked_before_its_key(
    aws: Answers, kind: str
) -> None:
    member = {"TableName": "hash", "Key": {"pk": nested(40)}, "ConditionExpression": "a = = b"}
    assert aws.refusal("TransactWriteItems", {"TransactItems": [{kind: member}]}) == (
        'Invalid ConditionExpression: Syntax error; token: "=", near: "= = b"'
    )
    member["ConditionExpression"] = "attribute_exists(a)"
    assert aws.refusal("TransactWriteItems", {"TransactItems": [{kind: member}]}) == TOO_DEEP


def test_an_earlier_action_of_a_transaction_goes_first(aws: Answers) -> None:
    deep = {"Put": {"TableName": "hash", "Item": {"pk": {"S": "a"}, "d": nested(40)}}}
    nameless = {"Put": {"TableName": "hash", "Item": {"pk": {"S": "b"}, "": {"S": "x"}}}}
    assert aws.refusal("TransactWriteItems", {"TransactItems": [deep, nameless]}) == TOO_DEEP
    assert (
        aws.refusal("TransactWriteItems", {"TransactItems": [nameless, deep]})
        == "Empty attribute name"
    )


def test_a_bad_value_in_a_starting_key_is_named_by_scan_only(aws: Answers) -> None:
    start = {"TableName": "hash", "ExclusiveStartKey": {"pk": {"NS": ["1", "1"]}}}
    query = {
        **start,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "a"}},
    }
    assert aws.refusal("Query", query) == (
        "One or more parameter values were invalid: Input collection contains duplicates."
    )
    assert aws.refusal("Scan", start).startswith("The provided starting key is invalid: ")


def test_another_accounts_table_is_denied_in_every_region(aws: Answers) -> None:
    arn = "arn:aws:dynamodb:{}:{}:table/absent"
    foreign = arn.format("ap-south-1", "111122223333")
    assert "is not authorized" in aws.refusal(
        "ListTagsOfResource", {"ResourceArn": foreign}, "AccessDeniedException"
    )
    own_elsewhere = arn.format("ap-south-1", "123456789012")
    assert "Invalid TableArn" in aws.refusal("ListTagsOfResource", {"ResourceArn": own_elsewhere})


def test_a_new_index_has_all_of_its_key_defined_in_the_request(aws: Answers) -> None:
    def created(*defined: str) -> dict[str, Any]:
        key = [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "g", "KeyType": "RANGE"},
        ]
        index = {
            "IndexName": "by-pk-g",
            "KeySchema": key,
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
        return {
            "TableName": "hash",
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": "S"} for name in defined
            ],
            "GlobalSecondaryIndexUpdates": [{"Create": index}],
        }

    assert "Some index key attributes are not defined" in aws.refusal("UpdateTable", created("g"))
    aws("UpdateTable", created("g", "pk"))
