"""A simulation agrees with a run of the same model that sends one request at a time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from stator import Design, Entity, creates, distinct, find, largest, read, updates, write
from stator.design.patterns.query import Query
from stator.design.simulation import TrafficShape, simulate
from stator.design.simulation.admission import GroupNodes, LegNodes, solve
from stator.design.simulation.call_shapes import CallLeg, CallShape, CallShapes, ChargedKeys
from stator.design.simulation.simulator import _Simulator
from stator.design.table_settings import TableSettings
from stator.model.heat.resource import ThroughputResource

from .designs import Note, Reading, Setting, Ticket, capacity

MINUTES = 8


class Requests:
    """Sends the calls of shapes one by one, evenly over each second, to the same resources."""

    def __init__(self, design: Design, traffic: TrafficShape, seed: int) -> None:
        plan = design.plan()
        shapes = CallShapes(design, plan, traffic, {})
        self.flows = list(shapes.declared())
        simulator = _Simulator(design, plan, traffic, None)
        self.resources, _ = simulator._resources(shapes, {})
        self.chance = random.Random(seed)
        self.asked: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self.reasons: dict[str, set[str]] = {}

    def run(self, seconds: int) -> None:
        for second in range(seconds):
            calls = [
                (at / round(rate), shape) for shape, rate in self.flows for at in range(round(rate))
            ]
            self.chance.shuffle(calls)
            for part, shape in sorted(calls, key=lambda each: each[0]):
                self.call(shape, second + part)

    def call(self, shape: CallShape, now: float) -> None:
        chosen = self.chance.choices(
            range(len(shape.groups)), [group.share for group in shape.groups]
        )[0]
        charges = []
        for leg in shape.legs:
            resource = self.resources[leg.place]
            key = self.key(leg, leg.keys[chosen], now)
            charges.append((resource, leg.kind, key, leg.units))
        self.asked[shape.name] = self.asked.get(shape.name, 0) + 1
        short = [each for each in charges if each[0].room(each[1], each[2], now) <= 0]
        if not short:
            for resource, kind, key, units in charges:
                resource.charge(kind, key, units, now)
            return
        self.refused[shape.name] = self.refused.get(shape.name, 0) + 1
        for resource, kind, key, units in short:
            causes = resource.causes(kind, key, now)
            self.reasons.setdefault(shape.name, set()).add(causes[0].reason)
            resource.refuse(kind, key, units, causes, now)

    def key(self, leg: CallLeg, charged: tuple[ChargedKeys, ...], now: float) -> bytes:
        found = self.chance.choices(charged, [each.share for each in charged])[0]
        second = round(now * 10_000)
        return found.keys.sample(b"", None, second, self.chance)

    def refused_share(self, name: str) -> float:
        return self.refused.get(name, 0) / self.asked[name]


def designs(chance: random.Random) -> Design:
    """A random design of few, large requests: a partition takes 50 or 100 of them a second."""
    kind = chance.choice(["one item", "collections", "queues", "rising", "mixed"])
    settings: TableSettings | None = None
    if chance.random() < 0.4:
        settings = capacity(chance.choice([40, 400]), chance.choice([300, 900, 2500]))
    rate = chance.choice([40, 90, 150])

    @write(rps=rate)
    def change() -> object:
        return updates(Setting.value)

    @write(rps=rate)
    def add() -> object:
        return creates(Note)

    @write(rps=rate)
    def open_ticket() -> object:
        return creates(Ticket)

    @write(rps=rate)
    def measure() -> object:
        return creates(Reading)

    @read(rps=chance.choice([20, 90]), returns=10)
    def of_board(board: str) -> Query[Note]:
        return find(Note).where(Note.board == board).limit(10)

    parts: dict[str, tuple[list[type[Entity]], list[Any]]] = {
        "one item": ([Setting], [change]),
        "collections": ([Note], [add, of_board]),
        "queues": ([Ticket], [open_ticket]),
        "rising": ([Reading], [measure]),
        "mixed": ([Setting, Ticket, Note], [change, open_ticket, add, of_board]),
    }
    entities, patterns = parts[kind]
    facts = [
        distinct(Note.board, values=chance.choice([1, 8, 5000])),
        largest(Ticket.queue, chance.choice([0.2, 0.6])),
        distinct(Reading.device_id, values=chance.choice([1, 3, 900])),
    ]
    return Design(
        "random",
        entities,
        patterns,
        volumes={each: 1 if each is Setting else 100_000 for each in entities},
        sizes=dict.fromkeys(entities, 9_500),
        facts=[fact for fact in facts if fact.entity in entities],
        settings=settings,
    )


@pytest.mark.parametrize("seed", range(16))
def test_a_simulation_agrees_with_single_requests(seed: int) -> None:
    design = designs(random.Random(seed))
    traffic = TrafficShape(minutes=MINUTES, seed=seed)
    found = simulate(design, traffic, cures=False)
    requests = Requests(design, traffic, seed)
    requests.run(MINUTES * 60)
    for pattern in found.patterns:
        expected = requests.refused_share(pattern.name)
        assert pattern.refused_share == pytest.approx(expected, abs=0.02), pattern
        big = {name for name, share in pattern.reasons.items() if share > 0.02}
        assert big <= requests.reasons.get(pattern.name, set())


# --- the passing shares of one second


def test_a_short_node_lets_the_same_share_of_every_flow_pass() -> None:
    flows = {at: [GroupNodes(1.0, (LegNodes(1.0, ((7, 1.0),), None),))] for at in (0, 1)}
    found = solve(flows, [1500.0, 500.0], {7: 1000.0})
    assert found.passing[0] == pytest.approx(0.5, abs=1e-3)
    assert found.passing[1] == pytest.approx(0.5, abs=1e-3)
    assert found.served[7] == pytest.approx(1000, rel=1e-3)
    assert found.refused[7] == pytest.approx(1000, rel=1e-2)


def test_a_call_that_one_place_refuses_takes_nothing_from_another() -> None:
    table, index = LegNodes(1.0, ((0, 1.0),), None), LegNodes(1.0, ((1, 1.0),), None)
    flows = {0: [GroupNodes(1.0, (table, index))]}
    found = solve(flows, [1500.0], {0: 1000.0, 1: 500.0})
    assert found.passing[0] == pytest.approx(1 / 3, abs=1e-3)
    assert found.served[0] == pytest.approx(500, rel=1e-2)
    assert found.blame[0][1] > 0.95 * (1 - found.passing[0])


def test_places_that_are_equally_short_share_the_refusals() -> None:
    legs = tuple(LegNodes(1.0, ((at, 1.0),), None) for at in range(3))
    found = solve({0: [GroupNodes(1.0, legs)]}, [1500.0], dict.fromkeys(range(3), 500.0))
    assert found.passing[0] == pytest.approx(1 / 3, rel=1e-2)
    assert sum(found.blame[0].values()) == pytest.approx(2 / 3, rel=1e-2)


def test_a_limit_of_the_whole_table_counts_what_partitions_let_pass() -> None:
    half = LegNodes(1.0, ((0, 0.5), (1, 0.5)), 9)
    found = solve({0: [GroupNodes(1.0, (half,))]}, [3000.0], {0: 1000.0, 9: 2000.0})
    assert found.passing[0] == pytest.approx(2000 / 3000, rel=1e-2)


def test_without_room_nothing_passes() -> None:
    found = solve({0: [GroupNodes(1.0, (LegNodes(1.0, ((0, 1.0),), None),))]}, [10.0], {0: 0.0})
    assert found.passing[0] == 0


def test_resources_of_both_runs_start_equal() -> None:
    design = designs(random.Random(1))
    requests = Requests(design, TrafficShape(), 0)
    assert all(isinstance(each, ThroughputResource) for each in requests.resources.values())
