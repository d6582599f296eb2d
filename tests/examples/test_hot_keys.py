"""Hot keys: found by throttling, spread, and read back whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hot_keys import Event, events_app, events_of

from stator import Engine, connect
from stator.clock import VirtualClock
from stator.patterns import ShardChange

HOUR = datetime(2096, 11, 14, 12, tzinfo=UTC)


def event(number: int, provider: str = "acme") -> Event:
    at = HOUR + timedelta(milliseconds=number)
    return Event(provider=provider, at=at, text="x" * 20_000)


def test_a_throttled_provider_is_spread_and_nothing_is_lost() -> None:
    """Two collectors, each of which writes less than a partition takes."""
    clock = VirtualClock(HOUR.timestamp())
    changes: list[ShardChange] = []
    with (
        Engine.open(clock=clock, throughput="enforced") as engine,
        connect(events_app, engine, clock=clock) as db,
    ):
        collectors = [events_of(db, changes.append) for _ in range(2)]
        collectors[0].add(event(0, "bravo"))
        for number in range(160):
            collectors[number % 2].add(event(number))
            clock.advance(1 / 64)
        assert changes[0].reason == "TableWriteKeyRangeThroughputExceeded"
        assert {each.key for each in changes} == {"acme"}
        assert collectors[0].shards("acme")[0].shards >= 2
        assert collectors[0].shards("bravo")[0].shards == 1
        found = list(collectors[1].range("acme", newest_first=False))
        assert found == [event(number) for number in range(160)]
