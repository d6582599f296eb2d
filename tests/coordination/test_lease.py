from __future__ import annotations

from typing import Any

import pytest

from stator import connect
from stator.coordination.lease import LeaseAttributes, LeaseHold, LeaseItem, Taken
from stator.coordination.stored_format import StoredFormat
from stator.errors import ConditionFailed, ItemFormatUnsupported
from stator.patterns.lock import Lock
from stator.tables.db import Db
from stator.tables.work import Work
from tests.tables.shop import shop

NAMES = (
    LeaseAttributes(),
    LeaseAttributes("holder", "ends", "token"),
    LeaseAttributes("retry_owner", "retry_until", None),
)


def lease_in(db: Db, attributes: LeaseAttributes) -> LeaseItem:
    place = db.context.schema.place
    return LeaseItem(place.table, place.key("THING#1", "LEASE"), "lease", attributes)


@pytest.fixture(params=NAMES, ids=lambda names: names.owner)
def lease(request: pytest.FixtureRequest) -> tuple[Db, LeaseItem]:
    db = connect(shop())
    return db, lease_in(db, request.param)


def take(db: Db, item: LeaseItem, owner: str, now: float, seconds: float = 10.0) -> Taken:
    return db.run(item.take(owner, now + seconds, item.attributes.free(now)))


def test_a_free_lease_is_taken_and_a_held_one_is_not(lease: tuple[Db, LeaseItem]) -> None:
    db, item = lease
    assert take(db, item, "one", 100.0).is_mine
    refused = take(db, item, "two", 105.0)
    assert not refused.is_mine
    assert item.attributes.read(refused.item).owner == "one"


def test_a_claim_without_an_end_is_never_over(lease: tuple[Db, LeaseItem]) -> None:
    db, item = lease
    claim = {item.attributes.owner: {"S": "one"}}
    assert db.run(item.replace(claim, item.attributes.free())).is_mine
    refused = take(db, item, "two", 1e9)
    assert not refused.is_mine
    assert item.attributes.read(refused.item).owner == "one"
    assert db.run(item.release(LeaseHold("one"))) is (item.attributes.fence is None)


def test_a_lease_that_is_over_changes_hands_and_fences_the_first_holder_off(
    lease: tuple[Db, LeaseItem],
) -> None:
    db, item = lease
    first = item.attributes.read(take(db, item, "one", 100.0).item)
    second = item.attributes.read(take(db, item, "two", 111.0).item)
    if item.attributes.fence is not None:
        assert second.fence == first.fence + 1
    assert db.run(item.renew(first, 200.0)) is None
    assert not db.run(item.release(first))
    assert not db.run(item.delete(first))
    renewed = db.run(item.renew(second, 200.0, {"position": {"S": "42"}}))
    assert renewed is not None
    assert renewed["position"] == {"S": "42"}
    assert item.attributes.read(renewed).until == 200.0


def test_a_released_lease_is_free_at_once_and_keeps_its_fence(
    lease: tuple[Db, LeaseItem],
) -> None:
    db, item = lease
    first = item.attributes.read(take(db, item, "one", 100.0).item)
    assert db.run(item.release(first))
    second = item.attributes.read(take(db, item, "two", 101.0).item)
    assert second.owner == "two"
    assert second.fence >= first.fence


def test_a_lease_that_was_written_since_it_was_seen_is_not_taken() -> None:
    db = connect(shop())
    item = lease_in(db, LeaseAttributes())
    seen = item.attributes.read(take(db, item, "one", 100.0).item)
    assert db.run(item.renew(seen, 120.0)) is not None
    as_seen = item.attributes.as_seen(seen)
    assert not db.run(item.take("two", 130.0, as_seen)).is_mine


def test_a_lease_is_handed_to_another_holder_with_the_next_fence() -> None:
    db = connect(shop())
    item = lease_in(db, LeaseAttributes())
    one = item.attributes.read(take(db, item, "one", 100.0).item)
    stored = db.run(item.hand_over(one, "two", 150.0))
    assert stored is not None
    assert item.attributes.read(stored) == LeaseHold("two", one.fence + 1, 150.0)
    assert db.run(item.renew(one, 200.0)) is None


def test_a_take_whose_answer_was_lost_is_recognised_by_its_owner() -> None:
    db = connect(shop())
    item = lease_in(db, LeaseAttributes())
    stored = take(db, item, "one", 100.0).item

    def retried(owner: str) -> Taken:
        work: Work[Any] = item.take(owner, 110.0, item.attributes.free(100.0))
        next(work)
        refusal = ConditionFailed(item=stored)
        refusal.after_unknown = True
        with pytest.raises(StopIteration) as ended:
            work.throw(refusal)
        taken: Taken = ended.value.value
        return taken

    assert retried("one").is_mine
    assert not retried("two").is_mine


def test_a_check_fails_the_transaction_once_the_lease_is_lost() -> None:
    db = connect(shop())
    item = lease_in(db, LeaseAttributes())
    first = item.attributes.read(take(db, item, "one", 100.0).item)
    db.call("TransactWriteItems", {"TransactItems": [item.check(first)]})
    take(db, item, "two", 111.0)
    with pytest.raises(Exception, match="ConditionalCheckFailed"):
        db.call("TransactWriteItems", {"TransactItems": [item.check(first)]})


def test_items_of_a_newer_format_are_refused_and_left_alone() -> None:
    db = connect(shop())
    place = db.context.schema.place
    key = place.key("LOCK#job", "LEASE")
    newer = {**key, "holders": {"L": []}, "_format": {"N": "2"}}
    db.call("PutItem", {"TableName": place.table, "Item": newer})
    with pytest.raises(ItemFormatUnsupported, match="lock job have format 2"):
        Lock(db, "job").acquire()
    with pytest.raises(ItemFormatUnsupported):
        Lock(db, "job").holder()
    assert db.call("GetItem", {"TableName": place.table, "Key": key})["Item"] == newer


def test_an_item_without_a_version_has_version_1() -> None:
    StoredFormat("view", 1).check({}, "orders")
    with pytest.raises(ItemFormatUnsupported):
        StoredFormat("view", 1).check({"_format": {"N": "2"}}, "orders")
