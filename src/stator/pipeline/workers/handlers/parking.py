"""Parked items: an item that a subscriber cannot handle waits here, so that the shard continues.

    PK  WORK#billing#PARKED                        SK  shop#5c0a...#invoices
        subscriber, key, handler, error, first, last, count, attempts, tries, retry_at
    PK  WORK#billing#PARKED#shop#5c0a...#invoices  SK  1000...42#000
        record (compressed JSON), done

The first of these entries is the *head*: as long as it exists, the changes to the item wait for
this subscriber, and for no other. The worker that reads the item's shard adds each change as an
entry of the second kind, or several if it is large. With ``retry_at`` the item is *set aside*: any
worker of the group handles its changes again at that time (``set_aside_retry``). Once the attempts
are used up, ``retry_at`` is removed and the item is *parked*: it waits for ``stator parked retry``
or ``drop``.

A retry handles the changes in order and deletes the head once no change is left, on condition that
none was added since. So the next change to the item is handled only after all waiting ones.

Additions are made in one transaction with a check of the shard's lease: a worker that has lost its
shard adds nothing. A retry holds a lease of its own on the head (``coordination.lease``), so that
no two processes retry the same item: ``retry_owner``, ``retry_until``.

The head carries ``_format``. Heads of format 1 have no ``subscriber`` and no ``retry_at``, and
their sort key ends after the hash. Such an item is parked for all subscribers that are not in
``done``, until it is retried or dropped.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import orjson

from stator.coordination.lease import (
    Condition,
    LeaseAttributes,
    LeaseHold,
    LeaseItem,
    both,
    seconds,
)
from stator.coordination.position import sequence_text
from stator.coordination.retry import answered, retry_with
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
RETRY_SECONDS: Final = 60.0
_WRITE_ATTEMPTS: Final = 5
# Version 1 parked an item for all subscribers.
_FORMAT: Final = StoredFormat("parked changes of", version=2)
_CLAIM: Final = LeaseAttributes(owner="retry_owner", until="retry_until", fence=None)


@dataclass(frozen=True, slots=True)
class ParkedKey:
    """The head of an item that is set aside or parked.

    ``mark`` is the name under which the item waits (``parked_mark``), since the time ``since``.
    ``subscriber`` is the subscriber that the item waits for; None means all subscribers (format 1).
    ``handler`` is the function that failed. ``first`` and ``last`` are sequence numbers, ``at`` is
    the time of the first change, and ``count`` is how many changes were added in all. ``attempts``
    counts the failed attempts to handle the first change; ``tries`` also counts attempts during an
    outage. ``retry_at`` is when workers retry the item; None means that the item is parked.
    ``claim`` is the token of the process that is retrying the item now.
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
    subscriber: str | None = None
    attempts: int = 0
    tries: int = 0
    retry_at: float | None = None
    at: float = 0.0

    @property
    def is_set_aside(self) -> bool:
        return self.retry_at is not None


@dataclass(frozen=True, slots=True)
class ParkedRecord:
    """A change of an item that is set aside or parked.

    The functions named in ``done`` have already handled it.
    """

    record: Record
    done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """Why a change failed, how often it has failed so far, and when workers retry it.

    ``retry_at`` is None if the item is to be parked.
    """

    handler: str
    error: BaseException
    attempts: int
    tries: int
    retry_at: float | None

    def attributes(self) -> Item:
        found: Item = {
            "handler": {"S": self.handler},
            "error": {"S": f"{type(self.error).__name__}: {self.error}"[:_ERROR_LENGTH]},
            "attempts": {"N": str(self.attempts)},
            "tries": {"N": str(self.tries)},
        }
        return found if self.retry_at is None else found | {"retry_at": seconds(self.retry_at)}


def parked_mark(record: Record, subscriber: str) -> str:
    """Return the name under which an item waits for a subscriber: ``shop#5c0a...#invoices``."""
    return f"{key_mark(record.table, record.key)}#{subscriber}"


