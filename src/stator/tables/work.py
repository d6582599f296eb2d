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

from stator.errors import RequestRefused, ResourceNotFound, ServiceError, ValidationFailed
from stator.transport import CallOptions

T = TypeVar("T")
Items = TypeVar("Items", covariant=True)


@dataclass(slots=True)
class Call:
    """One DynamoDB request.

    ``label`` names the pattern or the kind of write (``put Order``); capacity is added up for each
    label. ``idempotent`` allows the client to send the request again when its answer is lost. With
    ``raise_hot_key``, the client raises the refusal of a hot partition at once and does not retry;
    with ``raise_hot_index``, that of a hot partition of an index, and with ``raise_table_limit``,
    the refusal by a limit of the whole table.
    """

    operation: str
    request: dict[str, Any]
    label: str = ""
    idempotent: bool = True
    raise_hot_key: bool = False
    raise_hot_index: bool = False
    raise_table_limit: bool = False

    def options(self, deadline_seconds: float | None) -> CallOptions:
        """Return the options of the call for a transport."""
        options = CallOptions(idempotent=self.idempotent, deadline_seconds=deadline_seconds)
        if self.raise_hot_key:
            options["raise_hot_key"] = True
        if self.raise_hot_index:
            options["raise_hot_index"] = True
        if self.raise_table_limit:
            options["raise_table_limit"] = True
        return options

    def describe(self, error: ServiceError) -> None:
        """Complete an error of this call with details that DynamoDB's answer does not have.

        The error gets the operation and, if a table or an index was not found, a hint with the
        tables' names.
        """
        error.operation = self.operation
        if error.hint is not None or not self.tables:
            return
        names = ", ".join(self.tables)
        if isinstance(error, ResourceNotFound):
            error.hint = f"{self.operation} asked for {names}; db.ensure() creates missing tables"
        elif isinstance(error, ValidationFailed) and "the specified index" in error.message:
            error.hint = f"db.ensure() adds missing indexes to {names}; stator diff lists them"
        else:
            return
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
    """The effect of several calls or pieces of work that run concurrently.

    The answer is a list of their results, in the same order. If a part fails, the list has its
    error instead of its result; ``gathered`` raises such an error.
    """

    parts: Sequence[Call | Generator[Any, Any, Any]]


@dataclass(slots=True)
class Pause:
    """Asks the runner to wait for some seconds before it continues the work."""

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


def not_an_effect(given: object) -> RequestRefused:
    """Return the error for a generator that yields something else than an effect."""
    return RequestRefused(
        f"work yielded a {type(given).__name__}, which is no effect",
        hint="a generator of work uses `yield from` with other work, such as "
        "`yield from db.operations.get(...)`",
    )
