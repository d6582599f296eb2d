"""``or_create=True`` with ``when=``: a missing item counts as one with all defaults."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from stator import Db, Design, Entity, attr, ident, soft_delete
from stator.errors import ConditionFailed, TransactionFailed
from tests.targets import Target


class Item(Entity):
    item_id: str = ident()
    n: int = 0
    note: str | None = None
    other: int = 0
    gone: datetime | None = soft_delete()


class Plain(Entity):
    item_id: str = ident()
    n: int = 0
    note: str | None = None
    other: int = 0


def conditions(of: Any) -> list[tuple[Any, bool]]:
    """Conditions, and whether they hold for an item with all defaults."""
    return [
        (of.n == 0, True),
        (of.n == 9, False),
        (of.n != 0, False),
        (of.n != 9, True),
        (attr(of.n) < 9, True),
        (~(attr(of.n) > 9), True),
        (attr(of.n).between(1, 9), False),
        (of.note == None, True),  # noqa: E711
        (of.note != None, False),  # noqa: E711
        (attr(of.note).not_exists(), True),
        ((of.n == 0) & (of.note == None), True),  # noqa: E711
        ((of.n == 9) | (of.note != None), False),  # noqa: E711
    ]


def holds(db: Db, of: Any, condition: Any, *, in_transaction: bool = False) -> bool:
    try:
        if in_transaction:
            with (
                db.transaction() as tx,
                tx.update(of, item_id="1", or_create=True, when=condition) as item,
            ):
                item.other = 1
        else:
            with db.update(of, item_id="1", or_create=True, when=condition) as item:
                item.other = 1
    except (ConditionFailed, TransactionFailed):
        return False
    assert db.get(of, item_id="1") == of(item_id="1", other=1)
    return True


def test_an_absent_a_deleted_and_a_default_item_are_alike(target: Target) -> None:
    db = target.connect(Design("counts", [Item, Plain]))
    for of in (Item, Plain):
        for condition, wanted in conditions(of):
            found = []
            for in_transaction in (False, True):
                found.append(holds(db, of, condition, in_transaction=in_transaction))
                db.delete(of, item_id="1")
            db.put(of(item_id="1"))
            db.delete(of, item_id="1")  # marked as deleted, if there was none before
            found.append(holds(db, of, condition))
            db.put(of(item_id="1"))
            found.append(holds(db, of, condition))
            db.delete(of, item_id="1")
            assert found == [wanted] * 4, condition
            if of is Item:
                db.delete(of, item_id="1", purge=True)
