"""``AuditLog``: who did what to every item and when, with the item before and after.

The log is append-only and verifiable. Each item has a chain of entries (``audit_chain``) in the
design's own table:

    PK  AUDIT#ledger#shop#5c0a...    SK  000000000002#000    entry (JSON text, split if large), hash
    PK  AUDIT#ledger#HEADS#5c        SK  shop#5c0a...        the last entry: number, hash, sequence

Entries and head are written in one transaction. It fails if the head has changed since it was read,
or if an entry has one of the new numbers. A change that arrives again after a crash has a sequence
number that the head has passed, and is skipped. So each change is in the log once.

``verify`` detects an entry that was changed, removed, added or moved, a chain cut off at its end,
and a missing head. It cannot by itself detect someone who can write the table and rebuilds a whole
chain with all hashes and its head, or removes it entirely. Two measures exist:

- ``secret`` protects against rebuilt chains. Without the secret no hash can be computed, so keep it
  from the people whose writes are logged.
- ``seal`` protects against rebuilt and removed chains. A seal is a list of all heads, to be stored
  elsewhere. ``verify(db, since=seal)`` reports every sealed chain that was changed or removed
  since.

Limits: the log has only the changes that were in the stream, so it lacks writes made before the
stream was enabled. DynamoDB does not say who wrote: ``who`` is a field of the entity that your
program sets. A deletion has no new item to carry that field, so its ``who`` is None. When the
service deletes an expired item, ``who`` is ``dynamodb.amazonaws.com``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Unpack

import orjson

from stator.design.entities.conditions import FieldRef
from stator.errors import (
    ConfigurationError,
    LeaseLost,
    SinkRefused,
    StatorError,
    TransactionCanceled,
    TryLater,
)
from stator.model.values import Item
from stator.patterns.item_pages import ItemPages, prefix_query, query_all
from stator.pipeline.sinks.audit_chain import (
    AuditEntry,
    AuditReport,
    ChainCheck,
    ChainHead,
    Seal,
    entry_hash,
    entry_text,
    read_entry,
)
from stator.pipeline.sinks.change_sink import ChangeSink, Message, SinkOptions
from stator.pipeline.sinks.events import event_id, time_text
from stator.pipeline.workers.handlers.change import Change, changed_attributes, key_mark, key_text
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope
from stator.tables.context import Context
from stator.tables.db import Db
from stator.tables.reads.item_list import ItemList
from stator.tables.schema.place import Place
from stator.tables.work import Call, Gather, Work
from stator.tables.writes.expressions import Expressions

SERVICE: Final = "dynamodb.amazonaws.com"
_LABEL: Final = "audit log"
_PIECE: Final = 300_000
# A transaction has at most 100 actions and 4 MB:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
_MAX_ACTIONS: Final = 90
_MAX_TRANSACTION: Final = 3_500_000
_ATTEMPTS: Final = 5


class AuditLog(ChangeSink):
    """An append-only, verifiable log of every change to every item.

    ``app.add(AuditLog("ledger", who=Order.changed_by))`` lets workers write the log; ``history``
    and ``verify`` read it.
    """

    view = "NEW_AND_OLD_IMAGES"

    def __init__(
        self,
        name: str,
        *,
        who: Any = None,
        secret: str | bytes | None = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        """Create an audit log.

        ``who`` is the field that says who made a change: ``Order.changed_by``, or a field name that
        several entities share. ``secret`` is the key of the hashes. Nobody who lacks it can rebuild
        a chain unnoticed.
        """
        super().__init__(name, options)
        if "#" in name:
            raise ConfigurationError(
                f"{name!r} cannot be the name of an audit log", hint="use a name without #"
            )
        if options.keys() & {"transform", "images"}:
            raise ConfigurationError(
                f"audit log {name!r} takes no transform= or images=: it stores items as they are",
                hint="leave out transform= and images=",
            )
        if secret is not None and not isinstance(secret, (str, bytes)):
            raise ConfigurationError(
                f"audit log {name!r}: secret is of type {type(secret).__name__}",
                hint="pass text or bytes",
            )
        if who is not None and not isinstance(who, (str, FieldRef)):
            raise ConfigurationError(
                f"audit log {name!r}: who={who!r} is not a field",
                hint="pass a field, such as Order.changed_by, or a field name",
            )
        self._who = who.name if isinstance(who, FieldRef) else who
        self._secret = secret.encode() if isinstance(secret, str) else secret

    # -- writes

    def _body(self, change: Change[Any], context: Context) -> bytes | None:
        record = change.record
        content = {
            "id": event_id(record),
            "kind": record.kind,
            "table": record.table,
            "entity": change.entity,
            "key": record.keys,
            "who": self._author(change),
            "before": record.old,
            "after": record.new,
            "changed": sorted(changed_attributes(record)),
            "sequence": record.sequence or "0",
            "time": time_text(record.at),
            "expired": change.expired,
        }
        return orjson.dumps(content)

    def _author(self, change: Change[Any]) -> str | None:
        if change.expired:
            return SERVICE
        value = (change.record.new or {}).get(self._who or "")
        return None if value is None else str(next(iter(value.values())))

    def deliver(
        self, messages: Sequence[Message], scope: HandlerScope
    ) -> Work[list[HandlerFailure]]:
        chains: dict[str, list[Message]] = {}
        for message in messages:
            chains.setdefault(key_mark(message.record.table, message.key), []).append(message)
        scope.check()
        parts = [
            self._append(scope.context.schema.place, scope.context, *each)
            for each in chains.items()
        ]
        failures: list[HandlerFailure] = []
        for part, result in zip(chains.values(), (yield Gather(parts))):
            if isinstance(result, LeaseLost):
                raise result
            if isinstance(result, StatorError):
                failures.append(HandlerFailure(part[0].record, result))
            elif result is not None:
                failures.append(result)
        return failures

    def _append(
        self, place: Place, context: Context, mark: str, messages: list[Message]
    ) -> Work[HandlerFailure | None]:
        """Append the changes to one item to its chain. Return None, or the failure.

        ``mark`` identifies the item. After a conflict with another writer, read the stored head
        again and append what it does not include yet.
        """
        for _ in range(_ATTEMPTS):
            head = yield from self._head(place, mark)
            left = [message for message in messages if self._is_new(message, head)]
            is_conflict = False
            for group in _transactions(left):
                if isinstance(group, HandlerFailure):
                    return group
                head, is_conflict = yield from self._write(place, context, mark, head, group)
                if is_conflict:
                    break
            if not is_conflict:
                return None
        return HandlerFailure(
            messages[0].record,
            TryLater(
                f"audit log {self.name!r}: other writers changed the chain of this item during "
                f"each of {_ATTEMPTS} attempts"
            ),
        )

    def _is_new(self, message: Message, head: ChainHead) -> bool:
        """Whether the chain that ends at ``head`` does not contain the change yet.

        An item of a snapshot has no sequence number to compare. It is new if its chain is empty.
        """
        if message.record.is_snapshot:
            return head.number == 0
        return int(message.record.sequence) > int(head.sequence)

    def _head(self, place: Place, mark: str) -> Work[ChainHead]:
        request = {
            "TableName": place.table,
            "Key": self._head_key(place, mark),
            "ConsistentRead": True,
        }
        item = (yield Call("GetItem", request, _LABEL)).get("Item")
        return ChainHead() if item is None else _read_head(item)

    def _write(
        self,
        place: Place,
        context: Context,
        mark: str,
        head: ChainHead,
        messages: Sequence[Message],
    ) -> Work[tuple[ChainHead, bool]]:
        """Append an entry for each message after ``head``, with the new head, in one transaction.

        Returns the new head and False or, after a conflict, the old head and True. Raises TryLater
        if the table is throttled.
        """
        before = head
        actions: list[dict[str, Any]] = []
        for message in messages:
            text = entry_text(orjson.loads(message.body), head.number + 1, head.hash)
            head = ChainHead(
                head.number + 1, entry_hash(text, self._secret), message.record.sequence or "0"
            )
            actions += self._puts(place, mark, head, text)
        actions.append(self._head_put(place, mark, before, head))
        request = {"TransactItems": actions, "ClientRequestToken": context.token()}
        try:
            yield Call("TransactWriteItems", request, _LABEL)
        except TransactionCanceled as cancelled:
            codes = {reason.get("Code") for reason in cancelled.reasons} - {"None", None}
            if codes <= {"ConditionalCheckFailed", "TransactionConflict"}:
                return before, True
            if codes <= {
                "ConditionalCheckFailed",
                "TransactionConflict",
                "ThrottlingError",
                "ProvisionedThroughputExceeded",
            }:
                raise TryLater(
                    f"audit log {self.name!r} is throttled: {sorted(str(code) for code in codes)}"
                ) from None
            raise
        return head, False

    def _puts(
        self, place: Place, mark: str, head: ChainHead, text: str
    ) -> Iterator[dict[str, Any]]:
        for number, at in enumerate(range(0, len(text), _PIECE)):
            written = Expressions()
            condition = f"attribute_not_exists({written.name(place.partition)})"
            item: Item = {
                **place.key(self._chain(mark), f"{head.number:012d}#{number:03d}"),
                "entry": {"S": text[at : at + _PIECE]},
                "hash": {"S": head.hash},
            }
            put = {"TableName": place.table, "Item": item, "ConditionExpression": condition}
            yield {"Put": written.into(put)}

    def _head_put(
        self, place: Place, mark: str, before: ChainHead, head: ChainHead
    ) -> dict[str, Any]:
        written = Expressions()
        if before.number:
            condition = f"{written.name('hash')} = {written.value({'S': before.hash})}"
        else:
            condition = f"attribute_not_exists({written.name(place.partition)})"
        item: Item = {
            **self._head_key(place, mark),
            "number": {"N": str(head.number)},
            "hash": {"S": head.hash},
            "sequence": {"S": head.sequence},
        }
        return {
            "Put": written.into(
                {"TableName": place.table, "Item": item, "ConditionExpression": condition}
            )
        }

    def _chain(self, mark: str) -> str:
        return f"AUDIT#{self.name}#{mark}"

    def _head_key(self, place: Place, mark: str) -> Item:
        return place.key(f"AUDIT#{self.name}#HEADS#{mark.rpartition('#')[2][:2]}", mark)

    # -- reads

    def history(self, db: Db, entity: type[Any], /, **identity: Any) -> list[AuditEntry]:
        """Return an item's history, oldest first: ``log.history(db, Order, order_id="o1")``."""
        of = db.context.schema.of(entity)
        mark = key_mark(of.table.name, key_text(of.key_from(identity)))
        items = db.run(
            query_all(prefix_query(db.context.schema.place, self._chain(mark), ""), _LABEL)
        )
        return ItemList(
            read_entry(text, digest) for _, text, digest in _entries(db.context.schema.place, items)
        )

    def verify(self, db: Db, *, since: Seal | None = None) -> AuditReport:
        """Read the whole log, check every entry, and report all problems.

        With ``since``, also report every chain in that seal that was changed or removed since.
        """
        return db.run(self._verify(db.context.schema.place, since or Seal({})))[0]

    def seal(self, db: Db) -> Seal:
        """Return a seal: the heads of all chains as they are now.

        The log is verified first. Raises SinkRefused if it has problems.
        """
        report, heads = db.run(self._verify(db.context.schema.place, Seal({})))
        if not report.is_sound:
            raise SinkRefused(
                f"audit log {self.name!r} is not sound: {report.problems[0]}",
                hint="call verify() for all problems",
            )
        return Seal({chain: (head.number, head.hash) for chain, head in heads.items()})

    def _verify(self, place: Place, since: Seal) -> Work[tuple[AuditReport, dict[str, ChainHead]]]:
        """Verify the log with one Scan, which returns a partition's items together and in order.

        Entries appended during the scan are not a problem: a head that does not match is read
        again.
        """
        report, heads = AuditReport(), dict[str, ChainHead]()
        checks: dict[str, ChainCheck] = {}
        prefix = f"AUDIT#{self.name}#"
        written = Expressions()
        condition = f"begins_with({written.name(place.partition)}, {written.value({'S': prefix})})"
        request = written.into(
            {"TableName": place.table, "FilterExpression": condition, "ConsistentRead": True}
        )
        pages = ItemPages[Item](request, _LABEL, lambda item: item, "Scan")
        pending: list[Item] = []
        while not pages.is_done:
            for item in (yield from pages.page()):
                partition = item[place.partition]["S"].removeprefix(prefix)
                if partition.startswith("HEADS#"):
                    heads[item[place.sort]["S"]] = _read_head(item)
                    continue
                if pending and pending[0][place.partition] != item[place.partition]:
                    self._check_chain(place, pending, prefix, since, checks, report)
                    pending = []
                pending.append(item)
        if pending:
            self._check_chain(place, pending, prefix, since, checks, report)
        for chain, check in checks.items():
            yield from self._end_chain(place, check, heads.get(chain), report)
        for chain in (heads.keys() | since.heads.keys()) - checks.keys():
            gone = ChainCheck(chain, self._secret, since.heads.get(chain))
            yield from self._end_chain(place, gone, heads.get(chain), report)
        report.problems.sort(key=lambda problem: (problem.chain, problem.number))
        return report, {chain: check.head for chain, check in checks.items()}

    def _check_chain(
        self,
        place: Place,
        items: list[Item],
        prefix: str,
        since: Seal,
        checks: dict[str, ChainCheck],
        report: AuditReport,
    ) -> None:
        chain = items[0][place.partition]["S"].removeprefix(prefix)
        check = checks[chain] = ChainCheck(chain, self._secret, since.heads.get(chain))
        for number, text, digest in _entries(place, items):
            check.add(number, text, digest)
            report.entries += 1

    def _end_chain(
        self, place: Place, check: ChainCheck, stored: ChainHead | None, report: AuditReport
    ) -> Work[None]:
        if stored is None or stored.hash != check.head.hash:  # appended to during the scan, perhaps
            stored = yield from self._reread(place, check, stored)
        check.end(stored)
        report.chains += 1
        report.problems += check.problems

    def _reread(
        self, place: Place, check: ChainCheck, stored: ChainHead | None
    ) -> Work[ChainHead | None]:
        head = yield from self._head(place, check.chain)
        if head.number == 0:
            return stored
        items = yield from query_all(prefix_query(place, self._chain(check.chain), ""), _LABEL)
        for number, text, digest in _entries(place, items):
            if number > check.head.number and number <= head.number:
                check.add(number, text, digest)
        return head


