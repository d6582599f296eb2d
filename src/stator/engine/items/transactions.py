"""The rules and reports that reading and writing transactions share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from stator.engine.items import capacity, records
from stator.engine.items.capacity import Consumed
from stator.engine.tables.table import Table
from stator.errors import ValidationFailed
from stator.model.limits import TRANSACTION_BYTES

# The cancellation reason of an action that would have succeeded.
NO_REASON: Final[dict[str, Any]] = {"Code": "None"}


def check_distinct(keys: Iterable[bytes | None]) -> None:
    known = [key for key in keys if key is not None]
    if len(set(known)) != len(known):
        raise ValidationFailed("Transaction request cannot include multiple operations on one item")


def check_total(size_bytes: int) -> None:
    if size_bytes > TRANSACTION_BYTES:
        raise ValidationFailed(
            "Aggregate size of the items in the transaction exceeds the limit of 4 MB"
        )


def check_payload(size_bytes: int) -> None:
    """Refuse a transaction whose request is larger than 4 MB.

    Stored items do not count: a transaction may delete five megabytes of them.
    """
    if size_bytes > TRANSACTION_BYTES:
        text = "Transaction payload size cannot exceed 4MB. Payload Size: "
        raise ValidationFailed(f"{text}: {text}{size_bytes}")


def read_report(tables: list[Table], found: list[bytes | None], mode: str) -> list[dict[str, Any]]:
    """Return the ConsumedCapacity of a reading transaction, per table.

    ``found`` has the record read from each of the ``tables``, or None if there was no item.
    ``mode`` is the request's ReturnConsumedCapacity. A transaction costs twice as much as
    consistent reads.
    """
    used: dict[str, tuple[Table, Consumed]] = {}
    for table, record in zip(tables, found):
        units = 2 * capacity.read_units(
            0 if record is None else records.size_of(record), consistent=True
        )
        used.setdefault(table.name, (table, Consumed()))[1].add(Consumed(units))
    return [
        capacity.report(table, name, consumed, mode, kind="Read")
        for name, (table, consumed) in used.items()
    ]
