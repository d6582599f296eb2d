"""The simulation of workers (tests/pipeline/simulation.py) with a view, compared with its table."""

from __future__ import annotations

import random
from typing import Any

from stator import Design, Entity, Query, find, ident, read
from stator.errors import StatorError
from stator.model.values import Item
from stator.pipeline import (
    Projection,
    View,
    avg,
    count,
    latest,
    maximum,
    minimum,
    percentiles,
    sum_of,
    top,
)
from stator.pipeline.views.reader import ViewReader
from stator.pipeline.views.rebuild.rebuild import Rebuild, RebuildOptions, rebuild_together
from stator.pipeline.views.sketch import bucket_of
from stator.pipeline.workers.app import StreamApp
from stator.tables.runner import Runner
from stator.tables.work import Work

from ..simulation import Applying, Faults, Simulation, Task, check_order, is_complete


class Sample(Entity):
    sensor: str = ident()
    zone: str | None
    value: int
    ok: bool


@read()
def sample(sensor: str) -> Query[Sample]:
    return find(Sample).where(Sample.sensor == sensor)


plant = Design("plant", [Sample], [sample])
ZONES = ("north", "south")


def make_view() -> View:
    return View(
        "zones",
        of=Sample,
        by=Sample.zone,
        where=Sample.ok == True,  # noqa: E712 - it builds a condition
        samples=count(),
        total=sum_of(Sample.value),
        mean=avg(Sample.value),
        spread=percentiles(Sample.value),
        least=minimum(Sample.value),
        most=maximum(Sample.value),
        best=top(3, by=Sample.value),
        last=latest(by=Sample.sensor),
    )


def make_sums() -> View:
    """Without rows it is built another way: the next page is read while one is counted."""
    return View("sums", of=Sample, by=Sample.zone, samples=count(), total=sum_of(Sample.value))


def make_projection() -> Projection:
    return Projection("by_zone", of=Sample, key=Sample.zone, sort=Sample.value)


class ViewSimulation(Simulation):
    jumps = (5.0, 60.0, 1000.0, 4000.0)
    design = plant

    def __init__(self, seed: int, faults: Faults | None = None, **options: Any) -> None:
        super().__init__(seed, faults, **options)
        self.rebuilt: list[Any] = []
        self._builders = 0

    def app(self) -> StreamApp:
        app = StreamApp(plant, "group")
        app.add(Applying(self))
        app.add(make_view())
        app.add(make_projection())
        app.add(make_sums())
        return app

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            write_one(self, self.chance)

    def key(self, sensor: str) -> dict[str, Any]:
        return dict(self.context.schema.of(Sample).key_from({"sensor": sensor}))

    # -- building anew

    def rebuild(self) -> str:
        """Begin to, as a process of its own that may crash; what came of it is in ``rebuilt``."""
        self._builders += 1
        name = f"b{self._builders}"
        options = RebuildOptions(
            settle_seconds=0.5, wait_seconds=2000.0, grace_seconds=3.0, page_items=2
        )
        makers: list[Any] = [make_view, make_projection, make_sums]
        chosen = self.chance.choice([makers[:1], makers[1:2], makers[2:], makers[:2], makers])
        self.tasks.append(
            Task(
                name,
                self._rebuild([maker().in_database(self.context) for maker in chosen], options),
            )
        )
        return name

    def _rebuild(self, kept: list[Any], options: RebuildOptions) -> Work[None]:
        try:
            self.rebuilt += yield from rebuild_together([Rebuild(each, options) for each in kept])
        except StatorError as error:
            self.rebuilt.append(error)

    @property
    def is_building(self) -> bool:
        return any(task.worker.startswith("b") for task in self.tasks)

    # -- comparing

    def run(self, work: Work[Any]) -> Any:
        return Runner(self.transport, self.clock).run(work)

    def items(self) -> list[Item]:
        return list(self.engine.call("Scan", {"TableName": self.table})["Items"])

    def compare(self) -> None:
        """Every metric is what the table says."""
        samples = [self.context.schema.of(Sample).decode(item) for item in self.items()]
        view, projection = make_view(), make_projection()
        db: Any = _Db(self)
        reader = ViewReader(db, view.in_database(self.context))
        copies = projection.on(db)
        maintained = make_sums().in_database(self.context)
        sums = ViewReader(db, maintained)
        for zone in ZONES:
            inside = [each for each in samples if each.zone == zone and each.ok]
            row = self.run(reader.get.work(zone=zone))
            assert (row is not None) == bool(inside)
            if row is not None:
                compare_row(row, inside)
            found = self.run(copies.page.work(limit=1000, zone=zone)).items
            there = [each for each in samples if each.zone == zone]
            assert sorted(each.sensor for each in found) == sorted(each.sensor for each in there)
            assert [each.value for each in found] == sorted(each.value for each in there)
            summed = self.run(sums.get.work(zone=zone))
            told = (0, 0) if summed is None else (summed.samples, summed.total)
            assert told == (len(there), sum(each.value for each in there))


class _Db:
    def __init__(self, world: ViewSimulation) -> None:
        self.context = world.context


def compare_row(row: Any, inside: list[Sample]) -> None:
    values = sorted(each.value for each in inside)
    assert (row.samples, row.total) == (len(values), sum(values))
    assert row.mean == float(sum(values)) / len(values)
    buckets: dict[str, int] = {}
    for value in values:
        bucket = bucket_of(float(value), 0.02)
        buckets[bucket] = buckets.get(bucket, 0) + 1
    assert row.spread.counts == buckets
    assert (row.least, row.most) == (values[0], values[-1])
    assert [each.value for each in row.best] == values[::-1][:3]
    assert row.last.sensor == max(each.sensor for each in inside)
    assert all(each in inside for each in [*row.best, row.last])


def write_one(world: ViewSimulation, chance: random.Random) -> None:
    sensor = f"k{chance.randrange(8)}"
    if chance.random() < 0.2:
        world.engine.call("DeleteItem", {"TableName": world.table, "Key": world.key(sensor)})
        return
    zone = chance.choice([*ZONES, None])
    made = Sample(
        sensor=sensor, zone=zone, value=chance.randrange(-50, 1000), ok=chance.random() < 0.8
    )
    item = world.context.schema.of(Sample).item(made)
    world.engine.call("PutItem", {"TableName": world.table, "Item": item})


def run_schedule(
    seed: int,
    faults: Faults | None = None,
    steps: tuple[int, int] = (100, 400),
    builds: float = 0.0,
) -> ViewSimulation:
    world = ViewSimulation(seed, faults)
    for _ in range(world.chance.randrange(1, 4)):
        world.start_worker()
    for _ in range(world.chance.randrange(*steps)):
        world.step()
        world.happen()
        if world.chance.random() < builds and not world.is_building:
            world.rebuild()
    return world


def finish(world: ViewSimulation) -> None:
    world.start_worker()
    written = world.written()
    world.settle(lambda: is_complete(world.applied.by_key, written) and not world.is_building)
    check_order(world.applied.by_key, written)
    world.compare()
