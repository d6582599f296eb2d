"""``with`` and ``async with``: blocks that refuse the wrong one of the two, with what to write.

Python's own error for the wrong word names a class of the standard library, or a method with
underscores. Type checkers do not see the methods that refuse: they report the wrong word as well.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from stator.errors import RequestRefused

T = TypeVar("T")


class OnlyWith:
    """Refuses ``async with``. ``_shown`` is the block in the error, such as ``db.update(...)``."""

    __slots__ = ()
    _shown: str

    if not TYPE_CHECKING:

        async def __aenter__(self) -> NoReturn:
            raise RequestRefused(
                f"`async with` cannot be used with {self._shown} here",
                hint=f"write `with {self._shown}`",
            )

        async def __aexit__(self, *_: object) -> None:
            """Never called: ``__aenter__`` refuses the block."""


class OnlyAsyncWith:
    """Refuses ``with``. ``_shown`` is the block in the error, such as ``db.update(...)``."""

    __slots__ = ()
    _shown: str

    if not TYPE_CHECKING:

        def __enter__(self) -> NoReturn:
            raise RequestRefused(
                f"`with` cannot be used with {self._shown} here: its database is awaited",
                hint=f"write `async with {self._shown}`",
            )

        def __exit__(self, *_: object) -> None:
            """Never called: ``__enter__`` refuses the block."""


class WithBlock(OnlyWith, AbstractContextManager[T]):
    """A block that is entered by ``with``."""

    def __init__(self, inner: AbstractContextManager[T], shown: str) -> None:
        self._inner = inner
        self._shown = shown

    def __enter__(self) -> T:
        return self._inner.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Any:
        return self._inner.__exit__(kind, error, trace)


class AsyncWithBlock(OnlyAsyncWith, AbstractAsyncContextManager[T]):
    """A block that is entered by ``async with``."""

    def __init__(self, inner: AbstractAsyncContextManager[T], shown: str) -> None:
        self._inner = inner
        self._shown = shown

    async def __aenter__(self) -> T:
        return await self._inner.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Any:
        return await self._inner.__aexit__(kind, error, trace)
