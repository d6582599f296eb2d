"""Errors of a worker itself: what ends it, what it retries, and how often; and a lag not known."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stator import Engine, connect
from stator.errors import (
    AccessDenied,
    InternalServerError,
    InvalidSignature,
    ServiceError,
    StreamError,
    StreamMissing,
    Throttled,
    Unreachable,
    UnrecognizedClient,
)
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.group_state import GroupState, GroupWatch, ShardState
from stator.pipeline.workers.shards.lease_holder import ShardProgress
from stator.tables.runner import Runner
from stator.tables.work import Call

from .shop import Order, shop
from .simulation import Faults, Simulation, is_complete

pytestmark = pytest.mark.usefixtures("quiet")
CALM = Faults(0.0, 0.0, 0.0, 0.0, 0.0)


class RefusingSimulation(Simulation):
    """Answers some operations with an error, and counts the calls of each."""

    def __init__(self, refused: dict[str, Exception]) -> None:
        super().__init__(1, CALM)
        self.refused = refused
        self.calls: Counter[str] = Counter()

    def _call(self, call: Call) -> dict[str, Any]:
        self.calls[call.operation] += 1
        if call.operation in self.refused:
            raise self.refused[call.operation]
        return super()._call(call)

    def run_for(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            self.step()


@pytest.mark.parametrize(
    "operation", ["DescribeTable", "DescribeStream", "Query", "GetShardIterator", "GetRecords"]
)
@pytest.mark.parametrize(
    "error",
    [
        AccessDenied("not authorized to perform it"),
        UnrecognizedClient(),
        InvalidSignature("The request signature we calculated does not match"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_credentials_that_are_refused_end_the_worker(operation: str, error: ServiceError) -> None:
    world = RefusingSimulation({operation: error})
    world.start_worker()
    with pytest.raises(StreamError, match="DynamoDB refuses the requests of group"):
        world.run_for(60.0)
    world.close()


def test_a_table_that_does_not_exist_ends_the_worker() -> None:
    with Engine.open() as engine, connect(shop, engine) as db:
        app = StreamApp(shop, "billing")
        app.on.any(Order)(lambda change: None)
        engine.call("DeleteTable", {"TableName": "shop"})
        running = app.start(db)
        with pytest.raises(StreamMissing, match="there is no table shop"):
            running.catch_up()


def test_a_table_of_leases_that_does_not_exist_ends_the_worker() -> None:
    world = RefusingSimulation({})
    world.engine.call("DeleteTable", {"TableName": world.context.schema.place.table})
    world.start_worker()
    with pytest.raises(StreamMissing, match="there is no table fleet-stator"):
        world.run_for(10.0)
    world.close()


@pytest.mark.parametrize(
    "error",
    [InternalServerError(), Unreachable("no route")],
    ids=lambda error: type(error).__name__,
)
def test_a_consumer_that_fails_restarts_with_growing_waits_and_goes_on(error: Exception) -> None:
    world = RefusingSimulation({"GetShardIterator": error})
    world.write(20)
    world.start_worker()
    world.run_for(600.0)
    restarts = world.calls["GetShardIterator"]
    assert 4 * 5 < restarts < 4 * 60  # four shards; one restart a second would be 2,400
    world.refused.clear()
    written = world.written()
    world.settle(lambda: is_complete(world.applied.by_key, written))
    world.close()


def test_throttled_reads_back_off_and_go_on() -> None:
    world = RefusingSimulation({"GetRecords": Throttled("Rate exceeded")})
    world.write(20)
    name = world.start_worker()
    world.run_for(300.0)
    reads = world.calls["GetRecords"]
    assert 4 * 30 < reads < 4 * 240  # without growth, 4 * 750
    assert world.workers[name].progress().lag_seconds is None
    world.refused.clear()
    written = world.written()
    world.settle(lambda: is_complete(world.applied.by_key, written))
    world.settle(lambda: world.workers[name].progress().lag_seconds == 0.0)
    world.close()


# -- a lag that is not known


def test_the_lag_of_a_worker_is_unknown_until_it_has_read() -> None:
    world = RefusingSimulation({})
    name = world.start_worker()
    assert world.workers[name].progress().lag_seconds is None
    assert world.workers[name].progress().trim_seconds is None
    world.settle(lambda: world.workers[name].progress().lag_seconds == 0.0)
    world.refused["GetShardIterator"] = world.refused["GetRecords"] = InternalServerError()
    world.run_for(5.0)
    assert world.workers[name].progress().lag_seconds is None
    world.close()


def test_the_lag_of_a_worker_is_unknown_while_its_requests_hang() -> None:
    world = RefusingSimulation({})
    name = world.start_worker()
    world.settle(lambda: world.workers[name].progress().lag_seconds == 0.0)
    world.clock.advance(30.0)  # no request is answered in this time
    assert world.workers[name].progress().lag_seconds is None
    assert world.workers[name].progress().trim_seconds is None
    world.settle(lambda: world.workers[name].progress().lag_seconds == 0.0)
    world.close()


def test_the_lag_grows_while_a_change_is_in_hand() -> None:
    world = RefusingSimulation({})
    name = world.start_worker()
    world.settle(lambda: world.workers[name].progress().lag_seconds == 0.0)
    holder = next(iter(world.workers[name].consumers.values()))
    holder.set_lag(2.0, is_handling=True)
    world.clock.advance(300.0)
    assert holder.lag_seconds() == 302.0
    world.close()


@pytest.mark.parametrize("error", [Throttled("Rate exceeded"), Unreachable("no route")])
def test_the_lag_of_a_group_is_unknown_when_a_shard_cannot_be_asked(error: Exception) -> None:
    world = RefusingSimulation({})
    name = world.start_worker()
    world.settle(lambda: world.workers[name].progress().lag_seconds == 0.0)
    watch = GroupWatch(world.context, "group")

    class Throttling:
        parallel = False

        def call(self, operation: str, request: Any, **options: Any) -> Any:
            if operation == "GetRecords":
                raise error
            return world.transport.call(operation, request)

    transport: Any = Throttling()
    state = Runner(transport, world.clock).run(watch.look())
    assert state.lag_seconds is None
    assert [shard.lag_seconds for shard in state.shards] == [None] * 4
    known = Runner(world.transport, world.clock).run(watch.look())
    assert known.lag_seconds == 0.0
    world.close()


def test_a_group_without_shards_has_no_lag() -> None:
    assert GroupState((), 0, 0).lag_seconds is None
    known = ShardState("shop", "s1", None, False, 5.0, False)
    unknown = ShardState("shop", "s2", None, False, None, False)
    assert GroupState((known,), 0, 0).lag_seconds == 5.0
    assert GroupState((known, unknown), 0, 0).lag_seconds is None
    assert unknown.trim_seconds is None


@pytest.mark.parametrize("lag", [None, 0.0, 7.5])
def test_an_unknown_lag_is_no_metric(lag: float | None) -> None:
    from stator.pipeline.workers.metrics import _Collector

    class Running:
        class worker:
            consumers = ()

        def progress(self) -> ShardProgress:
            return ShardProgress(handled=3, lag_seconds=lag)

    running: Any = Running()
    shown = {
        sample.name: sample.value
        for metric in _Collector(running, "billing").collect()
        for sample in metric.samples
    }
    assert shown["stator_stream_handled_total"] == 3
    assert shown.get("stator_stream_lag_seconds") == lag
    assert ("stator_stream_trim_seconds" in shown) == (lag is not None)
