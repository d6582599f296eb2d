"""Requests that succeed in the fuzzer's world, several for each operation."""

from __future__ import annotations

from typing import Any

from .world import PLAIN, TABLE, import_request, item

Requests = dict[str, list[dict[str, Any]]]

_KEY = {"pk": {"S": "p"}, "sk": {"N": "1"}}
_OTHER = {"pk": {"S": "q"}, "sk": {"N": "2"}}
_LEGACY = {"AttributeValueList": [{"S": "p"}], "ComparisonOperator": "EQ"}
_SELECT = "SELECT pk, m.n FROM music WHERE pk = ? AND sk BETWEEN 0 AND ?"
_UPDATE = "UPDATE music SET n = n + ? SET m.z = 'x' WHERE pk = 'p' AND sk = 1 RETURNING ALL NEW *"
_INSERT = "INSERT INTO plain VALUE {'id': ?, 'v': [1, {'k': <<1, 2>>}]}"
_DELETE = "DELETE FROM music WHERE pk = 'q' AND sk = 2 AND attribute_exists(n) RETURNING ALL OLD *"


def valid_requests(names: dict[str, str]) -> Requests:
    return {**_items(), **_statements(names), **_tables(), **_arns(names), **_copies(names)}


def _items() -> Requests:
    music = {"TableName": "music"}
    counted = {"ReturnConsumedCapacity": "INDEXES", "ReturnItemCollectionMetrics": "SIZE"}
    condition = {
        "ConditionExpression": "attribute_exists(#n) AND (size(a) > :one OR NOT g IN (:text))",
        "ExpressionAttributeNames": {"#n": "n"},
        "ExpressionAttributeValues": {":one": {"N": "1"}, ":text": {"S": "x"}},
    }
    update = {
        "UpdateExpression": "SET m.n = m.n + :one, a[0] = if_not_exists(zz, :text), "
        "b = list_append(:list, :list) REMOVE a[1] ADD #n :one DELETE t :set",
        "ConditionExpression": "begins_with(g, :g) AND #n BETWEEN :zero AND :many",
        "ExpressionAttributeNames": {"#n": "n"},
        "ExpressionAttributeValues": {
            ":one": {"N": "1"},
            ":zero": {"N": "0"},
            ":many": {"N": "1000000"},
            ":text": {"S": "x"},
            ":g": {"S": "g"},
            ":list": {"L": [{"NULL": True}]},
            ":set": {"NS": ["9"]},
        },
    }
    query = {
        "KeyConditionExpression": "pk = :p AND sk BETWEEN :low AND :high",
        "FilterExpression": "contains(#m.s, :a) AND attribute_type(n, :kind)",
        "ProjectionExpression": "pk, #m.n, a[2].deep",
        "ExpressionAttributeNames": {"#m": "m"},
        "ExpressionAttributeValues": {
            ":p": {"S": "p"},
            ":low": {"N": "0"},
            ":high": {"N": "9"},
            ":a": {"S": "a"},
            ":kind": {"S": "N"},
        },
        "ExclusiveStartKey": {"pk": {"S": "p"}, "sk": {"N": "0"}},
        "ScanIndexForward": True,
        "Limit": 2,
    }
    wide = {
        "IndexName": "wide",
        "KeyConditionExpression": "g = :g AND h = :h AND begins_with(pk, :p)",
        "ExpressionAttributeValues": {":g": {"S": "g1"}, ":h": {"N": "1"}, ":p": {"S": "p"}},
    }
    return {
        "GetItem": [
            {
                **music,
                "Key": _KEY,
                "ConsistentRead": True,
                "ProjectionExpression": "#a[0], m.s",
                "ExpressionAttributeNames": {"#a": "a"},
                "ReturnConsumedCapacity": "TOTAL",
            },
            {**music, "Key": _KEY, "AttributesToGet": ["a", "n"]},
        ],
        "PutItem": [
            {**music, "Item": item("p", 1), "ReturnValues": "ALL_OLD", **counted, **condition},
            {
                **music,
                "Item": item("r", 1),
                "Expected": {"n": {"Exists": False}, "z": {"ComparisonOperator": "NULL"}},
                "ConditionalOperator": "AND",
            },
        ],
        "UpdateItem": [
            {**music, "Key": _KEY, "ReturnValues": "UPDATED_NEW", **counted, **update},
            {
                **music,
                "Key": _OTHER,
                "AttributeUpdates": {
                    "n": {"Value": {"N": "1"}, "Action": "ADD"},
                    "b": {"Value": {"S": "x"}, "Action": "PUT"},
                    "c": {"Action": "DELETE"},
                },
                "Expected": {"n": {"ComparisonOperator": "GE", "AttributeValueList": [{"N": "0"}]}},
            },
        ],
        "DeleteItem": [
            {
                **music,
                "Key": _OTHER,
                "ReturnValues": "ALL_OLD",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                **counted,
                **condition,
            }
        ],
        "Query": [
            {**music, "ConsistentRead": True, "ReturnConsumedCapacity": "INDEXES", **query},
            {**music, **wide, "Select": "ALL_PROJECTED_ATTRIBUTES"},
            {
                **music,
                "KeyConditions": {"pk": _LEGACY},
                "QueryFilter": {
                    "n": {"ComparisonOperator": "GT", "AttributeValueList": [{"N": "0"}]}
                },
                "AttributesToGet": ["n"],
            },
            {
                **music,
                "IndexName": "local",
                "KeyConditionExpression": "pk = :p AND l = :l",
                "ExpressionAttributeValues": {":p": {"S": "p"}, ":l": {"B": "AA=="}},
                "ExclusiveStartKey": {**_KEY, "l": {"B": "AA=="}},
                "Select": "COUNT",
            },
        ],
        "Scan": [
            {
                **music,
                "Segment": 0,
                "TotalSegments": 2,
                "Limit": 3,
                "FilterExpression": "n > :n",
                "ExpressionAttributeValues": {":n": {"N": "0"}},
                "ReturnConsumedCapacity": "TOTAL",
            },
            {
                **music,
                "IndexName": "global",
                "ScanFilter": {"n": {"ComparisonOperator": "NOT_NULL"}},
                "ExclusiveStartKey": {**_KEY, "g": {"S": "g1"}},
            },
        ],
        "BatchGetItem": [
            {
                "RequestItems": {
                    "music": {
                        "Keys": [_KEY, _OTHER],
                        "ProjectionExpression": "#n",
                        "ExpressionAttributeNames": {"#n": "n"},
                        "ConsistentRead": True,
                    },
                    "plain": {"Keys": [{"id": {"S": "one"}}]},
                },
                "ReturnConsumedCapacity": "INDEXES",
            },
            {"RequestItems": {"music": {"Keys": [_KEY], "AttributesToGet": ["n"]}}},
        ],
        "BatchWriteItem": [
            {
                "RequestItems": {
                    "music": [
                        {"PutRequest": {"Item": item("w", 1)}},
                        {"DeleteRequest": {"Key": _OTHER}},
                    ],
                    "plain": [{"PutRequest": {"Item": {"id": {"S": "b"}}}}],
                },
                **counted,
            }
        ],
        "TransactGetItems": [
            {
                "TransactItems": [
                    {
                        "Get": {
                            **music,
                            "Key": _KEY,
                            "ProjectionExpression": "#n",
                            "ExpressionAttributeNames": {"#n": "n"},
                        }
                    },
                    {"Get": {"TableName": "plain", "Key": {"id": {"S": "one"}}}},
                ],
                "ReturnConsumedCapacity": "TOTAL",
            }
        ],
        "TransactWriteItems": [
            {
                "TransactItems": [
                    {"Put": {**music, "Item": item("x", 1)}},
                    {"Update": {**music, "Key": _KEY, **update}},
                    {
                        "Delete": {
                            "TableName": "plain",
                            "Key": {"id": {"S": "gone"}},
                            "ConditionExpression": "attribute_not_exists(id)",
                        }
                    },
                    {
                        "ConditionCheck": {
                            "TableName": "plain",
                            "Key": {"id": {"S": "one"}},
                            "ConditionExpression": "n = :n",
                            "ExpressionAttributeValues": {":n": {"N": "1"}},
                            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                        }
                    },
                ],
                "ClientRequestToken": "token-1",
                **counted,
            }
        ],
    }


