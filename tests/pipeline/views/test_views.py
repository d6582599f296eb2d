"""What views tell, on the embedded engine with workers in threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

import pytest

from stator import (
    Db,
    Design,
    Engine,
    Entity,
    TableSettings,
    connect,
    connect_async,
    ident,
    soft_delete,
)
from stator.errors import (
    ConfigurationError,
    CursorRefused,
    DesignError,
    RequestRefused,
    StreamMissing,
    ValidationFailed,
)
from stator.pipeline import Projection, StreamApp, View, count, sum_of, top
from stator.pipeline.views.rebuild.rebuild import Rebuild, RebuildOptions, rebuild_together
from stator.pipeline.workers.handlers.parked_retry import ParkedRetry
from stator.pipeline.workers.options import WorkerOptions

from .fleet import START, Router, Test, a_test, at, fleet, make_hours

pytestmark = pytest.mark.usefixtures("attentive")

QUICK = WorkerOptions(
    start="oldest",
    idle_seconds=0.02,
    retry_seconds=0.01,
    longest_retry_seconds=0.02,
    max_attempts=2,
)


@pytest.fixture
def db(engine: Engine) -> Iterator[Db]:
    with connect(fleet, engine) as opened:
        opened.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        yield opened


def keep(db: Db, *views: Any, options: WorkerOptions = QUICK) -> None:
    """Until everything written so far is in the views."""
    app = StreamApp(db.context.schema.design, "summaries")
    for view in views:
        app.add(view)
    with app.start(db, options) as running:
        running.catch_up(20)


def test_every_metric_of_a_group_and_bucket(db: Db) -> None:
    hours = make_hours()
    for number, latency in enumerate([10.0, 30.0, 20.5, None]):
        db.put(a_test(number, minutes=number, latency=latency, size=number))
    db.put(a_test(8, isp="other", latency=1.0))
    db.put(a_test(9, minutes=60, latency=99.0))
    db.put(a_test(10, latency=5000.0, ok=False))
    db.put(a_test(11, isp=None))
    db.put(Router(router_id="r1", model="x"))
    keep(db, hours)
    row = hours.on(db).get(isp="acme", at=at(59))
    assert row is not None
    assert (row.isp, row.at, row.tests, row.measured, row.total) == ("acme", START, 4, 3, 6)
    assert row.latency == pytest.approx(60.5 / 3)
    assert (row.best, row.worst) == (10.0, 30.0)
    assert [each.test_id for each in row.slowest] == ["t1", "t2"]
    assert row.slowest[0] == a_test(1, minutes=1, latency=30.0, size=1)
    assert dict(row.newest) == {"test_id": "t3", "at": at(3)}
    assert row.spread.count == 3 and row.spread[50] == pytest.approx(20.5, rel=0.02)
    assert hours.on(db).get(isp="nobody", at=START) is None


def test_updates_deletes_and_moves_are_taken_back(db: Db) -> None:
    hours = make_hours()
    for number in range(4):
        db.put(a_test(number, latency=10.0 + number))
    keep(db, hours)
    db.put(a_test(0, isp="other", latency=77.0))  # moves to another group
    db.put(a_test(1, minutes=61, latency=11.0))  # to another bucket
    db.put(a_test(2, latency=12.0, ok=False))  # out of the view
    keep(db, hours)
    reader = hours.on(db)
    assert [(row.tests, row.worst) for row in reader.all(isp="acme")] == [(1, 13.0), (1, 11.0)]
    assert [(row.tests, row.best, row.latency) for row in reader.all(isp="other")] == [
        (1, 77.0, 77.0)
    ]
    db.delete(Test, test_id="t3")
    db.put(a_test(2, latency=5.0))
    keep(db, hours)
    assert [(row.tests, row.worst, row.spread.count) for row in reader.all(isp="acme")] == [
        (1, 5.0, 1),
        (1, 11.0, 1),
    ]
    for number in range(4):
        db.delete(Test, test_id=f"t{number}")
    keep(db, hours)
    assert reader.all(isp="acme") == [] and reader.get(isp="other", at=START) is None
    assert reader.groups() == [{"isp": "acme"}, {"isp": "other"}]


def test_a_soft_deleted_source_is_taken_back_and_comes_back(engine: Engine) -> None:
    class Note(Entity):
        note_id: str = ident()
        team: str
        deleted_at: datetime | None = soft_delete()

    notes = View("notes_by_team", of=Note, by=[Note.team], notes=count())
    with connect(Design("notes", [Note]), engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        db.write_many([Note(note_id=str(n), team="a") for n in range(3)])
        db.delete(Note, note_id="1")
        keep(db, notes)
        row = notes.on(db).get(team="a")
        assert row is not None and row.notes == 2
        db.restore(Note, note_id="1")
        keep(db, notes)
        row = notes.on(db).get(team="a")
        assert row is not None and row.notes == 3


def test_an_expired_source_is_taken_back(db: Db, engine: Engine) -> None:
    hours = make_hours()
    db.put(a_test(1, expires=int(time.time()) - 10))
    db.put(a_test(2))
    engine.sweep()
    keep(db, hours)
    [row] = hours.on(db).all(isp="acme")
    assert row.tests == 1


def test_a_range_of_buckets(db: Db) -> None:
    hours = make_hours()
    for hour in range(5):
        db.put(a_test(hour, minutes=60 * hour))
    keep(db, hours)
    rows = hours.on(db).range(at(60), at(181), isp="acme")
    assert [row.at for row in rows] == [at(60), at(120), at(180)]
    assert [row.at for row in hours.on(db).range(at(61), at(180), isp="acme")] == [at(60), at(120)]
    assert hours.on(db).range(at(60), at(60), isp="acme") == []


def test_many_rows_at_once(db: Db) -> None:
    hours = make_hours()
    for hour in range(3):
        db.put(a_test(hour, minutes=60 * hour))
    keep(db, hours)
    asked = [
        {"isp": "acme", "at": at(130)},
        {"isp": "nobody", "at": at(0)},
        {"isp": "acme", "at": at(0)},
    ]
    last, nobody, first = hours.on(db).many(asked)
    assert last is not None and first is not None
    assert (last.at, first.at, nobody) == (at(120), at(0), None)
    assert hours.on(db).many([]) == []
    with pytest.raises(DesignError, match="a group of this view has the fields isp, at"):
        hours.on(db).many([{"isp": "acme"}])


def test_everything_in_one_group_and_exact_sums(db: Db) -> None:
    view = View(
        "all", of=Test, tests=count(), latency=sum_of(Test.latency_ms), size=sum_of(Test.size)
    )
    for number in range(30):
        db.put(a_test(number, latency=0.1, size=10**30))
    keep(db, view)
    row = view.on(db).get()
    assert row is not None
    assert (row.tests, row.latency, row.size) == (30, 3.0, 30 * 10**30)


def test_groups_of_several_fields_of_any_kind(db: Db) -> None:
    view = View("pairs", of=Test, by=[Test.ok, Test.size, Test.isp], tests=count())
    db.put(a_test(1, isp="a#b", size=-7))
    keep(db, view)
    assert view.on(db).groups() == [{"ok": True, "size": -7, "isp": "a#b"}]
    row = view.on(db).get(isp="a#b", size=-7, ok=True)
    assert row is not None and row.tests == 1


def test_a_large_batch_of_many_sketch_buckets_is_one_truth(db: Db) -> None:
    hours = make_hours()
    db.write_many([a_test(number, latency=1.05**number) for number in range(400)])
    keep(db, hours)
    [row] = hours.on(db).all(isp="acme")
    assert row.tests == row.spread.count == 400
    assert row.spread[75] == pytest.approx(1.05**299, rel=0.021)


def test_buckets_past_their_time_are_gone_and_stay_gone(db: Db, engine: Engine) -> None:
    view = View(
        "recent",
        of=Test,
        by=Test.isp,
        bucket=(Test.at, "hour"),
        keep=timedelta(days=1),
        tests=count(),
    )
    old = Test(test_id="old", isp="acme", at=START - timedelta(days=20 * 365), latency_ms=None)
    db.put(old)
    keep(db, view)
    assert view.on(db).all(isp="acme") == []
    db.delete(Test, test_id="old")
    keep(db, view)
    assert view.on(db).all(isp="acme") == []


def test_a_projection_is_found_by_another_key(db: Db) -> None:
    by_isp = Projection("by_isp", of=Test, key=Test.isp, sort=Test.at, fields=[Test.test_id])
    whole = Projection("whole", of=Test, key=[Test.isp, Test.size])
    for number in range(3):
        db.put(a_test(number, minutes=-number))
    keep(db, by_isp, whole)
    reader = by_isp.on(db)
    assert [row.test_id for row in reader.find(isp="acme")] == ["t2", "t1", "t0"]
    assert [row.test_id for row in reader.find(isp="acme", newest_first=True, limit=2)] == [
        "t0",
        "t1",
    ]
    assert whole.on(db).first(isp="acme", size=0) in [
        a_test(number, minutes=-number) for number in range(3)
    ]
    db.put(a_test(2, isp="other"))
    db.delete(Test, test_id="t1")
    keep(db, by_isp, whole)
    assert [row.test_id for row in reader.find(isp="acme")] == ["t0"]
    first = reader.first(isp="other")
    assert first is not None and dict(first) == {"isp": "other", "test_id": "t2", "at": START}
    assert reader.first(isp="nobody") is None


def _stored(db: Db, count: int, note: str = "") -> list[str]:
    db.write_many([a_test(number, minutes=number, note=note) for number in range(count)])
    return [f"t{number}" for number in range(count)]


def _walked(reader: Any, limit: int, **options: Any) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = reader.page(limit=limit, cursor=cursor, isp="acme", **options)
        assert len(page) <= limit and page.previous is None
        found += page
        cursor = page.cursor
        if cursor is None:
            return found


def test_a_projection_returns_every_item_of_a_key_however_many(db: Db) -> None:
    whole = Projection("whole", of=Test, key=Test.isp, sort=Test.at)
    names = _stored(db, 1_203, note="x" * 1_500)  # the items are two megabytes: several pages
    keep(db, whole)
    reader = whole.on(db)
    assert [each.test_id for each in reader.find(isp="acme")] == names
    assert [each.test_id for each in reader.find(isp="acme", newest_first=True)] == names[::-1]
    assert [each.test_id for each in reader.find(isp="acme", limit=1_100)] == names[:1_100]
    for limit in (100, 401, 1_203, 5_000):
        assert [each.test_id for each in _walked(reader, limit)] == names
    backwards = _walked(reader, 300, newest_first=True)
    assert [each.test_id for each in backwards] == names[::-1]
    latest = reader.first(isp="acme", newest_first=True)
    assert latest is not None and latest.test_id == names[-1]


def test_every_group_and_bucket_of_a_view_is_returned(db: Db) -> None:
    view = View("sizes", of=Test, by=Test.isp, bucket=(Test.at, "hour"), tests=count())
    db.write_many(a_test(number, minutes=60 * number) for number in range(1_100))
    db.write_many(a_test(5_000 + number, isp=f"isp{number:04}") for number in range(1_100))
    keep(db, view)
    reader = view.on(db)
    assert len(reader.all(isp="acme")) == 1_100
    assert len(reader.range(START, at(60 * 1_100), isp="acme")) == 1_100
    groups = reader.groups()
    assert len(groups) == 1_101
    assert len([row for row in reader.many([{**each, "at": START} for each in groups]) if row])


def test_a_projection_is_read_to_its_end_while_it_is_rebuilt(db: Db) -> None:
    whole = Projection("whole", of=Test, key=Test.isp, sort=Test.at)
    names = _stored(db, 900, note="x" * 2_000)
    keep(db, whole)
    app = StreamApp(db.context.schema.design, "summaries")
    app.add(whole)
    reading = iter(whole.on(db).find(isp="acme"))
    found = [next(reading).test_id]
    page = whole.on(db).page(limit=10, isp="acme")
    with app.start(db, QUICK):
        whole.on(db).rebuild(RebuildOptions(settle_seconds=0.0, grace_seconds=0.0))
    found += [each.test_id for each in reading]
    assert found == names
    following = whole.on(db).page(limit=10, cursor=page.cursor, isp="acme")
    assert [each.test_id for each in (*page, *following)] == names[:20]


def test_questions_to_a_projection_that_make_no_sense_are_explained(db: Db) -> None:
    whole = Projection("whole", of=Test, key=Test.isp, sort=Test.at)
    _stored(db, 5)
    keep(db, whole)
    reader = whole.on(db)
    for limit in (0, -1, True, 2.5):
        with pytest.raises(RequestRefused, match="limit"):
            list(reader.find(isp="acme", limit=limit))  # type: ignore[arg-type]
    page = reader.page(limit=2, isp="acme")
    with pytest.raises(CursorRefused):
        reader.page(limit=2, cursor=page.cursor, isp="other")
    with pytest.raises(CursorRefused):
        reader.page(limit=2, cursor=page.cursor, isp="acme", newest_first=True)
    with pytest.raises(DesignError, match="exactly these"):
        list(reader.find(size=1))
    with pytest.raises(DesignError, match="option limit"):
        Projection("by_limit", of=Limited, key=Limited.limit)


class Limited(Entity):
    limited_id: str = ident()
    limit: int


def test_views_are_read_by_asynchronous_programs_too(db: Db, engine: Engine) -> None:
    hours = make_hours()
    db.put(a_test(1))
    whole = Projection("whole", of=Test, key=Test.isp)
    keep(db, hours, whole)

    async def read() -> tuple[Any, list[Any], Any]:
        async with connect_async(fleet, engine) as asynchronous:
            row = await hours.on(asynchronous).get(isp="acme", at=START)
            copies = whole.on(asynchronous)
            found = [each async for each in copies.find(isp="acme")]
            return row, found, await copies.page(limit=1, isp="acme")

    row, found, page = asyncio.run(read())
    assert row.tests == 1 and found == page.items == [a_test(1)]


def test_a_source_that_does_not_decode_is_parked_and_counts_once_when_it_is_retried(db: Db) -> None:
    view = View("sizes", of=Test, tests=count(), size=sum_of(Test.size))
    table = db.context.schema.of(Test).table.name
    db.put(a_test(1, size=1))
    broken = db.context.schema.of(Test).item(a_test(2, size=5)) | {"size": {"S": "five"}}
    db.call("PutItem", {"TableName": table, "Item": broken})
    db.put(a_test(3, size=3))
    app = StreamApp(fleet, "summaries")
    app.add(view)
    keep(db, view)
    row = view.on(db).get()
    assert row is not None and (row.tests, row.size) == (2, 4)
    retrying = ParkedRetry(db.context, app)
    [parked] = db.run(retrying.parking.keys())
    assert parked.handler == "sizes" and "size" in parked.error
    # The image in the stream stays broken; a view that does not look at it can count it.
    plain = View("sizes", of=Test, tests=count())
    fixed = StreamApp(fleet, "summaries")
    fixed.add(plain)
    assert db.run(ParkedRetry(db.context, fixed).retry(parked.mark)) is not None
    assert db.run(retrying.parking.keys()) == []
    row = plain.on(db).get()
    assert row is not None and row.tests == 3


def put_the_largest(db: Db) -> None:
    """An item just below 400 KB: its row, with a key of its own, is above."""
    for length in range(409_600, 409_000, -10):
        try:
            db.put(a_test(2, size=2, note="x" * length))
        except ValidationFailed:
            continue
        return


def test_a_source_too_large_for_a_row_is_parked_and_counts_when_it_fits(db: Db) -> None:
    view = View("largest", of=Test, tests=count(), largest=top(1, by=Test.size))
    app = StreamApp(fleet, "summaries")
    app.add(view)
    db.put(a_test(1, size=1))
    put_the_largest(db)
    db.put(a_test(3, size=3))
    keep(db, view)
    row = view.on(db).get()
    assert row is not None and (row.tests, row.largest[0].size) == (2, 3)
    [parked] = db.run(ParkedRetry(db.context, app).parking.keys())
    assert parked.handler == "largest" and '"t2"' not in parked.error
    db.put(a_test(2, size=4))
    keep(db, view)
    assert db.run(ParkedRetry(db.context, app).retry(parked.mark)) is not None
    row = view.on(db).get()
    assert row is not None and (row.tests, row.largest[0].size) == (3, 4)
    assert db.run(ParkedRetry(db.context, app).parking.keys()) == []


def test_a_key_parked_by_another_handler_is_counted_once(db: Db) -> None:
    view = View("sizes", of=Test, tests=count(), size=sum_of(Test.size))
    app = StreamApp(fleet, "summaries")
    sick = [True]

    @app.on.any(Test)
    def fails(change: Any) -> None:
        if sick[0] and change.record.image["test_id"]["S"] == "t1":
            raise ValueError("sick")

    app.add(view)
    for size in range(1, 4):
        db.put(a_test(1, size=size))
        db.put(a_test(2, size=size))
        with app.start(db, QUICK) as running:
            running.catch_up(20)
    row = view.on(db).get()
    assert row is not None and (row.tests, row.size) == (2, 6)
    retrying = ParkedRetry(db.context, app)
    [parked] = db.run(retrying.parking.keys())
    sick[0] = False
    retried = db.run(retrying.retry(parked.mark))
    assert retried is not None and retried.handled == 3
    assert dict(view.on(db).get() or {}) == dict(row)


# -- what is refused


def test_a_stream_that_shows_too_little_is_refused(engine: Engine) -> None:
    with connect(fleet, engine) as db:
        db.ensure(TableSettings(stream="NEW_IMAGE"))
        with pytest.raises(StreamMissing, match=r"shows NEW_IMAGE; .* needs NEW_AND_OLD_IMAGES"):
            keep(db, make_hours())


def test_a_snapshot_is_refused(db: Db) -> None:
    app = StreamApp(fleet, "summaries")
    app.add(make_hours())
    with pytest.raises(ConfigurationError, match="cannot start from a snapshot"):
        app.start(db, WorkerOptions(start="snapshot"))


def test_declarations_that_make_no_sense_are_explained(db: Db) -> None:
    class Stranger(Entity):
        name: str = ident()

    with pytest.raises(DesignError, match="no metrics"):
        View("v", of=Test)
    with pytest.raises(DesignError, match="cannot name a view"):
        View("a#b", of=Test, tests=count())
    with pytest.raises(DesignError, match="not a field"):
        View("v", of=Test, by=["isp"], tests=count())
    with pytest.raises(DesignError, match="is not a metric"):
        View("v", of=Test, tests=count)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(DesignError, match="is a group field"):
        View("v", of=Test, by=Test.isp, isp=count())
    with pytest.raises(ConfigurationError, match="week"):
        weekly: Any = (Test.at, "week")
        View("v", of=Test, bucket=weekly, tests=count())
    with pytest.raises(DesignError, match="keep="):
        View("v", of=Test, keep=timedelta(days=1), tests=count())
    with pytest.raises(DesignError, match=r"top\(0\)"):
        top(0, by=Test.size)
    for wrong, message in [
        (View("v", of=Test, tests=sum_of(Test.isp)), "is not a number"),
        (
            View("v", of=Test, bucket=(Test.isp, "hour"), tests=count()),
            "is not a datetime field",
        ),
        (View("v", of=Test, by=Stranger.name, tests=count()), "is not a field of Test"),
        (View("v", of=Stranger, tests=count()), "not in the design"),
    ]:
        with pytest.raises(DesignError, match=message):
            wrong.on(db)


def test_questions_that_make_no_sense_are_explained(db: Db) -> None:
    hours = make_hours().on(db)
    with pytest.raises(DesignError, match="a group of this view has the fields isp, at"):
        hours.get(isp="acme")
    with pytest.raises(DesignError, match="not a datetime with a time zone"):
        hours.get(isp="acme", at=START.replace(tzinfo=None))


def test_a_view_belongs_to_one_app(db: Db) -> None:
    hours = make_hours()
    keep(db, hours)
    kept = hours.in_database(db.context)
    with pytest.raises(ConfigurationError, match="belongs to the app summaries"):
        db.run(kept.heads.begun("others"))


def test_decimals_stay_decimals(engine: Engine) -> None:
    class Sale(Entity):
        sale_id: str = ident()
        price: Decimal

    from stator.pipeline import avg

    shop = Design("shop", [Sale], [])
    with connect(shop, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        sales = View("sales", of=Sale, total=sum_of(Sale.price), mean=avg(Sale.price))
        db.put(Sale(sale_id="a", price=Decimal("0.10")))
        db.put(Sale(sale_id="b", price=Decimal("0.20")))
        keep(db, sales)
        row = sales.on(db).get()
        assert row is not None
        assert row.total == Decimal("0.30") and row.mean == Decimal("0.15")


def test_views_are_built_anew_together_each_from_its_own_table() -> None:
    """Entities with a table each: a table's shards are no business of a view of another."""
    design = Design("apart", [Test, Router], [], layout="table-per-entity")
    by_isp = View("by_isp", of=Test, by=[Test.isp], tests=count(), size=sum_of(Test.size))
    by_ok = View("by_ok", of=Test, by=[Test.ok], tests=count())
    models = View("models", of=Router, by=[Router.model], routers=count())
    with Engine.open() as engine, connect(design, engine) as db:
        db.write_many([a_test(number, size=number) for number in range(30)]).raise_for_failures()
        db.write_many(
            [Router(router_id=f"r{number}", model=f"m{number % 3}") for number in range(9)]
        )
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(design, "summaries")
        for view in (by_isp, by_ok, models):
            app.add(view)
        latest = replace(QUICK, start="latest")
        keep(db, by_isp, by_ok, models, options=latest)
        with app.start(db, latest):
            options = RebuildOptions(settle_seconds=0.0, grace_seconds=0.0)
            builds = [
                Rebuild(view.in_database(db.context), options) for view in (by_isp, by_ok, models)
            ]
            built = db.run(rebuild_together(builds))
        assert [(each.scanned, each.groups) for each in built] == [(30, 1), (30, 1), (9, 3)]
        row = by_isp.on(db).get(isp="acme")
        assert row is not None and (row.tests, row.size) == (30, sum(range(30)))
        rows = [models.on(db).get(model=name) for name in ("m0", "m1", "m2")]
        assert {row.model: row.routers for row in rows if row} == {
            "m0": 3, "m1": 3, "m2": 3
        }  # fmt: skip


