"""However shards roll and split, a replay of the stream rebuilds the table."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stator.clock import VirtualClock
from stator.engine import Engine

from .reading import create, delete, put, read_all, shards

KEYS = st.sampled_from([f"k{number}" for number in range(12)])
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.integers(0, 3)),
    st.tuples(st.just("delete"), KEYS, st.none()),
    st.tuples(st.just("wait"), st.just(""), st.integers(1, 4 * 3600)),
    st.tuples(st.just("roll"), st.just(""), st.none()),
    st.tuples(st.just("split"), st.just(""), st.integers(0, 99)),
)


def replayed(records: list[dict[str, Any]]) -> dict[str, Any]:
    items: dict[str, Any] = {}
    for record in records:
        key, body = record["dynamodb"]["Keys"]["pk"]["S"], record["dynamodb"]
        assert body.get("OldImage") == items.get(key)
        assert record["eventName"] == (
            "REMOVE" if "NewImage" not in body else "MODIFY" if "OldImage" in body else "INSERT"
        )
        items[key] = body.get("NewImage")
    return {key: item for key, item in items.items() if item is not None}


@settings(max_examples=150)
@given(st.lists(STEPS, max_size=60))
def test_a_replay_gives_the_table(steps: list[tuple[str, str, Any]]) -> None:
    clock = VirtualClock()
    day = clock.now() + 23 * 3600
    with Engine.open(clock=clock) as engine:
        arn = create(engine)
        for step, key, value in steps:
            if step == "put":
                put(engine, key, v=value)
            elif step == "delete":
                delete(engine, key)
            elif step == "wait":
                clock.advance(min(value, max(0.0, day - clock.now())))
            elif step == "roll":
                engine.streams.roll(arn)
            else:
                open_now = [
                    s
                    for s in shards(engine, arn)
                    if "EndingSequenceNumber" not in s["SequenceNumberRange"]
                ]
                engine.streams.split(arn, open_now[value % len(open_now)]["ShardId"])
        table = {
            item["pk"]["S"]: item for item in engine.call("Scan", {"TableName": "orders"})["Items"]
        }
        assert replayed(read_all(engine, arn)) == table
