"""Imports: create a new table from files in a bucket.

The table is CREATING until the last object is read. A step puts a chunk of items into the table
together with the import's progress, in one batch. After a crash, the object is read again, and the
items already in the table are skipped. Items that DynamoDB would refuse are counted, logged and
left out. The import then ends as FAILED, with all other items in the table, as on AWS. If several
items have the same key, the last one wins.

ScyllaDB's test suite (test/alternator/test_import.py, 2026) recorded three rules on AWS. A prefix
without objects creates an empty table. Reported sizes are uncompressed. An object is not read
beyond a line without an item.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from stator.engine.database import Database
from stator.engine.items import records
from stator.engine.items.actions import ItemPut
from stator.engine.items.write_path import Mutation, Writer
from stator.engine.recovery.capture import CHUNK_BYTES, CHUNK_ITEMS
from stator.engine.recovery.data_formats import (
    ImportedItem,
    InputFormat,
    ObjectContent,
    read_items,
)
from stator.engine.recovery.objects import ObjectStore, ObjectStoreError
from stator.engine.recovery.registry import Registry
from stator.engine.recovery.restores import Restores
from stator.engine.recovery.tasks import INTERNAL_FAILURE, Task, Tasks
from stator.engine.tables.table import Table
from stator.errors import DataDamaged, ServiceError
from stator.model.limits import IMPORT_OBJECTS
from stator.storage import Changes

LISTED_SECONDS = 90 * 86_400
_LOGGED_ERRORS = 10_000
# Members of a request that a description repeats.
_ECHOED = (
    "S3BucketSource",
    "InputFormat",
    "InputFormatOptions",
    "InputCompressionType",
    "TableCreationParameters",
)
_FAILED_MESSAGE = (
    "Some of the items failed validation checks and were not imported. Please check CloudWatch "
    "error logs for more details."
)
_ITEMS_FAILED = ("ItemValidationError", _FAILED_MESSAGE)

_log = logging.getLogger("stator.imports")


@dataclass(slots=True)
class Import:
    """One import. ``options`` are the members of its request."""

    number: int
    arn: str
    table_arn: str
    table_id: str
    token: str
    options: dict[str, Any]
    started: float
    status: str = "IN_PROGRESS"
    ended: float | None = None
    failure: tuple[str, str] | None = None
    errors: int = 0
    size_bytes: int = 0
    processed: int = 0
    imported: int = 0
    has_read: bool = False

    @property
    def input_format(self) -> InputFormat:
        options, csv = self.options, self.options.get("InputFormatOptions", {}).get("Csv", {})
        attributes = options["TableCreationParameters"]["AttributeDefinitions"]
        headers = csv.get("HeaderList")
        return InputFormat(
            options["InputFormat"],
            options.get("InputCompressionType", "NONE"),
            csv.get("Delimiter", ","),
            None if headers is None else tuple(headers),
            tuple((each["AttributeName"], each["AttributeType"]) for each in attributes),
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in an import's objects, and the item read just before it.

    ``key`` is the key of the object. ``read`` is the item, or None at the end of the object.
    """

    object_at: int
    item_at: int
    key: str
    read: ImportedItem | None
    size_bytes: int = 0


