"""``ParquetSink``: changes as Parquet files in a folder or in S3, limited in size and age.

The problem: a checkpoint says that everything before it is delivered, but a good Parquet file is
larger than a batch. A buffer in memory would be lost with its worker. A batch is therefore first
*staged* as a small file of its own, and staged files are *merged* into large ones:

    staged/shardId-0001.../1000...10-1000...42-5c0a1f22...-8211.jsonl.gz
    data/entity=Order/date=2026-11-16/000000000007.parquet
    manifests/2026-11-16/000000000007.json

A staged file is one batch, written before its checkpoint. A data file is the result of a merge. A
manifest says what that merge read, which shards and sequence numbers it covers, and what it wrote.

Invariants:

- The name of a staged file is derived from its content, so no file ever overwrites another.
- Each change is merged once. After a crash a batch may be staged again, whole or in other pieces. A
  merge keeps one row per event id. It compares the files it reads with each other, and with earlier
  merges of the last two days whose manifests cover an overlapping range.
- One merge runs at a time, among all workers. A conditional write in the design's own table
  *claims* it, with its number and the files it reads:

    PK  SINK#going-out#archive   SK  PARQUET     version, pending ({number, inputs, at} as JSON)

The merge writes the data files, then the manifest, deletes the staged files, and releases the
claim. Each file appears whole or not at all.

Failure and recovery: a worker that dies during a merge leaves its claim. Another worker repeats the
merge from the same inputs, under the same names. A reader of ``data/`` therefore sees each change
at most once at any moment. ``read_changes`` also reads the staged files, and sees each exactly
once.

A row has the fields of the entity after the change (before it, for a REMOVE) as columns. Further
columns are ``_id``, ``_kind``, ``_table``, ``_entity``, ``_key``, ``_sequence``, ``_time``,
``_expired`` and, as JSON text, ``_old``. The dictionary that a ``transform`` returns takes the
place of the fields.

A merge is due when ``target_bytes`` are staged, or ``roll_seconds`` after the last one. The sink
checks after each batch, and every few seconds while a stream is silent, as long as a worker holds
one of its shards. ``db.run(sink.merge(db.context, group))`` merges at once, for example before
shutdown.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Unpack

import orjson

from stator.coordination.position import sequence_text
from stator.errors import BlobMissing, ConfigurationError, StatorError
from stator.formats.extras import pyarrow
from stator.formats.plain import plain_item
from stator.model.seconds import check_seconds
from stator.model.values import Item
from stator.patterns.plain_values import encode_plain
from stator.pipeline.sinks.change_sink import Message, SinkOptions
from stator.pipeline.sinks.events import event_id, json_encoded, time_text
from stator.pipeline.sinks.parquet_merge import (
    DATA,
    EXTENSION,
    STAGED,
    ParquetMerger,
    log,
    staged_rows,
    store_errors,
)
from stator.pipeline.sinks.sink import Refusal, Sink
from stator.pipeline.workers.handlers.change import Change, entity_of
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope
from stator.tables.blobs.stores import BlobStore, open_store
from stator.tables.context import Context
from stator.tables.work import Work


class ParquetSink(Sink):
    """Writes changes as Parquet files to a folder or to S3."""

    view = "NEW_IMAGE"

    def __init__(
        self,
        name: str,
        place: BlobStore | str | os.PathLike[str],
        *,
        target_bytes: int = 64 << 20,
        roll_seconds: float = 300.0,
        **options: Unpack[SinkOptions],
    ) -> None:
        """Create the sink. ``place`` is a folder or ``s3://bucket/prefix``.

        No other sink may use the same place. ``target_bytes`` is the size of the rows of one file,
        measured before they become columns. Smaller amounts are merged ``roll_seconds`` after the
        last merge.
        """
        super().__init__(name, options)
        if options.get("images", "plain") != "plain":
            raise ConfigurationError(
                f"sink {name!r} takes no images=: it writes the fields of plain images as columns",
                hint="leave out images=",
            )
        check_seconds(f"sink {name}", or_zero=True, roll_seconds=roll_seconds)
        if target_bytes < 1:
            raise ConfigurationError(
                f"target_bytes={target_bytes} is out of range", hint="use 1 or more"
            )
        pyarrow()  # fail now, not after the first batch was staged
        self._store = _open_place(place)
        self._merger = ParquetMerger(self._store, name)
        self._target_bytes = target_bytes
        self._roll_seconds = roll_seconds
        self._lock = threading.Lock()
        # What this process has staged since its last merge. The merge itself finds the files of
        # other workers.
        self._staged_bytes = 0
        self._staged_since: float | None = None

    def deliver(
        self, messages: Sequence[Message], scope: HandlerScope
    ) -> Work[list[HandlerFailure]]:
        failures = yield from super().deliver(messages, scope)
        try:
            yield from self.attend(scope)
        except StatorError as error:  # the staged changes are safe; a later merge takes them
            log.warning("%s could not merge its staged files: %s", self.name, error)
        return failures

    def attend(self, scope: HandlerScope, position: str = "") -> Work[None]:
        """Merge the staged files if a merge is due, and finish a merge that a dead worker left."""
        if self._is_due(scope.context.now()):
            yield from self.merge(scope.context, scope.group)

    def send(self, messages: Sequence[Message]) -> Sequence[Refusal] | None:
        name = staged_name(messages)
        lines = b"\n".join(message.body for message in messages)
        with store_errors():
            self._store.put(name, gzip.compress(lines, 1, mtime=0))
        with self._lock:
            self._staged_bytes += len(lines)
        return None

    def _is_due(self, now: float) -> bool:
        with self._lock:
            if self._staged_since is None:
                self._staged_since = now
            return (
                self._staged_bytes >= self._target_bytes
                or now - self._staged_since >= self._roll_seconds
            )

    def merge(self, context: Context, group: str) -> Work[int]:
        """Merge the staged files into Parquet files now, unless another worker is merging them.

        ``group`` is the name of the app. Returns the number of merged changes.
        """
        with self._lock:
            self._staged_bytes, self._staged_since = 0, None
        return (yield from self._merger.run(context, group, self._target_bytes))

    # -- rows

    def _body(self, change: Change[Any], context: Context) -> bytes | None:
        record = change.record
        of = entity_of(record, context)
        fields: Item
        if self._transform is not None:
            row = self._transformed(change)
            if row is None:
                return None
            fields = {str(name): _value(value) for name, value in row.items()}
        elif of is None:
            fields = dict(record.image)
        else:
            item = (
                of.codec.encode(change.new or change.old) if of.large else of.current(record.image)
            )
            fields = {name: item[name] for name in of.fields if name in item}
        return orjson.dumps({**fields, **_about(change)})


def _about(change: Change[Any]) -> Item:
    record = change.record
    about: Item = {
        "_id": {"S": event_id(record)},
        "_kind": {"S": record.kind},
        "_table": {"S": record.table},
        "_entity": {"S": change.entity or ""},
        "_key": {"S": json_encoded(plain_item(record.keys)).decode()},
        "_sequence": {"S": record.sequence},
        "_time": {"S": time_text(record.at)},
        "_expired": {"BOOL": change.expired},
    }
    if record.old is not None:
        about["_old"] = {"S": json_encoded(plain_item(record.old)).decode()}
    return about


def _value(value: Any) -> Any:
    return encode_plain(Decimal(repr(value)) if isinstance(value, float) else value)


def staged_name(messages: Sequence[Message]) -> str:
    first, last = messages[0].record, messages[-1].record
    ids = "".join(message.event_id for message in messages)
    digest = hashlib.sha256(ids.encode()).hexdigest()[:16]
    span = f"{sequence_text(first.sequence)}-{sequence_text(last.sequence)}"
    size = sum(len(message.body) for message in messages)
    return f"{STAGED}/{first.shard or 'none'}/{span}-{digest}-{size}{EXTENSION}"


def read_changes(place: BlobStore | str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield every change that a ParquetSink has written, once, as a dictionary.

    ``place`` is the place of the sink. Staged changes come first, then merged changes.
    """
    store = _open_place(place)
    seen: set[str] = set()
    # Staged files first: a concurrent merge moves rows from staged to data files, never back.
    for name in [key for key, _ in store.keys(f"{STAGED}/")]:
        try:
            rows = staged_rows(store, name)
        except BlobMissing:
            continue
        for row in rows:
            if row["_id"]["S"] not in seen:
                seen.add(row["_id"]["S"])
                yield orjson.loads(json_encoded(plain_item(row)))
    parquet = pyarrow("pyarrow.parquet")
    for name in [key for key, _ in store.keys(f"{DATA}/")]:
        for row in parquet.read_table(pyarrow().BufferReader(store.get(name))).to_pylist():
            if row["_id"] not in seen:
                seen.add(row["_id"])
                yield {column: value for column, value in row.items() if value is not None}


def _open_place(place: BlobStore | str | os.PathLike[str]) -> BlobStore:
    try:
        store = open_store(place)
    except OSError as error:
        raise ConfigurationError(
            f"{place} cannot be opened: {error}", hint="pass a folder or s3://bucket/prefix"
        ) from None
    if store is None:
        raise ConfigurationError(
            "a ParquetSink needs a place for its files", hint="pass a folder or s3://bucket/prefix"
        )
    return store
