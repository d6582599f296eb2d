"""Where DynamoDB Local is known to answer differently from AWS, and Stator answers as AWS does."""

from __future__ import annotations

from typing import Any

from .answers import Answer

_RUN_TIME_FAULTS = (
    "The document path provided in the update expression is invalid for update",
    "The provided expression refers to an attribute that does not exist in the item",
    "An operand in the update expression has an incorrect data type",
    "The update expression attempted to update the secondary index key to unsupported type",
)


def known(operation: str, request: dict[str, Any], ours: Answer, theirs: Answer) -> str | None:
    """Why the two may differ here; None when they may not."""
    if operation == "TransactWriteItems":
        if "cannot include multiple operations on one item" in _message(ours):
            return "AWS refuses a transaction with an item twice before it evaluates conditions; Local evaluates first"
        if theirs[0] == "ValidationException" and ours[0] == "TransactionCanceledException":
            faults = [reason.get("Message") for reason in ours[1]["CancellationReasons"]]
            if any(fault in _RUN_TIME_FAULTS for fault in faults):
                # API reference, TransactWriteItems, "Cancellation reason codes ... ValidationError".
                return "AWS cancels the transaction for an update that fails on the item; Local refuses the request"
    return None


def _message(answer: Answer) -> str:
    return str(answer[1].get("message") or answer[1].get("Message") or "") if answer[0] != "ok" else ""
