"""A view on AWS Lambda: replays, bisected batches, partial failures, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from stator import Db, Design, Engine, Entity, Query, TableSettings, connect, find, ident, read
from stator.errors import ConfigurationError, StreamError
from stator.pipeline import StreamApp, View, WorkerOptions, count, percentiles, sum_of, top
from stator.pipeline.views.rebuild.rebuild import Rebuild
from stator.testing import open_shards, split_shard
from tests.pipeline.test_lambda import event_of


class Sale(Entity):
    sale: str = ident()
    shop: str
    cents: Decimal
    at: datetime


@read()
def sale(sale: str) -> Query[Sale]:
    return find(Sale).where(Sale.sale == sale)


market = Design("market", [Sale], [sale])
AT = datetime(2026, 11, 16, tzinfo=UTC)


def make_view() -> View:
    return View(
        "shops",
        of=Sale,
        by=Sale.shop,
        sales=count(),
        total=sum_of(Sale.cents),
        spread=percentiles(Sale.cents),
        best=top(2, by=Sale.cents),
    )


def make_app() -> StreamApp:
    app = StreamApp(market, "summaries")
    app.add(make_view())
    return app


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open() as opened:
        yield opened


@pytest.fixture
def db(engine: Engine) -> Iterator[Db]:
    with connect(market, engine) as opened:
        opened.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        yield opened


def sell(db: Db, number: int, shop: str = "a", cents: int | str = 100) -> None:
    db.put(Sale(sale=f"s{number}", shop=shop, cents=Decimal(cents), at=AT))


def part(event: dict[str, Any], start: int, end: int | None = None) -> dict[str, Any]:
    return {"Records": event["Records"][start:end]}


def totals(db: Db, shop: str = "a") -> tuple[int, Decimal]:
    row = make_view().on(db).get(shop=shop)
    assert row is not None
    assert sum(row.spread.counts.values()) == row.sales
    return row.sales, row.total


def test_batches_that_come_again_and_in_halves_count_once(engine: Engine, db: Db) -> None:
    for number in range(9):
        sell(db, number, cents=number + 1)
    sell(db, 3, cents=50)
    db.delete(Sale(sale="s8", shop="a", cents=Decimal(8), at=AT))
    event = event_of(engine, db)
    handler = make_app().lambda_handler(db)
    for start, end in [(0, 4), (0, 11), (0, 2), (2, 5), (4, 11), (5, 7), (7, 11), (0, None)]:
        assert handler(part(event, start, end), None) == {"batchItemFailures": []}
    assert totals(db) == (8, Decimal(sum([1, 2, 3, 50, 5, 6, 7, 8])))
    row = make_view().on(db).get(shop="a")
    assert row is not None
    assert [each.cents for each in row.best] == [50, 8]
    assert make_app().lambda_handler(db)(event, None) == {"batchItemFailures": []}
    assert totals(db)[0] == 8


def test_changes_of_other_items_and_shards_in_any_order_count(engine: Engine, db: Db) -> None:
    [table] = [plan.name for plan in db.context.schema.plan.tables]
    for number in range(5):
        sell(db, number)
    split_shard(engine, table, open_shards(engine, table)[0])
    for number in range(5, 10):
        sell(db, number)
    event = event_of(engine, db)
    one, other = make_app().lambda_handler(db), make_app().lambda_handler(db)
    for at in (7, 2, 9, 0, 5, 1, 8, 3, 6, 4):
        one(part(event, at, at + 1), None)
        other(part(event, at, at + 1), None)
    assert totals(db) == (10, Decimal(1000))


def test_a_change_that_cannot_be_counted_is_reported_and_the_others_count_once(
    engine: Engine, db: Db
) -> None:
    for number in range(5):
        sell(db, number)
    event = event_of(engine, db)
    records = event["Records"]
    good = records[2]["dynamodb"]["NewImage"]
    records[2]["dynamodb"]["NewImage"] = {**good, "cents": {"S": "x"}}
    handler = make_app().lambda_handler(db)
    failed = {"itemIdentifier": records[2]["dynamodb"]["SequenceNumber"]}
    assert handler(event, None) == {"batchItemFailures": [failed]}
    assert handler(part(event, 2), None) == {"batchItemFailures": [failed]}
    assert totals(db) == (4, Decimal(400))
    records[2]["dynamodb"]["NewImage"] = good
    assert handler(part(event, 2), None) == {"batchItemFailures": []}
    assert totals(db) == (5, Decimal(500))


def test_a_view_counts_what_lambda_gives_up_because_of_a_handler(engine: Engine, db: Db) -> None:
    """A handler that fails comes after the views, though it was registered before."""
    app = StreamApp(market, "summaries")

    @app.on.any(Sale)
    def failing(change: Any) -> None:
        raise ValueError("cannot")

    app.add(make_view())
    for number in range(4):
        sell(db, number)
    event = event_of(engine, db)
    first = event["Records"][0]["dynamodb"]["SequenceNumber"]
    reply = {"batchItemFailures": [{"itemIdentifier": first}]}
    assert app.lambda_handler(db)(event, None) == reply
    assert totals(db) == (4, Decimal(400))


def test_sums_longer_than_a_number_are_exact(engine: Engine, db: Db) -> None:
    large, small = "1e30", "0.000000000001"
    for number, cents in enumerate([large, small, large, small, "-1e30", small]):
        sell(db, number, cents=cents)
    event = event_of(engine, db)
    handler = make_app().lambda_handler(db)
    for at in range(6):
        handler(part(event, at, at + 1), None)
        handler(part(event, at, at + 1), None)
    assert totals(db) == (6, Decimal("1000000000000000000000000000000.000000000003"))


def test_a_large_batch_of_many_groups_counts(engine: Engine, db: Db) -> None:
    for number in range(300):
        sell(db, number, shop=f"shop{number % 70}", cents=number)
    make_app().lambda_handler(db)(event_of(engine, db), None)
    for shop in range(70):
        mine = [number for number in range(300) if number % 70 == shop]
        assert totals(db, f"shop{shop}") == (len(mine), Decimal(sum(mine)))


def test_an_app_that_counts_runs_in_workers_or_on_lambda_only(engine: Engine, db: Db) -> None:
    sell(db, 1)
    event = event_of(engine, db)
    make_app().lambda_handler(db)(event, None)
    running = make_app().start(db, WorkerOptions(start="oldest", idle_seconds=0.02))
    with (
        pytest.raises(ConfigurationError, match=r"runs on AWS Lambda: .* again in shops"),
        running,
    ):
        running.catch_up()
    assert totals(db) == (1, Decimal(100))
    with pytest.raises(StreamError, match="kept by AWS Lambda and cannot be rebuilt"):
        db.run(Rebuild(make_view().in_database(db.context)).run())


def test_lambda_does_not_count_again_what_workers_count(engine: Engine, db: Db) -> None:
    sell(db, 1)
    with make_app().start(db, WorkerOptions(start="oldest", idle_seconds=0.02)) as running:
        running.catch_up()
    with pytest.raises(ConfigurationError, match=r"is run by workers: .* again in shops"):
        make_app().lambda_handler(db)(event_of(engine, db), None)
    assert totals(db) == (1, Decimal(100))


def test_a_group_of_an_earlier_version_was_run_by_workers(engine: Engine, db: Db) -> None:
    """Earlier versions did not store what runs an app."""
    sell(db, 1)
    with make_app().start(db, WorkerOptions(start="oldest", idle_seconds=0.02)) as running:
        running.catch_up()
    place = db.context.schema.place
    engine.call(
        "DeleteItem",
        {"TableName": place.table, "Key": place.key("WORK#summaries", "RUNNER")},
    )
    with pytest.raises(ConfigurationError, match="is run by workers"):
        make_app().lambda_handler(db)(event_of(engine, db), None)
