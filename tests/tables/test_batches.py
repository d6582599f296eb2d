"""Batches: everything is written, or named with its reason."""

from __future__ import annotations

import pickle
from typing import Any

import orjson
import pytest

from stator import Delete, Design, Entity, Query, connect, find, ident, read
from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.design.table_settings import TableSettings
from stator.engine import Engine
from stator.errors import (
    BatchFailed,
    ConditionFailed,
    ItemMismatch,
    RequestRefused,
    Throttled,
    UniqueTaken,
    ValidationFailed,
)
from stator.tables.connection import make_context
from stator.tables.db import Db
from stator.tables.lifecycle import TableSetup
from stator.tables.runner import Runner
from stator.testing import Fault, FaultyTransport, InterceptedCall
from tests.targets import Target

from .shop import Order, Product, User, order, shop, user


def test_any_number_of_items(target: Target) -> None:
    db = target.connect(shop())
    result = db.write_many(Product(sku=f"s{n}", stock=n) for n in range(1130))
    assert (result.written, result.ok) == (1130, True)
    assert sum(1 for _ in db.scan(Product, allow=True, segments=2)) == 1130
    gone = db.delete_many(Product, [f"s{n}" for n in range(0, 1130, 2)])
    assert gone.written == 565
    assert sum(1 for _ in db.scan(Product, allow=True)) == 565


def test_the_last_change_of_an_item_wins(target: Target) -> None:
    db = target.connect(shop())
    changes: list[Any] = [Product(sku="s1", stock=n) for n in range(60)]
    changes += [
        Product(sku="s2"),
        Delete(Product, sku="s2"),
        Delete(Product, sku="s3"),
        Product(sku="s3", stock=3),
    ]
    result = db.write_many(changes)
    assert (result.written, result.failures) == (64, [])
    assert [
        None if each is None else each.stock for each in db.get_many(Product, ["s1", "s2", "s3"])
    ] == [59, None, 3]


def test_one_bad_item_does_not_take_the_others_with_it(target: Target) -> None:
    db = target.connect(shop())
    big = order(7, note="x" * 410_000)
    wrong = order(8, total="much")
    changes = [order(n) for n in range(5)] + [big, wrong] + [order(n) for n in range(20, 60)]
    result = db.write_many(changes, on_error="collect")
    assert result.written == 45
    errors = {id(failure.change): failure.error for failure in result.failures}
    assert errors.keys() == {id(wrong), id(big)}
    assert isinstance(errors[id(wrong)], ItemMismatch) and isinstance(
        errors[id(big)], ValidationFailed
    )
    with pytest.raises(BatchFailed):
        result.raise_for_failures()
    assert sum(1 for _ in db.scan(Order, allow=True)) == 45


def test_a_batch_raises_what_it_could_not_write_after_it_wrote_the_rest(target: Target) -> None:
    db = target.connect(shop())
    wrong = order(8, total="much")
    with pytest.raises(BatchFailed, match=r"1 of 61 changes .*Order") as caught:
        db.write_many([wrong, *(order(n) for n in range(20, 80))])
    failed = caught.value
    assert failed.written == 60 and failed.hint is not None and "collect" in failed.hint
    [failure] = failed.failures
    assert failure.change is wrong and failure.error is failed.__cause__
    assert sum(1 for _ in db.scan(Order, allow=True)) == 60
    again = pickle.loads(pickle.dumps(failed))
    assert (again.written, len(again.failures)) == (60, 1)


def test_deletes_raise_too_unless_collected(target: Target) -> None:
    db = target.connect(shop())
    with pytest.raises(BatchFailed) as caught:
        db.delete_many(Product, ["s1", 2])
    assert caught.value.written == 1
    collected = db.delete_many(Product, ["s1", 2], on_error="collect")
    assert [failure.change.values for failure in collected.failures] == [{"sku": 2}]


@pytest.mark.parametrize("on_error", ["ignore", "", None, True])
def test_an_unknown_way_to_treat_errors_is_refused_before_anything_is_written(
    target: Target, on_error: Any
) -> None:
    db = target.connect(shop())
    with pytest.raises(RequestRefused, match="on_error"):
        db.write_many([Product(sku="s1")], on_error=on_error)
    with pytest.raises(RequestRefused, match="on_error"):
        db.delete_many(Product, ["s1"], on_error=on_error)
    assert db.get(Product, sku="s1") is None


def test_large_items_are_split_by_size(target: Target) -> None:
    db = target.connect(shop())
    result = db.write_many(order(n, note="x" * 380_000) for n in range(60))
    assert (result.written, result.ok) == (60, True)


