"""What the import operations say about an import.

Until it ends its counts are zero and it has no size, however far it has got (measured on AWS by ScyllaDB's test suite).
"""

from __future__ import annotations

from typing import Any

from stator.engine.recovery.imports import Import

_ECHOED = (
    "S3BucketSource",
    "InputFormat",
    "InputFormatOptions",
    "InputCompressionType",
    "TableCreationParameters",
)


def describe(running: Import) -> dict[str, Any]:
    has_ended = running.ended is not None
    shown = {
        **summary(running),
        "TableId": running.table_id,
        "ClientToken": running.token,
        "ErrorCount": running.errors if has_ended else 0,
        "InputCompressionType": "NONE",
        **{member: running.options[member] for member in _ECHOED if member in running.options},
        "ProcessedItemCount": running.processed if has_ended else 0,
        "ImportedItemCount": running.imported if has_ended else 0,
    }
    if has_ended and running.size_bytes:
        shown["ProcessedSizeBytes"] = running.size_bytes
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