class Debt(Entity):
    debt_id: str = ident()
    amount: Decimal


def test_a_sum_of_more_digits_than_a_number_has_is_exact() -> None:
    ledger = Design("ledger", [Debt], [])
    amounts = [
        Decimal(text)
        for text in ("1e40", "1", "-0.25", "7e125", "8e125", "1e-60", "-3e39", "-9e125", "2")
    ]
    with connect(ledger) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        view = View("debts", of=Debt, debts=count(), total=sum_of(Debt.amount))
        one_by_one = WorkerOptions(start="oldest", idle_seconds=0.02, batch_records=1)
        for number, amount in enumerate(amounts):
            db.put(Debt(debt_id=f"d{number}", amount=amount))
        keep(db, view, options=one_by_one)
        row = view.on(db).get()
        assert row is not None and (row.debts, row.total) == (len(amounts), exactly(amounts))
        db.delete(Debt, debt_id="d3")
        db.put(Debt(debt_id="d0", amount=Decimal(5)))
        keep(db, view)
        left = [Decimal(5), *amounts[1:3], *amounts[4:]]
        row = view.on(db).get()
        assert row is not None and (row.debts, row.total) == (len(left), exactly(left))


def test_long_decimals_are_taken_back_exactly() -> None:
    """Whatever the precision of the thread's own arithmetic is."""
    ledger = Design("ledger", [Debt], [])
    long = Decimal(12345678901234567890123456789012345678)
    with connect(ledger) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        view = View("debts", of=Debt, debts=count(), total=sum_of(Debt.amount))
        db.write_many([Debt(debt_id=name, amount=long) for name in "abc"]).raise_for_failures()
        keep(db, view)
        db.delete(Debt, debt_id="a")
        db.put(Debt(debt_id="b", amount=exactly([long, Decimal(1)])))
        keep(db, view)
        row = view.on(db).get()
        assert row is not None and (row.debts, row.total) == (2, exactly([long, long, Decimal(1)]))


def test_what_does_not_decode_is_left_out_and_told(engine: Engine) -> None:
    by_isp = View("by_isp", of=Test, by=[Test.isp], tests=count(), size=sum_of(Test.size))
    with connect(fleet, engine) as db:
        db.write_many([a_test(number, size=1) for number in range(5)]).raise_for_failures()
        of = db.context.schema.of(Test)
        for number in (1, 3):
            item = dict(of.item(a_test(number, size=1))) | {"size": {"S": "large"}}
            db.call("PutItem", {"TableName": of.table.name, "Item": item})
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(fleet, "summaries")
        app.add(by_isp)
        keep(db, by_isp)
        with app.start(db, QUICK):
            rebuild = Rebuild(
                by_isp.in_database(db.context),
                RebuildOptions(settle_seconds=0.0, grace_seconds=0.0),
            )
            built = db.run(rebuild.run())
        assert (built.scanned, built.unreadable) == (5, 2)
        row = by_isp.on(db).get(isp="acme")
        assert row is not None and (row.tests, row.size) == (3, 3)


def exactly(amounts: list[Decimal]) -> Decimal:
    with localcontext(prec=400):
        return sum(amounts, Decimal(0))
