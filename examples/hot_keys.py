"""Events of a provider that turns hot: found, spread over shards, and read back with nothing lost.

The usual recipe for a hot key is a class that asks CloudWatch whether the table is in trouble, and
if so appends a random number to the partition key. It goes wrong in three ways. It reads the metric
UserErrors, which does not count throttled requests, so it never finds a hot key. It asks about the
table, so every key would count as hot at once. And it reads either the plain key or the numbered
ones: what was written before the key turned hot is lost to readers, and returns when the key cools
down, while the rest disappears.

Here the key itself is found: by the reason that DynamoDB gives when it refuses a write
(TableWriteKeyRangeThroughputExceeded), and by the rate at which this process writes to it. The
number of shards is stored before the first write to a new one, so every reader looks into all of
them, under one cursor.

python examples/hot_keys.py [ADDRESS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from stator import Db, Design, Entity, Query, connect, find, ident, read
from stator.patterns import AdaptiveShards, Series, ShardChange


class Provider(Entity):
    name: str = ident()
    country: str


class Event(Entity):
    provider: str = ident()
    at: datetime = ident()
    text: str


@read(rps=10)
def provider(name: str) -> Query[Provider]:
    return find(Provider).where(Provider.name == name)


events_app = Design("events", [Provider], [provider])


def events_of(db: Db, on_change: Callable[[ShardChange], None] | None = None) -> Series[Db, Event]:
    return Series(
        db,
        Event,
        by=Event.provider,
        at=Event.at,
        bucket="hour",
        shards=AdaptiveShards(most=32, on_change=on_change),
    )


def main(address: str | None = None) -> None:
    with connect(events_app, address) as db:
        db.ensure()
        events = events_of(db, on_change=print)
        start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        before = Event(provider="acme", at=start, text="written before acme turned hot")
        quiet = Event(provider="bravo", at=start, text="nothing happens here")
        events.add_many([before, quiet])

        # 4,000 events at once: as much as four partitions take in a second.
        events.add_many(
            Event(provider="acme", at=start + timedelta(milliseconds=n), text=f"event {n}")
            for n in range(1, 4_001)
        )
        for name in ("acme", "bravo"):
            [bucket] = events.shards(name)
            print(f"{name}: shards in the hour {bucket.bucket}: {bucket.shards}")

        found, cursor = 0, None
        while True:
            page = events.page("acme", limit=500, cursor=cursor, newest_first=False)
            if cursor is None:
                print(f"the first event: {page.items[0].text}")
            found, cursor = found + len(page.items), page.cursor
            if cursor is None:
                break
        print(f"{found:,} events read in order, under one cursor")


if __name__ == "__main__":
    main(*sys.argv[1:])
