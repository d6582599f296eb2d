"""Records into items: guards, folds, handlers, deletions, dead letters and commit marks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stator import Db, connect
from stator.data import Transaction
from stator.errors import ResourceNotFound, TooManyErrors
from stator.pipeline import DeadRecordFile, DeadRecordTable, Ingest, IngestOptions
from stator.pipeline.ingest.dead_records import DeadRecord
from stator.pipeline.ingest.routes.guards import checksum_of

from .meters import (
    Account,
    Consumer,
    MemoryLog,
    Reading,
    Total,
    add_to_total,
    meters,
    readings_of,
    totalling,
)


@pytest.fixture
def db() -> Iterator[Db]:
    with connect(meters, ":memory:") as opened:
        opened.ensure()
        yield opened


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


def putting(**options: Any) -> Ingest:
    app = Ingest(meters, "latest")
    app.put(Reading, topic="readings", **options)
    return app


def stored(db: Db, meter: str) -> dict[str, Any]:
    """The item of a reading, tombstones included."""
    of = db.context.schema.of(Reading)
    request = {"TableName": of.table.name, "Key": of.key_from({"meter": meter})}
    item: dict[str, Any] = db.call("GetItem", request)["Item"]
    return item


def hour(number: int) -> str:
    return f"2026-11-19T{number:02}:00:00Z"


# -- folds


def test_each_record_is_counted_once_when_batches_begin_elsewhere(db: Db, log: MemoryLog) -> None:
    for number in range(10):
        log.add({"meter": "m1", "value": number, "site": f"s{number % 3}"})
    app = totalling()
    first = Consumer(app, db, log)
    first.read(6)
    first.write()  # and dies before it commits
    second = Consumer(app, db, log)
    second.run()
    total = db.get_one(Total, meter="m1")
    assert (total.readings, total.sum, total.last) == (10, 45, 9)
    assert total.sites == {"s0", "s1", "s2"}
    progress = second.intake.progress()
    assert (progress.written, progress.stale) == (1, 6)
    assert list(log.committed.values()) == [10]
    log.committed.clear()
    zombie = Consumer(app, db, log)
    zombie.run()
    assert db.get_one(Total, meter="m1").readings == 10
    assert zombie.intake.progress().stale == 10


def test_partitions_of_one_key_are_added_up(db: Db, log: MemoryLog) -> None:
    for number in range(12):
        log.add({"meter": "m1", "value": number}, partition=number % 4)
    for _ in range(2):
        log.committed.clear()
        Consumer(totalling(), db, log).run()
    assert db.get_one(Total, meter="m1").sum == 66


def test_an_older_item_that_lacks_a_number_gets_it(db: Db, log: MemoryLog) -> None:
    of = db.context.schema.of(Total)
    item = of.item(Total(meter="m1", readings=5))
    del item["sum"]
    db.call("PutItem", {"TableName": of.table.name, "Item": item})
    for number in (3, 4):
        log.add({"meter": "m1", "value": number})
    consumer = Consumer(totalling(), db, log)
    consumer.run()
    total = db.get_one(Total, meter="m1")
    assert (total.readings, total.sum) == (7, 7)
    assert consumer.letters.letters == []


def test_a_number_too_large_is_a_dead_letter_and_its_neighbours_count(
    db: Db, log: MemoryLog
) -> None:
    for number in (1, 10**37, 9 * 10**38 + 1, 2):
        log.add(b'{"meter": "m1", "value": %d}' % number)
    consumer = Consumer(totalling(), db, log)
    consumer.run()
    [letter] = consumer.letters.letters
    assert letter.record.offset == 2 and letter.route == "fold Total"
    total = db.get_one(Total, meter="m1")
    assert (total.readings, total.sum, total.last) == (3, 10**37 + 3, 2)
    assert list(log.committed.values()) == [4]


def test_a_field_that_is_set_and_added_to_takes_two_updates(db: Db, log: MemoryLog) -> None:
    app = Ingest(meters, "resets")

    @app.fold(Total, topic="readings", by=lambda event: {"meter": event["meter"]})
    def fold(event: dict[str, Any], into: Total) -> None:
        if event["value"] < 0:
            into.sum = 0
        else:
            into.sum += event["value"]

    for number in (5, 6, -1, 7, 8):
        log.add({"meter": "m1", "value": number})
    consumer = Consumer(app, db, log)
    consumer.run()
    assert db.get_one(Total, meter="m1").sum == 15
    assert consumer.intake.progress().written == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda into: into.sites.discard("x"), "cannot remove members"),
        (lambda into: setattr(into, "meter", "m2"), "a key of Total contains"),
    ],
)
def test_what_cannot_be_folded_is_refused(
    db: Db, log: MemoryLog, change: Any, message: str
) -> None:
    app = Ingest(meters, "totals")
    fold = app.fold(Total, topic="readings", by=lambda event: {"meter": event["meter"]})
    fold(lambda event, into: change(into))
    log.add({"meter": "m1"})
    consumer = Consumer(app, db, log)
    consumer.run()
    assert message in consumer.letters.letters[0].reason


# -- puts


def test_a_put_is_not_rolled_back_by_a_zombie(db: Db, log: MemoryLog) -> None:
    app = putting()
    log.add({"meter": "m1", "value": 1})
    zombie = Consumer(app, db, log)
    zombie.read()
    log.add({"meter": "m1", "value": 2, "nobody": "knows"})
    Consumer(app, db, log).run()
    zombie.write()
    assert db.get_one(Reading, meter="m1").value == 2
    assert zombie.intake.progress().stale == 1


def test_without_a_guard_the_zombie_wins(db: Db, log: MemoryLog) -> None:
    """What the guards are for."""
    app = putting(guard="none")
    log.add({"meter": "m1", "value": 1})
    zombie = Consumer(app, db, log)
    zombie.read()
    log.add({"meter": "m1", "value": 2})
    log.add({"meter": "m2", "value": 2})
    log.add(None, "m2")
    Consumer(app, db, log).run()
    assert db.get(Reading, meter="m2") is None
    zombie.write()
    assert db.get_one(Reading, meter="m1").value == 1


def test_the_newest_version_wins_in_any_order(db: Db, log: MemoryLog) -> None:
    app = putting(version=Reading.at)
    for partition, at, value in ((0, 9, 9), (1, 11, 11), (0, 10, 10), (2, 11, 1), (1, 8, 8)):
        log.add({"meter": "m1", "value": value, "at": hour(at)}, partition=partition)
        Consumer(app, db, log).run()
    assert db.get_one(Reading, meter="m1").value in (11, 1)
    log.add({"meter": "m1", "value": 12, "at": hour(11)}, partition=1)  # of equal ones, the last
    Consumer(app, db, log).run()
    assert db.get_one(Reading, meter="m1").value == 12


def test_an_id_is_taken_once(db: Db, log: MemoryLog) -> None:
    app = putting(guard="id")
    log.add({"meter": "m1", "value": 1})
    log.add({"meter": "m1", "value": 2}, partition=1)
    log.add(None, "m1")
    consumer = Consumer(app, db, log)
    consumer.run()
    assert db.get_one(Reading, meter="m1").value == 1
    assert [letter.reason for letter in consumer.letters.letters] == [
        "guard='id' only adds items, and the record deletes one"
    ]


def test_a_checksum_refuses_what_changes_nothing(db: Db, log: MemoryLog) -> None:
    app = putting(guard="checksum")
    for _ in range(3):
        log.add({"meter": "m1", "value": 1})
        consumer = Consumer(app, db, log)
        consumer.run()
    assert consumer.intake.progress().stale == 1
    assert stored(db, "m1")["_in:readings:0"] == {"N": "0"}
    # A to B and back to A, in one write: the mark must rise, or a zombie could write B again.
    zombie_log = MemoryLog()
    zombie_log.committed = dict(log.committed)
    log.add({"meter": "m1", "value": 2})
    zombie_log.lanes = {lane: list(records) for lane, records in log.lanes.items()}
    zombie = Consumer(app, db, zombie_log)
    zombie.read()
    log.add({"meter": "m1", "value": 1})
    Consumer(app, db, log).run()
    zombie.write()
    assert db.get_one(Reading, meter="m1").value == 1


def test_the_order_of_a_set_does_not_change_a_checksum() -> None:
    assert checksum_of({"a": {"SS": ["x", "y"]}}) == checksum_of({"a": {"SS": ["y", "x"]}})
    assert checksum_of({"a": {"N": "1"}}) != checksum_of({"a": {"N": "2"}})


@pytest.mark.parametrize("guard", ["position", "version", "checksum"])
def test_a_deletion_leaves_a_tombstone_that_nothing_shows(
    db: Db, log: MemoryLog, guard: str
) -> None:
    options = {"version": Reading.at} if guard == "version" else {"guard": guard}
    app = putting(**options)
    log.add({"meter": "m1", "value": 1, "at": hour(1)})
    log.add({"meter": "m1", "value": 2, "at": hour(2)})
    zombie = Consumer(app, db, log)
    zombie.read()
    log.add(None, "m1", at=1795100000.0)
    Consumer(app, db, log).run()
    zombie.write()
    assert db.get(Reading, meter="m1") is None
    assert list(db.fetch(readings_of("none"))) == list(db.scan(Reading, allow=True)) == []
    assert db.get_many(Reading, ["m1"]) == [None]
    tombstone = stored(db, "m1")
    assert tombstone["_deleted"] == {"BOOL": True}
    assert int(tombstone["expires"]["N"]) > db.context.now() + 6 * 24 * 3600
    of = db.context.schema.of(Reading)
    for index in of.table.indexes:
        assert not tombstone.keys() >= {*index.partition, *index.sort}
    log.add({"meter": "m1", "value": 4, "at": "2026-12-24T00:00:00Z"})
    Consumer(app, db, log).run()
    assert db.get_one(Reading, meter="m1").value == 4
    assert not stored(db, "m1").keys() & {"_deleted", "_ingested", "expires"}


def test_one_topic_goes_to_several_entities(db: Db, log: MemoryLog) -> None:
    app = Ingest(meters, "several")
    app.put(
        Reading,
        topic="readings",
        when=lambda event: event["kind"] == "reading",
        event=None,
        convert=lambda event: Reading(meter=event["meter"], value=event["value"]),
    )
    app.fold(
        Total,
        topic="readings",
        by=lambda event: {"meter": event["meter"]},
        when=lambda event: event["kind"] == "reading",
    )(add_to_total)
    log.add({"kind": "reading", "meter": "m1", "value": 1})
    log.add({"kind": "noise"})
    consumer = Consumer(app, db, log)
    consumer.run()
    assert db.get_one(Reading, meter="m1").value == db.get_one(Total, meter="m1").sum == 1
    assert consumer.intake.progress().unrouted == 1
    assert list(log.committed.values()) == [2]


# -- handlers


def paying(calls: list[int] | None = None, **options: Any) -> Ingest:
    app = Ingest(meters, "payments")

    @app.on("readings", **options)
    def pay(event: dict[str, Any], tx: Transaction) -> None:
        if calls is not None:
            calls.append(event["amount"])
        if event["amount"] == 13:
            raise ValueError("unlucky")
        for name, sign in ((event["to"], 1), (event["from"], -1)):
            with tx.update(Account, account_id=name, or_create=True) as account:
                account.balance += sign * event["amount"]

    return app


def test_a_handlers_transaction_is_applied_once(db: Db, log: MemoryLog) -> None:
    for number in range(5):
        log.add({"from": "a", "to": "b", "amount": number}, partition=number % 2)
    for _ in range(2):
        log.committed.clear()
        consumer = Consumer(paying(), db, log)
        consumer.run()
    assert db.get_one(Account, account_id="b").balance == 10
    assert db.get_one(Account, account_id="a").balance == -10
    assert consumer.intake.progress().stale == 5


def test_without_a_guard_a_handler_applies_a_replay(db: Db, log: MemoryLog) -> None:
    log.add({"from": "a", "to": "b", "amount": 1})
    for _ in range(2):
        log.committed.clear()
        Consumer(paying(guard="none"), db, log).run()
    assert db.get_one(Account, account_id="b").balance == 2


def test_a_handler_that_fails_is_called_again_and_then_a_dead_letter(
    db: Db, log: MemoryLog
) -> None:
    for number in (1, 13, 2):
        log.add({"from": "a", "to": "b", "amount": number})
    calls: list[int] = []
    consumer = Consumer(paying(calls), db, log, IngestOptions(max_attempts=3))
    consumer.read()
    while not consumer.intake.window.is_drained():
        consumer.intake.write_once(0.1)
    consumer.commit()
    assert calls == [1, 13, 13, 13, 2]
    assert db.get_one(Account, account_id="b").balance == 3
    assert [letter.reason for letter in consumer.letters.letters] == ["ValueError: unlucky"]
    assert list(log.committed.values()) == [3]


# -- dead letters


def test_a_bad_record_does_not_take_its_neighbours_with_it(db: Db, log: MemoryLog) -> None:
    log.add({"meter": "m1", "value": 1})
    log.add(b"\xff no JSON", "k")
    log.add([1])
    log.add({"meter": "m1", "value": "many"})
    log.add({"meter": "m1"})
    log.add({"meter": "", "value": 3})
    log.add({"meter": "m2", "value": 2})
    consumer = Consumer(putting(), db, log)
    consumer.run()
    reasons = [letter.reason for letter in consumer.letters.letters]
    assert [letter.record.offset for letter in consumer.letters.letters] == [1, 2, 3, 4, 5]
    assert "not JSON" in reasons[0] and "not an object" in reasons[1] and "many" in reasons[2]
    assert {each.meter for each in db.scan(Reading, allow=True)} == {"m1", "m2"}
    assert list(log.committed.values()) == [7]


def test_letters_hold_the_record_and_are_stored_once_in_the_table(
    db: Db, log: MemoryLog, tmp_path: Path
) -> None:
    record = log.add(b"\xff", "k", partition=3, at=12.5)
    letter = DeadRecord(record, "put Reading", "no JSON")
    path = tmp_path / "dead.jsonl"
    file = DeadRecordFile(path)
    file.add(letter)
    file.close()
    table = DeadRecordTable(db, "latest")
    for _ in range(2):
        table.add(letter)
    [line] = map(json.loads, path.read_text().splitlines())
    assert line == {
        "topic": "readings",
        "partition": 3,
        "offset": 0,
        "at": 12.5,
        "route": "put Reading",
        "reason": "no JSON",
        "key": "k",
        "value": {"$base64": "/w=="},
        "headers": {},
    }
    place = db.context.schema.place
    [item] = db.call("Scan", {"TableName": place.table})["Items"]
    assert json.loads(item["letter"]["S"]) == line and place.ttl in item


def test_too_many_errors_end_the_ingest(db: Db, log: MemoryLog) -> None:
    for _ in range(3):
        log.add(b"no JSON")
    consumer = Consumer(putting(), db, log, IngestOptions(max_errors=2))
    with pytest.raises(TooManyErrors):
        consumer.run()
    assert consumer.intake.uncommitted() == {}


# -- the table is in trouble


def test_a_missing_table_is_an_error_and_commits_nothing(db: Db, log: MemoryLog) -> None:
    log.add({"meter": "m1", "value": 1})
    consumer = Consumer(putting(), db, log)
    consumer.read()
    db.call("DeleteTable", {"TableName": db.context.schema.of(Reading).table.name})
    with pytest.raises(ResourceNotFound):
        consumer.write()
    assert consumer.intake.uncommitted() == {}
    assert consumer.intake.progress().waiting == 1