class Parking:
    def __init__(self, context: Context, group: str, leases: LeaseTable) -> None:
        self._context = context
        self._place = context.schema.place
        self._group = group
        self._partition = f"WORK#{group}#PARKED"
        self._leases = leases

    # -- by workers

    def park(
        self,
        lease: ShardLease,
        subscriber: str,
        records: Sequence[ParkedRecord],
        failed: FailedAttempt,
    ) -> Work[None]:
        """Park an item or, if ``failed`` has a time to retry, set it aside.

        ``records`` are the item's changes from the failed one on; they are stored. Raises LeaseLost
        if another worker has the shard.
        """
        first = records[0].record
        mark = parked_mark(first, subscriber)
        head: Item = {
            **self._place.key(self._partition, mark),
            "subscriber": {"S": subscriber},
            "table": {"S": first.table},
            "key": {"S": first.key},
            "since": {"N": repr(self._context.now())},
            "at": {"N": repr(first.at)},
            "first": {"S": first.sequence},
            "last": {"S": first.sequence},
            "count": {"N": "1"},
            **failed.attributes(),
            **_FORMAT.attributes(),
        }
        put = {"Put": {"TableName": self._place.table, "Item": head}}
        yield from self._write(lease, [put, *self._pieces(mark, records[0])])
        for each in records[1:]:
            yield from self.add(lease, mark, each)

    def add(self, lease: ShardLease, mark: str, parked: ParkedRecord) -> Work[bool]:
        """Add a change to an item that is set aside or parked.

        Returns False, and stores nothing, if the item no longer waits.
        """
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
            yield from self._write(
                lease, [{"Update": written.into(update)}, *self._pieces(mark, parked)]
            )
        except ConditionFailed:
            return False
        return True

    def _pieces(self, mark: str, parked: ParkedRecord) -> list[dict[str, Any]]:
        """Return transaction actions that store a change, in pieces that each fit into an item.

        A record has at most two images, so there are only a few pieces.
        """
        packed = zlib.compress(orjson.dumps(parked.record.raw))
        pieces = [packed[at : at + _PIECE_BYTES] for at in range(0, len(packed), _PIECE_BYTES)]
        return [
            {
                "Put": {
                    "TableName": self._place.table,
                    "Item": {
                        **self._change_key(mark, parked.record.sequence, number),
                        "record": {"B": b64encode(piece).decode()},
                        "shard": {"S": parked.record.shard},
                        "table": {"S": parked.record.table},
                        "done": {"L": [{"S": name} for name in parked.done]},
                    },
                }
            }
            for number, piece in enumerate(pieces)
        ]

    def _change_key(self, mark: str, sequence: str, number: int) -> Item:
        return self._place.key(
            f"{self._partition}#{mark}", f"{sequence_text(sequence)}#{number:03d}"
        )

    def _write(self, lease: ShardLease, actions: list[dict[str, Any]]) -> Work[None]:
        """Send the actions in one transaction with a check of the shard's lease.

        Raises LeaseLost if the check fails, and ConditionFailed if a condition of an action fails.
        """
        request = {
            "TransactItems": [self._leases.check(lease), *actions],
            "ClientRequestToken": self._context.token(),
        }
        call = Call("TransactWriteItems", request, _LABEL)
        try:
            # A renewal of the lease at the same moment is a conflict.
            yield from retry_with(
                self._context.random, lambda: answered(call), max_attempts=_WRITE_ATTEMPTS
            )
        except TransactionCanceled as cancelled:
            codes = [reason.get("Code") for reason in cancelled.reasons]
            if codes[0] == "ConditionalCheckFailed":
                raise LeaseLost(
                    f"the lease on shard {lease.name} was lost",
                    hint="nothing to do: another worker continues from its checkpoint",
                ) from None
            if "ConditionalCheckFailed" in codes:
                raise ConditionFailed from None
            raise

    # -- by retries

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
            item["subscriber"]["S"] if "subscriber" in item else None,
            int(item["attempts"]["N"]) if "attempts" in item else 0,
            int(item["tries"]["N"]) if "tries" in item else 0,
            float(item["retry_at"]["N"]) if "retry_at" in item else None,
            float(item["at"]["N"]) if "at" in item else 0.0,
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

    def claim(self, mark: str, for_seconds: float = RETRY_SECONDS) -> Work[ParkedKey | None]:
        """Take the lease on an item that is set aside or parked, and return the item's head.

        Returns None if the item does not wait any more, or another process is already retrying it.
        """
        return (yield from self._claim(mark, for_seconds, _is_parked))

    def claim_due(self, mark: str, for_seconds: float) -> Work[ParkedKey | None]:
        """Take the lease on an item whose time to retry has come, and return the item's head.

        Returns None if the time has not come, the item is parked or gone, or another process is
        already retrying it.
        """
        now = self._context.now()

        def is_due(written: Expressions) -> str:
            return f"{written.name('retry_at')} <= {written.value(seconds(now))}"

        return (yield from self._claim(mark, for_seconds, both(_is_parked, is_due)))

    def _claim(self, mark: str, for_seconds: float, condition: Condition) -> Work[ParkedKey | None]:
        now = self._context.now()
        before = now - self._leases.drift_seconds
        taken = yield from self._head(mark).take(
            self._context.token(), now + for_seconds, both(condition, _CLAIM.free(before))
        )
        return self._read(taken.item) if taken.is_mine else None

    def renew(self, parked: ParkedKey, for_seconds: float) -> Work[bool]:
        """Extend the lease on an item under retry, so that it ends ``for_seconds`` from now.

        Returns False if the lease is lost.
        """
        until = self._context.now() + for_seconds
        return (
            yield from self._head(parked.mark).renew(LeaseHold(parked.claim), until)
        ) is not None

    def look(self, mark: str) -> Work[ParkedKey | None]:
        """Return the head of an item as it is now, or None if the item does not wait.

        An item waits if it is set aside or parked.
        """
        request = {
            "TableName": self._place.table,
            "Key": self._place.key(self._partition, mark),
            "ConsistentRead": True,
        }
        reply = yield Call("GetItem", request, _LABEL)
        return self._read(reply["Item"]) if "Item" in reply else None

    def done(self, mark: str, record: Record) -> Work[None]:
        """Delete a stored change of a waiting item, because the change is handled or dropped."""
        yield from self._forget(mark, record.sequence)

    def handled_by(self, mark: str, record: Record, done: Sequence[str]) -> Work[None]:
        """Record the functions that have handled a stored change, so that a retry skips them."""
        written = Expressions()
        names = written.value({"L": [{"S": name} for name in done]})
        request = {
            "TableName": self._place.table,
            "Key": self._change_key(mark, record.sequence, 0),
            "UpdateExpression": f"SET {written.name('done')} = {names}",
            "ConditionExpression": f"attribute_exists({written.name('record')})",
        }
        with suppress(ConditionFailed):
            yield Call("UpdateItem", written.into(request), _LABEL)

    def release(self, parked: ParkedKey, claim: str | None) -> Work[bool]:
        """Delete the head of an item that waits no more. Return whether it was deleted.

        ``parked`` is the head as it was read, and ``claim`` the token of the lease on it. The head
        stays if a change was added since it was read, or if the lease is lost.
        """
        written = Expressions()
        count = written.value({"N": str(parked.count)})
        held = _CLAIM.held(LeaseHold(claim))(written)
        request = {
            "TableName": self._place.table,
            "Key": self._place.key(self._partition, parked.mark),
            "ConditionExpression": f"{written.name('count')} = {count} AND {held}",
        }
        try:
            yield Call("DeleteItem", written.into(request), _LABEL)
        except ConditionFailed:
            return False
        return True

    def failed(self, parked: ParkedKey, attempt: FailedAttempt) -> Work[None]:
        """Record why a retry failed and when to try again, and release the lease on the item."""
        removes = ("retry_at",) if attempt.retry_at is None else ()
        yield from self._head(parked.mark).release(
            LeaseHold(parked.claim), attempt.attributes(), removes
        )

    def give_back(self, parked: ParkedKey) -> Work[None]:
        """Release the lease on an item. The item waits as before."""
        yield from self._head(parked.mark).release(LeaseHold(parked.claim))

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
