"""Parked keys: items whose changes cannot be handled are set aside, so that the shard continues.

    PK  WORK#billing#PARKED               SK  shop#5c0a...   key, error, handler, first, last, count
    PK  WORK#billing#PARKED#shop#5c0a...  SK  1000...42#000  record (compressed JSON), done

The first line is the *head*: as long as it exists, the key is parked. The worker that reads the
key's shard adds the key's changes as items of the second kind, several for a large record.
``retry`` handles the changes in order and deletes the head once no change is left, on condition
that none was added since. So the next change to the item is handled only after all parked ones.
``drop`` deletes the parked changes unhandled.

Additions are made in one transaction with a check of the shard's lease: a worker that has lost its
shard adds nothing. A retry holds a lease of its own on the head (``coordination.lease``), so that
no two processes retry the same key: ``retry_owner``, ``retry_until``. The head carries ``_format``.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from stator.coordination.lease import LeaseAttributes, LeaseHold, LeaseItem, both
from stator.coordination.position import sequence_text
from stator.coordination.stored_format import StoredFormat
from stator.errors import ConditionFailed, LeaseLost, TransactionCanceled
from stator.model.values import Item
from stator.patterns.item_pages import prefix_query, query_all
from stator.pipeline.workers.handlers.change import Record, key_mark, read_record
from stator.pipeline.workers.shards.leases import LeaseTable, ShardLease
from stator.tables.context import Context
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions

_LABEL: Final = "parked changes"
_PIECE_BYTES: Final = 300_000
_ERROR_LENGTH: Final = 1000
RETRY_SECONDS: Final = 300.0
_FORMAT: Final = StoredFormat("parked changes of")
_CLAIM: Final = LeaseAttributes(owner="retry_owner", until="retry_until", fence=None)


@dataclass(frozen=True, slots=True)
class ParkedKey:
    """The head of a parked key.

    ``handler`` is the handler that failed. ``first`` and ``last`` are sequence numbers, and
    ``count`` is how many changes were parked in all. ``claim`` is the token of the retry that holds
    the key.
    """

    mark: str
    table: str
    key: str
    handler: str
    error: str
    since: float
    first: str
    last: str
    count: int
    claim: str | None = None


@dataclass(frozen=True, slots=True)
class ParkedRecord:
    """A parked change. The handlers in ``done`` had handled it before it was parked."""

    record: Record
    done: tuple[str, ...]


class Parking:
    def __init__(self, context: Context, group: str, leases: LeaseTable) -> None:
        self._context = context
        self._place = context.schema.place
        self._group = group
        self._partition = f"WORK#{group}#PARKED"
        self._leases = leases

    # -- by workers

    def marks(self) -> Work[set[str]]:
        """Return the marks of all parked keys."""
        return {parked.mark for parked in (yield from self.keys())}

    def park(
        self, lease: ShardLease, records: Sequence[ParkedRecord], handler: str, error: BaseException
    ) -> Work[None]:
        """Park a key with these changes. Raises LeaseLost if another worker has the shard."""
        first = records[0].record
        mark = key_mark(first.table, first.key)
        head: Item = {
            **self._place.key(self._partition, mark),
            "table": {"S": first.table},
            "key": {"S": first.key},
            "handler": {"S": handler},
            "error": {"S": f"{type(error).__name__}: {error}"[:_ERROR_LENGTH]},
            "since": {"N": repr(self._context.now())},
            "first": {"S": first.sequence},
            "last": {"S": first.sequence},
            "count": {"N": "0"},
            **_FORMAT.attributes(),
        }
        yield from self._write(lease, [{"Put": {"TableName": self._place.table, "Item": head}}])
        for each in records:
            yield from self.add(lease, mark, each)

    def add(self, lease: ShardLease, mark: str, parked: ParkedRecord) -> Work[bool]:
        """Add a change to a parked key. Returns False if the key is no longer parked."""
        yield from self._pieces(lease, mark, parked)
        written = Expressions()
        last, count = written.name("last"), written.name("count")
        sequence, one = written.value({"S": parked.record.sequence}), written.value({"N": "1"})
        update = {
            "TableName": self._place.table,
            "Key": self._place.key(self._partition, mark),
            "UpdateExpression": f"SET {last} = {sequence}, {count} = {count} + {one}",
            "ConditionExpression": f"attribute_exists({written.name('key')})",
        }
        try:
            yield from self._write(lease, [{"Update": written.into(update)}])
        except ConditionFailed:
            yield from self._forget(mark, parked.record.sequence)
            return False
        return True

    def _pieces(self, lease: ShardLease, mark: str, parked: ParkedRecord) -> Work[None]:
        packed = zlib.compress(orjson.dumps(parked.record.raw))
        pieces = [packed[at : at + _PIECE_BYTES] for at in range(0, len(packed), _PIECE_BYTES)]
        for number, piece in enumerate(pieces):
            item: Item = {
                **self._place.key(
                    f"{self._partition}#{mark}",
                    f"{sequence_text(parked.record.sequence)}#{number:03d}",
                ),
                "record": {"B": b64encode(piece).decode()},
                "shard": {"S": parked.record.shard},
                "table": {"S": parked.record.table},
                "done": {"L": [{"S": name} for name in parked.done]},
            }
            yield from self._write(lease, [{"Put": {"TableName": self._place.table, "Item": item}}])

    def _write(self, lease: ShardLease, actions: list[dict[str, Any]]) -> Work[None]:
        """Write in one transaction with a check of the lease."""
        request = {
            "TransactItems": [self._leases.check(lease), *actions],
            "ClientRequestToken": self._context.token(),
        }
        try:
            yield Call("TransactWriteItems", request, _LABEL)
        except TransactionCanceled as cancelled:
            codes = [reason.get("Code") for reason in cancelled.reasons]
            if codes[0] == "ConditionalCheckFailed":
                raise LeaseLost(f"the lease on shard {lease.name} was lost") from None
            if "ConditionalCheckFailed" in codes:
                raise ConditionFailed from None
            raise

    # -- by operators

    def keys(self) -> Work[list[ParkedKey]]:
        items = yield from query_all(prefix_query(self._place, self._partition, ""), _LABEL)
        return [self._read(item) for item in items]

    def _read(self, item: Item) -> ParkedKey:
        _FORMAT.check(item, self._group)
        return ParkedKey(
            item[self._place.sort]["S"],
            item["table"]["S"],
            item["key"]["S"],
            item["handler"]["S"],
            item["error"]["S"],
            float(item["since"]["N"]),
            item["first"]["S"],
            item["last"]["S"],
            int(item["count"]["N"]),
            _CLAIM.read(item).owner,
        )

    def records(self, mark: str) -> Work[list[ParkedRecord]]:
        items = yield from query_all(
            prefix_query(self._place, f"{self._partition}#{mark}", ""), _LABEL
        )
        pieces: dict[str, list[Item]] = {}
        for item in items:
            pieces.setdefault(item[self._place.sort]["S"].partition("#")[0], []).append(item)
        found = []
        for parts in pieces.values():
            packed = b"".join(b64decode(part["record"]["B"]) for part in parts)
            record = read_record(
                orjson.loads(zlib.decompress(packed)),
                parts[0]["table"]["S"],
                parts[0]["shard"]["S"],
            )
            found.append(ParkedRecord(record, tuple(name["S"] for name in parts[0]["done"]["L"])))
        return found

    def claim(self, mark: str) -> Work[ParkedKey | None]:
        """Take the lease on a parked key.

        Returns None if it is not parked, or is already being retried.
        """
        now = self._context.now()
        taken = yield from self._head(mark).take(
            self._context.token(), now + RETRY_SECONDS, both(_is_parked, _CLAIM.free(now))
        )
        return self._read(taken.item) if taken.is_mine else None

    def look(self, mark: str) -> Work[ParkedKey | None]:
        """Return the head of a parked key as it is now, or None if it is not parked."""
        request = {
            "TableName": self._place.table,
            "Key": self._place.key(self._partition, mark),
            "ConsistentRead": True,
        }
        reply = yield Call("GetItem", request, _LABEL)
        return self._read(reply["Item"]) if "Item" in reply else None

    def done(self, mark: str, record: Record) -> Work[None]:
        """Delete a parked change that has been handled."""
        yield from self._forget(mark, record.sequence)

    def release(self, parked: ParkedKey) -> Work[bool]:
        """Delete the head, unless a change was added since it was read."""
        written = Expressions()
        count = written.value({"N": str(parked.count)})
        request = {
            "TableName": self._place.table,
            "Key": self._place.key(self._partition, parked.mark),
            "ConditionExpression": f"{written.name('count')} = {count}",
        }
        try:
            yield Call("DeleteItem", written.into(request), _LABEL)
        except ConditionFailed:
            return False
        return True

    def failed(self, parked: ParkedKey, handler: str, error: BaseException) -> Work[None]:
        """Record why a retry failed, and release the key to other retries."""
        reason: Item = {
            "error": {"S": f"{type(error).__name__}: {error}"[:_ERROR_LENGTH]},
            "handler": {"S": handler},
        }
        yield from self._head(parked.mark).release(LeaseHold(parked.claim), reason)

    def _head(self, mark: str) -> LeaseItem:
        key = self._place.key(self._partition, mark)
        return LeaseItem(self._place.table, key, _LABEL, _CLAIM)

    def _forget(self, mark: str, sequence: str) -> Work[None]:
        prefix = f"{sequence_text(sequence)}#"
        items = yield from query_all(
            prefix_query(self._place, f"{self._partition}#{mark}", prefix), _LABEL
        )
        for item in items:
            key = {name: item[name] for name in (self._place.partition, self._place.sort)}
            yield Call("DeleteItem", {"TableName": self._place.table, "Key": key}, _LABEL)


def _is_parked(written: Expressions) -> str:
    return f"attribute_exists({written.name('key')})"
