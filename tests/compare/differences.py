"""Where DynamoDB Local is known to answer differently from AWS, and Stator answers as AWS does."""

from __future__ import annotations

from typing import Any

from .answers import Answer, Local, comparable

_RUN_TIME_FAULTS = (
    "The document path provided in the update expression is invalid for update",
    "The provided expression refers to an attribute that does not exist in the item",
    "An operand in the update expression has an incorrect data type",
    "The update expression attempted to update the secondary index key to unsupported type",
    "Type mismatch for Index Key",
)


def known(operation: str, request: dict[str, Any], ours: Answer, theirs: Answer) -> str | None:
    """Why the two may differ here; None when they may not."""
    if operation == "TransactWriteItems":
        if "cannot include multiple operations on one item" in _message(ours):
            return (
                "AWS refuses a transaction with an item twice before it evaluates "
                "conditions; Local evaluates first"
            )
        if theirs[0] == "ValidationException" and ours[0] == "TransactionCanceledException":
            faults = [str(reason.get("Message")) for reason in ours[1]["CancellationReasons"]]
            if any(
                known_fault in fault
                for fault in (*faults, _message(theirs))
                for known_fault in _RUN_TIME_FAULTS
            ):
                # API reference, TransactWriteItems, "Cancellation reason codes ...
                # ValidationError".
                return (
                    "AWS cancels the transaction for an update that fails on the item; Local "
                    "refuses the request"
                )
    if "secondary index key to unsupported type" in _message(ours) and theirs[0] == "ok":
        return (
            "AWS refuses an index key of a wrong type also where a function or path gives "
            "it; Local stores it"
        )
    if (
        "Type mismatch for Index Key" in _message(ours)
        and theirs[0] == "ConditionalCheckFailedException"
    ):
        # dynalite's tests, which run on AWS: the types of an update's literals are checked before
        # the condition.
        return (
            "AWS checks what an update would write to an index key before the condition; "
            "Local after"
        )
    if (
        operation == "UpdateItem"
        and str(request.get("ReturnValues")).startswith("UPDATED")
        and "REMOVE" in request["UpdateExpression"]
        and ours[0] == theirs[0] == "ok"
    ):
        # Scylla's tests, which run on AWS, test_returnvalues.py: the part at the path is returned.
        # They say so of SET; REMOVE is taken to be the same.
        return "Local returns the whole attribute where a part of it was removed"
    if (
        operation == "Scan"
        and {"IndexName", "FilterExpression"} <= request.keys()
        and ours[0] == theirs[0] == "ok"
    ):
        # The public paritysuite captures: a filter on what the index does not hold is accepted and
        # matches nothing.
        return "Local filters the scan of an index by attributes that the index does not hold"
    if (
        operation == "Query"
        and "IndexName" in request
        and ours[0] == theirs[0] == "ok"
        and _reordered(request, ours, theirs)
    ):
        return "entries with the same index key come in an order that nobody promises"
    return None


def parted(local: Local, operation: str, request: dict[str, Any], ours: Answer) -> str | None:
    """Why the two hold different items from here on, and there is no use in comparing further."""
    if ours[0] != "ok":
        return None
    updates = [request] if operation == "UpdateItem" else []
    if operation == "TransactWriteItems":
        updates = [entry["Update"] for entry in request["TransactItems"] if "Update" in entry]
    for update in updates:
        found = local.ask("GetItem", {"TableName": update["TableName"], "Key": update["Key"]})
        if "Item" not in found[1]:
            # Scylla's tests, which run on AWS: test_item.py, test_update_item_non_existent.
            return "AWS makes no item of an update that only takes away; Local does"
    return None


def _reordered(request: dict[str, Any], ours: Answer, theirs: Answer) -> bool:
    """Whether two pages hold the same entries in another order, or are cut from such an order by a
    Limit.
    """
    if ours[1]["ScannedCount"] != theirs[1]["ScannedCount"]:
        return False
    if "Limit" in request:
        return True
    first, second = (comparable("Scan", answer) for answer in (ours, theirs))
    return first == second


def _message(answer: Answer) -> str:
    return (
        str(answer[1].get("message") or answer[1].get("Message") or "") if answer[0] != "ok" else ""
    )
