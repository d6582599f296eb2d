"""Several workers in one loop, under a virtual clock, that decides who goes next.

It crashes, delays and refuses what it likes.

Everything is chosen by one seed, so a schedule that goes wrong goes wrong again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from stator import Design, Engine, Entity, Query, find, ident, read
from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.design.table_settings import TableSettings
from stator.errors import OutcomeUnknown, StatorError, Throttled
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers.change import Record
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope, lanes
from stator.pipeline.workers.options import WorkerOptions
from stator.pipeline.workers.worker import Worker
from stator.tables.connection import make_context
from stator.tables.context import Context
from stator.tables.lifecycle import TableSetup
from stator.tables.runner import Runner
from stator.tables.work import BlockingCall, Call, Gather, Pause, Work
from stator.testing import (
    Fault,
    FaultyTransport,
    InterceptedCall,
    open_shards,
    roll_shards,
    split_shard,
)
from tests.engine.streams.reading import read_all

DAY = 24 * 3600.0


class Reading(Entity):
    sensor: str = ident()
    value: int


@read()
def reading(sensor: str) -> Query[Reading]:
    return find(Reading).where(Reading.sensor == sensor)


fleet = Design("fleet", [Reading], [reading])


class WorkerCrash(BaseException):
    """The process dies, here and now."""


@dataclass
class Task:
    worker: str
    work: Generator[Any, Any, Any]
    wish: Any = None
    wake_at: float = 0.0
    is_over: bool = False


@dataclass
class Faults:
    """How often what goes wrong."""

    throttled: float = 0.02
    lost_reply: float = 0.02
    crash_in_call: float = 0.004
    crash_in_handler: float = 0.01
    stall: float = 0.005


@dataclass
class Applied:
    """What handlers have seen, by key, in the order they saw it."""

    by_key: dict[str, list[int]] = field(default_factory=dict)
    by_shard: dict[str, list[tuple[int, str, int]]] = field(default_factory=dict)

    def add(self, key: str, sequence: int, shard: str, fence: int) -> None:
        self.by_key.setdefault(key, []).append(sequence)
        self.by_shard.setdefault(shard, []).append((fence, key, sequence))


class Simulation:
    design = fleet
    jumps: tuple[float, ...] = (5.0, 60.0, 1000.0)
    """Seconds that may pass at once."""

    def __init__(self, seed: int, faults: Faults | None = None, **options: Any) -> None:
        self.chance = random.Random(seed)
        self.faults = faults or Faults()
        self.clock = VirtualClock(1_791_489_600.0)
        self.engine = Engine.open(clock=self.clock)
        self.transport = EngineTransport(self.engine)
        self.network = FaultyTransport(self.transport, self._before, self._after)
        self.context = make_context(
            self.design, {"clock": self.clock, "random": random.Random(seed + 1)}
        )
        ensuring = TableSetup(self.context, TableSettings(stream="NEW_AND_OLD_IMAGES"))
        Runner(self.transport, self.clock).run(ensuring.run())
        [self.table] = [table.name for table in self.context.schema.plan.tables]
        described = self.engine.call("DescribeTable", {"TableName": self.table})["Table"]
        self.arn = str(described["LatestStreamArn"])
        self.options = WorkerOptions(
            **{"start": "oldest", "lease_seconds": 10.0, "handover_seconds": 15.0, **options}
        )
        self.applied = Applied()
        self.poison: set[str] = set()
        self.tasks: list[Task] = []
        self.workers: dict[str, Worker] = {}
        self.stalled: dict[str, float] = {}
        self.calm = False
        self._number = 0

    # -- workers

    def app(self) -> StreamApp:
        app = StreamApp(self.design, "group")
        app.add(Applying(self))
        return app

    def apply(self, record: Record, scope: HandlerScope) -> None:
        key = self.key_of(record.keys)
        scope.check()
        self._may_crash()
        if key in self.poison:
            raise Poisoned(f"{key} is poison")
        self.applied.add(key, int(record.sequence or 0), scope.shard, scope.fence)
        self._may_crash()

    def _may_crash(self) -> None:
        if not self.calm and self.chance.random() < self.faults.crash_in_handler / 2:
            raise WorkerCrash

    def start_worker(self) -> str:
        self._number += 1
        name = f"w{self._number}"

        def spawn(work: Generator[Any, Any, Any], _: str) -> None:
            self.tasks.append(Task(name, work))

        worker = Worker(self.context, self.app(), name, self.options, spawn)
        self.workers[name] = worker
        spawn(worker.coordinate(), "")
        spawn(worker.renew(), "")
        return name

    def crash(self, name: str) -> None:
        """Kill -9: nothing more of it happens, not even a finally that would call somebody."""
        self.workers.pop(name, None)
        self.stalled.pop(name, None)
        for task in self.tasks:
            if task.worker == name:
                task.is_over = True
        self.tasks = [task for task in self.tasks if not task.is_over]

    # -- the loop

    def happen(self) -> None:
        """Mostly nothing, sometimes a write, a shard that splits, a worker that comes or goes."""
        chance = self.chance
        event = chance.random()
        if event < 0.15:
            self.write(chance.randrange(1, 6))
        elif event < 0.16:
            self.roll()
        elif event < 0.17:
            self.split()
        elif event < 0.175:
            self.clock.advance(chance.choice(self.jumps))
        elif event < 0.185 and self.workers:
            self.crash(chance.choice(sorted(self.workers)))
        elif event < 0.2 and len(self.workers) < 4:
            self.start_worker()
        elif event < 0.205 and self.workers:
            self.workers[chance.choice(sorted(self.workers))].stop()

    def step(self) -> None:
        now = self.clock.now()
        ready = [
            task
            for task in self.tasks
            if task.wake_at <= now and self.stalled.get(task.worker, 0.0) <= now
        ]
        if not ready:
            self._wait()
            return
        task = self.chance.choice(ready)
        if not self.calm and self.chance.random() < self.faults.stall:
            self.stalled[task.worker] = now + self.chance.choice([1.0, 12.0, 40.0, 1000.0])
            return
        self.clock.advance(self.chance.random() * 0.02)
        try:
            self._advance(task)
        except WorkerCrash:
            self.crash(task.worker)

    def _wait(self) -> None:
        moments = [max(task.wake_at, self.stalled.get(task.worker, 0.0)) for task in self.tasks]
        self.clock.advance(
            max(0.001, min(moments, default=self.clock.now() + 1.0) - self.clock.now())
        )

    def _advance(self, task: Task) -> None:
        """Carry out what a task waits for, and let it go on to its next wish."""
        answer, error = None, None
        if task.wish is not None:
            try:
                answer = self._do(task.wish)
            except StatorError as raised:
                error = raised
        if task.is_over:
            return
        try:
            task.wish = task.work.throw(error) if error is not None else task.work.send(answer)
        except StopIteration:
            task.is_over = True
            self.tasks.remove(task)
            return
        if isinstance(task.wish, Pause):
            task.wake_at = self.clock.now() + task.wish.seconds

    def _do(self, wish: Any) -> Any:
        if isinstance(wish, Call):
            return self._call(wish)
        if isinstance(wish, Gather):
            return [self._part(part) for part in wish.parts]
        if isinstance(wish, BlockingCall):
            return wish.function()
        assert isinstance(wish, Pause)
        return None

    def _part(self, part: Any) -> Any:
        try:
            if isinstance(part, Call):
                return self._call(part)
            answer = None
            try:
                wish = next(part)
                while True:
                    try:
                        answer = self._do(wish)
                    except StatorError as error:
                        wish = part.throw(error)
                    else:
                        wish = part.send(answer)
            except StopIteration as done:
                return done.value
        except StatorError as error:
            return error

    def _call(self, call: Call) -> dict[str, Any]:
        return self.network.call(call.operation, call.request)

    def _before(self, call: InterceptedCall) -> Fault | None:
        """Whether a call is throttled, loses its answer, or finds its worker dead."""
        if self.calm:
            return None
        chance = self.chance.random()
        if chance < self.faults.throttled:
            return Fault("throttled", error=Throttled("Rate exceeded"))
        if chance < self.faults.throttled + self.faults.crash_in_call:
            raise WorkerCrash
        if self.chance.random() >= self.faults.lost_reply:
            return None
        # A client retries the request, or reports an unknown outcome.
        if self.chance.random() < 0.5:
            return Fault("lost answer", error=OutcomeUnknown("the connection broke"))
        return Fault("duplicated")

    def _after(self, call: InterceptedCall, reply: dict[str, Any]) -> None:
        if not self.calm and self.chance.random() < self.faults.crash_in_call:
            raise WorkerCrash

    # -- the world

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            key = f"k{self.chance.randrange(6)}"
            if self.chance.random() < 0.15:
                self.engine.call("DeleteItem", {"TableName": self.table, "Key": self.key(key)})
            else:
                item = {
                    **self.key(key),
                    "sensor": {"S": key},
                    "value": {"N": str(self.chance.randrange(10**6))},
                }
                self.engine.call("PutItem", {"TableName": self.table, "Item": item})

    def key(self, sensor: str) -> dict[str, Any]:
        return dict(self.context.schema.of(Reading).key_from({"sensor": sensor}))

    def key_of(self, keys: dict[str, Any]) -> str:
        return str(next(iter(keys.values()))["S"])

    def roll(self) -> None:
        roll_shards(self.engine, self.table)

    def split(self) -> None:
        open_now = open_shards(self.engine, self.table)
        split_shard(self.engine, self.table, self.chance.choice(open_now))

    def written(self) -> dict[str, list[int]]:
        """Every change there is, by key, in order."""
        found: dict[str, list[int]] = {}
        for record in read_all(self.engine, self.arn):
            key = self.key_of(record["dynamodb"]["Keys"])
            found.setdefault(key, []).append(int(record["dynamodb"]["SequenceNumber"]))
        return found

    def settle(self, is_done: Callable[[], bool], steps: int = 40_000) -> None:
        """No more faults: go on until everything is handled."""
        self.calm = True
        self.stalled.clear()
        if not self.workers:
            self.start_worker()
        for number in range(steps):
            if number % 50 == 0 and is_done():
                return
            self.step()
        raise AssertionError("the workers did not come to an end")

    def close(self) -> None:
        self.engine.close()


class Applying:
    """The subscriber under test: it takes one record at a time, and others may go on in between."""

    name = "applying"

    def __init__(self, world: Simulation) -> None:
        self._world = world

    def wants(self, record: Record, context: Context) -> bool:
        return True

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        failures = []
        for lane in lanes(records):
            for record in lane:
                try:
                    yield BlockingCall(partial(self._world.apply, record, scope))
                except Poisoned as error:
                    failures.append(HandlerFailure(record, error))
                    break
        return failures


class Poisoned(StatorError):
    """What a handler raises, as a runner gives it to work."""


def check_fences(by_shard: dict[str, list[tuple[int, str, int]]]) -> None:
    """Nobody handles a shard's changes after a later holder has, and no holder goes back."""
    for shard, entries in by_shard.items():
        fences = [fence for fence, _, _ in entries]
        assert fences == sorted(fences), f"{shard}: {entries}"
        places: dict[tuple[int, str], int] = {}
        for fence, key, sequence in entries:
            assert sequence > places.get((fence, key), -1)
            places[fence, key] = sequence


def check_order(applied: dict[str, list[int]], written: dict[str, list[int]]) -> None:
    """Nothing is missing or invented, and first handlings of a key are in order."""
    for key, seen in applied.items():
        first: list[int] = list(dict.fromkeys(seen))
        assert first == written.get(key, [])[: len(first)], f"{key}: {first} of {written.get(key)}"


def is_complete(applied: dict[str, list[int]], written: dict[str, list[int]]) -> bool:
    return all(set(applied.get(key, ())) >= set(sequences) for key, sequences in written.items())
