"""Whether throttling means that a key's partition is hot, so that more shards would help.

Most refusals name the limit that was reached. Items that a batch leaves unprocessed do not, nor do
some cancelled transactions. A test write then finds out: its condition is always false, so it
changes nothing. But it is throttled like any other write of the key, and the refusal names the
limit. A test write costs one write unit.
"""

from __future__ import annotations

from typing import Final

from stator.errors import ConditionFailed, DeadlineExceeded, SlowDown, StatorError
from stator.model.values import Item
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions
from stator.throttle_reason import (
    ThrottleReason,
    is_table_limit,
    may_be_hot_key,
    throttle_reasons,
)

THROTTLED: Final = (SlowDown, DeadlineExceeded)


def hot_key_reason(error: BaseException | None) -> ThrottleReason | None:
    """Return the reason of a refusal if the partition of the key is hot, else None.

    Some services give no reason. Their refusals count as refusals by the key's partition.
    """
    reasons = throttle_reasons(error)
    if not may_be_hot_key(reasons):
        return None
    return next((each for each in reasons if each.scope == "key range"), reasons[0])


def table_limit_reason(error: BaseException | None) -> ThrottleReason | None:
    """Return the reason of a refusal if a limit of the whole table was reached, else None."""
    reasons = throttle_reasons(error)
    if not is_table_limit(reasons):
        return None
    return next(each for each in reasons if each.scope in ("table", "account"))


def asked_hot_key_reason(
    table: str, key: Item, partition: str, label: str
) -> Work[ThrottleReason | None]:
    """Send a test write to learn whether a key's partition is throttled now, and by what limit.

    Returns None if it is not throttled. The other arguments are those of ``asked_refusal``.
    """
    return hot_key_reason((yield from asked_refusal(table, key, partition, label)))


def asked_refusal(
    table: str, key: Item, partition: str, label: str, *, raise_table_limit: bool = False
) -> Work[StatorError | None]:
    """Send a test write to learn whether a key's partition or its table is throttled now.

    Returns the refusal, or None if nothing is throttled. ``partition`` is the name of the table's
    partition key. With ``raise_table_limit``, the client does not wait for a table at its limit.
    """
    written = Expressions()
    name = written.name(partition)
    never = f"attribute_exists({name}) AND attribute_not_exists({name})"
    request = {"TableName": table, "Key": key, "ConditionExpression": never}
    try:
        yield Call(
            "DeleteItem",
            written.into(request),
            label,
            raise_hot_key=True,
            raise_table_limit=raise_table_limit,
        )
    except ConditionFailed:
        return None
    except THROTTLED as error:
        return error
    return None
