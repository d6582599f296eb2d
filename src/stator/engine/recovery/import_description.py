"""What the import operations say about an import."""

from __future__ import annotations

from typing import Any

from stator.engine.recovery.imports import Import

_ECHOED = ("S3BucketSource", "InputFormat", "InputFormatOptions", "InputCompressionType", "TableCreationParameters")


def describe(running: Import) -> dict[str, Any]:
    shown = {
        **summary(running),
        "TableId": running.table_id,
        "ClientToken": running.token,
        "ErrorCount": running.errors,
        "InputCompressionType": "NONE",
        **{member: running.options[member] for member in _ECHOED if member in running.options},
        "ProcessedSizeBytes": running.size_bytes,
        "ProcessedItemCount": running.processed,
        "ImportedItemCount": running.imported,
    }
    if running.failure is not None:
        shown["FailureCode"], shown["FailureMessage"] = running.failure
    return shown


def summary(running: Import) -> dict[str, Any]:
    region, account = running.arn.split(":")[3:5]
    shown = {
        "ImportArn": running.arn,
        "ImportStatus": running.status,
        "TableArn": running.table_arn,
        "S3BucketSource": running.options["S3BucketSource"],
        "CloudWatchLogGroupArn": f"arn:aws:logs:{region}:{account}:log-group:/aws-dynamodb/imports:*",
        "InputFormat": running.options["InputFormat"],
        "StartTime": round(running.started, 3),
    }
    if running.ended is not None:
        shown["EndTime"] = round(running.ended, 3)
    return shown