def _statements(names: dict[str, str]) -> Requests:
    return {
        "ExecuteStatement": [
            {
                "Statement": _SELECT,
                "Parameters": [{"S": "p"}, {"N": "5"}],
                "ConsistentRead": True,
                "Limit": 3,
                "ReturnConsumedCapacity": "TOTAL",
            },
            {"Statement": "SELECT * FROM music", "Limit": 2, "NextToken": names["next_token"]},
            {"Statement": _UPDATE, "Parameters": [{"N": "1"}]},
            {"Statement": _INSERT, "Parameters": [{"S": "new"}]},
            {"Statement": _DELETE, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"},
            {"Statement": 'SELECT * FROM "music"."global" WHERE g = \'g1\' ORDER BY sk DESC'},
        ],
        "BatchExecuteStatement": [
            {
                "Statements": [
                    {
                        "Statement": "SELECT * FROM plain WHERE id = ?",
                        "Parameters": [{"S": "one"}],
                        "ConsistentRead": True,
                    },
                    {"Statement": "SELECT n FROM music WHERE pk = 'p' AND sk = 1"},
                ],
                "ReturnConsumedCapacity": "INDEXES",
            },
            {
                "Statements": [
                    {"Statement": _INSERT, "Parameters": [{"S": "batched"}]},
                    {"Statement": _UPDATE, "Parameters": [{"N": "2"}]},
                ]
            },
        ],
        "ExecuteTransaction": [
            {
                "TransactStatements": [
                    {"Statement": _UPDATE.partition(" RETURNING")[0], "Parameters": [{"N": "2"}]},
                    {"Statement": "EXISTS(SELECT * FROM plain WHERE id = 'one' AND n = 1)"},
                ],
                "ClientRequestToken": "token-2",
                "ReturnConsumedCapacity": "TOTAL",
            }
        ],
    }


def _tables() -> Requests:
    music = {"TableName": "music"}
    return {
        "CreateTable": [
            {
                **TABLE,
                "TableName": "second",
                "DeletionProtectionEnabled": True,
                "TableClass": "STANDARD",
                "Tags": [{"Key": "k", "Value": "v"}],
                "OnDemandThroughput": {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 10},
                "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000},
                "SSESpecification": {"Enabled": False},
            },
            {**PLAIN, "TableName": "third"},
        ],
        "DescribeTable": [music],
        "DescribeContributorInsights": [music],
        "ListContributorInsights": [{}, {**music, "MaxResults": 1}],
        "UpdateContributorInsights": [
            {
                **music,
                "ContributorInsightsAction": "ENABLE",
                "ContributorInsightsMode": "THROTTLED_KEYS",
            },
        ],
        "ListTables": [{}, {"Limit": 1, "ExclusiveStartTableName": "aaa"}],
        "DeleteTable": [{"TableName": "plain"}],
        "UpdateTable": [
            {
                **music,
                "AttributeDefinitions": [{"AttributeName": "new", "AttributeType": "S"}],
                "GlobalSecondaryIndexUpdates": [
                    {
                        "Create": {
                            "IndexName": "added",
                            "KeySchema": [{"AttributeName": "new", "KeyType": "HASH"}],
                            "Projection": {"ProjectionType": "KEYS_ONLY"},
                        }
                    }
                ],
            },
            {**music, "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "global"}}]},
            {
                "TableName": "plain",
                "BillingMode": "PROVISIONED",
                "ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 7},
            },
            {"TableName": "plain", "DeletionProtectionEnabled": True},
            {**music, "StreamSpecification": {"StreamEnabled": False}},
            {**music, "OnDemandThroughput": {"MaxReadRequestUnits": 100}},
            {
                **music,
                "WarmThroughput": {"ReadUnitsPerSecond": 20000, "WriteUnitsPerSecond": 8000},
            },
        ],
        "DescribeTimeToLive": [music],
        "UpdateTimeToLive": [
            {
                "TableName": "plain",
                "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"},
            }
        ],
        "DescribeLimits": [{}],
        "DescribeEndpoints": [{}],
    }


def _arns(names: dict[str, str]) -> Requests:
    arn = {"ResourceArn": names["table_arn"]}
    stream = {"StreamArn": names["stream"]}
    shard = {**stream, "ShardId": names["shard"]}
    return {
        "TagResource": [{**arn, "Tags": [{"Key": "k", "Value": "v"}]}],
        "UntagResource": [{**arn, "TagKeys": ["team"]}],
        "ListTagsOfResource": [arn],
        "DescribeStream": [
            {**stream, "Limit": 10},
            {**stream, "ExclusiveStartShardId": names["shard"]},
            {**stream, "ShardFilter": {"Type": "CHILD_SHARDS", "ShardId": names["shard"]}},
        ],
        "ListStreams": [
            {},
            {"TableName": "music", "Limit": 5},
            {"ExclusiveStartStreamArn": names["stream"]},
        ],
        "GetShardIterator": [
            {**shard, "ShardIteratorType": "TRIM_HORIZON"},
            {
                **shard,
                "ShardIteratorType": "AT_SEQUENCE_NUMBER",
                "SequenceNumber": names["sequence"],
            },
        ],
        "GetRecords": [{"ShardIterator": names["iterator"], "Limit": 5}],
    }


def _copies(names: dict[str, str]) -> Requests:
    backup = {"BackupArn": names["backup"]}
    arn = {"TableArn": names["table_arn"]}
    overrides = {
        "BillingModeOverride": "PROVISIONED",
        "ProvisionedThroughputOverride": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 3},
        "GlobalSecondaryIndexOverride": [],
        "LocalSecondaryIndexOverride": [],
    }
    return {
        "CreateBackup": [{"TableName": "music", "BackupName": "again"}],
        "DescribeBackup": [backup],
        "ListBackups": [
            {},
            {
                "TableName": "music",
                "Limit": 5,
                "TimeRangeLowerBound": 1,
                "TimeRangeUpperBound": 4_000_000_000,
                "BackupType": "ALL",
            },
            {"ExclusiveStartBackupArn": names["backup"]},
        ],
        "DeleteBackup": [backup],
        "RestoreTableFromBackup": [{**backup, "TargetTableName": "restored", **overrides}],
        "DescribeContinuousBackups": [{"TableName": "music"}],
        "UpdateContinuousBackups": [
            {
                "TableName": "plain",
                "PointInTimeRecoverySpecification": {
                    "PointInTimeRecoveryEnabled": True,
                    "RecoveryPeriodInDays": 7,
                },
            }
        ],
        "RestoreTableToPointInTime": [
            {
                "SourceTableName": "music",
                "TargetTableName": "earlier",
                "UseLatestRestorableTime": True,
                **overrides,
            }
        ],
        "ExportTableToPointInTime": [
            {
                **arn,
                "S3Bucket": "bucket",
                "S3Prefix": "out",
                "ExportFormat": "ION",
                "S3SseAlgorithm": "AES256",
                "ClientToken": "token-3",
            }
        ],
        "DescribeExport": [{"ExportArn": names["export"]}],
        "ListExports": [
            {},
            {**arn, "MaxResults": 1},
            {"MaxResults": 1, "NextToken": names["next_export"]},
        ],
        "ImportTable": [import_request("more")],
        "DescribeImport": [{"ImportArn": names["import"]}],
        "ListImports": [{}, {"PageSize": 1, "NextToken": names["next_import"]}],
    }
