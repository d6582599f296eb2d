"""Dry runs: what a write would send, and its price; nothing is sent."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from stator import Design, Entity, Get, Query, connect, find, ident, read, version, write_token
from stator.errors import RequestRefused
from stator.tables.db import Db
from stator.tables.dry_run import DryRun, WriteExplanation
from tests.targets import Target

from .shop import Product, User, order, shop, user


class Job(Entity):
    job_id: str = ident()
    text: str = ""
    count: int = 0
    rev: int = version()


class Proven(Entity):
    job_id: str = ident()
    proof: str = write_token()


@read()
def job(job_id: str) -> Query[Job]:
    return find(Job).where(Job.job_id == job_id)


@read()
def proven(job_id: str) -> Query[Proven]:
    return find(Proven).where(Proven.job_id == job_id)


JOBS = Design("jobs", [Job, Proven], [job, proven])


def _updated(dry: DryRun, once: bool) -> WriteExplanation:
    changing = dry.update(Job, job_id="j", when=Job.count >= 2, once=once)
    with changing as changed:
        changed.count -= 2
    return changing.explanation


def _in_transaction(dry: DryRun, once: bool) -> WriteExplanation:
    opened = dry.transaction(token="t" if once else None)
    with opened as tx:
        tx.create(Job(job_id="j"))
        tx.check(Job, job_id="k", when=Job.count == 3)
    return opened.explanation


WRITES: dict[str, tuple[str, Callable[[DryRun, bool], WriteExplanation]]] = {
    "create": ("PutItem", lambda dry, once: dry.create(Job(job_id="j"), once=once)),
    "put": ("PutItem", lambda dry, once: dry.put(Job(job_id="j"), once=once)),
    "upsert": ("UpdateItem", lambda dry, once: dry.upsert(Job(job_id="j"), once=once)),
    "patch": ("UpdateItem", lambda dry, once: dry.patch(Job, {"text": "x"}, job_id="j", once=once)),
    "update": ("UpdateItem", _updated),
    "delete": ("DeleteItem", lambda dry, once: dry.delete(Job, job_id="j", once=once)),
    "transaction": ("TransactWriteItems", _in_transaction),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_dry_run_sends_nothing_and_shows_the_request(target: Target, name: str) -> None:
    sent: list[Any] = []
    db = target.connect(JOBS, observers=[sent.append])
    sent.clear()
    operation, explain = WRITES[name]
    alone = explain(db.dry_run(), False)
    assert alone.operation == operation and alone.units >= 1 and alone.request
    once = explain(db.dry_run(), True)
    assert once.operation == "TransactWriteItems"
    if name != "transaction":
        assert once.units == alone.units_once == 2 * alone.units
    assert sent == [] and db.get(Job, job_id="j", consistent=True) is None


def test_the_shown_request_is_the_one_that_is_sent(target: Target) -> None:
    """The service accepts the request as shown, and counts the units as shown."""
    db = target.connect(JOBS)
    for size in (0, 900, 1100, 5000):
        explained = db.dry_run().create(Job(job_id=f"j{size}", text="x" * size))
        assert explained.operation is not None and not explained.is_least
        reply = db.call(
            explained.operation, explained.request | {"ReturnConsumedCapacity": "TOTAL"}
        )
        assert reply["ConsumedCapacity"]["CapacityUnits"] == explained.units
        assert db.get_one(Job, job_id=f"j{size}", consistent=True).rev == 1


def test_index_entries_are_part_of_the_price(target: Target) -> None:
    db = target.connect(shop(), measure=True)
    explained = db.dry_run().create(order(1))
    db.create(order(1))
    assert db.meter is not None
    assert explained.units > 1
    assert db.meter.by_label["create Order"].write_units == explained.units


def test_the_objects_of_the_caller_stay_as_they_are() -> None:
    db = connect(shop())
    anna, first = user(1), order(1)
    before = copy.deepcopy((anna, first))
    db.dry_run().create(anna)
    db.dry_run().put(first)
    assert (anna, first) == before


def test_conditions_are_shown_with_their_names_and_values() -> None:
    dry = connect(JOBS).dry_run()
    stored = Job(job_id="j")
    stored.rev = 3
    assert dry.put(stored).conditions == ('rev = "3"',)
    shown = _updated(dry, once=False)
    assert shown.conditions[0].endswith('count >= "2"')
    assert "condition" in str(shown) and "at least 1 write unit" in str(shown)


def test_the_price_of_each_proof_is_shown() -> None:
    dry = connect(JOBS).dry_run()
    explained = dry.create(Job(job_id="j", text="x" * 970))
    assert (explained.units, explained.units_once, explained.units_with_token) == (1, 2, 2)
    text = str(explained)
    assert "once=True proves the outcome for ten minutes: 2 write units" in text
    assert "write_token() field proves success while the token is in the item: 2 write" in text
    has_one = dry.create(Proven(job_id="j"))
    assert has_one.units == has_one.units_with_token
    assert "ten minutes" in str(_in_transaction(dry, once=False))


def test_reads_before_a_write_are_shown_and_not_sent() -> None:
    db = connect(shop(), measure=True)
    explained = db.dry_run().put(user(1))
    assert explained.operation == "TransactWriteItems"
    assert [operation for operation, _ in explained.reads] == ["GetItem"]
    assert "as if it found nothing" in str(explained)
    assert db.meter is not None and "read User before a write" not in db.meter.by_label
    assert db.get(User, user_id="u1") is None


def test_a_snapshot_has_its_price() -> None:
    dry = connect(shop()).dry_run()
    explained = dry.snapshot([Get(Product, sku="a"), Get(Product, sku="b")])
    assert (explained.operation, explained.units) == ("TransactGetItems", 4)
    assert "at least 4 read units" in str(explained)


def test_wrong_uses_fail_as_they_do_in_earnest() -> None:
    db: Db = connect(JOBS)
    changing = db.dry_run().update(Job, job_id="j")
    with pytest.raises(RequestRefused, match="changes nothing"), changing:
        pass
    with pytest.raises(RequestRefused, match="before the with block"):
        _ = db.dry_run().update(Job, job_id="j").explanation
    with pytest.raises(ZeroDivisionError), changing:
        _ = 1 / 0
