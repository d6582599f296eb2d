"""Exports: a table at one moment, or the changes in a time window, as files in AWS's layout.

    <prefix>/AWSDynamoDB/<id>/_started                      empty: proves that writing is allowed
    <prefix>/AWSDynamoDB/<id>/data/<random>.json.gz         items, one to a line
    <prefix>/AWSDynamoDB/<id>/manifest-files.json, .md5     a line for each data file
    <prefix>/AWSDynamoDB/<id>/manifest-summary.json, .md5   the export itself; written last

Data files of incremental exports are in ``AWSDynamoDB/data/``. Every file holds the items of one
range of hashed keys and may be empty. A step writes one file from an area (see the package's
docstring) and holds the engine's lock only while it reads. A file that a crash interrupted is
written again under another name. Only files in the manifest belong to the export.
"""

from __future__ import annotations

import gzip
import secrets
from base64 import b32encode, b64encode
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from hashlib import md5
from io import BytesIO
from typing import Any

import orjson

from stator.engine import keyspace
from stator.engine.database import Database
from stator.engine.items import records
from stator.engine.recovery.capture import CHUNK_BYTES, CHUNK_ITEMS, Captures, unpack_change
from stator.engine.recovery.data_formats import change_line, item_writer
from stator.engine.recovery.export_filter import ExportFilter
from stator.engine.recovery.log import iso
from stator.engine.recovery.objects import Encryption, ObjectStore, ObjectStoreError
from stator.engine.recovery.registry import Registry
from stator.engine.recovery.tasks import DAMAGED, INTERNAL_FAILURE, Task, Tasks
from stator.engine.tables.key_schema import KeySchema
from stator.engine.tables.table import read_schema
from stator.errors import StorageCorrupt
from stator.formats.dynamodb_json import encoded_item_line
from stator.model.values import Item
from stator.storage import Changes
from stator.storage.protocol import after_prefix

LISTED_SECONDS = 90 * 86_400
_FILE_BYTES = 32 * 1024 * 1024
# Members of a request that a description repeats.
_ECHOED = (
    "S3Bucket",
    "S3BucketOwner",
    "S3Prefix",
    "S3SseKmsKeyId",
    "ExportType",
    "FilterSpecification",
)


