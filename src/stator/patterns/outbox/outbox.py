"""The outbox: a message is written in the transaction of its item and delivered afterwards.

A program that writes an item and then sends a message can die in between: the order is stored, but
no message announces it. If it sends first and dies, the message announces an order that does not
exist. So the message is written with the item, all or nothing, and a *relay* delivers it at least
once, in order:

    PK  OUTBOX#orders#3         SK  01763251200123456#5be1...  _topic, _body, _key, _due     waiting
    PK  OUTBOX#orders#3#SENT    SK  01763251200123456#5be1...  <ttl>                         sent
    PK  OUTBOX#orders#3#PARKED  SK  01763251200123456#5be1...  _attempts, _error             parked
    PK  OUTBOX#orders#KEY#o-17  SK  HEAD     _last, _shard     the last message of a key
    PK  OUTBOX#orders           SK  SHARDS   _shards, _format  the most shards there ever were

Waiting messages are spread over shards, by a hash of their key or at random, so that no partition
is hot. A relay locks a shard (``Lock``), reads it from its beginning, delivers, and moves every
delivered message away, so that the queue stays short.

Order within a key. Messages sort by the microsecond they were written. A message with a key gets a
later microsecond than the last message of that key, and the same shard. It is written on condition
that the key's ``HEAD`` has not changed since it was read. So the order of a key's messages is the
order of the transactions, no matter what the writers' clocks say. A Query may see a transaction
half done. Therefore each message names its predecessor (``_previous``), and the relay checks with a
transactional read that the predecessor is not still waiting. A failed message holds back the later
messages of its key, and no others.

What fails:

- ``send`` raises: the message is retried after a wait that doubles each time, and is *parked* after
  ``max_attempts``. Then the next message of its key is delivered.
- ``send`` raises TryLater: the message is not at fault. The shard is left for the next relay.
- The relay dies: its lease ends, and another relay takes the shard. A message that was delivered
  but not yet moved is delivered again. Receivers recognise it by its id:
  ``Once.seen(message.id)``.
- ``send`` takes longer than the lease: another relay may deliver the same message. Set
  ``lease_seconds`` to more than a delivery takes.

In normal operation no two relays deliver the same message, no matter how many relays run. The
number of shards can change: keys in use stay in their shard, and relays read as many shards as
there ever were.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast, overload
from weakref import WeakKeyDictionary

from stator.backoff import Backoff
from stator.errors import (
    ConditionFailed,
    ConfigurationError,
    LeaseLost,
    LockBusy,
    RequestRefused,
    TransactionFailed,
    TryLater,
)
from stator.model.seconds import check_seconds
from stator.model.values import Item
from stator.patterns.consistent_read import read_snapshot
from stator.patterns.explanation import OperationCost, PatternExplanation
from stator.patterns.item_pages import ItemPages, query_count
from stator.patterns.lock import Lock, LockLease
from stator.patterns.outbox.delivery import RelayResult, Send, deliver, deliver_async
from stator.patterns.outbox.items import (
    FORMAT,
    PARKED,
    SENT,
    MessageDraft,
    OutboxHead,
    OutboxItems,
    OutboxMessage,
    json_text,
)
from stator.tables.argument_rules import checks_arguments, named
from stator.tables.db import AsyncDb, Db
from stator.tables.operation import D, OnDb, iteration, operation
from stator.tables.unknown_outcome import proven
from stator.tables.work import BlockingCall, Call, Gather, Work, gathered
from stator.tables.writes.sender import send_all
from stator.tables.writes.statements import Statement
from stator.tables.writes.transactions import Transaction

_PAGE = 100


@dataclass(slots=True)
class _Claim:
    """A shard that this relay has locked.

    ``read`` holds messages that were read and not delivered yet. ``held_back`` holds the message
    keys whose messages must wait, because an earlier message of the key failed.
    """

    lock: Lock[Any]
    lease: LockLease
    pages: ItemPages[OutboxMessage]
    read: deque[OutboxMessage] = field(default_factory=deque)
    passed: set[str] = field(default_factory=set)
    held_back: set[str] = field(default_factory=set)


@checks_arguments("Outbox")
class Outbox(OnDb[D]):
    """Messages that are stored with a transaction and delivered later.

    Call ``outbox.add(tx, topic=..., body=..., key=...)`` inside ``with db.transaction() as tx``,
    and ``outbox.relay(send)`` in a worker. A relay locks a shard for ``lease_seconds``. A failed
    message is retried after ``retry_seconds``, which double each time, and is parked after
    ``max_attempts``. A message that was sent stays stored for ``keep_seconds``.
    """

    def __init__(
        self,
        db: D,
        name: str,
        *,
        shards: int = 8,
        lease_seconds: float = 30.0,
        max_attempts: int = 10,
        retry_seconds: float = 1.0,
        longest_retry_seconds: float = 300.0,
        keep_seconds: float = 86_400.0,
    ) -> None:
        super().__init__(db)
        if not 1 <= shards <= 1000:
            raise ConfigurationError(
                f"shards={shards} must be between 1 and 1,000",
                hint="choose one shard for every 500 messages per second",
            )
        if max_attempts < 1:
            raise ConfigurationError(
                f"max_attempts={max_attempts} must be 1 or more",
                hint="set the number of deliveries to try before a message is parked",
            )
        check_seconds(
            f"outbox {name}",
            lease_seconds=lease_seconds,
            retry_seconds=retry_seconds,
            longest_retry_seconds=longest_retry_seconds,
        )
        check_seconds(f"outbox {name}", or_zero=True, keep_seconds=keep_seconds)
        self.name = name
        self.lease_seconds = lease_seconds
        self.max_attempts = max_attempts
        self.retry_seconds = retry_seconds
        self.longest_retry_seconds = longest_retry_seconds
        self.keep_seconds = keep_seconds
        self._items = OutboxItems(self.context.schema.place, name, shards)
        self._label = f"outbox {name}"
        self._drafts: WeakKeyDictionary[Transaction, list[MessageDraft]] = WeakKeyDictionary()
        self._is_registered = False

    # -- writing

    def add(self, tx: Transaction, *, topic: str, body: Any, key: str | None = None) -> str:
        """Add a message to the transaction and return the message's id.

        Messages with the same ``key`` are delivered in the order of their transactions.
        """
        draft = MessageDraft(self.context.token(), topic, json_text(body), key)
        drafts = self._drafts.get(tx)
        if drafts is None:
            drafts = self._drafts[tx] = []
            of_tx = drafts
            tx.include(lambda: self._prepare(of_tx))
        drafts.append(draft)
        return draft.id

    def _prepare(self, drafts: list[MessageDraft]) -> Work[list[Statement]]:
        yield from self._register()
        now = self.context.now()
        statements: list[Statement] = []
        was: dict[str, OutboxHead | None] = {}
        heads: dict[str, OutboxHead] = {}
        for draft in drafts:
            if draft.key is None:
                head = OutboxHead(self.context.random.randrange(self._items.shards), None)
            else:
                if draft.key not in heads:
                    found = was[draft.key] = yield from self._head(draft.key)
                    heads[draft.key] = found or OutboxHead(self._items.shard_of(draft.key), None)
                head = heads[draft.key]
            message = self._items.drafted(draft, head, now)
            statements.append(self._items.put(message))
            if draft.key is not None:
                heads[draft.key] = OutboxHead(head.shard, message.position)
        return [
            *statements,
            *(self._items.put_head(key, was[key], head, now) for key, head in heads.items()),
        ]

    def _head(self, key: str) -> Work[OutboxHead | None]:
        item = yield from self._get(self._items.head_key(key))
        return None if item is None else OutboxHead(int(item["_shard"]["N"]), item["_last"]["S"])

    def _register(self) -> Work[None]:
        """Store this Outbox's number of shards, once per object.

        Relays that were created with fewer shards then read all of them.
        """
        if self._is_registered:
            return
        try:
            yield Call("UpdateItem", self._items.register(), self._label)
        except ConditionFailed as known:  # there are as many shards, or more
            FORMAT.check(known.item or {}, self.name)
        self._is_registered = True

    # -- delivering

    @overload
    def relay(self: Outbox[Db], send: Send, *, limit: int = ...) -> RelayResult: ...
    @overload
    def relay(self: Outbox[AsyncDb], send: Send, *, limit: int = ...) -> Awaitable[RelayResult]: ...
    def relay(self, send: Send, *, limit: int = 1000) -> Any:
        """Deliver up to ``limit`` messages that are due, and return a RelayResult.

        With an AsyncDb, await the call; ``send`` may then be async, too.
        """
        if limit < 1:
            raise RequestRefused(
                f"limit={limit} must be 1 or more", hint="leave it out to use the default"
            )
        return (
            self._relay_async(send, limit)
            if isinstance(self.db, AsyncDb)
            else self._relay(send, limit)
        )

    def _relay(self, send: Send, limit: int) -> RelayResult:
        result: RelayResult = cast("Any", self).db.run(proven(self.relaying(send, limit=limit)))
        return result

    def relaying(
        self, send: Send, *, shards: Sequence[int] | None = None, limit: int = 1000
    ) -> Work[RelayResult]:
        """Return the work of ``relay``, a generator of calls, for a worker to run.

        ``send`` receives each message. ``shards`` are the shards to deliver from; None means every
        shard that has messages. ``limit`` bounds the number of messages.
        """
        result = RelayResult()
        for shard in (yield from self._order_of_shards.work()) if shards is None else shards:
            claim = yield from self._claim.work(shard)
            if claim is None:
                result.busy += 1
                continue
            try:
                yield from self._deliver(claim, send, limit, result)
            except Exception:  # not GeneratorExit: abandoned work cannot make requests
                yield from self._release.work(claim)
                raise
            yield from self._release.work(claim)
            if result.attempted >= limit:
                break
        return result

    def _deliver(self, claim: _Claim, send: Send, limit: int, result: RelayResult) -> Work[None]:
        while (
            result.attempted < limit
            and (message := (yield from self._next.work(claim))) is not None
        ):
            try:
                error = yield BlockingCall(partial(deliver, send, message))
            except TryLater:
                result.waiting += 1
                return
            yield from self._settle.work(claim, message, error, result)

    async def _relay_async(self, send: Send, limit: int) -> RelayResult:
        me = cast("Any", self)
        result = RelayResult()
        for shard in await me._order_of_shards():
            claim: _Claim | None = await me._claim(shard)
            if claim is None:
                result.busy += 1
                continue
            try:
                while result.attempted < limit and (message := await me._next(claim)) is not None:
                    await me._settle(claim, message, await deliver_async(send, message), result)
            except TryLater:
                result.waiting += 1
            finally:
                await me._release(claim)
            if result.attempted >= limit:
                break
        return result

    @operation
    def _order_of_shards(self) -> Work[list[int]]:
        """Return the shards with messages, in random order.

        With a fixed order, all relays would start with the same shard.
        """
        known = yield from self._shards()
        order = self.context.random.sample(range(known), known)
        peeks = [Call("Query", self._items.listing(shard, limit=1), self._label) for shard in order]
        replies = gathered((yield Gather(peeks)))
        return [shard for shard, reply in zip(order, replies) if reply["Items"]]

    def _shards(self) -> Work[int]:
        item = yield from self._get(self._items.registry_key())
        FORMAT.check(item or {}, self.name)
        return max(self._items.shards, int(item["_shards"]["N"]) if item is not None else 0)

    @operation
    def _claim(self, shard: int) -> Work[_Claim | None]:
        # A new lock each time: two relays of one object are two owners.
        lock: Lock[Any] = Lock(
            self.db, f"outbox/{self.name}/{shard}", lease_seconds=self.lease_seconds
        )
        try:
            lease = yield from lock.acquire.work()
        except LockBusy:
            return None
        return _Claim(
            lock,
            lease,
            ItemPages(self._items.listing(shard, limit=_PAGE), self._label, self._items.message),
        )

    @operation
    def _release(self, claim: _Claim) -> Work[None]:
        yield from claim.lock.release.work(claim.lease)

    @operation
    def _next(self, claim: _Claim) -> Work[OutboxMessage | None]:
        """Return the next message to deliver.

        Returns None if the shard has no more messages, or if the lease is lost.
        """
        while True:
            if not (yield from self._is_held(claim)):
                return None
            if not claim.read:
                if claim.pages.is_done:
                    return None
                claim.read.extend((yield from claim.pages.page()))
                continue
            message = claim.read.popleft()
            if (yield from self._may_go(claim, message)):
                return message

    def _may_go(self, claim: _Claim, message: OutboxMessage) -> Work[bool]:
        claim.passed.add(message.position)
        if message.key in claim.held_back:
            return False
        is_early = message.due > self.context.now()
        if not is_early and message.previous is not None and message.previous not in claim.passed:
            is_early = yield from self._is_waiting(message, message.previous)
        if is_early and message.key is not None:
            claim.held_back.add(message.key)
        return not is_early

    def _is_waiting(self, message: OutboxMessage, position: str) -> Work[bool]:
        """Whether the message before ``message`` with the same key is still waiting.

        ``position`` is the sort key of that earlier message. The message is read in a transaction,
        because a Query may have missed it while its own transaction was half done.
        """
        key = self._items.message_key(replace(message, position=position))
        [found] = yield from read_snapshot(
            self.context, [(self._items.place.table, key)], self._label
        )
        return found is not None

    def _is_held(self, claim: _Claim) -> Work[bool]:
        """Return whether the lease on the shard lasts long enough to deliver one more message.

        Renews the lease when half of it is over.
        """
        if claim.lease.until - self.context.now() > self.lease_seconds / 2:
            return True
        try:
            yield from claim.lock.renew.work(claim.lease)
        except LeaseLost:
            return False
        return True

    @operation
    def _settle(
        self, claim: _Claim, message: OutboxMessage, error: str | None, result: RelayResult
    ) -> Work[None]:
        """Store the outcome of a delivery: the message was sent, is retried later, or is parked.

        ``error`` is None if it was sent.
        """
        if error is None:
            result.sent += 1
            yield from self._sent(message)
            return
        attempts = message.attempts + 1
        if attempts >= self.max_attempts:
            result.parked += 1
            yield from self._park(replace(message, attempts=attempts, error=error))
            return
        result.failed += 1
        if message.key is not None:
            claim.held_back.add(message.key)
        backoff = Backoff(self.retry_seconds, self.longest_retry_seconds, jitter=0.5)
        due = self.context.now() + self.context.backoff(attempts - 1, backoff)
        try:
            yield Call("UpdateItem", self._items.failed(message, due, error), self._label)
        except ConditionFailed:
            return  # another relay has taken over and counted its own attempt

    def _sent(self, message: OutboxMessage) -> Work[None]:
        statements = [self._items.delete(message)]
        if self.keep_seconds > 0:
            statements.append(
                self._items.put(message, SENT, int(self.context.now() + self.keep_seconds))
            )
        yield from send_all(self.context, statements, self._label)

    def _park(self, message: OutboxMessage) -> Work[None]:
        statements = [
            self._items.delete(message, must_exist=True),
            self._items.put(message, PARKED),
        ]
        try:
            yield from send_all(self.context, statements, self._label)
        except TransactionFailed as failed:
            _only_gone(failed)  # another relay has delivered or parked it

    def shard_of_item(self, keys: Item) -> int | None:
        """Return the shard of a waiting message, from its key, or None for any other item."""
        given: Any = keys
        if not isinstance(given, Mapping):
            raise RequestRefused(
                f"shard_of_item() takes the keys of an item, not {named(type(given))}",
                hint='pass DynamoDB JSON: {"PK": {"S": "..."}, "SK": {"S": "..."}}',
            )
        return self._items.shard_of_partition(
            keys.get(self._items.place.partition, {}).get("S", "")
        )

    # -- looking after it

    @operation
    def count(self) -> Work[int]:
        """Return the number of waiting messages."""
        total = 0
        for shard in range((yield from self._shards())):
            total += yield from query_count(self._items.listing(shard), self._label)
        return total

    @iteration
    def parked(self) -> ParkedMessages:
        """Return the messages that failed ``max_attempts`` times."""
        return ParkedMessages(self._items, self._label, self._shards)

    @operation
    def retry(self, message: OutboxMessage) -> Work[bool]:
        """Put a parked message back into the queue, for delivery at once.

        Returns False if the message is not parked. Later messages with the same key may already
        have been delivered.
        """
        again = replace(message, attempts=0, due=0.0)
        return (yield from self._unpark(message, [self._items.put(again)]))

    @operation
    def discard(self, message: OutboxMessage) -> Work[bool]:
        """Delete a parked message. Returns False if it is not parked."""
        return (yield from self._unpark(message, []))

    def _unpark(self, message: OutboxMessage, more: list[Statement]) -> Work[bool]:
        statements = [self._items.delete(message, PARKED, must_exist=True), *more]
        try:
            yield from send_all(self.context, statements, self._label)
        except TransactionFailed as failed:
            _only_gone(failed)
            return False
        return True

    def _get(self, key: Item) -> Work[Item | None]:
        request = {"TableName": self._items.place.table, "Key": key, "ConsistentRead": True}
        item: Item | None = (yield Call("GetItem", request, self._label)).get("Item")
        return item

    def explain(self) -> PatternExplanation:
        """Return the keys of the outbox's items, and the units and cost of each operation."""
        place, start, shards = self._items.place, self._items.start, self._items.shards
        pk = place.partition
        names = "_topic, _body, _key, _attempts, _due"
        return PatternExplanation(
            f"outbox {self.name}, {shards} shards in {place.table}",
            (
                f"{pk} {start}#0..{shards - 1}  {place.sort} <microsecond>#<id>  {names}",
                f"{pk} {start}#<shard>#SENT, {start}#<shard>#PARKED  {place.sort} as above",
                f"{pk} {start}#KEY#<key>  {place.sort} HEAD  _last, _shard",
            ),
            (
                OperationCost("add", "one more Put in the transaction", 0, 2),
                OperationCost(
                    "add with a key", "GetItem, and two more Puts in the transaction", 1, 4
                ),
                OperationCost(
                    "relay, a message",
                    "TransactWriteItems of 2, and TransactGetItems if it has a key",
                    2,
                    4,
                ),
                OperationCost("relay, an empty shard", "Query", 1),
                OperationCost(
                    "relay, a shard", "two Query, and two UpdateItem for the lease", 2, 2
                ),
            ),
            (
                "delivery is at least once: receivers recognise repetitions by message.id",
                f"a delivery of more than {self.lease_seconds:g} seconds may happen twice",
            ),
        )


class ParkedMessages:
    """The parked messages of an outbox in pages, shard after shard."""

    def __init__(self, items: OutboxItems, label: str, shards: Callable[[], Work[int]]) -> None:
        self._items = items
        self._label = label
        self._shards = shards
        self._left: list[ItemPages[OutboxMessage]] | None = None
        self.is_done = False

    def page(self) -> Work[list[OutboxMessage]]:
        if self._left is None:
            known = yield from self._shards()
            requests = [self._items.listing(shard, PARKED) for shard in range(known)]
            self._left = [
                ItemPages(request, self._label, self._items.message) for request in requests
            ]
        found = yield from self._left[0].page()
        if self._left[0].is_done:
            self._left.pop(0)
        self.is_done = not self._left
        return found


def _only_gone(failed: TransactionFailed) -> None:
    for _, _, error in failed.failures:
        if not isinstance(error, ConditionFailed):
            raise error
