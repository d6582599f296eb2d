"""The audit log is complete, has each change once, and reveals later manipulation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stator import Db, Engine, TableSettings, connect
from stator.errors import ConfigurationError, SinkRefused
from stator.pipeline import StreamApp, WorkerOptions
from stator.pipeline.sinks.audit import AuditLog
from stator.pipeline.sinks.audit_chain import Seal, entry_hash

from ..shop import Customer, Order, shop
from .worker_steps import ORDERS, QUICK, ROUNDS, Crashing, work, write_orders

TABLE = "shop-stator"


def entries(db: Db, of: str = "AUDIT#ledger#shop#") -> list[dict[str, Any]]:
    items = db.call("Scan", {"TableName": TABLE})["Items"]
    return sorted(
        (item for item in items if item["PK"]["S"].startswith(of)),
        key=lambda item: str((item["PK"], item["SK"])),
    )


def heads(db: Db) -> list[dict[str, Any]]:
    return entries(db, "AUDIT#ledger#HEADS#")


def put(db: Db, item: dict[str, Any]) -> None:
    db.call("PutItem", {"TableName": TABLE, "Item": item})


def remove(db: Db, item: dict[str, Any]) -> None:
    db.call("DeleteItem", {"TableName": TABLE, "Key": {"PK": item["PK"], "SK": item["SK"]}})


def test_an_entry_has_author_change_and_both_images(app: StreamApp, db: Db, engine: Engine) -> None:
    log = AuditLog("ledger", who=Order.status)
    app.add(log)
    db.put(Order(order_id="o1", total=5, status="anna"))
    db.put(Order(order_id="o1", total=6, status="ben"))
    db.delete(Order, order_id="o1")
    db.put(Order(order_id="o2", expires=1_700_000_000))
    engine.sweep()
    work(app, db)
    first, second, third = log.history(db, Order, order_id="o1")
    assert (first.number, first.kind, first.who, first.before) == (1, "INSERT", "anna", None)
    assert first.after is not None and first.after["total"] == 5
    assert (second.who, second.changed) == ("ben", ("status", "total"))
    assert second.before == first.after and second.after is not None and second.after["total"] == 6
    assert (third.kind, third.who, third.after, third.before) == (
        "REMOVE",
        None,
        None,
        second.after,
    )
    assert log.history(db, Order, order_id="o2")[-1].who == "dynamodb.amazonaws.com"
    assert log.history(db, Order, order_id="none") == []
    report = log.verify(db)
    assert report.is_sound and (report.chains, report.entries) == (2, 5)


def test_each_change_is_logged_once_despite_crashes(app: StreamApp, db: Db) -> None:
    log = AuditLog("ledger")
    app.add(Crashing(log, crashes=3))
    write_orders(db)
    work(app, db)
    for number in range(ORDERS):
        history = log.history(db, Order, order_id=f"o{number}")
        assert [entry.after["total"] for entry in history if entry.after] == list(range(ROUNDS))
    assert log.verify(db).is_sound
    assert log.verify(db).entries == ORDERS * ROUNDS


def test_entries_of_any_size_are_stored(app: StreamApp, db: Db) -> None:
    log = AuditLog("ledger")
    app.add(log)
    db.put(Order(order_id="o1", status="ä" * 150_000))
    db.put(Order(order_id="o1", status="ö" * 150_000))
    db.put(Order(order_id="o1", status="x"))
    work(app, db)
    assert [
        len(entry.after["status"]) for entry in log.history(db, Order, order_id="o1") if entry.after
    ] == [
        150_000,
        150_000,
        1,
    ]
    assert log.verify(db).is_sound


def test_a_snapshot_starts_the_chains(app: StreamApp, db: Db) -> None:
    log = AuditLog("ledger")
    app.add(log)
    db.put(Order(order_id="o1", total=1))
    options = WorkerOptions(start="snapshot", idle_seconds=0.02)
    work(app, db, options)
    db.put(Order(order_id="o1", total=2))
    work(app, db, options)
    assert [entry.after["total"] for entry in log.history(db, Order, order_id="o1") if entry.after][
        -1
    ] == 2
    assert log.verify(db).is_sound


@pytest.fixture
def log(app: StreamApp, db: Db) -> AuditLog:
    """A log of three items with four entries each."""
    made = AuditLog("ledger", secret="hush")
    app.add(made)
    for total in range(4):
        for number in range(3):
            db.put(Order(order_id=f"o{number}", total=total))
    work(app, db)
    assert made.verify(db).is_sound
    return made


def test_a_changed_entry_is_found(log: AuditLog, db: Db) -> None:
    item = entries(db)[5]
    item["entry"]["S"] = item["entry"]["S"].replace('"total":{"N":"1"}', '"total":{"N":"9"}')
    put(db, item)
    [problem] = log.verify(db).problems
    assert problem.number == int(item["SK"]["S"][:12]) and "changed" in str(problem)
    with pytest.raises(SinkRefused, match="not sound"):
        log.seal(db)


def test_a_changed_entry_with_a_new_hash_is_found(log: AuditLog, db: Db) -> None:
    item = entries(db)[5]
    item["entry"]["S"] = item["entry"]["S"].replace("INSERT", "MODIFY").replace("MODIFY", "REMOVE")
    item["hash"]["S"] = entry_hash(item["entry"]["S"], None)
    put(db, item)
    assert not log.verify(db).is_sound


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_missing_entry_is_found(log: AuditLog, db: Db, number: int) -> None:
    remove(db, entries(db)[number])
    assert any(
        "missing" in str(each) or "head records" in str(each) for each in log.verify(db).problems
    )


def test_entries_that_changed_places_are_found(log: AuditLog, db: Db) -> None:
    first, second = entries(db)[1:3]
    put(db, {**first, "entry": second["entry"], "hash": second["hash"]})
    put(db, {**second, "entry": first["entry"], "hash": first["hash"]})
    assert any("moved" in str(each) for each in log.verify(db).problems)


def test_a_missing_head_is_found(log: AuditLog, db: Db) -> None:
    remove(db, heads(db)[0])
    [problem] = log.verify(db).problems
    assert "head is missing" in str(problem)


def test_a_head_that_would_keep_changes_out_is_found(log: AuditLog, db: Db) -> None:
    put(db, {**heads(db)[0], "sequence": {"S": "9" * 30}})
    [problem] = log.verify(db).problems
    assert "another change" in str(problem)


def test_an_end_cut_off_with_its_head_is_found_by_a_seal(log: AuditLog, db: Db) -> None:
    seal = Seal.loads(log.seal(db).dumps())
    assert log.verify(db, since=seal).is_sound and seal.digest == log.seal(db).digest
    mine = [item for item in entries(db) if item["PK"] == entries(db)[0]["PK"]]
    mark = mine[0]["PK"]["S"].removeprefix("AUDIT#ledger#")
    [head] = [item for item in heads(db) if item["SK"]["S"] == mark]
    remove(db, mine[3])
    sequence = json.loads(mine[2]["entry"]["S"])["sequence"]
    put(db, {**head, "number": {"N": "3"}, "hash": mine[2]["hash"], "sequence": {"S": sequence}})
    assert log.verify(db).is_sound  # verify() alone cannot detect this
    [problem] = log.verify(db, since=seal).problems
    assert "4 were sealed" in str(problem)
    for item in [*mine[:3], head]:
        remove(db, item)
    assert log.verify(db).is_sound
    assert not log.verify(db, since=seal).is_sound


def test_a_log_can_be_extended_after_a_seal(app: StreamApp, log: AuditLog, db: Db) -> None:
    seal = log.seal(db)
    db.put(Order(order_id="o0", total=9))
    db.put(Customer(customer_id="c1", name="Anna"))
    work(app, db)
    report = log.verify(db, since=seal)
    assert report.is_sound and (report.chains, report.entries) == (4, 14)
    assert log.seal(db).digest != seal.digest


def test_without_the_secret_nothing_verifies(log: AuditLog, db: Db) -> None:
    assert len(AuditLog("ledger", secret="guess").verify(db).problems) == 12


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_single_edit_is_found(data: st.DataObject) -> None:
    """The edit is of any attribute of any item of the log."""
    with Engine.open() as engine, connect(shop, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(shop, "going-out")
        log = AuditLog("ledger")
        app.add(log)
        for total in range(3):
            db.put(Order(order_id="o1", total=total))
            db.put(Order(order_id="o2", total=total))
        work(app, db, QUICK)
        items = [*entries(db), *(item for item in heads(db))]
        item = data.draw(st.sampled_from(items))
        if data.draw(st.booleans()):
            remove(db, item)
        else:
            name = data.draw(
                st.sampled_from([name for name in ("entry", "hash", "sequence") if name in item])
            )
            text = item[name]["S"]
            at = data.draw(st.integers(0, len(text) - 1))
            put(
                db,
                {
                    **item,
                    name: {"S": text[:at] + chr((ord(text[at]) + 1) % 128 or 1) + text[at + 1 :]},
                },
            )
        assert not log.verify(db).is_sound


def test_invalid_arguments_are_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="stores items as they are"):
        AuditLog("ledger", transform=lambda change: change)
    with pytest.raises(ConfigurationError, match="cannot be the name"):
        AuditLog("a#b")
    with pytest.raises(ConfigurationError, match="not a seal"):
        Seal.loads("{}")