@dataclass(slots=True)
class Export:
    """One export.

    ``options`` are the members of its request; ``files`` are the manifest's lines.
    """

    number: int
    arn: str
    table_arn: str
    table_id: str
    token: str
    options: dict[str, Any]
    key_schema: list[dict[str, str]]
    attributes: dict[str, str]
    file_count: int
    started: float
    moment: float
    window: tuple[float, float] | None = None
    view: str = "NEW_AND_OLD_IMAGES"
    status: str = "IN_PROGRESS"
    ended: float | None = None
    failure: tuple[str, str] | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    item_count: int = 0
    size_bytes: int = 0

    @property
    def identity(self) -> str:
        return self.arn.rpartition("/")[2]

    @property
    def format(self) -> str:
        return str(self.options.get("ExportFormat") or "DYNAMODB_JSON")

    @property
    def is_incremental(self) -> bool:
        return self.window is not None

    def key(self, name: str) -> str:
        """Return the key of one of the export's objects."""
        return f"{self._root()}{self.identity}/{name}"

    def data_key(self) -> str:
        ending = "ion" if self.format == "ION" else "json"
        name = f"data/{b32encode(secrets.token_bytes(16)).decode().rstrip('=').lower()}.{ending}.gz"
        return self._root() + name if self.is_incremental else self.key(name)

    def _root(self) -> str:
        prefix = (self.options.get("S3Prefix") or "").rstrip("/")
        return f"{prefix}/AWSDynamoDB/" if prefix else "AWSDynamoDB/"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Exports:
    def __init__(
        self, database: Database, tasks: Tasks, captures: Captures, buckets: ObjectStore
    ) -> None:
        self._database = database
        self._tasks = tasks
        self._captures = captures
        self._buckets = buckets
        self.registry: Registry[Export] = Registry(
            database.storage, b"x", lambda data: Export(**data)
        )

    def forget_old(self) -> None:
        """Remove exports that ended more than 90 days ago, which AWS does not list either."""
        self.registry.forget_ended(
            self._database.storage, self._database.clock.now() - LISTED_SECONDS
        )

    # -- stages

    def begin(self, task: Task) -> None:
        export = self.registry.numbered(task.number)
        try:
            self._put(export, export.key("_started"), b"")
        except ObjectStoreError as error:
            self._fail(task, export, error)
            return
        with self._database.lock:
            changes: Changes = {}
            self._tasks.advance(task, changes)
            self._database.storage.write(changes)

    def write(self, task: Task) -> None:
        """Write the next data file. After the last data file, write the manifests."""
        export = self.registry.numbered(task.number)
        at = len(export.files)
        try:
            if at < export.file_count:
                self._write_file(task, export, at)
            else:
                self._finish(task, export)
        except ObjectStoreError as error:
            self._fail(task, export, error)

    def _write_file(self, task: Task, export: Export, at: int) -> None:
        buffer = BytesIO()
        count = size = 0
        with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0, compresslevel=5) as file:
            for line, bytes_read in self._lines(task, export, at):
                size += bytes_read
                if line is not None:
                    file.write(line)
                    count += 1
        content, key = buffer.getvalue(), export.data_key()
        etag = self._put(export, key, content)
        with self._database.lock:
            export.files.append(
                {
                    "itemCount": count,
                    "md5Checksum": _checksum(content),
                    "etag": etag,
                    "dataFileS3Key": key,
                }
            )
            export.item_count += count
            export.size_bytes += size
            self._save(task, export)

    def _finish(self, task: Task, export: Export) -> None:
        ended = self._database.clock.now()
        manifest = b"".join(orjson.dumps(file) + b"\n" for file in export.files)
        summary = orjson.dumps(_manifest_summary(export, ended))
        for name, content in (("manifest-files", manifest), ("manifest-summary", summary)):
            self._put(export, export.key(f"{name}.md5"), _checksum(content).encode())
            self._put(export, export.key(f"{name}.json"), content)
        with self._database.lock:
            export.status, export.ended = "COMPLETED", ended
            changes: Changes = {}
            self.registry.put(export, changes)
            self._tasks.advance(task, changes)
            self._database.storage.write(changes)

    def fail_damaged(self, task: Task, error: StorageCorrupt) -> bool:
        """Mark a task's export as FAILED because its table's data is damaged.

        Returns False if the task has no export in progress.
        """
        export = next((each for each in self.registry.all() if each.number == task.number), None)
        if export is None or export.status != "IN_PROGRESS":
            return False
        self._fail(task, export, ObjectStoreError(*DAMAGED))
        return True

    def end_failed(self, task: Task) -> bool:
        """Mark a task's export as FAILED after an unexpected error.

        Returns False if the task has no export in progress.
        """
        export = self.registry.restored(task.number)
        if export is None or export.status != "IN_PROGRESS":
            return False
        self._fail(task, export, ObjectStoreError(*INTERNAL_FAILURE))
        return True

    def _fail(self, task: Task, export: Export, error: ObjectStoreError) -> None:
        with self._database.lock:
            export.status, export.ended = "FAILED", self._database.clock.now()
            export.failure = (error.code, str(error))
            changes: Changes = {}
            self.registry.put(export, changes)
            self._captures.give_up(task, changes)
            self._database.storage.write(changes)

    def _save(self, task: Task, export: Export) -> None:
        changes: Changes = {}
        self.registry.put(export, changes)
        self._tasks.save(task, changes)
        self._database.storage.write(changes)

    def _put(self, export: Export, key: str, content: bytes) -> str:
        options = export.options
        encryption = Encryption(options.get("S3SseAlgorithm"), options.get("S3SseKmsKeyId"))
        return self._buckets.put(
            options["S3Bucket"],
            key,
            content,
            owner=options.get("S3BucketOwner"),
            encryption=encryption,
        )

    # -- contents of the files

    def _lines(self, task: Task, export: Export, at: int) -> Iterator[tuple[bytes | None, int]]:
        """Yield the lines of data file number ``at``, each with the size of its item in bytes.

        The line is None if the filter leaves the item out. AWS bills the item's size all the same.
        """
        area = keyspace.area_prefix(task.number)
        chosen = ExportFilter(export.options.get("FilterSpecification"))
        schema = read_schema(export.key_schema, export.attributes)
        line = item_writer(export.format)
        as_stored = (
            chosen.keeps_all and export.format == "DYNAMODB_JSON" and not export.is_incremental
        )
        for value in self._values(area, chosen, schema, at, export.file_count):
            if not value:
                continue
            if as_stored:
                yield encoded_item_line(value[records.HEADER_BYTES :]), records.size_of(value)
            elif export.is_incremental:
                yield _change(export, chosen, schema, value)
            else:
                item = records.unpack(value)
                yield (
                    line(chosen.projected(item)) if chosen.matches(item) else None,
                    records.size_of(value),
                )

    def _values(
        self, area: bytes, chosen: ExportFilter, schema: KeySchema, at: int, total: int
    ) -> Iterator[bytes]:
        """Yield the records in one of the ``total`` ranges of hashed keys that divide an area.

        ``at`` is the number of the range. Records outside the key condition of ``chosen`` are
        skipped. The lock is held only while a chunk is read.
        """
        span = chosen.span(schema, area)
        low, high = keyspace.segment_bounds(area, at, total)
        position, end = max(low, span.low), min(high, span.high, after_prefix(area))
        while position < end:
            chunk: list[bytes] = []
            size = 0
            with self._database.lock:
                for key, value in self._database.storage.scan(position, end):
                    if len(chunk) == CHUNK_ITEMS or size >= CHUNK_BYTES:
                        position = key
                        break
                    chunk.append(value)
                    size += len(value)
                else:
                    position = end
            yield from chunk


