"""Unknown outcomes: errors after which nobody can tell whether the work was done.

A write whose answer is lost may have happened. Repeating it could do it twice: a payment made
twice, a mail sent twice. ``is_outcome_unknown`` recognises such errors. Other errors say what
happened, such as a refused condition or a wrong argument.
"""

from __future__ import annotations

from collections.abc import Iterator

from stator.errors import (
    ConnectionTrouble,
    PartlyDone,
    ResultNotStored,
    ServiceError,
    StorageFailed,
)

# Errors of other libraries that lose an answer, found by name so that nothing is imported for them.
_LOST_ANSWERS = frozenset(
    {
        ("aiohttp.client_exceptions", "ClientConnectionError"),
        ("aiohttp.client_exceptions", "ClientPayloadError"),
        ("botocore.exceptions", "HTTPClientError"),
        ("httpx", "TransportError"),
        ("requests.exceptions", "ChunkedEncodingError"),
        ("requests.exceptions", "ConnectionError"),
        ("requests.exceptions", "Timeout"),
        ("urllib3.exceptions", "ProtocolError"),
        ("urllib3.exceptions", "TimeoutError"),
    }
)


def is_outcome_unknown(error: BaseException, also: tuple[type[BaseException], ...] = ()) -> bool:
    """Whether the work that raised this error may have been done, in part or in full.

    True if the error, its cause, its context or a member of an exception group

    - is a ConnectionTrouble after the request was sent, such as OutcomeUnknown or ReplyLost;
    - is an error of the service that does not say what happened: InternalServerError, or a refusal
      that follows an earlier attempt whose answer was lost (``after_unknown``);
    - says that a part of the work is done: PartlyDone or ResultNotStored;
    - is a StorageFailed: the embedded engine could not write to its disk;
    - is a TimeoutError, a ConnectionError other than ConnectionRefusedError, or the error of an
      HTTP library that lost an answer;
    - interrupts the work from outside: CancelledError, KeyboardInterrupt, SystemExit;
    - is an instance of a class in ``also``.
    """
    return any(_is_unknown(each, also) for each in _related(error))


def _is_unknown(error: BaseException, also: tuple[type[BaseException], ...]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return False  # its members decide
    if isinstance(error, (ConnectionTrouble, ServiceError, PartlyDone, ResultNotStored)):
        return error.sent or isinstance(error, also)
    if isinstance(error, ConnectionRefusedError):
        return isinstance(error, also)
    if isinstance(error, (StorageFailed, TimeoutError, ConnectionError, *also)):
        return True
    if not isinstance(error, Exception):
        return True
    return any((each.__module__, each.__name__) in _LOST_ANSWERS for each in type(error).__mro__)


def _related(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, its causes and contexts, and the members of exception groups.

    ``raise ... from None`` hides a context from the traceback, but the work it belongs to was
    begun all the same.
    """
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [more for more in (each.__cause__, each.__context__) if more is not None]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
