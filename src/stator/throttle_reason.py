"""The content of a refusal: whose limit was reached, and who should slow down.

DynamoDB names the limit in ``ThrottlingReasons``, and the table or index by its ARN:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-diagnosing.html

    TableWriteKeyRangeThroughputExceeded      scope "key range"   slow down the key
    TableReadProvisionedThroughputExceeded    scope "table"       slow down the table's reads
    IndexWriteMaxOnDemandThroughputExceeded   scope "table"       slow down the table's writes
    TableWriteAccountLimitExceeded            scope "account"     slow down everything

Some refusals name no reason: items that a batch leaves unprocessed, statements of a
BatchExecuteStatement, actions of a cancelled transaction. The last two carry a message, which
distinguishes some limits (``docs/compatibility.md`` lists the messages). Otherwise the scope is
None. Clients, bulk jobs, workers and pattern objects all read refusals here; what each of them does
about a scope is in its own module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from stator.errors import (
    DeadlineExceeded,
    RequestLimitExceeded,
    SlowDown,
    TransactionCanceled,
    TransactionFailed,
)

ThrottleScope = Literal["key range", "table", "account"]
CallKind = Literal["read", "write"]

_SCOPES: Final[tuple[tuple[str, ThrottleScope], ...]] = (
    ("AccountLimit", "account"),
    ("MaxOnDemand", "table"),
    ("ProvisionedThroughput", "table"),
    ("KeyRange", "key range"),
)
# Parts of messages that belong to one limit only. The message of a provisioned table does not: it
# is the same for the table's units and for a partition's.
_MESSAGES: Final[tuple[tuple[str, ThrottleScope], ...]] = (
    ("throughput limit for your account", "account"),
    ("maximum OnDemandThroughput", "table"),
    ("check if you have a hot key", "key range"),
)
UNNAMED: Final = "?"
"""Stands for an index that the reply does not name."""
_WIDTH: Final[dict[ThrottleScope | None, int]] = {None: 0, "key range": 1, "table": 2, "account": 3}
_THROTTLING_CODES: Final = frozenset({"ThrottlingError", "ProvisionedThroughputExceeded"})


@dataclass(frozen=True, slots=True)
class ThrottleReason:
    """One limit that refused a request.

    ``scope`` is None if the reply does not say whose limit it was. ``kind`` is "read" or "write",
    or None if that is unknown. ``table`` and ``index`` are names; ``table`` is empty if the reply
    does not name it. ``text`` is DynamoDB's own reason, message or error code.
    """

    scope: ThrottleScope | None
    kind: CallKind | None = None
    table: str = ""
    index: str | None = None
    text: str = ""


def throttle_reasons(error: BaseException | None) -> tuple[ThrottleReason, ...]:
    """Return the limits that refused a request, or an empty tuple if it was not throttled.

    ``error`` may be a DeadlineExceeded whose cause is throttling, or a cancelled transaction.
    """
    return tuple(dict.fromkeys(_reasons(error)))


def throttle_scope(error: BaseException | None) -> ThrottleScope | None:
    """Return the widest scope among the reasons of a refusal, or None if it names none."""
    return widest(throttle_reasons(error))


def widest(reasons: Iterable[ThrottleReason]) -> ThrottleScope | None:
    """Return the widest scope among ``reasons``: the account, else a table, else a key range.

    Returns None if no reason names a scope.
    """
    return max((each.scope for each in reasons), key=lambda scope: _WIDTH[scope], default=None)


def is_hot_key(reasons: Iterable[ThrottleReason]) -> bool:
    """Whether a partition of the table itself refused a request, and no wider limit did.

    If so, spreading the key over more shards helps. Shards do not help a hot partition of an
    index, because its partition key is another attribute.
    """
    found = list(reasons)
    return widest(found) == "key range" and any(
        each.scope == "key range" and each.index is None for each in found
    )


def is_table_limit(reasons: Iterable[ThrottleReason]) -> bool:
    """Whether a limit of the whole table refused a request: its units, maximum or quota.

    If so, writing to another table helps, because each table has its own limits. The quota of the
    account counts as well: it is for each table.
    """
    found = list(reasons)
    return widest(found) in ("table", "account") and all(each.index is None for each in found)


def is_hot_index(reasons: Iterable[ThrottleReason]) -> bool:
    """Whether a partition of an index refused a write, and no wider limit did."""
    found = list(reasons)
    return widest(found) in ("key range", None) and any(
        each.index is not None and each.kind != "read" for each in found
    )


def may_be_hot_key(reasons: Iterable[ThrottleReason]) -> bool:
    """Whether a partition of the table itself refused a request, or may have done so.

    A partition may be the cause if no reason names a scope or an index.
    """
    found = list(reasons)
    is_unnamed = bool(found) and all(each.scope is None and each.index is None for each in found)
    return is_unnamed or is_hot_key(found)


def _reasons(error: BaseException | None) -> Iterator[ThrottleReason]:
    if isinstance(error, DeadlineExceeded):
        error = error.__cause__
    if isinstance(error, TransactionFailed) and error.failures:
        for _, _, each in error.failures:
            yield from _reasons(each)
    elif isinstance(error, TransactionCanceled):
        for reason in error.reasons:
            if reason.get("Code") in _THROTTLING_CODES:
                yield _of_message(str(reason.get("Message") or ""))
    elif isinstance(error, SlowDown):
        yield from _of_refusal(error)


def _of_refusal(error: SlowDown) -> Iterator[ThrottleReason]:
    if error.throttling_reasons:
        for reason in error.throttling_reasons:
            yield _of_reason(reason)
    elif isinstance(error, RequestLimitExceeded):
        yield ThrottleReason("account", text=error.code)
    else:
        yield _of_message(error.message)


def _of_reason(reason: dict[str, Any]) -> ThrottleReason:
    text, resource = str(reason.get("reason", "")), str(reason.get("resource", ""))
    scope: ThrottleScope | None = next((scope for part, scope in _SCOPES if part in text), None)
    kind: CallKind | None = "write" if "Write" in text else "read" if "Read" in text else None
    _, _, path = resource.partition(":table/")
    table, _, rest = path.partition("/")
    index = rest.removeprefix("index/") or None
    if index is None and text.startswith("Index"):
        index = UNNAMED
    return ThrottleReason(scope, kind, table, index, text)


def _of_message(message: str) -> ThrottleReason:
    scope: ThrottleScope | None = next(
        (scope for part, scope in _MESSAGES if part in message), None
    )
    index = UNNAMED if "global secondary indexes" in message else None
    return ThrottleReason(scope, index=index, text=message)
