"""How DynamoDB words a refused request: class, message and ThrottlingReasons.

A provisioned table answers with ProvisionedThroughputExceededException, an on-demand table with
ThrottlingException, and both with RequestLimitExceeded if a quota of the account is the reason.
Sources: "Diagnosing throttling" in the Developer Guide for reasons and resources, the API reference
of TransactWriteItems and public captures for the messages. What is not captured is listed in
``docs/compatibility.md``.
"""

from __future__ import annotations

from typing import Any, Final

from stator.errors import RequestLimitExceeded, SlowDown, Throttled, ThroughputExceeded
from stator.model.heat.throttle_cause import ACCOUNT_LIMIT, MAXIMUM, ThrottleCause

_INDEX_PROVISIONED: Final = (
    "The level of configured provisioned throughput for one or more global secondary indexes of "
    "the table was exceeded. Consider increasing your provisioning level for the "
    "under-provisioned global secondary indexes with the UpdateTable API"
)
_TABLE_ON_DEMAND: Final = (
    "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically "
    "scaling your table or index so please try again shortly. If exceptions persist, check if you "
    "have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
    "bp-partition-key-design.html"
)
_INDEX_ON_DEMAND: Final = (
    "Throughput exceeds the current capacity for one or more global secondary indexes. DynamoDB is "
    "automatically scaling your index so please try again shortly."
)
_MAXIMUM: Final = "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
_ACCOUNT: Final = (
    "Throughput exceeds the current throughput limit for your account. To request a limit "
    "increase, contact AWS Support at https://aws.amazon.com/support"
)


def refusal(causes: list[ThrottleCause], table_arn: str) -> SlowDown:
    """Return the error for a refused request. The first of ``causes`` decides its class."""
    first = causes[0]
    reasons = [
        {
            "reason": cause.reason,
            "resource": table_arn if cause.index is None else f"{table_arn}/index/{cause.index}",
        }
        for cause in dict.fromkeys(causes)
    ]
    if first.limit == ACCOUNT_LIMIT:
        return RequestLimitExceeded(_ACCOUNT, throttling_reasons=reasons)
    if not first.on_demand:
        message = None if first.index is None else _INDEX_PROVISIONED
        return ThroughputExceeded(message, throttling_reasons=reasons)
    if first.limit == MAXIMUM:
        return Throttled(_MAXIMUM, throttling_reasons=reasons)
    message = _TABLE_ON_DEMAND if first.index is None else _INDEX_ON_DEMAND
    return Throttled(message, throttling_reasons=reasons)


def of_whole_batch(error: SlowDown) -> SlowDown:
    """Return the error for a batch of which every item was refused.

    ``error`` is the refusal of the first item. The API reference of BatchWriteItem and BatchGetItem
    names two classes for this, "account-level limits" included: ThroughputExceeded and Throttled.
    So Throttled takes the place of RequestLimitExceeded, although the service model lists it.
    """
    if isinstance(error, RequestLimitExceeded):
        return Throttled(error.message, throttling_reasons=error.throttling_reasons)
    return error


def cancellation_reason(error: SlowDown) -> dict[str, Any]:
    """Return the entry of a transaction's CancellationReasons for a refused action."""
    code = (
        "ProvisionedThroughputExceeded"
        if isinstance(error, ThroughputExceeded)
        else "ThrottlingError"
    )
    return {"Code": code, "Message": error.message}
