"""Rules beyond the service model: the order, names and texts of AWS's errors for bad requests."""

from __future__ import annotations

import re

from stator.model.values import INVALID

# AWS lists violations in this order. Members not named here follow, in the model's order.
ORDER = {
    "CreateTable": (
        "AttributeDefinitions",
        "TableName",
        "BillingMode",
        "ProvisionedThroughput",
        "KeySchema",
        "GlobalSecondaryIndexes",
        "LocalSecondaryIndexes",
    ),
    "PutItem": (
        "ReturnConsumedCapacity",
        "TableName",
        "Item",
        "ConditionalOperator",
        "Expected",
        "ReturnValues",
    ),
    "DeleteItem": (
        "ReturnConsumedCapacity",
        "TableName",
        "Key",
        "ConditionalOperator",
        "Expected",
        "ReturnValues",
    ),
    "UpdateItem": (
        "ReturnValues",
        "ReturnConsumedCapacity",
        "TableName",
        "ReturnItemCollectionMetrics",
        "Key",
        "ConditionalOperator",
        "Expected",
        "AttributeUpdates",
    ),
    "GetItem": ("ReturnConsumedCapacity", "AttributesToGet", "TableName", "Key"),
    "Query": (
        "Limit",
        "ReturnConsumedCapacity",
        "AttributesToGet",
        "QueryFilter",
        "Select",
        "ConditionalOperator",
        "KeyConditions",
        "TableName",
        "IndexName",
    ),
    "Scan": (
        "Limit",
        "ReturnConsumedCapacity",
        "AttributesToGet",
        "Segment",
        "Select",
        "ScanFilter",
        "ConditionalOperator",
        "TotalSegments",
        "TableName",
        "IndexName",
    ),
}

# The order of UpdateItem in its older form (see ``_older_form``); captured from AWS by the
# paritysuite conformance suite.
OLDER_ORDER = {
    "UpdateItem": (
        "ReturnConsumedCapacity",
        "TableName",
        "ReturnValues",
        "ReturnItemCollectionMetrics",
        "ConditionalOperator",
        "Expected",
        "AttributeUpdates",
        "Key",
    ),
}

# The order inside structures.
INNER_ORDER = {"ProvisionedThroughput": ("WriteCapacityUnits", "ReadCapacityUnits")}

# Shapes whose constraints AWS checks later, with other texts. The operations check them.
LATER = frozenset({"AttributeName", "Tag", "TagKeyString", "TagValueString", "TableClass"})

# Operations on whole tables report a missing name before anything else.
ON_TABLES = frozenset({"CreateTable", "UpdateTable", "DeleteTable", "DescribeTable"})

# Operations whose length and range violations read "Value at 'Limit' failed ..." since 2026.
REWORDED = frozenset(
    {
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "GetItem",
        "Query",
        "Scan",
        "BatchGetItem",
        "TransactWriteItems",
        "TransactGetItems",
    }
)
# Requests of these operations are answered in the older form if they nest this deep or deeper.
OLDER_FORM_LEVELS = 63
LEVELLED = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
# Operations that also have the new text for a value that an enum does not allow.
NEW_ENUMS = frozenset({"PutItem", "UpdateItem", "DeleteItem", "Query"})
ENUM_ORDER = {
    "ReturnConsumedCapacity": "INDEXES, TOTAL, NONE",
    "ReturnItemCollectionMetrics": "SIZE, NONE",
    "ReturnValue": "ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD, NONE",
    "Select": "SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES",
    "ConditionalOperator": "OR, AND",
    "ComparisonOperator": "IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, NOT_NULL, NE, LE, "
    "BEGINS_WITH, GE, CONTAINS",
    "KeyType": "HASH, RANGE",
    "ScalarAttributeType": "B, N, S",
    "ProjectionType": "ALL, INCLUDE, KEYS_ONLY",
    "BillingMode": "PROVISIONED, PAY_PER_REQUEST",
    "AttributeAction": "ADD, PUT, DELETE",
}
# A null in one of these maps and lists has a text of its own, as DynamoDB Local gives it. Other
# maps and lists report ``Member must not be null``.
NULL_TEXTS = {
    "AttributeNameList": "Empty attribute name",
    "BatchGetRequestMap": "The list of keys in RequestItems for BatchGetItem is required: "
    "{key} has empty list",
    "BatchWriteItemRequestMap": "The batch write request list for a table cannot be null or "
    "empty: {key}",
    "ExpectedAttributeMap": f"{INVALID}ExpectedAttributeValue must not be null for Attribute: "
    "{key}",
    "ExpressionAttributeNameMap": "ExpressionAttributeNames contains invalid value: null for key "
    "{key}",
    "FilterConditionMap": "The filter condition for an attribute cannot be null: {key}",
    "KeyConditions": "The filter condition for an attribute cannot be null: {key}",
    "WriteRequests": "The batch write request list for a table cannot be null or empty",
}
NAME_PATTERN = "[a-zA-Z0-9_.-]+"
TABLE_KEYS = (
    "Map keys must satisfy constraint: [Member must have length less than or equal to 255, "
    "Member must have length greater than or equal to 3, Member must satisfy regular expression "
    f"pattern: {NAME_PATTERN}]"
)
NAME = re.compile(NAME_PATTERN)


def is_table_key(key: str) -> bool:
    """Whether a key in a batch request can be a table name."""
    return key.startswith("arn:") or (3 <= len(key) <= 255 and NAME.fullmatch(key) is not None)
