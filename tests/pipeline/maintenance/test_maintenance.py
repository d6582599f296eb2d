"""Maintenance subscribers, in threads on the embedded engine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from stator import Db, Engine, TableSettings, connect
from stator.errors import (
    ConfigurationError,
    DesignError,
    ItemExists,
    StreamMissing,
    TryLater,
    UniqueTaken,
)
from stator.model.values import Item
from stator.patterns import AdaptiveShards, Rollup, Series
from stator.pipeline import Change, Message, Sink, StreamApp, WorkerOptions
from stator.pipeline.maintenance import outboxes
from stator.pipeline.workers.group_state import GroupWatch
from stator.pipeline.workers.handlers.parked_retry import ParkedRetry

from ..test_workers import eventually
from .greenhouse import START, Bed, Plant, Reading, greenhouse, orders, plantings, readings

QUICK = WorkerOptions(
    start="oldest",
    idle_seconds=0.02,
    retry_seconds=0.01,
    longest_retry_seconds=0.02,
    max_attempts=2,
)
DAY = timedelta(days=1)
HOURLY = Rollup("hour", of=Reading.value)


@pytest.fixture
def db(engine: Engine) -> Iterator[Db]:
    with connect(greenhouse, engine) as opened:
        opened.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        yield opened


@pytest.fixture
def app() -> StreamApp:
    return StreamApp(greenhouse, "maintenance")


def work(app: StreamApp, db: Db, options: WorkerOptions = QUICK) -> None:
    with app.start(db, options) as running:
        running.catch_up()


def reading(minutes: float, value: int, bed: str = "b1") -> Reading:
    return Reading(bed_id=bed, at=START + timedelta(minutes=minutes), value=value)


def hours(db: Db, bed: str = "b1") -> list[tuple[int | Decimal, ...]]:
    found = readings(db).rollup("hour", of=Reading.value).range(bed, START - DAY, START + DAY)
    return [(each.count, each.sum, each.min, each.max, each.last) for each in found]


# -- roll-ups


def test_roll_ups_follow_new_late_changed_and_removed_readings(app: StreamApp, db: Db) -> None:
    app.roll_up(readings)
    series = readings(db)
    assert series.add_many([reading(minutes, minutes) for minutes in range(0, 90, 5)]).ok
    work(app, db)
    assert hours(db) == [(12, 330, 0, 55, 55), (6, 435, 60, 85, 85)]
    series.add(reading(58, 7))  # late, and the last of its hour
    series.replace(reading(55, -1))  # it was the maximum
    series.remove(reading(0, 0))  # it was the minimum
    series.remove(reading(85, 85))
    work(app, db)
    assert hours(db) == [(12, 281, -1, 50, 7), (5, 350, 60, 80, 80)]
    for minutes in range(60, 85, 5):
        series.remove(reading(minutes, minutes))
    work(app, db)
    assert len(hours(db)) == 1
    series.add(reading(61, 9))
    work(app, db)
    assert hours(db)[1] == (1, 9, 9, 9, 9)


def test_repeated_changes_count_once(app: StreamApp, db: Db) -> None:
    app.roll_up(readings)
    readings(db).add_many([reading(minutes, 1) for minutes in range(30)])
    readings(db).remove(reading(3, 1))
    work(app, db)
    place = db.context.schema.place
    again = db.call("Query", {
        "TableName": place.table, "KeyConditionExpression": "PK = :p",
        "ExpressionAttributeValues": {":p": {"S": "WORK#maintenance"}},
    })  # fmt: skip
    for lease in again["Items"]:
        if "position" in lease:  # as if no checkpoint had been written
            db.call(
                "PutItem",
                {"TableName": place.table, "Item": lease | {"position": {"S": "TRIM_HORIZON"}}},
            )
    for batch_records in (7, 1000):
        work(app, db, WorkerOptions(start="oldest", idle_seconds=0.02, batch_records=batch_records))
        assert hours(db) == [(29, 29, 1, 1, 1)]


def test_a_rebuild_before_pending_changes_counts_none_twice(app: StreamApp, db: Db) -> None:
    app.roll_up(readings)
    series = readings(db)
    series.add_many([reading(minutes, 1) for minutes in range(20)])
    assert series.rollup("hour", of=Reading.value).rebuild("b1", START, START + DAY) > 0
    assert hours(db) == [(20, 20, 1, 1, 1)]
    work(app, db)
    assert hours(db) == [(20, 20, 1, 1, 1)]


def test_an_expired_reading_stays_in_the_roll_ups(app: StreamApp, db: Db, engine: Engine) -> None:
    keep = timedelta(seconds=1)

    def kept(of: Any) -> Series[Any, Reading]:
        return Series(
            of, Reading, by="bed_id", at="at", keep=keep, rollups=[HOURLY], rollups_from="stream"
        )

    app.roll_up(kept)
    # A writer that knows of no roll-ups does not refuse a reading that has expired.
    Series(db, Reading, by="bed_id", at="at", keep=keep).add(reading(0, 5))
    engine.sweep()
    work(app, db)
    assert hours(db) == [(1, 5, 5, 5, 5)]


def test_a_reading_that_does_not_decode_is_parked_and_counted_once_when_it_does(
    app: StreamApp, db: Db
) -> None:
    broken = [True]

    class Picky(Series[Any, Reading]):
        def __init__(self, of: Any) -> None:
            super().__init__(
                of, Reading, by="bed_id", at="at", rollups=[HOURLY], rollups_from="stream"
            )
            decode = self.layout.decode

            def decoded(item: Item) -> Any:
                if broken and item["value"] == {"N": "5"}:
                    raise DesignError("no fives")
                return decode(item)

            self.layout.decode = decoded  # type: ignore[method-assign]  # replaced for the test

    app.roll_up(Picky)
    series = Picky(db)
    for minutes, value in ((0, 3), (1, 5), (2, 4)):
        series.add(reading(minutes, value))
    work(app, db)
    assert hours(db) == [(2, 7, 3, 4, 4)]
    retrying = ParkedRetry(db.context, app)
    [parked] = db.run(retrying.parking.keys())
    assert parked.handler == "series Picky" and "no fives" in parked.error
    [each] = db.run(retrying.parking.records(parked.mark))
    broken.clear()
    for _ in range(2):  # the worker dies before it can record that the change was handled
        assert db.run(retrying._handled(parked, each)) is None
    assert hours(db) == [(3, 12, 3, 5, 4)]
    result = db.run(retrying.retry(parked.mark))
    assert result is not None and result.error is None
    assert hours(db) == [(3, 12, 3, 5, 4)] and not db.run(retrying.parking.keys())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rollups_from": "write"}, "roll-ups with each write"),
        ({"rollups": []}, "has no roll-ups"),
        ({"table_per": "month"}, "a table for each month"),
        ({"shards": AdaptiveShards(tables=2)}, "may use 2 tables"),
    ],
)
def test_a_series_whose_roll_ups_cannot_be_maintained_is_refused(
    app: StreamApp, db: Db, options: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {
        "by": "bed_id", "at": "at", "rollups": [HOURLY], "rollups_from": "stream"
    }  # fmt: skip
    app.roll_up(lambda of: Series(of, Reading, **(given | options)), name="wrong")
    with pytest.raises(ConfigurationError, match=message):
        app.start(db)


# -- links


def test_copies_follow_their_entities_and_links_are_deleted_with_them(
    app: StreamApp, db: Db
) -> None:
    app.refresh(plantings)
    links = plantings(db)
    rose, tulip, bed = (
        Plant(plant_id="p1", name="Rose"),
        Plant(plant_id="p2", name="Tulip"),
        Bed(bed_id="b1", title="A"),
    )
    for each in (rose, tulip, bed):
        db.put(each)
    links.link(rose, bed)
    links.link(tulip, bed)
    with db.update(Plant, plant_id="p1") as change:
        change.name = "Rosa"
    with db.update(Bed, bed_id="b1") as change:
        change.title = "B"
    work(app, db)
    assert [each.copy["name"] for each in links.of_right(bed)] == ["Rosa", "Tulip"]
    assert [each.copy["title"] for each in links.of_left(rose)] == ["B"]
    db.delete(Plant, plant_id="p2")
    work(app, db)
    assert [each.left for each in links.of_right(bed)] == ["p1"] and not list(links.of_left("p2"))


def test_links_of_an_entity_that_was_created_again_stay(app: StreamApp, db: Db) -> None:
    app.refresh(plantings)
    links = plantings(db)
    bed, rose = Bed(bed_id="b1", title="A"), Plant(plant_id="p1", name="Rose")
    for each in (bed, rose):
        db.put(each)
    links.link(rose, bed)
    db.delete(Plant, plant_id="p1")
    again = Plant(plant_id="p1", name="Rosa")
    db.put(again)
    links.link(again, bed)
    work(app, db)
    assert [each.copy["name"] for each in links.of_right(bed)] == ["Rosa"]


def test_links_of_a_deleted_entity_stay_if_it_is_created_again_in_between(db: Db) -> None:
    links = plantings(db)
    bed, rose = Bed(bed_id="b1", title="A"), Plant(plant_id="p1", name="Rose")
    for each in (bed, rose):
        db.put(each)
    links.link(rose, bed)
    assert db.run(links._unlink_gone(rose)) is None and links.exists("p1", "b1")
    with pytest.raises(ItemExists):
        db.create(rose)
    db.delete(Plant, plant_id="p1")
    assert links.settle(rose) == 1 and not links.exists("p1", "b1")


# -- outboxes


def send_orders(db: Db, count: int) -> None:
    outbox = orders(db)
    for number in range(count):
        with db.transaction() as tx:
            tx.put(Bed(bed_id=f"b{number}", title="new"))
            outbox.add(tx, topic="bed", body={"number": number}, key="k")


def test_messages_are_delivered_in_order_and_failures_retried(
    app: StreamApp, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "_LOOK_SECONDS", 0.05)  # it retries when it looks
    heard: list[int] = []
    failed: set[int] = set()

    def send(message: Any) -> None:
        number = message.body["number"]
        if number in (2, 4) and number not in failed:
            failed.add(number)
            raise TryLater("away") if number == 2 else ValueError("no")
        heard.append(number)

    app.relay(orders, to=send)
    send_orders(db, 2)  # before the app started
    with app.start(db, WorkerOptions(idle_seconds=0.02)) as running:
        eventually(lambda: heard == [0, 1])
        outbox = orders(db)
        for number in range(2, 6):
            with db.transaction() as tx:
                outbox.add(tx, topic="bed", body={"number": number}, key="k")
        eventually(lambda: heard == [0, 1, 2, 3, 4, 5])
        running.catch_up()
    assert orders(db).count() == 0 and not list(orders(db).parked())


def test_messages_can_be_relayed_to_a_sink(app: StreamApp, db: Db) -> None:
    import json

    sent: list[dict[str, Any]] = []

    class Listing(Sink):
        def send(self, messages: Sequence[Message]) -> None:
            sent.extend(
                json.loads(message.body) | {"sent as": message.event_id} for message in messages
            )

    app.relay(orders, to=Listing("list"))
    send_orders(db, 3)
    with app.start(db, QUICK):
        eventually(lambda: len(sent) == 3)
    assert [each["body"]["number"] for each in sent] == [0, 1, 2]
    assert all(
        each["topic"] == "bed" and each["key"] == "k" and each["id"] == each["sent as"]
        for each in sent
    )


# -- guards


def test_the_guard_of_an_item_deleted_past_the_data_layer_is_deleted(
    app: StreamApp, db: Db, engine: Engine
) -> None:
    app.release_guards()
    of = db.context.schema.of(Plant)
    for number in range(3):
        db.create(Plant(plant_id=f"p{number}", name="x", label=f"l{number}"))
    gone = Plant(plant_id="p0", name="x", label="l0")
    db.call("DeleteItem", {"TableName": of.table.name, "Key": of.key_of(gone)})
    again = Plant(plant_id="p1", name="x", label="l1")
    db.call("DeleteItem", {"TableName": of.table.name, "Key": of.key_of(again)})
    db.put(again)
    with pytest.raises(UniqueTaken):
        db.create(Plant(plant_id="p9", name="y", label="l0"))
    work(app, db)
    db.create(Plant(plant_id="p9", name="y", label="l0"))
    for taken in ("l1", "l2"):
        with pytest.raises(UniqueTaken):
            db.create(Plant(plant_id="p8", name="y", label=taken))


def test_releasing_guards_needs_an_entity_with_unique_fields(app: StreamApp) -> None:
    with pytest.raises(DesignError, match="Bed has no guards"):
        app.release_guards(Bed)


# -- the design's own table


def test_only_maintenance_subscribers_see_the_own_table(app: StreamApp, db: Db) -> None:
    told: list[Any] = []

    @app.on.any
    def everything(change: Change[Any]) -> None:
        told.append(change.record.table)

    app.roll_up(readings)
    readings(db).add(reading(0, 1))
    db.put(Bed(bed_id="b1", title="A"))
    work(app, db)
    assert set(told) == {db.context.schema.of(Bed).table.name} and hours(db) == [(1, 1, 1, 1, 1)]


def test_lease_writes_do_not_keep_workers_busy(app: StreamApp, db: Db) -> None:
    app.roll_up(readings)
    readings(db).add(reading(0, 1))
    with app.start(db, QUICK) as running:
        running.catch_up()
        before = db.run(GroupWatch(db.context, app.name)._leases.load())
        batches = running.progress().batches
        time.sleep(0.5)
        after = db.run(GroupWatch(db.context, app.name)._leases.load())
        running.catch_up()
        assert running.progress().batches == batches
    moved = [
        name
        for name, lease in after.leases.items()
        if lease.position != before.leases[name].position
    ]
    assert len(moved) <= 1  # at most the shard that holds the leases
    state = db.run(GroupWatch(db.context, app.name).look())
    assert {shard.table for shard in state.shards} == {
        db.context.schema.place.table
    } and state.lag_seconds == 0.0


def test_a_stream_is_enabled_on_an_existing_table(app: StreamApp, engine: Engine) -> None:
    app.roll_up(readings)
    with connect(greenhouse, engine) as db:
        db.ensure()
        with (
            pytest.raises(StreamMissing, match="greenhouse-stator has no stream"),
            app.start(db, QUICK) as running,
        ):
            running.catch_up()
        done = db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        assert "greenhouse-stator has a stream of NEW_AND_OLD_IMAGES" in done
        readings(db).add(reading(0, 1))
        work(app, db)
        assert hours(db) == [(1, 1, 1, 1, 1)]


def test_a_pattern_of_the_wrong_kind_is_refused(app: StreamApp, db: Db) -> None:
    with pytest.raises(ConfigurationError, match="needs a name"):
        app.roll_up(lambda of: readings(of))
    with pytest.raises(ConfigurationError, match="is neither a Series nor a function"):
        app.roll_up(3)  # type: ignore[arg-type]  # wrong on purpose
    app.roll_up(readings(db), name="an object")
    app.refresh(readings, name="wrong")  # type: ignore[arg-type]  # wrong on purpose
    db.put(Bed(bed_id="b1", title="A"))
    app.roll_up(lambda of: of.get(Bed, "b1"), name="too curious")
    with pytest.raises(
        ConfigurationError, match="not available while a worker creates its patterns"
    ):
        app.start(db)