class Imports:
    def __init__(
        self, database: Database, tasks: Tasks, restores: Restores, buckets: ObjectStore
    ) -> None:
        self._database = database
        self._tasks = tasks
        self._restores = restores
        self._buckets = buckets
        self._readers: dict[int, Iterator[_Place]] = {}
        self.registry: Registry[Import] = Registry(
            database.storage, b"i", lambda data: Import(**data)
        )

    def forget_old(self) -> None:
        """Remove imports that ended more than 90 days ago, which AWS does not list either."""
        self.registry.forget_ended(
            self._database.storage, self._database.clock.now() - LISTED_SECONDS
        )

    def read(self, task: Task) -> None:
        """Put the next chunk of items into the table."""
        running = self.registry.numbered(task.number)
        try:
            if task.number not in self._readers:
                object_at, item_at = task.cursor or (0, 0)
                self._readers[task.number] = self._places(running, (object_at, item_at))
            chunk = _chunk(self._readers[task.number])
        except ObjectStoreError as error:
            self._end(task, running, (error.code, str(error)))
            return
        if chunk:
            self._put(task, running, chunk)
        else:
            self._end(task, running, _ITEMS_FAILED if running.errors else None)

    def end_failed(self, task: Task) -> bool:
        """Mark a task's import as FAILED after an unexpected error.

        Returns False if the task has no import in progress.
        """
        running = self.registry.restored(task.number)
        if running is None or running.status != "IN_PROGRESS":
            return False
        self._end(task, running, INTERNAL_FAILURE)
        return True

    def _places(self, running: Import, start: tuple[int, int]) -> Iterator[_Place]:
        """Yield a place for each item of each object, and one for each object's end.

        ``start`` says how many objects, and how many items of the next object, to skip.
        """
        for object_at, key in enumerate(self._objects(running)):
            if object_at >= start[0]:
                skip = start[1] if object_at == start[0] else 0
                yield from self._object(running, object_at, key, skip)

    def _objects(self, running: Import) -> list[str]:
        source = running.options["S3BucketSource"]
        prefix = source.get("S3KeyPrefix", "")
        found = [
            key
            for key, _ in self._buckets.keys(
                source["S3Bucket"], prefix, owner=source.get("S3BucketOwner")
            )
            if not key.endswith("/")
        ]
        if len(found) > IMPORT_OBJECTS:
            raise ObjectStoreError(
                "S3TooManyObjects",
                f"An import can read at most {IMPORT_OBJECTS} objects, but {len(found)} have the "
                f"prefix {prefix!r}",
            )
        return found

    def _object(self, running: Import, object_at: int, key: str, skip: int) -> Iterator[_Place]:
        source = running.options["S3BucketSource"]
        chosen = running.input_format
        at = 0
        with self._buckets.open(source["S3Bucket"], key, owner=source.get("S3BucketOwner")) as file:
            content = ObjectContent(file, chosen.compression)
            try:
                for at, read in enumerate(read_items(content, chosen), 1):
                    if at > skip:
                        yield _Place(object_at, at, key, read)
            except (DataDamaged, OSError) as error:
                if at >= skip:
                    reason = error.message if isinstance(error, DataDamaged) else str(error)
                    problem = f"The rest of the object cannot be read: {reason}"
                    yield _Place(object_at, at + 1, key, ImportedItem(None, problem=problem))
        yield _Place(object_at + 1, 0, key, None, content.size_bytes)

    # -- writing

    def _put(self, task: Task, running: Import, chunk: list[_Place]) -> None:
        with self._database.lock:
            table = self._restores.table_numbered(task.facts["target"])
            items: dict[bytes, tuple[Any, int]] = {}
            for place in chunk:
                if place.read is None:
                    running.size_bytes += place.size_bytes
                    running.has_read = True
                else:
                    running.processed += 1
                    self._take(running, table, place, place.read, items)
            writer = Writer()
            for key, (item, size) in items.items():
                old = self._database.storage.get(key)
                writer.add(
                    Mutation(
                        table, key, old, None if old is None else records.unpack(old), item, size
                    )
                )
            changes = writer.finish()
            task.cursor = [chunk[-1].object_at, chunk[-1].item_at]
            self.registry.put(running, changes)
            self._tasks.save(task, changes)
            self._database.storage.write(changes)

    def _take(
        self,
        running: Import,
        table: Table,
        place: _Place,
        read: ImportedItem,
        items: dict[bytes, tuple[Any, int]],
    ) -> None:
        if read.item is None:
            self._refuse(running, place, read.problem or "")
            return
        try:
            key = ItemPut(table.name, read.item, read.size, None).locate(table)
        except ServiceError as error:
            self._refuse(running, place, error.message)
            return
        items[key] = (read.item, read.size)
        running.imported += 1

    def _refuse(self, running: Import, place: _Place, problem: str) -> None:
        """Count a refused item, and log the line that AWS would write to CloudWatch."""
        running.errors += 1
        if running.errors <= _LOGGED_ERRORS:
            pointer = {
                "bucket": running.options["S3BucketSource"]["S3Bucket"],
                "key": place.key,
                "itemIndex": place.item_at - 1,
            }
            line = {"itemS3Pointer": pointer, "importArn": running.arn, "errorMessages": [problem]}
            _log.warning("%s", orjson.dumps(line).decode())

    def _end(self, task: Task, running: Import, failure: tuple[str, str] | None) -> None:
        self._readers.pop(task.number, None)
        with self._database.lock:
            running.status = "COMPLETED" if failure is None else "FAILED"
            running.ended, running.failure = self._database.clock.now(), failure
            table = self._restores.table_numbered(task.facts["target"])
            changes: Changes = {}
            if failure is not None and running.processed == 0:
                # Nothing was read, so there is no table to keep.
                self._database.catalog.remove(table, changes)
            else:
                self._restores.finish_table(table, changes)
            self.registry.put(running, changes)
            self._tasks.advance(task, changes)
            self._database.storage.write(changes)


def _chunk(places: Iterator[_Place]) -> list[_Place]:
    chunk: list[_Place] = []
    size = 0
    for place in places:
        chunk.append(place)
        size += 0 if place.read is None else place.read.size
        if len(chunk) >= CHUNK_ITEMS or size >= CHUNK_BYTES:
            break
    return chunk


# -- descriptions


def import_description(running: Import) -> dict[str, Any]:
    has_ended = running.ended is not None
    shown = {
        **import_summary(running),
        "TableId": running.table_id,
        "ClientToken": running.token,
        "ErrorCount": running.errors if has_ended else 0,
        "InputCompressionType": "NONE",
        **{member: running.options[member] for member in _ECHOED if member in running.options},
        "ProcessedItemCount": running.processed if has_ended else 0,
        "ImportedItemCount": running.imported if has_ended else 0,
    }
    # Absent until something was read, and then it may be 0 (measured on AWS by ScyllaDB's suite).
    # Imports of earlier versions did not record whether they had read anything.
    if has_ended and (running.has_read or running.size_bytes):
        shown["ProcessedSizeBytes"] = running.size_bytes
    if running.failure is not None:
        shown["FailureCode"], shown["FailureMessage"] = running.failure
    return shown


def import_summary(running: Import) -> dict[str, Any]:
    region, account = running.arn.split(":")[3:5]
    shown = {
        "ImportArn": running.arn,
        "ImportStatus": running.status,
        "TableArn": running.table_arn,
        "S3BucketSource": running.options["S3BucketSource"],
        "CloudWatchLogGroupArn": (
            f"arn:aws:logs:{region}:{account}:log-group:/aws-dynamodb/imports:*"
        ),
        "InputFormat": running.options["InputFormat"],
        "StartTime": round(running.started, 3),
    }
    if running.ended is not None:
        shown["EndTime"] = round(running.ended, 3)
    return shown
