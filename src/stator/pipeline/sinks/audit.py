"""``AuditLog``: who did what to every item, when, and how it was before and after; only ever added to, and verifiable.

Each item has a chain of entries (audit_chain.py), in the design's own table:

    PK  AUDIT#ledger#shop#5c0a…      SK  000000000002#000     entry (JSON text, in pieces where it is large), hash
    PK  AUDIT#ledger#HEADS#5c        SK  shop#5c0a…           number, hash, sequence: of the last entry

Entries and head are written in one transaction, on condition that the head is the one the entries follow from and that there are no entries of their numbers. A change
that comes again, after a crash, has a sequence number that the head is past, and is left out: each change is there once.

What ``verify`` finds: an entry that was changed, removed, added or moved, a chain cut off at its end, a head that was removed.
What it cannot find by itself: one who can write the table and makes a whole chain anew, hashes and head and all, or removes it whole. Against the first there is
``secret``: without it no hash can be made, so keep it from those who are watched. Against both there is ``seal``: a list of where each chain stood, to be kept
elsewhere; ``verify(db, since=seal)`` tells when anything sealed is not there as it was. What was never in the stream is not in the log: it says nothing of
writes before the stream was on. Nor does DynamoDB say who wrote: ``who`` is a field of the entity that your program fills in. For a deletion there is no new item to
hold it, and ``who`` is None; the service's own deletions, of items whose time was over, are by ``dynamodb.amazonaws.com``.
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
from stator.tables.schema import Place
from stator.tables.work import Call, Gather, Work
from stator.tables.writes.expressions import Expressions

SERVICE: Final = "dynamodb.amazonaws.com"
_LABEL: Final = "audit log"
_PIECE: Final = 300_000
# A transaction has 100 actions and 4 MB at most: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
_MAX_ACTIONS: Final = 90
_MAX_TRANSACTION: Final = 3_500_000
_ATTEMPTS: Final = 5


class AuditLog(ChangeSink):
    def __init__(
        self,
        name: str,
        *,
        who: Any = None,
        secret: str | bytes | None = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``who`` is a field, ``Order.changed_by``, or the name of one that several entities have."""
        super().__init__(name, options)
        if "#" in name:
            raise ConfigurationError(
                f"{name!r} is no name for an audit log", hint="a word without #"
            )
        if options.keys() & {"transform", "images"}:
            raise ConfigurationError(
                "an audit log keeps items as they are", hint="leave transform= and images= out"
            )
        self._who = who.name if isinstance(who, FieldRef) else who
        self._secret = secret.encode() if isinstance(secret, str) else secret

    # -- writing

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
        """The changes of one item. If somebody else wrote to its chain meanwhile, from where that stands."""
        for _ in range(_ATTEMPTS):
            head = yield from self._head(place, mark)
            left = [message for message in messages if self._is_new(message, head)]
            is_conflict = False
            for group in _transactions(left):
                if isinstance(group, HandlerFailure):
                    return group
                head, is_conflict = yield from self._written(place, context, mark, head, group)
                if is_conflict:
                    break
            if not is_conflict:
                return None
        return HandlerFailure(
            messages[0].record, TryLater("others write to the same chain all the time")
        )

    def _is_new(self, message: Message, head: ChainHead) -> bool:
        """An item of a snapshot is of interest where nothing is known of it."""
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

    def _written(
        self,
        place: Place,
        context: Context,
        mark: str,
        head: ChainHead,
        messages: Sequence[Message],
    ) -> Work[tuple[ChainHead, bool]]:
        """The head after it, and whether there was a conflict instead."""
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
                    f"the audit log is throttled: {sorted(str(code) for code in codes)}"
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

    # -- reading

    def history(self, db: Db, entity: type[Any], /, **identity: Any) -> list[AuditEntry]:
        """What happened to an item, oldest first: ``log.history(db, Order, order_id="o1")``."""
        of = db.context.schema.of(entity)
        mark = key_mark(of.table.name, key_text(of.key_from(identity)))
        items = db.run(
            query_all(prefix_query(db.context.schema.place, self._chain(mark), ""), _LABEL)
        )
        return [
            read_entry(text, digest) for _, text, digest in _entries(db.context.schema.place, items)
        ]

    def verify(self, db: Db, *, since: Seal | None = None) -> AuditReport:
        """Read the whole log and check every entry; with ``since``, also that everything sealed is there as it was."""
        return db.run(self._verified(db.context.schema.place, since or Seal({})))[0]

    def seal(self, db: Db) -> Seal:
        """Where every chain stands now. Raises SinkRefused if the log is not sound."""
        report, heads = db.run(self._verified(db.context.schema.place, Seal({})))
        if not report.is_sound:
            raise SinkRefused(
                f"the audit log {self.name} is not sound: {report.problems[0]}", hint="see verify()"
            )
        return Seal({chain: (head.number, head.hash) for chain, head in heads.items()})

    def _verified(
        self, place: Place, since: Seal
    ) -> Work[tuple[AuditReport, dict[str, ChainHead]]]:
        """One Scan, which gives the items of a partition together and in order: a chain at a time, and all heads.

        What is appended while it runs is no problem: only a head that tells of less than there is, or of more, is looked at once more.
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
                    self._checked(place, pending, prefix, since, checks, report)
                    pending = []
                pending.append(item)
        if pending:
            self._checked(place, pending, prefix, since, checks, report)
        for chain, check in checks.items():
            yield from self._ended(place, check, heads.get(chain), report)
        for chain in (heads.keys() | since.heads.keys()) - checks.keys():
            gone = ChainCheck(chain, self._secret, since.heads.get(chain))
            yield from self._ended(place, gone, heads.get(chain), report)
        report.problems.sort(key=lambda problem: (problem.chain, problem.number))
        return report, {chain: check.head for chain, check in checks.items()}

    def _checked(
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

    def _ended(
        self, place: Place, check: ChainCheck, told: ChainHead | None, report: AuditReport
    ) -> Work[None]:
        if told is None or told.hash != check.head.hash:  # perhaps appended to while we read
            told = yield from self._reread(place, check, told)
        check.end(told)
        report.chains += 1
        report.problems += check.problems

    def _reread(
        self, place: Place, check: ChainCheck, told: ChainHead | None
    ) -> Work[ChainHead | None]:
        head = yield from self._head(place, check.chain)
        if head.number == 0:
            return told
        items = yield from query_all(prefix_query(place, self._chain(check.chain), ""), _LABEL)
        for number, text, digest in _entries(place, items):
            if number > check.head.number and number <= head.number:
                check.add(number, text, digest)
        return head


def _read_head(item: Item) -> ChainHead:
    return ChainHead(int(item["number"]["N"]), item["hash"]["S"], item["sequence"]["S"])


def _entries(place: Place, items: Sequence[Item]) -> Iterator[tuple[int, str, str]]:
    """Number, text and hash, with pieces joined. What is not there is empty, and so found to be changed."""
    joined: dict[str, list[Item]] = {}
    for item in items:
        joined.setdefault(item[place.sort]["S"].partition("#")[0], []).append(item)
    for number, pieces in joined.items():
        text = "".join(piece.get("entry", {}).get("S", "") for piece in pieces)
        yield int(number), text, pieces[0].get("hash", {}).get("S", "")


def _transactions(messages: Sequence[Message]) -> Iterator[Sequence[Message] | HandlerFailure]:
    """As many changes at once as a transaction takes; a failure in place of one that is too large for any."""
    group: list[Message] = []
    actions = size = 0
    for message in messages:
        length = len(entry_text(orjson.loads(message.body), 10**12, "0" * 64))
        if length > _MAX_TRANSACTION:
            if group:
                yield group
            yield HandlerFailure(
                message.record, SinkRefused(f"the entry would have {length:,} bytes")
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
