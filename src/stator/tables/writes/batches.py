"""Batches: any number of puts and deletes in as few requests as possible, with nothing dropped.

Items are sent in windows of a few dozen parallel requests. Within a window the last change to a key
wins, as if the changes had been made one after the other. The next window starts when the current
one has ended, so a later change never overtakes an earlier one. A request holds up to 25 items and
16 MB.

Unprocessed items are retried with back-off. A refused request is halved until the faulty item is
alone, so that one bad item does not fail twenty-four good ones. The result names every change that
was not made, and the reason.

BatchWriteItem takes no conditions. Entities that need them (a version or a unique field), entities
with large values, and deletes that name more than the key are written one by one, in parallel with
the rest. So are the other changes of an item that such a delete is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Literal, get_args

import orjson

from stator.backoff import Backoff
from stator.design.plan.html_table import html_table
from stator.errors import (
    BatchFailed,
    DesignError,
    OutcomeUnknown,
    RequestRefused,
    SerializationFailed,
    ServiceError,
    StatorError,
    Throttled,
    ValidationFailed,
)
from stator.errors.data import FailedWrite
from stator.model.limits import BATCH_WRITE_BYTES, BATCH_WRITE_ITEMS
from stator.model.quantities import plural
from stator.model.values import Item
from stator.tables.context import Context
from stator.tables.schema.entity_map import EntityMap, refused_by_hook
from stator.tables.unknown_outcome import unproven
from stator.tables.work import Call, Gather, Pause, Work
from stator.tables.writes.sender import is_about_a_number, too_large, with_number, write
from stator.tables.writes.statements import Statement
from stator.tables.writes.writes import WritePlanner
from stator.transport import ResentReply

OnError = Literal["raise", "collect"]
"""What a batch does with changes that failed: raise BatchFailed, or return them."""
WINDOW_REQUESTS = 40
_LEFT_OUT_ATTEMPTS = 12
_BACKOFF = Backoff(base_seconds=0.05, cap_seconds=5.0)
_ROOM_BYTES = BATCH_WRITE_BYTES - 64 * 1024


class Delete:
    """A delete in a batch: ``Delete(Order, order_id="o1")``."""

    __slots__ = ("entity", "values")

    def __init__(self, entity: type[Any], /, **identity: Any) -> None:
        self.entity = entity
        self.values = identity

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"Delete({self.entity.__name__}, {shown})"


@dataclass(slots=True)
class BatchResult:
    """The result of a batch.

    ``written`` counts the changes that were made. A change that a later change to the same key
    replaced counts as made.
    """

    written: int = 0
    failures: list[FailedWrite] = field(default_factory=list)
    requests: int = 0

    def _repr_html_(self) -> str:
        """Return the failures for a notebook, below the counts."""
        return html_table(
            f"{self.written:,} written in {plural(self.requests, 'request')}, "
            f"{len(self.failures)} failed",
            ("change", "error"),
            ((repr(each.change), str(each.error)) for each in self.failures),
        )

    @property
    def ok(self) -> bool:
        """Whether every change was written."""
        return not self.failures

    def raise_for_failures(self) -> None:
        """Raise BatchFailed, which carries the failures, if there are any."""
        if self.failures:
            raise BatchFailed(self.written, self.failures) from self.failures[0].error

    def settled(self, on_error: OnError) -> BatchResult:
        """Return this result. If a write failed and ``on_error`` is "raise", raise BatchFailed."""
        if on_error == "raise":
            self.raise_for_failures()
        return self

    def add(self, other: BatchResult) -> None:
        self.written += other.written
        self.failures += other.failures
        self.requests += other.requests


def check_on_error(on_error: OnError) -> None:
    """Refuse a value of ``on_error`` other than "raise" and "collect"."""
    if on_error not in get_args(OnError):
        raise RequestRefused(
            f"on_error={on_error!r} is neither 'raise' nor 'collect'",
            hint="use 'raise' to get an exception, or 'collect' to get the failures in the result",
        )


class BatchWrite:
    """The one write that a batch sends for a key: the last of the changes to that key.

    ``stands_for`` counts these changes. ``entry`` is the write's part of RequestItems, as JSON.
    ``key`` is the key of the written item. ``key_of`` returns the key of an unprocessed item of a
    reply in the same form. ``done`` is called once the write has succeeded.
    """

    __slots__ = ("done", "entry", "key", "key_of", "source", "stands_for", "table")

    def __init__(
        self,
        source: Any,
        table: str,
        key_of: Callable[[Item], Any],
        key: Any,
        entry: bytes,
        done: Callable[[], None] | None = None,
    ) -> None:
        self.source = source
        self.table = table
        self.key_of = key_of
        self.key = (table, key)
        self.entry = entry
        self.done = done
        self.stands_for = 1


class Batch:
    """Cuts a stream of changes into windows and sends them."""

    def __init__(self, context: Context, changes: Iterable[Any]) -> None:
        self.context = context
        self.prepare = WritePlanner(context)
        self._changes: Iterator[Any] = iter(changes)

    def window(self) -> Work[BatchResult | None]:
        """Send the next window and return its result, or None when no changes are left."""
        taken = list(islice(self._changes, WINDOW_REQUESTS * BATCH_WRITE_ITEMS))
        if not taken:
            return None
        result = BatchResult()
        plain: dict[Any, BatchWrite] = {}
        single: list[Any] = []
        maps, now = self.context.schema.maps, self.context.now()
        conditional = self._conditionally_deleted(taken)
        for change in taken:
            try:
                of = maps.get(type(change)) or self._entity_of(change)
                is_marked = of.deleted is not None and type(change) is Delete
                if (
                    of.is_written_alone
                    or is_marked
                    or (conditional and self._item(change) in conditional)
                ):
                    single.append(change)
                    continue
                made = self._made(of, change, now)
            except StatorError as error:
                result.failures.append(FailedWrite(change, error))
                continue
            keep_last_write(plain, made)
        parts = [send_writes(self.context, chunk) for chunk in chunks(plain.values())]
        parts += [self._one_by_one(group) for group in self._groups(single)]
        for each in (yield Gather(parts)):
            if isinstance(each, BaseException):
                raise each
            result.add(each)
        return result

    def _entity_of(self, change: Any) -> EntityMap:
        schema = self.context.schema
        return (
            schema.of_class(change.entity)
            if isinstance(change, Delete)
            else schema.of_object(change)
        )

    # -- many at once

    def _made(self, of: EntityMap, change: Any, now: float) -> BatchWrite:
        if type(change) is Delete:
            values = of.given(change.values)
            if not of.has_base(values):
                raise DesignError(
                    f"the key of {of.name} needs {of.info.listed(of.base_fields)}",
                    hint="pass them all to Delete",
                )
            key = of.key_from(values)
            entry = b'{"DeleteRequest":{"Key":%b}}' % orjson.dumps(key)
            return BatchWrite(change, of.table.name, of.key_values, of.key_values(key), entry)
        stamps = None
        made = change
        if of.has_stamps:
            stamped = of.stamped_or_refused(
                change, now, fresh=False, token=self.prepare.new_write_token(of)
            )
            made, stamps = stamped.made, stamped.changes
        try:
            key, entry = of.bulk_entry(made)
        except TypeError as error:  # text that is not Unicode, such as half of a surrogate pair
            raise SerializationFailed(
                f"{of.shown_entity(change)} cannot be sent as JSON: {error}"
            ) from None
        done = None if stamps is None else partial(of.write_back, change, stamps)
        return BatchWrite(change, of.table.name, of.key_values, key, entry, done)

    # -- one by one

    def _groups(self, changes: list[Any]) -> list[list[Any]]:
        """Group the changes by item. Changes to the same item stay in order."""
        groups: dict[Any, list[Any]] = {}
        for change in changes:
            groups.setdefault(self._item(change), []).append(change)
        return list(groups.values())

    def _conditionally_deleted(self, changes: list[Any]) -> set[Any]:
        """Return the items that a delete names with more than their key, or by a variant's class.

        Such a delete applies only to an item that fits.
        """
        found = set()
        for change in changes:
            if type(change) is Delete:
                try:
                    of = self._entity_of(change)
                    if of.beside_the_key(of.given(change.values)):
                        found.add(self._item(change))
                except StatorError:
                    continue  # the change becomes a failure when it is prepared
        return found

    def _item(self, change: Any) -> Any:
        """The item that a change is about. Variants of one class have their items in common."""
        of = self._entity_of(change)
        is_delete = isinstance(change, Delete)
        values = of.given(change.values) if is_delete else vars_of(change, of)
        return (of.table.name, of.info.root, *(repr(values.get(name)) for name in of.identity))

    def _one_by_one(self, changes: list[Any]) -> Work[BatchResult]:
        result = BatchResult()
        for change in changes:
            result.requests += 1
            try:
                yield from write(self.context, partial(self._prepared, change), "batch")
                result.written += 1
            except StatorError as error:
                result.failures.append(FailedWrite(change, error))
            except Exception as error:
                of = self._entity_of(change)
                if not of.before_write or isinstance(change, Delete):
                    raise
                result.failures.append(FailedWrite(change, refused_by_hook(of, change, error)))
        return result

    def _prepared(self, change: Any) -> Work[list[Statement]]:
        if isinstance(change, Delete):
            of = self.context.schema.of_class(change.entity)
            return self.prepare.delete(of, of.given(change.values))
        return self.prepare.put(change)


def keep_last_write(changes: dict[Any, BatchWrite], change: BatchWrite) -> None:
    """Add a change. It replaces an earlier change to the same key."""
    earlier = changes.pop(change.key, None)
    if earlier is not None:
        change.stands_for += earlier.stands_for
    changes[change.key] = change


def send_writes(
    context: Context,
    chunk: list[BatchWrite],
    label: str = "batch",
    *,
    is_uncertain: bool = False,
    unprocessed_to: list[BatchWrite] | None = None,
    raise_table_limit: bool = False,
) -> Work[BatchResult]:
    """Send one BatchWriteItem, and repeat it until every write has succeeded or failed.

    ``is_uncertain`` says that an earlier answer was lost: a write that fails now may have been
    applied then. Unprocessed writes are retried. A caller that spreads hot keys passes the list
    ``unprocessed_to``. Unprocessed writes are then added to the list instead, and a write that is
    refused for a hot key fails without a retry. With ``raise_table_limit``, so does one that is
    refused for a limit of its table.
    """
    result = BatchResult()
    left = chunk
    is_spread = unprocessed_to is not None
    for attempt in range(_LEFT_OUT_ATTEMPTS):
        result.requests += 1
        request = {"RequestItems": _entries(left)}
        try:
            reply = yield Call(
                "BatchWriteItem",
                request,
                label,
                raise_hot_key=is_spread,
                raise_table_limit=raise_table_limit,
            )
        except StatorError as error:
            if not isinstance(error, ServiceError) or error.retryable or len(left) == 1:
                failed = unproven(error, is_uncertain=is_uncertain)
                if isinstance(failed, ValidationFailed) and len(left) == 1:
                    failed = _explained_refusal(left[0], failed)
                result.failures += [FailedWrite(change.source, failed) for change in left]
            else:
                is_uncertain = is_uncertain or error.sent
                yield from _halves(
                    context, left, result, label, unprocessed_to, is_uncertain=is_uncertain
                )
            return result
        is_uncertain = is_uncertain or isinstance(reply, ResentReply)
        unprocessed = _unprocessed(reply, left)
        for change in left:
            if change.key not in unprocessed:
                result.written += change.stands_for
                if change.done is not None:
                    change.done()
        left = [change for change in left if change.key in unprocessed]
        if not left:
            return result
        if unprocessed_to is not None and not is_uncertain:
            unprocessed_to += left
            return result
        yield Pause(context.backoff(attempt, _BACKOFF))
    late: StatorError = Throttled(f"DynamoDB left the item unprocessed {_LEFT_OUT_ATTEMPTS} times")
    if is_uncertain:
        late = OutcomeUnknown(f"the write may or may not have happened: {late.message}")
    result.failures += [FailedWrite(change.source, late) for change in left]
    return result


def _explained_refusal(change: BatchWrite, refused: ValidationFailed) -> ValidationFailed:
    item = orjson.loads(change.entry).get("PutRequest", {}).get("Item")
    shown = f"put of {type(change.source).__name__}"
    if refused.message.startswith("Item size "):
        return too_large(shown, item, refused)
    return with_number(shown, item, refused) if is_about_a_number(refused) else refused


def _halves(
    context: Context,
    chunk: list[BatchWrite],
    result: BatchResult,
    label: str,
    unprocessed_to: list[BatchWrite] | None,
    *,
    is_uncertain: bool,
) -> Work[None]:
    middle = len(chunk) // 2
    for half in (chunk[:middle], chunk[middle:]):
        sent = send_writes(
            context, half, label, is_uncertain=is_uncertain, unprocessed_to=unprocessed_to
        )
        result.add((yield from sent))


def vars_of(entity: Any, of: EntityMap) -> dict[str, Any]:
    return {name: getattr(entity, name) for name in of.identity}


def chunks(changes: Iterable[BatchWrite]) -> Iterator[list[BatchWrite]]:
    chunk: list[BatchWrite] = []
    size = 0
    for change in changes:
        if len(chunk) == BATCH_WRITE_ITEMS or (chunk and size + len(change.entry) > _ROOM_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(change)
        size += len(change.entry)
    if chunk:
        yield chunk


def _entries(changes: list[BatchWrite]) -> dict[str, list[Any]]:
    """Return RequestItems, whose entries are already JSON."""
    by_table: dict[str, list[Any]] = {}
    for change in changes:
        by_table.setdefault(change.table, []).append(orjson.Fragment(change.entry))
    return by_table


def _unprocessed(reply: dict[str, Any], sent: list[BatchWrite]) -> set[Any]:
    left = reply.get("UnprocessedItems") or {}
    if not left:
        return set()
    key_of = {change.table: change.key_of for change in sent}
    found = set()
    for table, entries in left.items():
        for entry in entries:
            [body] = entry.values()
            found.add((table, key_of[table](body.get("Item") or body["Key"])))
    return found
