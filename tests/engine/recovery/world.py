"""A table ``orders`` with two indexes, and helpers to write it, copy it and compare the result."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ServiceError
from stator.model.values import item_size

START = 1_791_489_600.0
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/"
CREATE: dict[str, Any] = {
    "TableName": "orders",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
        {"AttributeName": "g", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-g",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "by-pk-g",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "g", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}
Item = dict[str, Any]
Items = dict[tuple[str, str], Item]


def item(pk: str, sk: int, **more: Any) -> Item:
    return {"pk": {"S": pk}, "sk": {"N": str(sk)}, **more}


@dataclass
class World:
    engine: Engine
    clock: VirtualClock
    bucket: Path

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        return self.engine.call(operation, request)

    def refused(self, operation: str, error: type[ServiceError], **request: Any) -> str:
        with pytest.raises(error) as caught:
            self.call(operation, **request)
        assert type(caught.value) is error
        return caught.value.message

    def settle(self) -> None:
        self.engine.recovery.wait()

    # -- items

    def create(self, **changes: Any) -> None:
        self.call("CreateTable", **CREATE | changes)

    def put(self, *items: Item) -> None:
        for each in items:
            self.call("PutItem", TableName="orders", Item=each)

    def delete(self, pk: str, sk: int) -> None:
        self.call("DeleteItem", TableName="orders", Key=item(pk, sk))

    def items(self, table: str = "orders", index: str | None = None) -> Items:
        request: dict[str, Any] = {"TableName": table} | (
            {} if index is None else {"IndexName": index}
        )
        found: Items = {}
        while True:
            page = self.call("Scan", **request)
            found |= {(each["pk"]["S"], each["sk"]["N"]): each for each in page["Items"]}
            if "LastEvaluatedKey" not in page:
                return found
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def check_whole(self, table: str, expected: Items) -> None:
        """Check a table's items, the entries of its indexes, and the counts of DescribeTable."""
        assert self.items(table) == expected
        described = self.call("DescribeTable", TableName=table)["Table"]
        assert described["TableStatus"] == "ACTIVE"
        assert (described["ItemCount"], described["TableSizeBytes"]) == (
            len(expected),
            sum(map(item_size, expected.values())),
        )
        keyed = {key: each for key, each in expected.items() if "g" in each}
        keys_only = {
            key: {name: each[name] for name in ("pk", "sk", "g")} for key, each in keyed.items()
        }
        for member, index, entries in (
            ("GlobalSecondaryIndexes", "by-g", keys_only),
            ("LocalSecondaryIndexes", "by-pk-g", keyed),
        ):
            assert self.items(table, index) == entries
            [shown] = described[member]
            assert shown["ItemCount"] == len(entries)
            assert shown["IndexSizeBytes"] == sum(map(item_size, entries.values()))

    # -- backups

    def back_up(self, name: str = "nightly", table: str = "orders") -> str:
        arn: str = self.call("CreateBackup", TableName=table, BackupName=name)["BackupDetails"][
            "BackupArn"
        ]
        return arn

    def restore(self, arn: str, target: str, **overrides: Any) -> dict[str, Any]:
        answer = self.call(
            "RestoreTableFromBackup", BackupArn=arn, TargetTableName=target, **overrides
        )
        self.settle()
        described: dict[str, Any] = answer["TableDescription"]
        return described

    def enable(self, table: str = "orders", **more: Any) -> None:
        specification = {"PointInTimeRecoveryEnabled": True, **more}
        self.call(
            "UpdateContinuousBackups",
            TableName=table,
            PointInTimeRecoverySpecification=specification,
        )

    def restore_to(self, moment: float, target: str, **overrides: Any) -> dict[str, Any]:
        answer = self.call(
            "RestoreTableToPointInTime",
            SourceTableName="orders",
            TargetTableName=target,
            RestoreDateTime=moment,
            **overrides,
        )
        self.settle()
        described: dict[str, Any] = answer["TableDescription"]
        return described

    # -- exports

    def export(self, **options: Any) -> dict[str, Any]:
        """Export, wait, and give the description."""
        started = self.call(
            "ExportTableToPointInTime", TableArn=ARN + "orders", S3Bucket="exports", **options
        )
        self.settle()
        arn = started["ExportDescription"]["ExportArn"]
        described: dict[str, Any] = self.call("DescribeExport", ExportArn=arn)["ExportDescription"]
        return described

    def export_changes(
        self, start: float, end: float | None = None, **options: Any
    ) -> dict[str, Any]:
        window = {"ExportFromTime": start} | ({} if end is None else {"ExportToTime": end})
        if "ExportViewType" in options:
            window["ExportViewType"] = options.pop("ExportViewType")
        return self.export(
            ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=window, **options
        )

    def files(self, export: dict[str, Any]) -> list[tuple[dict[str, Any], bytes]]:
        """What the manifest says of each data file, and the file's content."""
        summary = json.loads((self.bucket / export["ExportManifest"]).read_bytes())
        listed = (self.bucket / summary["manifestFilesS3Key"]).read_text().splitlines()
        entries = [json.loads(line) for line in listed]
        return [(entry, (self.bucket / entry["dataFileS3Key"]).read_bytes()) for entry in entries]

    def lines(self, export: dict[str, Any]) -> list[dict[str, Any]]:
        content = b"".join(gzip.decompress(file) for _, file in self.files(export))
        return [json.loads(line) for line in content.splitlines()]

    def exported(self, export: dict[str, Any]) -> Items:
        found = [line["Item"] for line in self.lines(export)]
        assert len(found) == export["ItemCount"]
        return {(each["pk"]["S"], each["sk"]["N"]): each for each in found}
