"""Feeds: each post once for each follower, newest first, and gone when it is taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from feed import (
    FEED_LIFE,
    FeedEntry,
    Follow,
    Post,
    fan_out_app,
    feed_of,
    posts_of,
    pull,
    push,
)

from stator import Db, Engine, connect
from stator.clock import VirtualClock
from stator.pipeline import WorkerOptions
from tests.targets import Target

from .stream_events import event_of

START = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)


def follow(db: Db, **readers: str) -> None:
    db.write_many(
        Follow(author=author, reader=reader)
        for reader, authors in readers.items()
        for author in authors
    )


def post(db: Db, author: str, minute: int) -> None:
    db.create(Post(author=author, at=START + timedelta(minutes=minute), text=f"{author}{minute}"))


def texts(db: Db, reader: str) -> list[str]:
    return [entry.text for entry in db.fetch(feed_of(reader))]


def test_a_feed_merges_the_posts_of_all_followed_authors_newest_first(target: Target) -> None:
    db = target.connect(push)
    app = fan_out_app(db)
    app.ensure(db)
    follow(db, cleo="ab", dora="b")
    with app.start(db, WorkerOptions(start="oldest")) as worker:
        for author, minute in (("a", 1), ("b", 2), ("a", 4), ("b", 3)):
            post(db, author, minute)
        worker.catch_up()
    assert texts(db, "cleo") == ["a4", "b3", "b2", "a1"]
    assert texts(db, "dora") == ["b3", "b2"]
    assert texts(db, "nobody") == []
    assert [each.text for each in db.fetch(posts_of("a"))] == ["a4", "a1"]
    first = db.page(feed_of("cleo"), limit=3)
    second = db.page(feed_of("cleo"), limit=3, cursor=first.cursor)
    assert [entry.text for entry in [*first, *second]] == ["a4", "b3", "b2", "a1"]


def test_a_post_that_is_deleted_leaves_every_feed() -> None:
    with Engine.open() as engine, connect(push, engine) as db:
        app = fan_out_app(db)
        app.ensure(db)
        follow(db, cleo="a", dora="a")
        post(db, "a", 1)
        post(db, "a", 2)
        db.delete(Post, author="a", at=START + timedelta(minutes=1))
        handler = app.lambda_handler(db)
        for _ in range(2):  # delivered twice
            assert handler(event_of(engine, db), None) == {"batchItemFailures": []}
            assert [texts(db, reader) for reader in ("cleo", "dora")] == [["a2"], ["a2"]]


def test_entries_end_thirty_days_after_their_post() -> None:
    clock = VirtualClock()
    with Engine.open(clock=clock) as engine, connect(push, engine, clock=clock) as db:
        app = fan_out_app(db)
        app.ensure(db)
        follow(db, cleo="a")
        at = datetime.fromtimestamp(clock.now(), UTC)
        db.create(Post(author="a", at=at, text="a"))
        app.lambda_handler(db)(event_of(engine, db), None)
        assert texts(db, "cleo") == ["a"]
        clock.advance(FEED_LIFE.total_seconds() + 1)
        assert texts(db, "cleo") == []
        engine.sweep()
        assert list(db.scan(FeedEntry, allow=True, include_expired=True)) == []
        assert [each.text for each in db.fetch(posts_of("a"))] == ["a"]


def test_fan_out_on_write_is_the_cheaper_way_for_this_workload() -> None:
    assert push.cost().total * 10 < pull.cost().total
    assert not push.plan().tables[0].indexes
