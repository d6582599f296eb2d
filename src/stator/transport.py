"""The transport protocols: call a DynamoDB operation by its name, with a request in DynamoDB JSON.

The embedded engine and the HTTP client both implement them, so no higher layer knows which of the
two it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypedDict, Unpack


class CallOptions(TypedDict, total=False):
    """The options of one call. A transport that wraps another one passes them on unchanged.

    ``idempotent`` (default True): the request may be sent again if its reply is lost. If it is
    False, a lost reply raises OutcomeUnknown. ``deadline_seconds``: the time for all attempts
    together. ``raise_hot_key`` (default False): a refusal because one partition is throttled is
    raised at once and not retried, for callers that then write to other partitions.
    ``raise_hot_index`` (default False): the same for a write that a partition of an index refuses.
    ``raise_table_limit`` (default False): the same for a limit of the whole table, for callers that
    then write to another table. ``on_retry`` is called with the error of each attempt that another
    one follows.
    """

    idempotent: bool
    deadline_seconds: float | None
    raise_hot_key: bool
    raise_hot_index: bool
    raise_table_limit: bool
    on_retry: Callable[[BaseException], None]


class ResentReply(dict[str, Any]):
    """The reply to a request that was sent again after a lost answer.

    The earlier attempt may have been carried out. The old item in this reply may therefore be the
    item that the request itself wrote, or be missing because the request itself deleted it.
    """


class Transport(Protocol):
    """Sends one DynamoDB operation and returns the response: in process, over HTTP, or your own."""

    @property
    def parallel(self) -> bool:
        """Whether parallel calls from several threads are faster than one call after another."""
        ...

    def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        **options: Unpack[CallOptions],
    ) -> dict[str, Any]:
        """Return the reply, as a ``ResentReply`` if an earlier attempt may have been carried out.

        Turns an error reply into the matching error of ``stator.errors`` and raises it.
        """
        ...

    def close(self) -> None: ...


class AsyncTransport(Protocol):
    """Like ``Transport``, awaited: it sends one operation and returns the response."""

    async def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        **options: Unpack[CallOptions],
    ) -> dict[str, Any]: ...

    async def close(self) -> None: ...
