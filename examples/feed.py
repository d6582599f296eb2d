"""A feed of the people a reader follows: fan-out on write, and why not on read.

The patterns: a reader's feed, newest first and in pages; the posts of an author; the followers of
an author.

- *Fan-out on read* stores a post once. A feed is then one query for each author whom the reader
  follows, merged by time: a hundred queries for a reader who follows a hundred authors.
- *Fan-out on write* puts an entry into the feed of each follower. A feed is one query.

Feeds are read far more often than authors post, so this example fans out on write. ``pull`` and
``push`` declare both ways with the same workload, and the program prints what each costs. A stream
handler writes the entries, so posting takes one write, however many followers an author has. An
entry is keyed by reader, time and author: a change that is handled twice writes the same entry, and
a feed needs no index. Entries expire after 30 days. Until then a reader keeps the entries of an
author after unfollowing.

python examples/feed.py [ADDRESS]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from stator import (
    Db,
    Design,
    Entity,
    Query,
    connect,
    creates,
    find,
    ident,
    read,
    ttl,
    write,
)
from stator.pipeline import Insert, Remove, StreamApp, WorkerOptions

FEED_LIFE = timedelta(days=30)

# A workload: readers open their feeds 1,000 times a second, and follow 100 authors on average.
OPENED, FOLLOWED, POSTED = 1_000, 100, 5


class Follow(Entity):
    author: str = ident()
    reader: str = ident()


class Post(Entity):
    author: str = ident()
    at: datetime = ident()
    text: str


class FeedEntry(Entity):
    reader: str = ident()
    at: datetime = ident()
    author: str = ident()
    text: str
    expires_at: datetime = ttl()


@read(rps=OPENED)
def feed_of(reader: str) -> Query[FeedEntry]:
    return find(FeedEntry).where(FeedEntry.reader == reader).newest_first(FeedEntry.at).limit(20)


@read(rps=20)
def posts_of(author: str) -> Query[Post]:
    return find(Post).where(Post.author == author).newest_first(Post.at).limit(20)


@read(rps=POSTED, returns=100)
def followers_of(author: str) -> Query[Follow]:
    return find(Follow).where(Follow.author == author)


@write(rps=POSTED)
def publish() -> object:
    return creates(Post)


@write(rps=POSTED * FOLLOWED)
def fan_out() -> object:
    return creates(FeedEntry)


push = Design(
    "feeds",
    [Follow, Post, FeedEntry],
    [feed_of, posts_of, followers_of, publish, fan_out],
    volumes={Follow: 10_000_000, Post: 20_000_000, FeedEntry: 500_000_000},
    sizes={Follow: 100, Post: 300, FeedEntry: 300},
)


@read(rps=OPENED * FOLLOWED)
def newest_of_each_author(author: str) -> Query[Post]:
    return find(Post).where(Post.author == author).newest_first(Post.at).limit(20)


@read(rps=OPENED, returns=100)
def followed_by(reader: str) -> Query[Follow]:
    return find(Follow).where(Follow.reader == reader)


pull = Design(
    "feeds-on-read",
    [Follow, Post],
    [newest_of_each_author, followed_by, publish],
    volumes={Follow: 10_000_000, Post: 20_000_000},
    sizes={Follow: 100, Post: 300},
)


def fan_out_app(db: Db) -> StreamApp:
    """Return the app that keeps the feeds. In production: ``stator work``, or a Lambda function."""
    app = StreamApp(push, "fan-out")

    @app.on.insert(Post)
    def deliver(change: Insert[Post]) -> None:
        db.write_many(entries_of(db, change.new))

    @app.on.remove(Post)
    def take_back(change: Remove[Post]) -> None:
        entries = entries_of(db, change.old)
        db.delete_many(
            FeedEntry, [{"reader": e.reader, "at": e.at, "author": e.author} for e in entries]
        )

    return app


def entries_of(db: Db, post: Post) -> Iterator[FeedEntry]:
    """Yield the feed entry of each follower."""
    for follow in db.fetch(followers_of(post.author)):
        yield FeedEntry(
            reader=follow.reader,
            at=post.at,
            author=post.author,
            text=post.text,
            expires_at=post.at + FEED_LIFE,
        )


def main(address: str | None = None) -> None:
    for design, way in ((push, "on write"), (pull, "on read")):
        print(f"fan-out {way}: ${design.cost().total:,.0f} a month")

    with connect(push, address) as db:
        app = fan_out_app(db)
        app.ensure(db)
        db.write_many(
            Follow(author=author, reader=reader)
            for author, reader in (("anna", "cleo"), ("ben", "cleo"), ("anna", "dora"))
        )
        start = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
        with app.start(db, WorkerOptions(start="oldest")) as worker:
            for number, author in enumerate(["anna", "ben", "anna"]):
                at = start + timedelta(minutes=number)
                db.create(Post(author=author, at=at, text=f"post {number}"))
            db.delete(Post, author="anna", at=start)
            worker.catch_up()
        for reader in ("cleo", "dora"):
            page = db.page(feed_of(reader), limit=10)
            print(f"{reader}: {[f'{each.author}: {each.text}' for each in page]}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
