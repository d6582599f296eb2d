"""``ParquetSink``: changes as Parquet files in a folder or in S3, cut by size and time.

The difficulty: a checkpoint says that everything up to it is delivered, and Parquet wants files larger than a batch; a buffer in memory would be lost with
its worker. So a batch is first *staged* as a small file of its own, and staged files are *merged* into large ones.

    staged/shardId-0001…/1000…10-1000…42-5c0a1f22…-8211.jsonl.gz   one batch, written before its checkpoint is
    data/entity=Order/date=2026-11-16/000000000007.parquet     what a merge made of many of them
    manifests/2026-11-16/000000000007.json                     what that merge read, which shards and numbers it covers, and what it wrote

A staged file's name is made of its content, so that none is ever overwritten by another. After a crash a batch may be staged again, whole or in other pieces:
merging keeps one of each event id, of those it reads and, where the ranges of a manifest of the last two days overlap, of what was merged before.

One merge at a time, for all workers. It is *claimed* by a conditional write in the design's own table, which names its number and the files it reads:

    PK  SINK#going-out#archive   SK  PARQUET     version, pending ({number, inputs, at} as JSON, or empty)

Then the data files are written, then the manifest, then the staged files are deleted, then the claim is given back. Each file appears whole or not at all. A worker
that dies on the way leaves its claim; another does the same again from the same inputs, under the same names. So whoever reads ``data/`` sees each change at most once,
at any moment; ``read_changes`` reads what is staged too, and sees each exactly once.

A row has the fields of the entity as it is now (for a REMOVE, as it was) as columns, and beside them ``_id``, ``_kind``, ``_table``, ``_entity``, ``_key``, ``_sequence``,
``_time``, ``_expired`` and, as JSON text, ``_old``. What a ``transform`` gives, a dictionary, stands in place of the fields.

A merge is due when ``target_bytes`` are staged, or ``roll_seconds`` after the last one. It is looked at after each batch, and every few seconds while a stream is silent, as long as a
worker holds one of its shards. ``db.run(sink.merge(db.context, group))`` merges at once, for one that is going to stop.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Unpack

import orjson

from stator.coordination.position import sequence_text
from stator.errors import BlobMissing, ConfigurationError, SinkRefused, StatorError
from stator.formats.extras import pyarrow
from stator.formats.plain import plain_item
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
from stator.pipeline.workers.handlers.change import Change
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope
from stator.tables.blobs.stores import BlobStore, open_store
from stator.tables.context import Context
from stator.tables.work import Work


class ParquetSink(Sink):
    def __init__(
        self,
        name: str,
        place: BlobStore | str | os.PathLike[str],
        *,
        target_bytes: int = 64 << 20,
        roll_seconds: float = 300.0,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``place`` is a folder or ``s3://bucket/prefix``, for this sink alone. ``target_bytes`` is counted before rows become columns."""
        super().__init__(name, options)
        if options.get("images", "plain") != "plain":
            raise ConfigurationError(
                "the columns of a ParquetSink are plain values", hint="leave images= out"
            )
        if target_bytes < 1 or roll_seconds < 0:
            raise ConfigurationError(f"target_bytes={target_bytes}, roll_seconds={roll_seconds}")
        pyarrow()  # now, not after the first batch was staged
        self._store = _opened(place)
        self._merger = ParquetMerger(self._store, name)
        self._target_bytes = target_bytes
        self._roll_seconds = roll_seconds
        self._lock = threading.Lock()
        # What this process has staged since it last merged, and when that was; what others left is found by the merge itself.
        self._staged_bytes = 0
        self._staged_since: float | None = None

    def deliver(
        self, messages: Sequence[Message], scope: HandlerScope
    ) -> Work[list[HandlerFailure]]:
        failures = yield from super().deliver(messages, scope)
        try:
            yield from self.attend(scope)
        except (
            StatorError
        ) as error:  # the changes are safe where they are staged, and are merged later
            log.warning("%s could not merge what is staged: %s", self.name, error)
        return failures

    def attend(self, scope: HandlerScope, position: str = "") -> Work[None]:
        """Merge when it is time to, also what a worker left that is gone."""
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
        """Merge what is staged into Parquet files, unless somebody is at it; how many changes were."""
        with self._lock:
            self._staged_bytes, self._staged_since = 0, None
        return (yield from self._merger.run(context, group, self._target_bytes))

    # -- rows

    def _body(self, change: Change[Any], context: Context) -> bytes | None:
        record = change.record
        of = context.schema.of_item(record.image, record.table)
        fields: Item
        if self._transform is not None:
            made = self._transform(change)
            if made is None:
                return None
            if not isinstance(made, Mapping):
                raise SinkRefused(
                    f"{type(made).__name__} is no row",
                    hint="a transform for Parquet gives a dictionary",
                )
            fields = {str(name): _value(value) for name, value in made.items()}
        elif of is None:
            fields = dict(record.image)
        else:
            item = of.codec.encode(change.new or change.old) if of.large else record.image
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
    digest = hashlib.sha256("".join(message.event_id for message in messages).encode()).hexdigest()[
        :16
    ]
    span = f"{sequence_text(first.sequence)}-{sequence_text(last.sequence)}"
    size = sum(len(message.body) for message in messages)
    return f"{STAGED}/{first.shard or 'none'}/{span}-{digest}-{size}{EXTENSION}"


def read_changes(place: BlobStore | str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Every change in a place, once, as a dictionary: what is staged first, then what was merged."""
    store = _opened(place)
    seen: set[str] = set()
    # Staged files before data files: a merge meanwhile moves rows from the former to the latter, never back.
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


def _opened(place: BlobStore | str | os.PathLike[str]) -> BlobStore:
    try:
        store = open_store(place)
    except OSError as error:
        raise ConfigurationError(
            f"{place} cannot be opened: {error}", hint="a folder, or s3://bucket/prefix"
        ) from None
    if store is None:
        raise ConfigurationError(
            "a ParquetSink needs a place", hint="a folder, or s3://bucket/prefix"
        )
    return store