def test_entities_that_need_conditions_are_written_one_by_one(target: Target) -> None:
    db = target.connect(shop())
    users = [user(n) for n in range(30)]
    thief = user(99)
    thief.email = users[0].email
    result = db.write_many([*users, thief], on_error="collect")
    assert result.written == 30
    [failure] = result.failures
    assert failure.change in (thief, users[0]) and isinstance(failure.error, UniqueTaken)
    assert len(list(db.scan(User, allow=True))) == 30


class Stingy(FaultyTransport):
    """A transport that leaves part of each batch unprocessed, as a table that is throttled does."""

    def __init__(self, engine: Engine, *, takes: int) -> None:
        self.takes = takes
        super().__init__(EngineTransport(engine), self._leave)

    def _leave(self, call: InterceptedCall) -> Fault | None:
        if not call.operation.startswith("Batch"):
            return None
        tables = orjson.loads(orjson.dumps(call.request))["RequestItems"].values()
        total = sum(len(each["Keys"] if isinstance(each, dict) else each) for each in tables)
        if total <= self.takes:
            return None
        return Fault("unprocessed", processed=(self.takes + 0.5) / total)


def stingy(takes: int) -> tuple[Db, Stingy]:
    clock = VirtualClock()
    context = make_context(shop(), {"clock": clock})
    transport = Stingy(Engine.open(clock=clock), takes=takes)
    db = Db(context, Runner(transport, clock))
    db.run(TableSetup(context, TableSettings()).run())
    return db, transport


def test_what_is_left_unprocessed_is_sent_again() -> None:
    db, _ = stingy(takes=4)
    assert db.write_many(Product(sku=f"s{n}", stock=n) for n in range(100)).written == 100
    assert [each.stock for each in db.get_many(Product, [f"s{n}" for n in range(100)]) if each] == [
        *range(100)
    ]


def test_what_is_never_processed_is_named() -> None:
    db, transport = stingy(takes=4)
    transport.takes = 0
    given = [Product(sku=f"s{n}") for n in range(10)]
    result = db.write_many(given, on_error="collect")
    assert result.written == 0
    assert [failure.change for failure in result.failures] == given
    assert all(isinstance(failure.error, Throttled) for failure in result.failures)


def test_stamps_are_set_on_what_was_written() -> None:
    clock = VirtualClock(1_700_000_000.0)
    db = connect(shop(), clock=clock)
    made = [order(n) for n in range(3)]
    db.write_many(made)
    assert {each.made.timestamp() for each in made} == {1_700_000_000.0}


def test_a_number_that_dynamodb_does_not_have_names_its_field() -> None:
    class Gauge(Entity):
        name: str = ident()
        level: float

    @read()
    def gauge(name: str) -> Query[Gauge]:
        return find(Gauge).where(Gauge.name == name)

    db = connect(Design("gauges", [Gauge], [gauge]))
    result = db.write_many(
        [Gauge(name="a", level=float("inf")), Gauge(name="b", level=1.5)], on_error="collect"
    )
    [failure] = result.failures
    assert isinstance(failure.error, ItemMismatch)
    assert "Gauge.level" in str(failure.error)
    assert result.written == 1


def test_the_keys_of_a_mapping_may_be_identities(target: Target) -> None:
    db = target.connect(shop())
    db.put(Product(sku="lamp", stock=1))
    assert db.get_many(Product, {"lamp": 2, "desk": 1}) == [Product(sku="lamp", stock=1), None]
    with pytest.raises(RequestRefused, match="not one dict"):
        db.get_many(Product, {"sku": "lamp"})  # type: ignore[arg-type, unused-ignore]


def test_a_batch_deletes_only_what_all_given_fields_fit(target: Target) -> None:
    db = target.connect(shop())
    db.put(order(1, user=1))
    db.put(order(2, user=1))
    result = db.delete_many(
        Order,
        [{"order_id": "o001", "user_id": "u2"}, {"order_id": "o002", "user_id": "u1"}],
        on_error="collect",
    )
    assert result.written == 1
    assert [type(each.error) for each in result.failures] == [ConditionFailed]
    assert db.exists(Order, order_id="o001") and not db.exists(Order, order_id="o002")
    with pytest.raises(BatchFailed):
        db.write_many([Delete(Order, order_id="o001", user_id="u2")])
    assert db.exists(Order, order_id="o001")


def test_changes_of_one_item_stay_in_order_around_a_delete_with_other_fields(
    target: Target,
) -> None:
    db = target.connect(shop())
    result = db.write_many(
        [
            order(1, user=1),
            Delete(Order, order_id="o001", user_id="u1"),
            order(1, user=2),
            Delete(Order, order_id="o002", user_id="u9"),
            order(2, user=2),
            order(3, user=3),
            Delete(Order, order_id="o003", user_id="u3"),
        ]
    )
    assert (result.written, result.failures) == (7, [])
    stored = db.get_many(Order, ["o001", "o002", "o003"])
    assert [each and each.user_id for each in stored] == ["u2", "u2", None]
