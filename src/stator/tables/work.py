"""Work: what the data layer does, as generators that do no I/O themselves.

A read or a write is a generator. It yields what it wants done, gets the answer sent back, and returns its result; an error of a call is
thrown into it where it waits. Two small runners (``runner``, ``async_runner``) carry work out, one with blocking calls and one with
awaited ones, so that everything between a ``Db`` method and the transport is written once.

    def exists(key: Item) -> Work[bool]:
        reply = yield Call("GetItem", {"TableName": "shop", "Key": key})
        return "Item" in reply
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, Union

T = TypeVar("T")
Items = TypeVar("Items", covariant=True)


@dataclass(slots=True)
class Call:
    """One request. ``label`` says what it is for, a pattern's name or ``put Order``: capacity is summed by it."""

    operation: str
    request: dict[str, Any]
    label: str = ""
    idempotent: bool = True


@dataclass(slots=True)
class Gather:
    """Several at once, each a call or work of its own. The answer is a list in the same order, with errors in their places."""

    parts: Sequence[Call | Generator[Any, Any, Any]]


@dataclass(slots=True)
class Pause:
    seconds: float


@dataclass(slots=True)
class BlockingCall:
    """A blocking function that is not a call of DynamoDB, such as one that asks an object store."""

    function: Callable[[], Any]


Effect = Union[Call, Gather, Pause, BlockingCall]
Work = Generator[Effect, Any, T]


class Pages(Protocol[Items]):
    """Something read page by page until ``is_done``. A page may be empty before the end."""

    @property
    def is_done(self) -> bool: ...

    def page(self) -> Work[Sequence[Items]]: ...


def gathered(results: Sequence[Any]) -> Sequence[Any]:
    """The results of a ``Gather``, when every part must have succeeded."""
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