def file_count(size_bytes: int, on_demand: bool) -> int:
    """Return how many data files an export has.

    AWS writes one file per partition, and an on-demand table starts with four partitions. This
    engine writes one file per 32 MB of data instead, and at least four for an on-demand table.
    """
    return max(4 if on_demand else 1, -(-size_bytes // _FILE_BYTES))


def _change(
    export: Export, chosen: ExportFilter, schema: KeySchema, value: bytes
) -> tuple[bytes | None, int]:
    """Return a line of an incremental export, and the size of its images in bytes.

    The line is None for an item that was both created and deleted in the window, and for an item
    that the filter leaves out.
    """
    old_record, new_record, micros = unpack_change(value)
    size = sum(records.size_of(record) for record in (old_record, new_record) if record is not None)
    old, new = (
        None if record is None else records.unpack(record) for record in (old_record, new_record)
    )
    images = [image for image in (new, old) if image is not None]
    if not any(chosen.matches(image) for image in images):
        return None, size
    keys: Item = {name: images[0][name] for name in schema.names}
    shown = [None if image is None else chosen.projected(image) for image in (old, new)]
    if export.view == "NEW_IMAGE":
        shown[0] = None
    return change_line(export.format, keys, shown[0], shown[1], micros), size


def _manifest_summary(export: Export, ended: float) -> dict[str, Any]:
    options = export.options
    if export.window is None:
        when: dict[str, Any] = {"exportTime": iso(export.moment)}
    else:
        when = {"exportFromTime": iso(export.window[0]), "exportToTime": iso(export.window[1])}
    summary = {
        "version": "2023-08-01" if export.is_incremental else "2020-06-30",
        "exportArn": export.arn,
        "startTime": iso(export.started),
        "endTime": iso(ended),
        "tableArn": export.table_arn,
        "tableId": export.table_id,
        **when,
        "s3Bucket": options["S3Bucket"],
        "s3Prefix": options.get("S3Prefix"),
        "s3SseAlgorithm": options.get("S3SseAlgorithm") or "AES256",
        "s3SseKmsKeyId": options.get("S3SseKmsKeyId"),
        "manifestFilesS3Key": export.key("manifest-files.json"),
        "billedSizeBytes": export.size_bytes,
        "itemCount": export.item_count,
        "outputFormat": export.format,
    }
    if export.is_incremental:
        summary |= {"outputView": export.view, "exportType": "INCREMENTAL_EXPORT"}
    return summary


def _checksum(content: bytes) -> str:
    return b64encode(md5(content, usedforsecurity=False).digest()).decode()


# -- descriptions


def export_description(export: Export) -> dict[str, Any]:
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


def export_summary(export: Export) -> dict[str, Any]:
    return {
        "ExportArn": export.arn,
        "ExportStatus": export.status,
        "ExportType": "INCREMENTAL_EXPORT" if export.is_incremental else "FULL_EXPORT",
    }
