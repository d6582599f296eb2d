"""``Db``: a design's tables, typed. Every method is short; the work is planned in the modules beside this one.

db = connect(shop)
db.create(User(user_id="u1", email="a@example.com", name="Anna"))
for order in db.fetch(orders_of_user("u1")):
    ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, TypeVar, overload

from stator.design.patterns.explanation import Explanation
from stator.design.patterns.pattern import (
    Bundle2,
    Bundle3,
    Bundle4,
    BundleMany,
    Count,
    Query,
    Question,
)
from stator.tables.context import Context
from stator.tables.lifecycle import TableSettings, TableSetup
from stator.tables.observers import Meter
from stator.tables.reads import reads
from stator.tables.reads.reads import EntityScan, Page, PatternRead, ReadOptions
from stator.tables.runner import Runner
from stator.tables.work import Call, Work
from stator.tables.writes.batches import Batch, BatchResult, Delete
from stator.tables.writes.open_update import SyncUpdate
from stator.tables.writes.sender import Returns, write, write_entity
from stator.tables.writes.transactions import Transaction, target
from stator.tables.writes.writes import WritePlanner

E = TypeVar("E")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
T = TypeVar("T")


class Db:
    def __init__(self, context: Context, runner: Runner, meter: Meter | None = None) -> None:
        self.context = context
        self.runner = runner
        self.meter = meter
        self._prepare = WritePlanner(context)

    def __enter__(self) -> Db:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.runner.close()

    def within(self, seconds: float) -> Db:
        """The same, with a deadline for each call: retries included, it takes no longer."""
        return Db(self.context, self.runner.within(seconds), self.meter)

    def run(self, work: Work[T]) -> T:
        """Carry out work of your own, or of a pattern object."""
        return self.runner.run(work)

    def call(
        self, operation: str, request: Mapping[str, Any], *, idempotent: bool | None = None
    ) -> dict[str, Any]:
        """The raw way out: an operation of DynamoDB by name, in DynamoDB JSON. ``idempotent`` says whether it may be sent again when its answer
        is lost; by default, updates and statements may not, and a transaction gets a token."""
        return self.runner.run(one_call(self.context, operation, request, idempotent))

    def ensure(self, settings: TableSettings | None = None) -> list[str]:
        """Make the tables, or bring them to the design; says what it changed."""
        return self.runner.run(TableSetup(self.context, settings or TableSettings()).run())

    # -- single items

    def create(self, entity: Any, *, when: Any = None) -> None:
        """Write a new item. ItemExists if there is one; UniqueTaken if another has a unique value of it."""
        of = self.context.schema.of_object(entity)
        self.runner.run(
            write(self.context, lambda: self._prepare.create(entity, when), f"create {of.name}")
        )

    def put(
        self, entity: E, *, when: Any = None, returns: Literal["old"] | None = None
    ) -> E | None:
        """Write an item whether there is one or not. VersionConflict if it has a version and that is not the stored one."""
        prepare = lambda: self._prepare.put(entity, when)  # noqa: E731 - prepared anew after each race
        of = self.context.schema.of_object(entity)
        old: E | None = self.runner.run(
            write_entity(self.context, of, prepare, f"put {of.name}", returns)
        )
        return old

    def upsert(self, entity: E, *, when: Any = None) -> E:
        """Create an item, or set every field of the one there is; gives it as it is now."""
        made: E = self.runner.run(upserted(self.context, self._prepare, entity, when))
        return made

    def get(
        self,
        entity: type[E],
        /,
        *,
        consistent: bool = False,
        include_expired: bool = False,
        **identity: Any,
    ) -> E | None:
        of = self.context.schema.of(entity)
        found: E | None = self.runner.run(
            reads.get(
                self.context, of, identity, consistent=consistent, include_expired=include_expired
            )
        )
        return found

    def get_many(
        self,
        entity: type[E],
        identities: Iterable[Any],
        *,
        consistent: bool = False,
        include_expired: bool = False,
    ) -> list[E | None]:
        """Each identity is a mapping of fields, or the value itself where one field is the identity."""
        of = self.context.schema.of(entity)
        wanted = [as_identity(of.identity, each) for each in identities]
        return self.runner.run(
            reads.get_many(
                self.context, of, wanted, consistent=consistent, include_expired=include_expired
            )
        )

    def exists(self, entity: type[Any], /, *, consistent: bool = False, **identity: Any) -> bool:
        return self.get(entity, consistent=consistent, **identity) is not None

    @overload
    def update(
        self,
        entity: type[E],
        /,
        *,
        when: Any = None,
        or_create: bool = False,
        returns: Returns | None = None,
        once: bool = False,
        **identity: Any,
    ) -> SyncUpdate[E]: ...
    @overload
    def update(
        self, entity: E, /, *, when: Any = None, returns: Returns | None = None, once: bool = False
    ) -> SyncUpdate[E]: ...
    def update(
        self,
        entity: Any,
        /,
        *,
        when: Any = None,
        or_create: bool = False,
        returns: Returns | None = None,
        once: bool = False,
        **identity: Any,
    ) -> SyncUpdate[Any]:
        """``with db.update(User, user_id="u1") as u: u.name = "Anna"`` is one UpdateItem, and reads nothing.

        Begun with an object, it holds only if the stored item has the object's version, and the object is brought up to date.
        ``or_create`` makes an item of the changes and the fields' defaults where there is none. ``once`` sends it as a transaction with a token: twice the write units, and never applied twice.
        """
        return SyncUpdate(
            self.runner,
            self.context,
            entity,
            identity,
            when=when,
            or_create=or_create,
            returns=returns,
            once=once,
        )

    @overload
    def delete(
        self,
        entity: type[E],
        /,
        *,
        when: Any = None,
        must_exist: bool = False,
        keep_blobs: bool = False,
        returns: Literal["old"] | None = None,
        **identity: Any,
    ) -> E | None: ...
    @overload
    def delete(
        self,
        entity: E,
        /,
        *,
        when: Any = None,
        must_exist: bool = False,
        keep_blobs: bool = False,
        returns: Literal["old"] | None = None,
    ) -> E | None: ...
    def delete(
        self,
        entity: Any,
        /,
        *,
        when: Any = None,
        must_exist: bool = False,
        keep_blobs: bool = False,
        returns: Literal["old"] | None = None,
        **identity: Any,
    ) -> Any:
        """By class and identity, or an object as it was read: then only if it has still the same version."""
        of, values, given = target(self.context, entity, identity)
        prepare = lambda: self._prepare.delete(  # noqa: E731 - prepared anew after each race
            of, values, entity=given, when=when, must_exist=must_exist, keep_blobs=keep_blobs
        )
        return self.runner.run(
            write_entity(self.context, of, prepare, f"delete {of.name}", returns)
        )

    # -- patterns

    @overload
    def fetch(
        self,
        query: Query[E],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Iterator[E]: ...
    @overload
    def fetch(
        self,
        query: Bundle2[A, B],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Iterator[A | B]: ...
    @overload
    def fetch(
        self,
        query: Bundle3[A, B, C],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Iterator[A | B | C]: ...
    @overload
    def fetch(
        self,
        query: Bundle4[A, B, C, D],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Iterator[A | B | C | D]: ...
    @overload
    def fetch(
        self,
        query: BundleMany,
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Iterator[Any]: ...
    def fetch(
        self,
        query: Question,
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Iterator[Any]:
        """Everything a pattern finds, page after page as it is asked for."""
        reading = PatternRead(self.context, query, ReadOptions(consistent, include_expired))
        return self._fetched(reading, reads.fetch_limit(limit, reading.limit))

    def _fetched(self, reading: PatternRead, left: int | None) -> Iterator[Any]:
        while left is None or left > 0:
            found = self.runner.run(reading.page(left))
            yield from found
            if not found:
                return
            left = None if left is None else left - len(found)

    @overload
    def page(
        self,
        query: Query[E],
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[E]: ...
    @overload
    def page(
        self,
        query: Bundle2[A, B],
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[A | B]: ...
    @overload
    def page(
        self,
        query: Bundle3[A, B, C],
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[A | B | C]: ...
    @overload
    def page(
        self,
        query: Bundle4[A, B, C, D],
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[A | B | C | D]: ...
    @overload
    def page(
        self,
        query: BundleMany,
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[Any]: ...
    def page(
        self,
        query: Question,
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[Any]:
        """Up to ``limit`` items, and a cursor for the next page."""
        return self.runner.run(
            reads.page(self.context, query, limit, cursor, ReadOptions(consistent, include_expired))
        )

    @overload
    def first(
        self, query: Query[E], *, consistent: bool | None = None, include_expired: bool = False
    ) -> E | None: ...
    @overload
    def first(
        self, query: Question, *, consistent: bool | None = None, include_expired: bool = False
    ) -> Any: ...
    def first(
        self, query: Question, *, consistent: bool | None = None, include_expired: bool = False
    ) -> Any:
        """The first item a pattern finds, or None."""
        return self.runner.run(
            reads.first(self.context, query, ReadOptions(consistent, include_expired))
        )

    def count(
        self,
        query: Query[Any] | Count[Any],
        *,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> int:
        """How many items a pattern finds. They are read, and paid for, but do not travel.

        An index that holds keys only does not know what has expired: until the service deletes such items, they count there.
        """
        return self.runner.run(
            PatternRead(self.context, query, ReadOptions(consistent, include_expired)).count()
        )

    def explain(self, query: Question) -> Explanation:
        """The exact requests of a pattern's call in the plan that is in force, with the index, the cost and the reasons."""
        return reads.explained(self.context, query)

    def scan(
        self,
        entity: type[E],
        /,
        *,
        allow: bool = False,
        segments: int = 1,
        consistent: bool = False,
        include_expired: bool = False,
    ) -> Iterator[E]:
        """Every item of an entity, by reading its whole table. ``allow=True`` says that this is meant."""
        of = self.context.schema.of(entity)
        scanning = EntityScan(
            self.context,
            of,
            allow=allow,
            segments=segments,
            options=ReadOptions(consistent, include_expired),
        )
        return self._scanned(scanning)

    def _scanned(self, scanning: EntityScan) -> Iterator[Any]:
        while not scanning.is_done:
            yield from self.runner.run(scanning.page())

    # -- several at once

    @contextmanager
    def transaction(self, *, token: str | None = None) -> Iterator[Transaction]:
        """All the writes in the block, or none of them: sent once when it ends, not at all if it raises."""
        transaction = Transaction(self.context, token)
        yield transaction
        self.runner.run(transaction.commit())

    def write_many(self, changes: Iterable[Any]) -> BatchResult:
        """Put entities and ``Delete(...)`` them, any number, in batches. The result names what could not be written."""
        batch, result = Batch(self.context, changes), BatchResult()
        while (done := self.runner.run(batch.window())) is not None:
            result.add(done)
        return result

    def delete_many(self, entity: type[Any], identities: Iterable[Any]) -> BatchResult:
        of = self.context.schema.of(entity)
        return self.write_many(
            Delete(entity, **as_identity(of.identity, each)) for each in identities
        )


