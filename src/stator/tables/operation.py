"""Operations of pattern objects: planned once, run by the Db that the object was created with.

    class Counter(OnDb[D]):
        @operation
        def add(self, amount: int) -> Work[int]: ...

    Counter(db, "views").add(1)                 an int
    await Counter(async_db, "views").add(1)     an int, awaited

Type checkers see both. Inside a pattern, ``yield from self.add.work(1)`` makes the operation part
of another. ``Db`` itself uses plain functions instead (see ``db``), which ``help()`` and
``inspect`` show with their signatures and docstrings.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from stator.errors import ConfigurationError, RequestRefused
from stator.tables.argument_rules import checked_method, named
from stator.tables.context import Context
from stator.tables.db import AsyncDb, Db
from stator.tables.unknown_outcome import proven
from stator.tables.work import Pages, Work

D = TypeVar("D", bound=Db | AsyncDb)
P = ParamSpec("P")
S = TypeVar("S", bound="OnDb[Any]")
T = TypeVar("T")


class OnDb(Generic[D]):
    """The base of pattern objects, such as a Counter or a Series, on a Db or an AsyncDb."""

    def __init__(self, db: D) -> None:
        kind = type(self).__name__
        context_of(db, f"{kind}()", f"{kind}(connect(shop), ...)")
        self.db: D = db

    @property
    def context(self) -> Context:
        """The schema, clock and transport of the Db. Pattern objects of your own need it."""
        return self.db.context


def check_block(db: Db | AsyncDb, shown: str, *, is_awaited: bool) -> None:
    """Raise RequestRefused for ``with`` on an AsyncDb, or ``async with`` on a Db."""
    if isinstance(db, AsyncDb) is not is_awaited:
        right = "with" if is_awaited else "async with"
        raise RequestRefused(
            f"{shown} was entered by `{'async with' if is_awaited else 'with'}` on "
            f"{named(type(db))}",
            hint=f"write `{right} {shown}`",
        )


def context_of(given: Any, what: str, example: str) -> Context:
    """Return the context of a Db. Raises ConfigurationError for anything else.

    ``what`` is the call that takes the Db, and ``example`` a right call, for the message.
    """
    # Workers make pattern objects on a stand-in, which has only the context.
    context = getattr(given, "context", None)
    if not isinstance(context, Context):
        raise ConfigurationError(
            f"{what} works on a Db or an AsyncDb, not on {named(type(given))}",
            hint=f"open one: {example}",
        )
    return context


class Bound(Generic[P, T]):
    """An operation bound to one pattern object. Calling it runs the operation.

    ``work`` plans the operation without running it, so that other work can include it.
    """

    __slots__ = ("_instance", "_plan")

    def __init__(self, instance: Any, plan: Callable[..., Work[T]]) -> None:
        self._instance = instance
        self._plan = plan

    def work(self, *args: P.args, **kwargs: P.kwargs) -> Work[T]:
        return self._plan(self._instance, *args, **kwargs)


class BoundSync(Bound[P, T]):
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._instance.db.run(proven(self._plan(self._instance, *args, **kwargs)))
        return result


class BoundAsync(Bound[P, T]):
    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._instance.db.run(proven(self._plan(self._instance, *args, **kwargs)))
        return result


class operation(Generic[S, P, T]):
    """Decorates a method that plans work, so that calling it runs the work."""

    def __init__(self, plan: Callable[Concatenate[S, P], Work[T]]) -> None:
        self._plan = checked_method(plan, shown=plan.__qualname__)
        self.__doc__ = plan.__doc__

    @overload
    def __get__(self, instance: OnDb[Db], owner: Any) -> BoundSync[P, T]: ...
    @overload
    def __get__(self, instance: OnDb[AsyncDb], owner: Any) -> BoundAsync[P, T]: ...
    @overload
    def __get__(self, instance: OnDb[Any], owner: Any) -> Bound[P, T]: ...
    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        kind = BoundAsync if isinstance(instance.db, AsyncDb) else BoundSync
        return kind(instance, self._plan)


class BoundIteration(Generic[P, T]):
    __slots__ = ("_instance", "_start")

    def __init__(self, instance: Any, start: Callable[..., Pages[T]]) -> None:
        self._instance = instance
        self._start = start

    def pages(self, *args: P.args, **kwargs: P.kwargs) -> Pages[T]:
        """Return the pages, so that other work can read them."""
        return self._start(self._instance, *args, **kwargs)


class SyncIteration(BoundIteration[P, T]):
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        pages = self._start(self._instance, *args, **kwargs)
        while not pages.is_done:
            yield from self._instance.db.run(pages.page())


class AsyncIteration(BoundIteration[P, T]):
    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        pages = self._start(self._instance, *args, **kwargs)
        while not pages.is_done:
            for each in await self._instance.db.run(pages.page()):
                yield each


class iteration(Generic[S, P, T]):
    """Decorates a method that returns pages, so that calling it iterates over their items."""

    def __init__(self, start: Callable[Concatenate[S, P], Pages[T]]) -> None:
        self._start = checked_method(start, shown=start.__qualname__)
        self.__doc__ = start.__doc__

    @overload
    def __get__(self, instance: OnDb[Db], owner: Any) -> SyncIteration[P, T]: ...
    @overload
    def __get__(self, instance: OnDb[AsyncDb], owner: Any) -> AsyncIteration[P, T]: ...
    @overload
    def __get__(self, instance: OnDb[Any], owner: Any) -> BoundIteration[P, T]: ...
    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        kind = AsyncIteration if isinstance(instance.db, AsyncDb) else SyncIteration
        return kind(instance, self._start)
