"""What the export operations say about an export. As on AWS, what the request did not name is not named back."""

from __future__ import annotations

from typing import Any

from stator.engine.recovery.exports import Export

_ECHOED = (
    "S3Bucket",
    "S3BucketOwner",
    "S3Prefix",
    "S3SseKmsKeyId",
    "ExportType",
    "FilterSpecification",
)


def describe(export: Export) -> dict[str, Any]:
    options = export.options
    shown: dict[str, Any] = {
        "ExportArn": export.arn,
        "ExportStatus": export.status,
        "StartTime": round(export.started, 3),
        "TableArn": export.table_arn,
        "TableId": export.table_id,
        "ClientToken": export.token,
        "S3SseAlgorithm": options.get("S3SseAlgorithm") or "AES256",
        "ExportFormat": export.format,
        **{member: options[member] for member in _ECHOED if member in options},
    }
    if export.window is None:
        shown["ExportTime"] = round(export.moment, 3)
    else:
        start, end = export.window
        shown["IncrementalExportSpecification"] = {
            "ExportFromTime": start,
            "ExportToTime": end,
            "ExportViewType": export.view,
        }
    if export.ended is not None:
        shown["EndTime"] = round(export.ended, 3)
    if export.failure is not None:
        shown["FailureCode"], shown["FailureMessage"] = export.failure
    if export.status == "COMPLETED":
        shown |= {
            "ExportManifest": export.key("manifest-summary.json"),
            "BilledSizeBytes": export.size_bytes,
            "ItemCount": export.item_count,
        }
    return shown


def summary(export: Export) -> dict[str, Any]:
    return {
        "ExportArn": export.arn,
        "ExportStatus": export.status,
        "ExportType": "INCREMENTAL_EXPORT" if export.is_incremental else "FULL_EXPORT",
    }
