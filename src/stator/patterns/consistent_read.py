"""Items as of one moment: TransactGetItems, retried while a transaction is writing one of them."""

from __future__ import annotations

from stator.errors import TransactionCanceled
from stator.model.values import Item
from stator.tables.context import Context
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.sender import is_transient

_ATTEMPTS = 12


def read_snapshot(
    context: Context, keys: list[tuple[str, Item]], label: str
) -> Work[list[Item | None]]:
    """Read several items as of one moment, with one TransactGetItems. Return them in order.

    ``keys`` holds pairs of table and key. The result has None for each key that has no item.
    ``label`` names the caller in traces and errors.
    """
    gets = [{"Get": {"TableName": table, "Key": key}} for table, key in keys]
    for attempt in range(_ATTEMPTS):
        try:
            reply = yield Call("TransactGetItems", {"TransactItems": gets}, label)
        except TransactionCanceled as canceled:
            if attempt == _ATTEMPTS - 1 or not is_transient(canceled):
                raise
            yield Pause(context.backoff(attempt))
        else:
            return [each.get("Item") or None for each in reply["Responses"]]
    raise AssertionError("the last attempt returns or raises")
