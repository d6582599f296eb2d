"""``Db`` and ``AsyncDb``: a design's tables, typed, with blocking or awaited methods.

    db = connect(shop)
    db.create(User(user_id="u1", email="a@example.com", name="Anna"))
    for order in db.fetch(orders_of_user("u1")):
        ...

Neither class holds logic. ``DbOperations`` defines each operation; the functions below turn a
method that plans work into one that runs it, and keep its parameters, generic types, overloads and
docstring. mypy and pyright both see ``db.get(User, user_id="u1")`` as ``User | None``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from stator.design.patterns.explanation import Explanation
from stator.design.patterns.query import Question
from stator.errors import RequestRefused
from stator.model.seconds import check_seconds
from stator.tables.argument_rules import named
from stator.tables.async_runner import AsyncRunner
from stator.tables.blocks import AsyncWithBlock, OnlyAsyncWith, OnlyWith, WithBlock
from stator.tables.context import Context
from stator.tables.db_operations import DbOperations
from stator.tables.dry_run import DryRun
from stator.tables.observers import Meter
from stator.tables.runner import Runner
from stator.tables.work import Pages, Work
from stator.tables.writes.open_update import AsyncUpdate, OpenUpdate, SyncUpdate
from stator.tables.writes.transactions import Transaction

E = TypeVar("E")
P = ParamSpec("P")
T = TypeVar("T")


# -- from a method that plans to one that runs, blocking


def _run(plan: Callable[Concatenate[DbOperations, P], Work[T]]) -> Callable[Concatenate[Db, P], T]:
    def run(db: Db, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return db.runner.run(plan(db.operations, *args, **kwargs))

    return _described(run, plan, "Db", "{}")


def _iterate(
    plan: Callable[Concatenate[DbOperations, P], Pages[T]],
) -> Callable[Concatenate[Db, P], Iterator[T]]:
    def iterate(db: Db, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return db.runner.iterate(plan(db.operations, *args, **kwargs))

    return _described(iterate, plan, "Db", "Iterator[{}]")


def _open_update(
    plan: Callable[Concatenate[DbOperations, P], OpenUpdate[E]],
) -> Callable[Concatenate[Db, P], SyncUpdate[E]]:
    def update(db: Db, /, *args: P.args, **kwargs: P.kwargs) -> SyncUpdate[E]:
        return SyncUpdate(db.runner, plan(db.operations, *args, **kwargs))

    return _described(update, plan, "Db", "SyncUpdate[{}]")


def _open_transaction(
    plan: Callable[Concatenate[DbOperations, P], Transaction],
) -> Callable[Concatenate[Db, P], AbstractContextManager[Transaction]]:
    @contextmanager
    def opened(db: Db, transaction: Transaction) -> Iterator[Transaction]:
        yield transaction
        db.runner.run(transaction.commit())

    def transaction(
        db: Db, /, *args: P.args, **kwargs: P.kwargs
    ) -> AbstractContextManager[Transaction]:
        return WithBlock(opened(db, plan(db.operations, *args, **kwargs)), "db.transaction()")

    return _described(transaction, plan, "Db", "AbstractContextManager[Transaction]")


# -- the same, awaited


def _await(
    plan: Callable[Concatenate[DbOperations, P], Work[T]],
) -> Callable[Concatenate[AsyncDb, P], Coroutine[Any, Any, T]]:
    async def run(db: AsyncDb, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await db.runner.run(plan(db.operations, *args, **kwargs))

    return _described(run, plan, "AsyncDb", "{}")


def _iterate_async(
    plan: Callable[Concatenate[DbOperations, P], Pages[T]],
) -> Callable[Concatenate[AsyncDb, P], AsyncIterator[T]]:
    def iterate(db: AsyncDb, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return db.runner.iterate(plan(db.operations, *args, **kwargs))

    return _described(iterate, plan, "AsyncDb", "AsyncIterator[{}]")


def _open_update_async(
    plan: Callable[Concatenate[DbOperations, P], OpenUpdate[E]],
) -> Callable[Concatenate[AsyncDb, P], AsyncUpdate[E]]:
    def update(db: AsyncDb, /, *args: P.args, **kwargs: P.kwargs) -> AsyncUpdate[E]:
        return AsyncUpdate(db.runner, plan(db.operations, *args, **kwargs))

    return _described(update, plan, "AsyncDb", "AsyncUpdate[{}]")


def _open_transaction_async(
    plan: Callable[Concatenate[DbOperations, P], Transaction],
) -> Callable[Concatenate[AsyncDb, P], AbstractAsyncContextManager[Transaction]]:
    @asynccontextmanager
    async def opened(db: AsyncDb, transaction: Transaction) -> AsyncIterator[Transaction]:
        yield transaction
        await db.runner.run(transaction.commit())

    def transaction(
        db: AsyncDb, /, *args: P.args, **kwargs: P.kwargs
    ) -> AbstractAsyncContextManager[Transaction]:
        return AsyncWithBlock(opened(db, plan(db.operations, *args, **kwargs)), "db.transaction()")

    return _described(transaction, plan, "AsyncDb", "AbstractAsyncContextManager[Transaction]")


_F = TypeVar("_F", bound=Callable[..., Any])


def _described(method: _F, plan: Callable[..., Any], owner: str, result: str) -> _F:
    """Copy the name, docstring and signature of a planning method to the method that runs it.

    ``result`` is the return type of the new method. ``{}`` in it stands for the type inside the
    planning method's ``Work[...]`` or ``Pages[...]``.
    """
    returned = str(plan.__annotations__["return"])
    inner = re.fullmatch(r"\w+\[(.*)\]", returned)
    signature = inspect.signature(plan).replace(
        return_annotation=result.format(inner[1] if inner is not None else returned)
    )
    described: Any = method
    # Python names the method if an argument is missing or unknown.
    inspect.unwrap(plan).__qualname__ = plan.__name__
    described.__name__ = plan.__name__
    described.__qualname__ = f"{owner}.{plan.__name__}"
    described.__doc__ = plan.__doc__
    described.__signature__ = signature
    return method


def shown_connection(kind: str, context: Context, runner: Runner | AsyncRunner) -> str:
    """Return the ``repr`` of a Db: its design, its address and its tables. No credentials."""
    tables = ", ".join(sorted(context.schema.tables))
    closed = " closed" if runner.is_closed else ""
    where = getattr(runner.transport, "address", type(runner.transport).__name__)
    return f"<{kind}{closed} {context.schema.design.name} at {where}: {tables}>"


def _one_process(kind: str) -> RequestRefused:
    return RequestRefused(
        f"{'an' if kind == 'AsyncDb' else 'a'} {kind} cannot be copied or pickled: it holds an "
        "open connection",
        hint="share it among the threads of a process, and open another with "
        f"{'connect_async' if kind == 'AsyncDb' else 'connect'}(...) in each process",
    )


def _work(given: Work[T]) -> Work[T]:
    """Return work as it is. Raises RequestRefused for anything that is not work."""
    found: Any = given
    if not isinstance(found, Generator):
        raise RequestRefused(
            f"db.run() takes work, not {named(type(found))}",
            hint="pass an operation that plans: db.run(counter.add.work(1))",
        )
    return given


class Db(OnlyWith):
    """Access to a design's tables through blocking methods; ``connect`` returns one.

    With ``connect(..., measure=True)``, ``meter`` adds up the consumed capacity of each pattern.
    ``close()``, or the end of a ``with`` block, closes the connection.
    """

    _shown = "connect(...)"

    def __init__(
        self,
        context: Context,
        runner: Runner,
        meter: Meter | None = None,
        *,
        owns_connection: bool = True,
    ) -> None:
        self.context = context
        self.runner = runner
        self.meter = meter
        self._owns_connection = owns_connection
        self.operations = DbOperations(context)

    def __enter__(self) -> Db:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return shown_connection("Db", self.context, self.runner)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise _one_process("Db")

    def close(self) -> None:
        """Close the connection. If the Db opened a folder, its engine is closed, too.

        Does nothing for a Db that ``within`` returned: the connection belongs to the first one.
        """
        if self._owns_connection:
            self.runner.close()

    def within(self, seconds: float) -> Db:
        """Return a Db on the same connection with a deadline per call, retries included.

        Write ``db.within(5).get(User, user_id="u1")``, or ``with db.within(5) as quick: ...``. The
        end of such a block does not close the connection.
        """
        check_seconds("db.within()", seconds=seconds)
        runner = self.runner.within(seconds)
        return Db(self.context, runner, self.meter, owns_connection=False)

    def run(self, work: Work[T]) -> T:
        """Run work, your own or that of a pattern object, and return its result."""
        return self.runner.run(_work(work))

    def explain(self, query: Question) -> Explanation:
        """Return the requests of a pattern, with index, cost and reasons. Nothing is sent."""
        return self.operations.explain(query)

    def dry_run(self) -> DryRun:
        """Return an object whose writes are explained instead of sent: ``dry.put(order)``."""
        return DryRun(self.operations)

    call = _run(DbOperations.call)
    ensure = _run(DbOperations.ensure)

    create = _run(DbOperations.create)
    put = _run(DbOperations.put)
    upsert = _run(DbOperations.upsert)
    get = _run(DbOperations.get)
    get_one = _run(DbOperations.get_one)
    get_many = _run(DbOperations.get_many)
    snapshot = _run(DbOperations.snapshot)
    exists = _run(DbOperations.exists)
    update = _open_update(DbOperations.update)
    patch = _run(DbOperations.patch)
    delete = _run(DbOperations.delete)
    restore = _run(DbOperations.restore)

    fetch = _iterate(DbOperations.fetch)
    page = _run(DbOperations.page)
    first = _run(DbOperations.first)
    first_or_raise = _run(DbOperations.first_or_raise)
    all = _run(DbOperations.all)
    grouped = _run(DbOperations.grouped)
    count = _run(DbOperations.count)
    scan = _iterate(DbOperations.scan)

    transaction = _open_transaction(DbOperations.transaction)
    write_many = _run(DbOperations.write_many)
    delete_many = _run(DbOperations.delete_many)
    delete_where = _run(DbOperations.delete_where)
    update_where = _run(DbOperations.update_where)


class AsyncDb(OnlyAsyncWith):
    """Access to a design's tables through awaitable methods; ``connect_async`` returns one.

    With ``connect_async(..., measure=True)``, ``meter`` adds up the consumed capacity of each
    pattern. ``await db.close()``, or the end of an ``async with`` block, closes the connection.
    """

    _shown = "connect_async(...)"

    def __init__(
        self,
        context: Context,
        runner: AsyncRunner,
        meter: Meter | None = None,
        *,
        owns_connection: bool = True,
    ) -> None:
        self.context = context
        self.runner = runner
        self.meter = meter
        self._owns_connection = owns_connection
        self.operations = DbOperations(context)

    async def __aenter__(self) -> AsyncDb:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return shown_connection("AsyncDb", self.context, self.runner)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise _one_process("AsyncDb")

    async def close(self) -> None:
        """Close the connection. If the AsyncDb opened a folder, its engine is closed, too.

        Does nothing for an AsyncDb that ``within`` returned, as in ``Db.close``.
        """
        if self._owns_connection:
            await self.runner.close()

    def within(self, seconds: float) -> AsyncDb:
        """Return an AsyncDb on the same connection with a deadline per call, retries included."""
        check_seconds("db.within()", seconds=seconds)
        runner = self.runner.within(seconds)
        return AsyncDb(self.context, runner, self.meter, owns_connection=False)

    async def run(self, work: Work[T]) -> T:
        """Run work, your own or that of a pattern object, and return its result."""
        return await self.runner.run(_work(work))

    def explain(self, query: Question) -> Explanation:
        """Return the requests of a pattern, with index, cost and reasons. Nothing is sent."""
        return self.operations.explain(query)

    def dry_run(self) -> DryRun:
        """Return an object whose writes are explained instead of sent. Do not await them."""
        return DryRun(self.operations)

    call = _await(DbOperations.call)
    ensure = _await(DbOperations.ensure)

    create = _await(DbOperations.create)
    put = _await(DbOperations.put)
    upsert = _await(DbOperations.upsert)
    get = _await(DbOperations.get)
    get_one = _await(DbOperations.get_one)
    get_many = _await(DbOperations.get_many)
    snapshot = _await(DbOperations.snapshot)
    exists = _await(DbOperations.exists)
    update = _open_update_async(DbOperations.update)
    patch = _await(DbOperations.patch)
    delete = _await(DbOperations.delete)
    restore = _await(DbOperations.restore)

    fetch = _iterate_async(DbOperations.fetch)
    page = _await(DbOperations.page)
    first = _await(DbOperations.first)
    first_or_raise = _await(DbOperations.first_or_raise)
    all = _await(DbOperations.all)
    grouped = _await(DbOperations.grouped)
    count = _await(DbOperations.count)
    scan = _iterate_async(DbOperations.scan)

    transaction = _open_transaction_async(DbOperations.transaction)
    write_many = _await(DbOperations.write_many)
    delete_many = _await(DbOperations.delete_many)
    delete_where = _await(DbOperations.delete_where)
    update_where = _await(DbOperations.update_where)
