"""Work: reads and writes as generators that do no I/O themselves.

A read or a write is a generator. It yields an effect (a call, several at once, a pause), receives
the answer, and returns its result. If a call fails, its error is raised at the yield. Two small
runners (``runner``, ``async_runner``) execute work, one with blocking calls and one with awaited
ones, so everything between a ``Db`` method and the transport is written once.

    def exists(key: Item) -> Work[bool]:
        reply = yield Call("GetItem", {"TableName": "shop", "Key": key})
        return "Item" in reply
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, Union

from stator.errors import ResourceNotFound, ServiceError

T = TypeVar("T")
Items = TypeVar("Items", covariant=True)


@dataclass(slots=True)
class Call:
    """One DynamoDB request.

    ``label`` names the pattern or the kind of write (``put Order``); capacity is added up for each
    label. ``idempotent`` allows the client to send the request again when its answer is lost.
    """

    operation: str
    request: dict[str, Any]
    label: str = ""
    idempotent: bool = True

    def describe(self, error: ServiceError) -> None:
        """Add what DynamoDB's answer leaves out: the operation, and the table it did not find."""
        error.operation = self.operation
        if isinstance(error, ResourceNotFound) and error.hint is None and self.tables:
            names = ", ".join(self.tables)
            error.hint = f"{self.operation} asked for {names}; db.ensure() creates missing tables"
            error.add_note(f"hint: {error.hint}")

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables in the request."""
        if "TableName" in self.request:
            return (str(self.request["TableName"]),)
        if "RequestItems" in self.request:
            return tuple(self.request["RequestItems"])
        actions = [each for some in self.request.get("TransactItems", ()) for each in some.values()]
        return tuple(dict.fromkeys(str(each["TableName"]) for each in actions))


@dataclass(slots=True)
class Gather:
    """Several calls or pieces of work that run concurrently.

    The answer is a list in the same order. If a part fails, its error takes the place of its
    result.
    """

    parts: Sequence[Call | Generator[Any, Any, Any]]


@dataclass(slots=True)
class Pause:
    seconds: float


@dataclass(slots=True)
class BlockingCall:
    """A blocking function that is not a DynamoDB call, such as a read of an object store."""

    function: Callable[[], Any]


class ConnectionState:
    """Whether the connection that several runners share is closed.

    ``loop`` is the event loop in which an AsyncDb was closed.
    """

    __slots__ = ("is_closed", "loop")

    def __init__(self) -> None:
        self.is_closed = False
        self.loop: object = None


Effect = Union[Call, Gather, Pause, BlockingCall]
Work = Generator[Effect, Any, T]


class Pages(Protocol[Items]):
    """Something that is read page by page until ``is_done``. A page may be empty before the end."""

    @property
    def is_done(self) -> bool: ...

    def page(self) -> Work[Sequence[Items]]: ...


def gathered(results: Sequence[Any]) -> Sequence[Any]:
    """Return the results of a ``Gather``. Raises the first error among them."""
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