def as_identity(names: tuple[str, ...], given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {names[0]: given}


def upserted(context: Context, preparation: WritePlanner, entity: Any, when: Any) -> Work[Any]:
    of = context.schema.of_object(entity)
    item = yield from write(
        context, lambda: preparation.upsert(entity, when), f"upsert {of.name}", returns="new"
    )
    if item is None:  # it went out as a transaction, which returns nothing
        item = yield from preparation.stored(of, of.key_of(entity))
    if item is None:
        return None
    [made] = yield from reads.decoded(context, of, [item])
    stamps = [name for name in (of.version, of.created, of.updated, of.ttl) if name is not None]
    of.write_back(entity, {name: getattr(made, name) for name in stamps})
    return made


_MAY_COUNT_TWICE = frozenset({"UpdateItem", "ExecuteStatement", "BatchExecuteStatement"})
_TAKE_A_TOKEN = frozenset({"TransactWriteItems", "ExecuteTransaction"})


def one_call(
    context: Context, operation: str, request: Mapping[str, Any], idempotent: bool | None
) -> Work[dict[str, Any]]:
    asked = dict(request)
    if operation in _TAKE_A_TOKEN:
        asked.setdefault("ClientRequestToken", context.token())
    if idempotent is None:
        idempotent = operation not in _MAY_COUNT_TWICE
    reply: dict[str, Any] = yield Call(operation, asked, operation, idempotent)
    return reply
