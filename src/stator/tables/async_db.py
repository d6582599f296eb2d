"""``Db``: a design's tables, typed. Every method is short; the work is planned in the modules beside this one.

db = connect(shop)
db.create(User(user_id="u1", email="a@example.com", name="Anna"))
for order in db.fetch(orders_of_user("u1")):
    ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
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
from stator.tables.async_runner import AsyncRunner
from stator.tables.context import Context
from stator.tables.db import as_identity, one_call, upserted
from stator.tables.lifecycle import TableSettings, TableSetup
from stator.tables.observers import Meter
from stator.tables.reads import reads
from stator.tables.reads.reads import EntityScan, Page, PatternRead, ReadOptions
from stator.tables.work import Work
from stator.tables.writes.batches import Batch, BatchResult, Delete
from stator.tables.writes.open_update import AsyncUpdate
from stator.tables.writes.sender import Returns, write, write_entity
from stator.tables.writes.transactions import Transaction, target
from stator.tables.writes.writes import WritePlanner

E = TypeVar("E")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
T = TypeVar("T")


class AsyncDb:
    def __init__(self, context: Context, runner: AsyncRunner, meter: Meter | None = None) -> None:
        self.context = context
        self.runner = runner
        self.meter = meter
        self._prepare = WritePlanner(context)

    async def __aenter__(self) -> AsyncDb:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.runner.close()

    def within(self, seconds: float) -> AsyncDb:
        """The same, with a deadline for each call: retries included, it takes no longer."""
        return AsyncDb(self.context, self.runner.within(seconds), self.meter)

    async def run(self, work: Work[T]) -> T:
        """Carry out work of your own, or of a pattern object."""
        return await self.runner.run(work)

    async def call(
        self, operation: str, request: Mapping[str, Any], *, idempotent: bool | None = None
    ) -> dict[str, Any]:
        """The raw way out: an operation of DynamoDB by name, in DynamoDB JSON. ``idempotent`` says whether it may be sent again when its answer
        is lost; by default, updates and statements may not, and a transaction gets a token."""
        return await self.runner.run(one_call(self.context, operation, request, idempotent))

    async def ensure(self, settings: TableSettings | None = None) -> list[str]:
        """Make the tables, or bring them to the design; says what it changed."""
        return await self.runner.run(TableSetup(self.context, settings or TableSettings()).run())

    # -- single items

    async def create(self, entity: Any, *, when: Any = None) -> None:
        """Write a new item. ItemExists if there is one; UniqueTaken if another has a unique value of it."""
        of = self.context.schema.of_object(entity)
        await self.runner.run(
            write(self.context, lambda: self._prepare.create(entity, when), f"create {of.name}")
        )

    async def put(
        self, entity: E, *, when: Any = None, returns: Literal["old"] | None = None
    ) -> E | None:
        """Write an item whether there is one or not. VersionConflict if it has a version and that is not the stored one."""
        prepare = lambda: self._prepare.put(entity, when)  # noqa: E731 - prepared anew after each race
        of = self.context.schema.of_object(entity)
        old: E | None = await self.runner.run(
            write_entity(self.context, of, prepare, f"put {of.name}", returns)
        )
        return old

    async def upsert(self, entity: E, *, when: Any = None) -> E:
        """Create an item, or set every field of the one there is; gives it as it is now."""
        made: E = await self.runner.run(upserted(self.context, self._prepare, entity, when))
        return made

    async def get(
        self,
        entity: type[E],
        /,
        *,
        consistent: bool = False,
        include_expired: bool = False,
        **identity: Any,
    ) -> E | None:
        of = self.context.schema.of(entity)
        found: E | None = await self.runner.run(
            reads.get(
                self.context, of, identity, consistent=consistent, include_expired=include_expired
            )
        )
        return found

    async def get_many(
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
        return await self.runner.run(
            reads.get_many(
                self.context, of, wanted, consistent=consistent, include_expired=include_expired
            )
        )

    async def exists(
        self, entity: type[Any], /, *, consistent: bool = False, **identity: Any
    ) -> bool:
        return await self.get(entity, consistent=consistent, **identity) is not None

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
    ) -> AsyncUpdate[E]: ...
    @overload
    def update(
        self, entity: E, /, *, when: Any = None, returns: Returns | None = None, once: bool = False
    ) -> AsyncUpdate[E]: ...
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
    ) -> AsyncUpdate[Any]:
        """``async with db.update(User, user_id="u1") as u: u.name = "Anna"`` is one UpdateItem, and reads nothing.

        Begun with an object, it holds only if the stored item has the object's version, and the object is brought up to date.
        ``or_create`` makes an item of the changes and the fields' defaults where there is none. ``once`` sends it as a transaction with a token: twice the write units, and never applied twice.
        """
        return AsyncUpdate(
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
    async def delete(
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
    async def delete(
        self,
        entity: E,
        /,
        *,
        when: Any = None,
        must_exist: bool = False,
        keep_blobs: bool = False,
        returns: Literal["old"] | None = None,
    ) -> E | None: ...
    async def delete(
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
        return await self.runner.run(
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
    ) -> AsyncIterator[E]: ...
    @overload
    def fetch(
        self,
        query: Bundle2[A, B],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> AsyncIterator[A | B]: ...
    @overload
    def fetch(
        self,
        query: Bundle3[A, B, C],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> AsyncIterator[A | B | C]: ...
    @overload
    def fetch(
        self,
        query: Bundle4[A, B, C, D],
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> AsyncIterator[A | B | C | D]: ...
    @overload
    def fetch(
        self,
        query: BundleMany,
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> AsyncIterator[Any]: ...
    def fetch(
        self,
        query: Question,
        *,
        limit: int | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> AsyncIterator[Any]:
        """Everything a pattern finds, page after page as it is asked for."""
        reading = PatternRead(self.context, query, ReadOptions(consistent, include_expired))
        return self._fetched(reading, reads.fetch_limit(limit, reading.limit))

    async def _fetched(self, reading: PatternRead, left: int | None) -> AsyncIterator[Any]:
        while left is None or left > 0:
            found = await self.runner.run(reading.page(left))
            for entity in found:
                yield entity
            if not found:
                return
            left = None if left is None else left - len(found)

    @overload
    async def page(
        self,
        query: Query[E],
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[E]: ...
    @overload
    async def page(
        self,
        query: Bundle2[A, B],
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[A | B]: ...
    @overload
    async def page(
        self,
        query: Bundle3[A, B, C],
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[A | B | C]: ...
    @overload
    async def page(
        self,
        query: Bundle4[A, B, C, D],
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[A | B | C | D]: ...
    @overload
    async def page(
        self,
        query: BundleMany,
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[Any]: ...
    async def page(
        self,
        query: Question,
        *,
        limit: int,
        cursor: str | None = None,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> Page[Any]:
        """Up to ``limit`` items, and a cursor for the next page."""
        return await self.runner.run(
            reads.page(self.context, query, limit, cursor, ReadOptions(consistent, include_expired))
        )

    @overload
    async def first(
        self, query: Query[E], *, consistent: bool | None = None, include_expired: bool = False
    ) -> E | None: ...
    @overload
    async def first(
        self, query: Question, *, consistent: bool | None = None, include_expired: bool = False
    ) -> Any: ...
    async def first(
        self, query: Question, *, consistent: bool | None = None, include_expired: bool = False
    ) -> Any:
        """The first item a pattern finds, or None."""
        return await self.runner.run(
            reads.first(self.context, query, ReadOptions(consistent, include_expired))
        )

    async def count(
        self,
        query: Query[Any] | Count[Any],
        *,
        consistent: bool | None = None,
        include_expired: bool = False,
    ) -> int:
        """How many items a pattern finds. They are read, and paid for, but do not travel.

        An index that holds keys only does not know what has expired: until the service deletes such items, they count there.
        """
        return await self.runner.run(
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
    ) -> AsyncIterator[E]:
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

    async def _scanned(self, scanning: EntityScan) -> AsyncIterator[Any]:
        while not scanning.is_done:
            for entity in await self.runner.run(scanning.page()):
                yield entity

    # -- several at once

    @asynccontextmanager
    async def transaction(self, *, token: str | None = None) -> AsyncIterator[Transaction]:
        """All the writes in the block, or none of them: sent once when it ends, not at all if it raises."""
        transaction = Transaction(self.context, token)
        yield transaction
        await self.runner.run(transaction.commit())

    async def write_many(self, changes: Iterable[Any]) -> BatchResult:
        """Put entities and ``Delete(...)`` them, any number, in batches. The result names what could not be written."""
        batch, result = Batch(self.context, changes), BatchResult()
        while (done := await self.runner.run(batch.window())) is not None:
            result.add(done)
        return result

    async def delete_many(self, entity: type[Any], identities: Iterable[Any]) -> BatchResult:
        of = self.context.schema.of(entity)
        return await self.write_many(
            Delete(entity, **as_identity(of.identity, each)) for each in identities
        )
