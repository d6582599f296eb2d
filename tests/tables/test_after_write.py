"""A write that has happened, and whose answer cannot be used: PartlyDone, which says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stator import Design, Entity, after_load, ident, upcast
from stator.errors import ItemMismatch, NewerVersion, PartlyDone
from stator.tables.db import Db
from tests.targets import Target


class Old(Entity, name="Order", key=("ORDER#{order_id}", "ORDER")):
    order_id: str = ident()
    total: int = 0
    cnt: int = 0


class New(Entity, name="Order", key=("ORDER#{order_id}", "ORDER"), version=2):
    order_id: str = ident()
    cents: int = 0


@upcast(New, 1)
def in_cents(fields: dict[str, Any]) -> dict[str, Any]:
    return {"order_id": fields["order_id"], "cents": fields.get("total", 0) * 100}


class Hooked(Entity):
    hooked_id: str = ident()
    n: int = 0
    is_bad: bool = False

    @after_load
    def check(self) -> None:
        if self.is_bad:
            raise RuntimeError("the hook fails")


def stored(db: Db, of: type[Any], **identity: Any) -> Any:
    map_ = db.context.schema.of(of)
    return db.call(
        "GetItem",
        {"TableName": map_.table.name, "Key": map_.key_from(identity), "ConsistentRead": True},
    ).get("Item")


def refused(call: Callable[[], Any], cause: type[BaseException]) -> None:
    with pytest.raises(PartlyDone) as caught:
        call()
    assert caught.value.sent
    assert isinstance(caught.value.__cause__, cause)
    assert "is stored" in caught.value.message
    assert caught.value.hint


def test_an_old_item_of_a_later_version_that_a_write_returns(target: Target) -> None:
    old, new = target.connect(Design("shop", [Old])), target.connect(Design("shop", [New]))
    new.put(New(order_id="1", cents=5))
    refused(lambda: old.delete(Old, order_id="1", returns="old"), NewerVersion)
    assert stored(old, Old, order_id="1") is None
    new.put(New(order_id="2", cents=5))
    refused(lambda: old.put(Old(order_id="2", cnt=9), returns="old"), NewerVersion)
    assert stored(old, Old, order_id="2")["cnt"] == {"N": "9"}


def test_an_item_that_does_not_fit_the_class_after_an_update(target: Target) -> None:
    db = target.connect(Design("shop", [Old]))
    of = db.context.schema.of(Old)

    def change(**options: Any) -> None:
        with db.update(Old, order_id="1", **options) as order:
            order.cnt += 1

    calls: list[Callable[[], Any]] = [
        lambda: change(returns="new"),
        lambda: change(returns="old"),
        lambda: change(returns="new", once=True),
        lambda: db.patch(Old, {"cnt": 1}, order_id="1", returns="new"),
    ]
    for call in calls:
        item = of.item(Old(order_id="1")) | {"total": {"S": "abc"}}
        db.call("PutItem", {"TableName": of.table.name, "Item": item})
        refused(call, ItemMismatch)
        assert stored(db, Old, order_id="1")["cnt"] == {"N": "1"}
    with db.update(Old, order_id="1") as order:  # nothing is read back, so nothing fails
        order.cnt += 1


def test_a_hook_that_fails_after_a_write(target: Target) -> None:
    db = target.connect(Design("hooks", [Hooked]))
    db.put(Hooked(hooked_id="1", is_bad=True))

    def change() -> None:
        with db.update(Hooked, hooked_id="1", returns="new") as one:
            one.n += 1

    refused(change, RuntimeError)
    assert stored(db, Hooked, hooked_id="1")["n"] == {"N": "1"}
    refused(lambda: db.delete(Hooked, hooked_id="1", returns="old"), RuntimeError)
    assert stored(db, Hooked, hooked_id="1") is None


def test_a_read_that_fails_before_any_write_is_raised_as_it_is(target: Target) -> None:
    old, new = target.connect(Design("shop", [Old])), target.connect(Design("shop", [New]))
    new.put(New(order_id="1", cents=5))
    with pytest.raises(NewerVersion):
        old.delete(Old, order_id="1", when=Old.cnt == 0)
    assert stored(old, Old, order_id="1") is not None