def _read_head(item: Item) -> ChainHead:
    return ChainHead(int(item["number"]["N"]), item["hash"]["S"], item["sequence"]["S"])


def _entries(place: Place, items: Sequence[Item]) -> Iterator[tuple[int, str, str]]:
    """Yield the number, text and hash of each entry.

    The text of a large entry is split over several items, and joined here. If an attribute is
    missing, the text or hash is empty, and ``ChainCheck`` reports the entry as changed.
    """
    joined: dict[str, list[Item]] = {}
    for item in items:
        joined.setdefault(item[place.sort]["S"].partition("#")[0], []).append(item)
    for number, pieces in joined.items():
        text = "".join(piece.get("entry", {}).get("S", "") for piece in pieces)
        yield int(number), text, pieces[0].get("hash", {}).get("S", "")


def _transactions(messages: Sequence[Message]) -> Iterator[Sequence[Message] | HandlerFailure]:
    """Divide the changes into groups that each fit into one transaction, and yield the groups.

    For a change that is too large for any transaction, yield a failure and stop.
    """
    group: list[Message] = []
    actions = size = 0
    for message in messages:
        length = len(entry_text(orjson.loads(message.body), 10**12, "0" * 64))
        if length > _MAX_TRANSACTION:
            if group:
                yield group
            yield HandlerFailure(
                message.record,
                SinkRefused(
                    f"the audit entry has {length:,} bytes; the limit is {_MAX_TRANSACTION:,}"
                ),
            )
            return
        pieces = -(-length // _PIECE)
        if group and (actions + pieces > _MAX_ACTIONS or size + length > _MAX_TRANSACTION):
            yield group
            group, actions, size = [], 0, 0
        group.append(message)
        actions += pieces
        size += length
    if group:
        yield group
