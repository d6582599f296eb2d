"""The simulation of workers with roll-ups from the stream, compared with their readings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Context as Arithmetic
from decimal import Decimal
from typing import Any

from stator import Design, Entity, Query, find, ident, read
from stator.errors import StatorError
from stator.model.periods import floor
from stator.patterns import Rollup, Series
from stator.patterns.rollups.rollup import Summary
from stator.pipeline.maintenance.pattern_factory import PatternDb
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers.change import Record
from stator.tables.context import Context
from stator.tables.runner import Runner
from stator.tables.work import Work
from tests.engine.streams.reading import read_all

from ..simulation import Applying, Faults, Simulation, Task, check_order, is_complete


class Sensor(Entity):
    sensor: str = ident()


class Measure(Entity):
    sensor: str = ident()
    at: datetime = ident()
    value: Decimal | None


@read()
def sensor(sensor: str) -> Query[Sensor]:
    return find(Sensor).where(Sensor.sensor == sensor)


plant = Design("plant", [Sensor], [sensor])
START = datetime(2026, 11, 16, 7, tzinfo=UTC)
SENSORS = ("s1", "s2")
_WIDE = Arithmetic(prec=100)
PERIODS: tuple[Any, ...] = ("minute", "hour", "day")


def measures(db: Any) -> Series[Any, Measure]:
    rollups = [Rollup(period, of=Measure.value) for period in PERIODS]
    return Series(
        db,
        Measure,
        by=Measure.sensor,
        at=Measure.at,
        bucket="hour",
        shards=2,
        rollups=rollups,
        rollups_from="stream",
    )


class Watching(Applying):
    """Receives the same changes as the roll-ups, to know when all are handled."""

    def tables(self, context: Context) -> tuple[str, ...]:
        return (context.schema.place.table,)

    def wants(self, record: Record, context: Context) -> bool:
        return measures(PatternDb(context)).changes.is_reading(record.image)


class RollupSimulation(Simulation):
    design = plant

    def __init__(self, seed: int, faults: Faults | None = None, **options: Any) -> None:
        super().__init__(seed, faults, **options)
        self.table = self.context.schema.place.table
        self.arn = str(
            self.engine.call("DescribeTable", {"TableName": self.table})["Table"]["LatestStreamArn"]
        )
        self.series = measures(PatternDb(self.context))
        self._builders = 0

    def app(self) -> StreamApp:
        app = StreamApp(plant, "group")
        app.add(Watching(self))
        app.roll_up(measures)
        return app

    def key_of(self, keys: dict[str, Any]) -> str:
        return f"{keys['PK']['S']} {keys['SK']['S']}"

    def run(self, work: Work[Any]) -> Any:
        return Runner(self.transport, self.clock).run(work)

    # -- the world

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            at = START + timedelta(seconds=self.chance.choice([0, 20, 40, 60, 3599, 3600, 90_000]))
            value = self.chance.choice(
                [None, *map(Decimal, range(-2, 4)), Decimal("1e30"), Decimal("0.000000000001")]
            )
            made = Measure(sensor=self.chance.choice(SENSORS), at=at, value=value)
            change = self.series.remove if self.chance.random() < 0.3 else self.series.add
            self.run(change.work(made))

    def rebuild(self) -> None:
        """Rebuild roll-ups concurrently with everything else."""
        self._builders += 1
        work = self.series.rollup(self.chance.choice(PERIODS), of=Measure.value)
        self.tasks.append(Task(f"b{self._builders}", self._rebuild(work)))

    def _rebuild(self, rollup: Any) -> Work[None]:
        try:
            yield from rollup.rebuild.work(
                self.chance.choice(SENSORS), START, START + timedelta(days=2)
            )
        except StatorError:
            return

    def written(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for record in read_all(self.engine, self.arn):
            body = record["dynamodb"]
            if self.series.changes.is_reading(body.get("NewImage") or body.get("OldImage")):
                found.setdefault(self.key_of(body["Keys"]), []).append(int(body["SequenceNumber"]))
        return found

    # -- comparing

    def readings(self) -> list[Measure]:
        items = self.engine.call("Scan", {"TableName": self.table})["Items"]
        return [
            self.series.layout.decode(item)
            for item in items
            if self.series.changes.is_reading(item)
        ]

    def compare(self) -> None:
        """Check that every roll-up is what its readings add up to."""
        there = self.readings()
        for sensor in SENSORS:
            mine = [each for each in there if each.sensor == sensor and each.value is not None]
            for period in PERIODS:
                work = self.series.rollup(period, of=Measure.value).range
                found = self.run(
                    work.work(sensor, START - timedelta(days=1), START + timedelta(days=3))
                )
                assert found == summaries(mine, period), (sensor, period)


def summaries(readings: list[Measure], period: Any) -> list[Summary]:
    groups: dict[datetime, list[Measure]] = {}
    for each in sorted(readings, key=lambda each: each.at):
        groups.setdefault(floor(period, each.at), []).append(each)
    found = []
    for start, group in groups.items():
        values = [each.value for each in group if each.value is not None]
        total = sum(map(_scaled, values))
        found.append(
            Summary(
                start,
                len(values),
                Decimal(total).scaleb(-12, _WIDE),
                min(values),
                max(values),
                values[-1],
                group[-1].at,
            )
        )
    return found


def _scaled(value: Decimal) -> int:
    return int(value.scaleb(12, _WIDE))


def run_schedule(
    seed: int, faults: Faults | None = None, rebuilds: float = 0.0
) -> RollupSimulation:
    world = RollupSimulation(seed, faults)
    chance = world.chance
    for _ in range(chance.randrange(1, 4)):
        world.start_worker()
    for _ in range(chance.randrange(100, 400)):
        world.step()
        world.happen()
        if chance.random() < rebuilds:
            world.rebuild()
    return world


def finish(world: RollupSimulation) -> None:
    world.start_worker()
    written = world.written()

    def is_done() -> bool:
        is_building = any(task.worker.startswith("b") for task in world.tasks)
        return is_complete(world.applied.by_key, written) and not is_building

    world.settle(is_done)
    check_order(world.applied.by_key, written)
    world.compare()
