"""In every schedule, messages are delivered in the order of their keys and copies are fresh."""

from __future__ import annotations

from typing import Any

import pytest

from stator import Db, connect
from stator.patterns import Links, Outbox
from stator.pipeline import StreamApp
from stator.pipeline.workers.handlers.change import Record
from stator.pipeline.workers.handlers.subscribers import HandlerScope

from ..simulation import Faults, Simulation
from .greenhouse import Bed, Plant, greenhouse

pytestmark = pytest.mark.usefixtures("quiet")
KEYS = ("k1", "k2", "k3")


def outbox(db: Any) -> Outbox[Any]:
    return Outbox(
        db, "orders", shards=2, lease_seconds=5.0, retry_seconds=0.5, longest_retry_seconds=2.0
    )


def links(db: Any) -> Links[Any, Plant, Bed]:
    return Links(db, Plant, Bed, copy_left=[Plant.name])


class PatternSimulation(Simulation):
    design = greenhouse

    def __init__(self, seed: int, faults: Faults | None = None, **options: Any) -> None:
        super().__init__(seed, faults, **options)
        self.db: Db = connect(greenhouse, self.engine, clock=self.clock)
        self.sent: dict[str, list[int]] = {}
        self.heard: dict[str, list[int]] = {}
        for number in range(3):
            self.db.put(Bed(bed_id=f"b{number}", title="x"))

    def app(self) -> StreamApp:
        app = StreamApp(greenhouse, "group")
        app.relay(outbox, to=self.hear)
        app.refresh(links)
        return app

    def apply(self, record: Record, scope: HandlerScope) -> None:
        raise AssertionError("there is no such subscriber")

    def hear(self, message: Any) -> None:
        self._may_crash()
        if not self.calm and self.chance.random() < 0.1:
            raise ValueError("not now")
        self.heard.setdefault(message.key, []).append(message.body)
        self._may_crash()

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            key = self.chance.choice(KEYS)
            plant = Plant(plant_id=key, name=f"n{self.chance.randrange(1000)}")
            if self.chance.random() < 0.2:
                self.db.delete(Plant, plant_id=key)
                continue
            with self.db.transaction() as tx:
                tx.put(plant)
                number = len(self.sent.setdefault(key, []))
                outbox(self.db).add(tx, topic="plant", body=number, key=key)
                self.sent[key].append(number)
            if self.chance.random() < 0.5:
                links(self.db).link(plant, Bed(bed_id=f"b{self.chance.randrange(3)}", title="x"))

    def copies(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for number in range(3):
            for link in links(self.db).of_right(f"b{number}"):
                found.setdefault(link.left, set()).add(link.copy["name"])
        return found

    def is_right(self) -> bool:
        plants = {key: self.db.get(Plant, plant_id=key) for key in KEYS}
        return self.sent == {key: sorted(set(heard)) for key, heard in self.heard.items()} and all(
            (plant := plants[key]) is not None and names == {plant.name}
            for key, names in self.copies().items()
        )


@pytest.mark.parametrize("seed", range(25))
def test_messages_are_delivered_in_order_and_copies_are_fresh(seed: int) -> None:
    world = PatternSimulation(seed)
    chance = world.chance
    world.start_worker()
    for _ in range(chance.randrange(100, 300)):
        world.step()
        event = chance.random()
        if event < 0.1:
            world.write(chance.randrange(1, 4))
        elif event < 0.12:
            world.clock.advance(chance.choice([5.0, 60.0]))
        elif event < 0.13 and world.workers:
            world.crash(chance.choice(sorted(world.workers)))
        elif event < 0.16 and len(world.workers) < 3:
            world.start_worker()
    world.write(3)
    world.start_worker()
    world.settle(world.is_right)
    for key, heard in world.heard.items():
        assert list(dict.fromkeys(heard)) == world.sent[key]
    world.close()
