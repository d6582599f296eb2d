"""ExportTableToPointInTime, DescribeExport and ListExports.

An export writes a table as it was at one moment, or the changes in a time window, to a bucket.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from stator.engine.operation import Operation, RequestContext
from stator.engine.recovery.arns import (
    check_arn,
    make_arn,
    new_id,
    newest_first,
    page_of,
    table_name,
)
from stator.engine.recovery.data_formats import check_available
from stator.engine.recovery.export_filter import ExportFilter
from stator.engine.recovery.exports import Export, export_description, export_summary, file_count
from stator.engine.recovery.log import ROUNDING_SECONDS, iso, start_of, to_micros
from stator.engine.recovery.tasks import Task
from stator.engine.tables.settings import without_nulls
from stator.engine.tables.table import Table
from stator.errors import (
    ExportConflict,
    ExportNotFound,
    InvalidExportTime,
    LimitExceeded,
    RecoveryUnavailable,
    ValidationFailed,
)
from stator.model.limits import CONCURRENT_EXPORTS, TASK_TOKEN_SECONDS
from stator.storage import Changes

_SHORTEST_SECONDS = 15 * 60
_LONGEST_SECONDS = 24 * 3600


def parse_export(request: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = without_nulls(request)
    incremental = options.get("ExportType") == "INCREMENTAL_EXPORT"
    if options.get("S3Prefix") == "":
        raise ValidationFailed(
            "1 validation error detected: Value '' at 's3Prefix' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1"
        )
    if not options["TableArn"].startswith("arn:"):
        raise ValidationFailed(
            f"Invalid TableArn: Invalid ResourceArn provided as input {options['TableArn']}"
        )
    if incremental != ("IncrementalExportSpecification" in options):
        raise ValidationFailed(
            "IncrementalExportSpecification must be specified if, and only if, "
            "ExportType is INCREMENTAL_EXPORT"
        )
    if incremental and "ExportTime" in options:
        raise ValidationFailed(
            "ExportTime cannot be specified when ExportType is INCREMENTAL_EXPORT"
        )
    if incremental and "ExportFromTime" not in options["IncrementalExportSpecification"]:
        raise ValidationFailed(
            "ExportFromTime must be specified when ExportType is INCREMENTAL_EXPORT"
        )
    if "S3SseKmsKeyId" in options and options.get("S3SseAlgorithm") != "KMS":
        raise ValidationFailed("S3SseKmsKeyId can only be specified when S3SseAlgorithm is KMS")
    check_available(options.get("ExportFormat"))
    ExportFilter(options.get("FilterSpecification"))
    return options


def export_table(context: RequestContext, options: dict[str, Any]) -> dict[str, Any]:
    database, recovery = context.database, context.parts.recovery
    exports = recovery.exports
    exports.forget_old()
    token = options.pop("ClientToken", None) or str(uuid4())
    again = _sent_before(context, token, options)
    if again is not None:
        return {"ExportDescription": export_description(again)}
    table = context.recovery_source(options["TableArn"])
    if table.definition.recovery is None or table.definition.status in ("CREATING", "DELETING"):
        raise RecoveryUnavailable(f"Point in time recovery is not enabled for table '{table.name}'")
    ExportFilter(options.get("FilterSpecification")).check(table.schema)
    if (
        sum(export.status == "IN_PROGRESS" for export in exports.registry.of(context.scope))
        >= CONCURRENT_EXPORTS
    ):
        raise LimitExceeded(
            f"Subscriber limit exceeded: there can be {CONCURRENT_EXPORTS} exports at a time"
        )
    changes: Changes = {}
    export = _define(context, table, token, options, database.catalog.take_number(changes))
    exports.registry.put(export, changes)
    task = _task(context, table, export)
    recovery.captures.begin(table, task, changes)
    context.write(changes)
    recovery.tasks.start(task, at_once=False)
    return {"ExportDescription": export_description(export)}


def _sent_before(context: RequestContext, token: str, options: dict[str, Any]) -> Export | None:
    """Return the export that used this token, or None.

    A token is valid until eight hours after its export ended. Raises ExportConflict if the export
    had other parameters.
    """
    now = context.database.clock.now()
    for export in context.parts.recovery.exports.registry.of(context.scope):
        if export.token == token and now - (export.ended or now) < TASK_TOKEN_SECONDS:
            if export.options != options:
                raise ExportConflict("Duplicate request detected with conflicting parameters")
            return export
    return None


def _define(
    context: RequestContext, table: Table, token: str, options: dict[str, Any], number: int
) -> Export:
    definition, now = table.definition, context.database.clock.now()
    export = Export(
        number=number,
        arn=make_arn(table.arn, "export", new_id(now)),
        table_arn=table.arn,
        table_id=definition.table_id,
        token=token,
        options=options,
        key_schema=definition.key_schema,
        attributes=definition.attributes,
        file_count=file_count(
            table.counts.size_bytes, definition.billing_mode == "PAY_PER_REQUEST"
        ),
        started=now,
        moment=float(options.get("ExportTime", now)),
    )
    earliest = context.parts.recovery.earliest(definition)
    if (specification := options.get("IncrementalExportSpecification")) is not None:
        export.window = _window(specification, earliest, now)
        export.view = specification.get("ExportViewType", "NEW_AND_OLD_IMAGES")
    elif not int(earliest) <= export.moment <= now + ROUNDING_SECONDS:
        raise InvalidExportTime(f"The export time must be between {iso(earliest)} and {iso(now)}")
    return export


def _window(specification: dict[str, Any], earliest: float, now: float) -> tuple[float, float]:
    start = float(specification["ExportFromTime"])
    end = float(specification.get("ExportToTime", int(now)))
    if not int(earliest) <= start or not end <= now + ROUNDING_SECONDS:
        raise InvalidExportTime(f"The export period must be between {iso(earliest)} and {iso(now)}")
    if end - start < _SHORTEST_SECONDS:
        raise InvalidExportTime(
            "Difference between export period from time and export period to time is "
            "less than 15 minutes"
        )
    if end - start > _LONGEST_SECONDS:
        raise InvalidExportTime(
            "Difference between export period from time and export period to time is "
            "greater than 24 hours"
        )
    return start, end


def _task(context: RequestContext, table: Table, export: Export) -> Task:
    if export.window is not None:
        start, end = (start_of(to_micros(moment)).hex() for moment in export.window)
        return Task(
            export.number,
            ["begin export", "gather", "write export", "drop"],
            {"gather_from": start, "gather_to": end},
        )
    facts = context.parts.recovery.captures.undo_facts(table, to_micros(export.moment))
    return Task(
        export.number,
        ["begin export", "copy", "count", "undo", "write export", "drop"],
        dict(facts),
    )


def parse_arn(request: dict[str, Any]) -> str:
    return str(request["ExportArn"])


def describe_export(context: RequestContext, arn: str) -> dict[str, Any]:
    check_arn(arn, "export", context.scope)
    export = context.parts.recovery.exports.registry.find(arn)
    if export is None:
        raise ExportNotFound(f"Export not found: {arn}")
    return {"ExportDescription": export_description(export)}


def parse_list(request: dict[str, Any]) -> dict[str, Any]:
    return request


def list_exports(context: RequestContext, request: dict[str, Any]) -> dict[str, Any]:
    """List the exports of the last 90 days, of one table or of all, newest first for each table.

    Exports of a deleted table can be described, but a list of this table's exports is empty.
    ScyllaDB's test suite recorded this order and this rule on AWS.
    """
    exports = context.parts.recovery.exports
    exports.forget_old()
    matches = exports.registry.of(context.scope)
    if (table_arn := request.get("TableArn")) is not None:
        context.parts.lifecycle.settle_all()
        table = context.database.catalog.find(context.scope, table_name(table_arn))
        matches = [
            export
            for export in matches
            if table is not None and export.table_id == table.definition.table_id
        ]
    page, token = page_of(
        matches, request.get("MaxResults"), request.get("NextToken"), newest_first
    )
    response: dict[str, Any] = {"ExportSummaries": [export_summary(export) for export in page]}
    return response if token is None else response | {"NextToken": token}


OPERATIONS = (
    Operation("ExportTableToPointInTime", parse_export, export_table),
    Operation("DescribeExport", parse_arn, describe_export),
    Operation("ListExports", parse_list, list_exports),
)
