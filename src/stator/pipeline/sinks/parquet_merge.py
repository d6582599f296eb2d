"""Merges staged files into Parquet files, one merge at a time; ``parquet`` explains how."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson

from stator.errors import BlobMissing, ConditionFailed, TryLater
from stator.formats.extras import pyarrow
from stator.formats.parquet import arrow_table
from stator.model.values import Item
from stator.pipeline.sinks.events import time_text
from stator.tables.blobs.stores import BlobStore
from stator.tables.context import Context
from stator.tables.work import BlockingCall, Call, Work
from stator.tables.writes.expressions import Expressions

log = logging.getLogger("stator.sinks")

STAGED: Final = "staged"
DATA: Final = "data"
MANIFESTS: Final = "manifests"
EXTENSION: Final = ".jsonl.gz"
_LABEL: Final = "parquet merges"
# Older changes are never replayed: a stream holds one day.
_MEMORY_SECONDS: Final = 48 * 3600.0
# After this time a claim is taken over: its worker is presumed dead.
_CLAIM_SECONDS: Final = 120.0
# A claim lists its inputs in one item, of at most 400 KB.
_MAX_INPUTS: Final = 1500
_FIRST_COLUMNS: Final = (
    "_id",
    "_kind",
    "_table",
    "_entity",
    "_key",
    "_sequence",
    "_time",
    "_expired",
)

Ranges = dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Claim:
    """One merge that a worker has claimed: the staged files to read, and its number.

    The number is part of the names of the files that the merge writes. Any worker can carry out the
    merge.
    """

    version: int
    number: int
    inputs: tuple[str, ...]
    at: float

    @property
    def manifest(self) -> str:
        return f"{MANIFESTS}/{time_text(self.at)[:10]}/{self.number:012d}.json"


class ParquetMerger:
    """Claims the merges of one ParquetSink and carries them out."""

    def __init__(self, store: BlobStore, name: str) -> None:
        self._store = store
        self._name = name
        self._manifests: dict[str, dict[str, Any]] = {}

    def run(self, context: Context, group: str, target_bytes: int) -> Work[int]:
        """Merge until no file is staged, or until another worker holds the claim.

        Each merge reads staged files with about ``target_bytes`` of rows. Returns the number of
        merged changes.
        """
        total: int = 0
        while (claim := (yield from self._take_claim(context, group, target_bytes))) is not None:
            total += yield BlockingCall(partial(self._merge, claim))
            yield from self._release(context, group, claim)
        return total

    # -- the claim

    def _key(self, context: Context, group: str) -> Item:
        return context.schema.place.key(f"SINK#{group}#{self._name}", "PARQUET")

    def _take_claim(self, context: Context, group: str, target_bytes: int) -> Work[Claim | None]:
        place = context.schema.place
        request = {
            "TableName": place.table,
            "Key": self._key(context, group),
            "ConsistentRead": True,
        }
        item = (yield Call("GetItem", request, _LABEL)).get("Item", {})
        version = int(item.get("version", {"N": "0"})["N"])
        number = int(item.get("number", {"N": "0"})["N"])
        pending = orjson.loads(item["pending"]["S"]) if item.get("pending", {}).get("S") else None
        now = context.now()
        if pending is not None:
            if now - float(item["touched"]["N"]) < _CLAIM_SECONDS:
                return None
            claim = Claim(version + 1, number, tuple(pending["inputs"]), pending["at"])
        else:
            inputs: list[str] = yield BlockingCall(partial(self._inputs, target_bytes))
            if not inputs:
                return None
            claim = Claim(version + 1, number + 1, tuple(inputs), now)
        text = orjson.dumps({"inputs": claim.inputs, "at": claim.at}).decode()
        taken = yield from self._write(context, group, claim, version, text)
        return claim if taken else None

    def _release(self, context: Context, group: str, claim: Claim) -> Work[None]:
        yield from self._write(context, group, claim, claim.version, "")

    def _write(
        self, context: Context, group: str, claim: Claim, seen: int, pending: str
    ) -> Work[bool]:
        """Store the claim, on condition that the stored version is still ``seen``.

        If ``pending`` is empty, the claim is stored as released. Returns False if another worker
        has changed the item.
        """
        written = Expressions()
        version = written.name("version")
        item = {
            **self._key(context, group),
            "version": {"N": str(claim.version if pending else claim.version + 1)},
            "number": {"N": str(claim.number)},
            "pending": {"S": pending},
            "touched": {"N": repr(context.now())},
        }
        is_new = f"attribute_not_exists({version})"
        condition = f"{version} = {written.value({'N': str(seen)})}" if seen else is_new
        request = {
            "TableName": context.schema.place.table,
            "Item": item,
            "ConditionExpression": condition,
        }
        try:
            yield Call("PutItem", written.into(request), _LABEL)
        except ConditionFailed:
            return False
        return True

    # -- files

    def _inputs(self, target_bytes: int) -> list[str]:
        """Return the oldest staged files, up to about ``target_bytes`` of rows."""
        with store_errors():
            staged = sorted((at, name) for name, at in self._store.keys(f"{STAGED}/"))
        found: list[str] = []
        size = 0
        for _, name in staged[:_MAX_INPUTS]:
            if found and size >= target_bytes:
                break
            found.append(name)
            size += int(name.removesuffix(EXTENSION).rpartition("-")[2])
        return found

    def _merge(self, claim: Claim) -> int:
        """Write the data files and the manifest of a claimed merge, and delete the staged files.

        Returns the number of merged changes. A repeated merge writes the same files again. If some
        staged files are gone, the former owner of the claim has merged them: returns 0.
        """
        with store_errors():
            try:
                rows = self._rows(claim)
            except BlobMissing:  # the former owner of the claim was alive, and has finished
                return 0
            files = []
            for (entity, date), part in sorted(_partitioned(rows).items()):
                name = f"{DATA}/entity={entity}/date={date}/{claim.number:012d}.parquet"
                self._store.put(name, parquet_bytes(part))
                files.append(name)
            manifest = {
                "number": claim.number,
                "files": files,
                "rows": len(rows),
                "replaces": claim.inputs,
                "ranges": ranges_of(claim.inputs),
            }
            self._store.put(claim.manifest, orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
            self._store.delete(claim.inputs)
        return len(rows)

    def _rows(self, claim: Claim) -> list[Item]:
        """Return the changes in the claim's staged files that no earlier merge contains, each once.

        The changes are in the order of their sequence numbers.
        """
        found: dict[str, Item] = {}
        for name in claim.inputs:
            for row in staged_rows(self._store, name):
                found.setdefault(row["_id"]["S"], row)
        for known in self._merged_before(claim):
            found.pop(known, None)
        return sorted(
            found.values(), key=lambda row: (row["_table"]["S"], int(row["_sequence"]["S"] or 0))
        )

    def _merged_before(self, claim: Claim) -> Iterator[str]:
        """Yield the event ids in the data files of earlier merges that may share rows with this.

        These are recent merges that cover an overlapping range of sequence numbers of a shard.
        """
        ranges = ranges_of(claim.inputs)
        parquet = pyarrow("pyarrow.parquet")
        for manifest in self._recent(claim):
            if manifest["number"] < claim.number and _overlap(ranges, manifest["ranges"]):
                for name in manifest["files"]:
                    content = pyarrow().BufferReader(self._store.get(name))
                    yield from parquet.read_table(content, columns=["_id"])["_id"].to_pylist()

    def _recent(self, claim: Claim) -> list[dict[str, Any]]:
        days = {
            time_text(claim.at - back)[:10] for back in (0.0, _MEMORY_SECONDS / 2, _MEMORY_SECONDS)
        }
        names = {key for day in days for key, _ in self._store.keys(f"{MANIFESTS}/{day}/")}
        for name in names - self._manifests.keys():
            self._manifests[name] = orjson.loads(self._store.get(name))
        self._manifests = {name: self._manifests[name] for name in names}
        return list(self._manifests.values())


def ranges_of(inputs: tuple[str, ...]) -> Ranges:
    """Return, for each shard, the lowest and highest sequence number in its staged files.

    The numbers are read from ``inputs``, the names of the files.
    """
    ranges: Ranges = {}
    for name in inputs:
        shard, file = name.split("/")[-2:]
        first, last = file.split("-")[:2]
        known = ranges.get(shard, (first, last))
        ranges[shard] = (min(first, known[0]), max(last, known[1]))
    return ranges


def _overlap(ranges: Ranges, others: dict[str, Any]) -> bool:
    return any(
        shard in others and first <= others[shard][1] and others[shard][0] <= last
        for shard, (first, last) in ranges.items()
    )


def _partitioned(rows: list[Item]) -> dict[tuple[str, str], list[Item]]:
    parts: dict[tuple[str, str], list[Item]] = {}
    for row in rows:
        parts.setdefault((row["_entity"]["S"] or "none", row["_time"]["S"][:10]), []).append(row)
    return parts


def parquet_bytes(rows: list[Item]) -> bytes:
    arrow, parquet = pyarrow(), pyarrow("pyarrow.parquet")
    out = arrow.BufferOutputStream()
    parquet.write_table(arrow_table(rows, _FIRST_COLUMNS), out, compression="zstd")
    content: bytes = out.getvalue().to_pybytes()
    return content


def staged_rows(store: BlobStore, name: str) -> list[Item]:
    return [orjson.loads(line) for line in gzip.decompress(store.get(name)).splitlines()]


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn errors of the folder or object store within the ``with`` block into TryLater."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (OSError, BotoCoreError, ClientError) as error:
        raise TryLater(
            f"the sink's folder or bucket cannot be used: {type(error).__name__}: {error}"
        ) from error
