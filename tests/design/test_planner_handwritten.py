"""Keys written by hand beside keys the planner makes: names, filters, prices, and entities read
together.
"""

from __future__ import annotations

import random
import types
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stator.design.design import Design, Per, per
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Bundle2, Query, find, together
from stator.design.patterns.write_pattern import creates, updates, write
from stator.design.plan.plan import Plan
from stator.errors import DesignError, PatternRefused

from . import shop
from .test_planner_engine import answer, filled

START = datetime(2026, 1, 1, tzinfo=UTC)


# --- names ----------------------------------------------------------------------------------------


class Ticket(Entity, key=("T#{ticket_id}", "T"), index={"GSI1": ("OWNER#{owner}", "{ticket_id}")}):
    ticket_id: str = ident()
    owner: str
    queue: str


class Job(Entity):
    job_id: str = ident()
    queue: str


@read(rps=5, returns=5)
def by_owner(owner: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.owner == owner)


@read(rps=5, returns=5)
def by_queue(queue: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.queue == queue)


@read(rps=5, returns=5)
def jobs(queue: str) -> Query[Job]:
    return find(Job).where(Job.queue == queue)


@write(rps=5)
def move_job() -> object:
    return updates(Job.queue)


@write(rps=5)
def move_ticket() -> object:
    return updates(Ticket.queue)


TICKETS = (by_owner, by_queue, jobs, move_job, move_ticket)


@pytest.mark.parametrize("names", [{}, {"GSI2": "GSI1"}, {"GSI1": "GSI2"}])
def test_a_generated_index_never_has_the_name_of_one_written_by_hand(names: dict[str, str]) -> None:
    design = Design("tickets", [Ticket, Job], TICKETS, names=names)
    plan = design.plan()
    written = [key.name for key in plan.entity(Ticket).keys]
    assert len(written) == len(set(written))
    assert plan.pattern("by_owner").index == names.get("GSI1", "GSI1")
    assert plan.pattern("by_queue").index != plan.pattern("by_owner").index
    assert plan.pattern("jobs").index == plan.pattern("by_queue").index
    tickets = [
        Ticket(ticket_id=f"t{at}", owner=f"o{at % 2}", queue=f"q{at % 3}") for at in range(6)
    ]
    with filled(plan, [*tickets, Job(job_id="j", queue="q1")]) as engine:
        for name, arguments, wanted in (
            ("by_owner", {"owner": "o1"}, {"t1", "t3", "t5"}),
            ("by_queue", {"queue": "q1"}, {"t1", "t4"}),
        ):
            assert {
                each.ticket_id for each in answer(engine, plan, design, name, arguments)
            } == wanted


# --- links of different types ---------------------------------------------------------------------


class Member(Entity):
    uid: str = ident()


class Score(Entity):
    uid: int = ident()
    game: str = ident()


@read(rps=5)
def scores(uid: str) -> Bundle2[Member, Score]:
    return together(Member, Score).where(Member.uid == uid)


@read(rps=5)
def scores_said_twice(uid: Any) -> Bundle2[Member, Score]:
    same = Score.uid == uid
    return together(Member, Score).where(Member.uid == uid, same)


@pytest.mark.parametrize("pattern", [scores, scores_said_twice])
def test_fields_of_different_types_do_not_link(pattern: Any) -> None:
    with pytest.raises(PatternRefused) as caught:
        Design("game", [Member, Score], [pattern]).plan()
    assert caught.value.pattern == pattern.name
    assert "Member.uid (str)" in str(caught.value)
    assert "Score.uid (int)" in str(caught.value)


# --- the type filter ------------------------------------------------------------------------------


class Ride(Entity, key=("R#{rid}", "META")):
    rid: str = ident()


class Reading(Entity, key=("R#{rid}", "TEST#{at}")):
    rid: str = ident()
    at: datetime = ident()


class Bare(Entity, key=("R#{rid}", "{at}")):
    rid: str = ident()
    at: datetime = ident()


@read(rps=100, returns=1)
def last(rid: str) -> Query[Reading]:
    return find(Reading).where(Reading.rid == rid).newest_first(Reading.at).limit(1)


@read(rps=100, returns=1)
def last_bare(rid: str) -> Query[Bare]:
    return find(Bare).where(Bare.rid == rid).newest_first(Bare.at).limit(1)


def test_no_type_filter_where_the_words_in_the_keys_tell_entities_apart() -> None:
    plan = Design(
        "rides", [Ride, Reading], [last], volumes={Ride: 1000, Reading: per(Ride, 100_000)}
    ).plan()
    request = plan.pattern("last").request(rid="1")
    assert "FilterExpression" not in request
    assert request["Limit"] == 1
    assert plan.pattern("last").units_per_call == 0.5
    assert not plan.pattern("last").warnings


def test_a_type_filter_is_priced_and_warned_of() -> None:
    design = Design(
        "rides", [Ride, Bare], [last_bare], volumes={Ride: 1000, Bare: per(Ride, 100_000)}
    )
    plan = design.plan()
    found = plan.pattern("last_bare")
    request = found.request(rid="1")
    assert "FilterExpression" in request
    assert "Limit" not in request
    assert found.units_per_call == 1.5  # a page of 100 items, most of them wanted
    assert any("Ride" in warning and "filter" in warning for warning in found.warnings)
    rides: list[Any] = [
        Ride(rid="1"),
        *(Bare(rid="1", at=START + timedelta(days=day)) for day in range(3)),
    ]
    with filled(plan, rides) as engine:
        [first, *_] = answer(engine, plan, design, "last_bare", {"rid": "1"})
    assert first == rides[-1]


def test_a_type_filter_over_a_small_partition_costs_what_is_in_it() -> None:
    plan = Design(
        "rides", [Ride, Bare], [last_bare], volumes={Ride: 1000, Bare: per(Ride, 3)}
    ).plan()
    assert plan.pattern("last_bare").units_per_call == 0.5


class Made(Entity):
    rid: str = ident()
    at: datetime = ident()


class Intruder(Entity, key=("RID#{other}", "MADE#{n}")):
    other: str = ident()
    n: str = ident()


@read(rps=100, returns=10)
def made(rid: str) -> Query[Made]:
    return find(Made).where(Made.rid == rid)


def test_keys_written_by_hand_do_not_get_into_the_answers_of_made_ones() -> None:
    design = Design("rides", [Made, Intruder], [made])
    plan = design.plan()
    objects: list[Any] = [Made(rid="1", at=START), Intruder(other="1", n="x")]
    with filled(plan, objects) as engine:
        assert answer(engine, plan, design, "made", {"rid": "1"}) == objects[:1]


# --- together -------------------------------------------------------------------------------------


class Card(Entity, key=("U#{uid}", "INFO")):
    uid: str = ident()


class Tally(Entity, key=("U#{uid}", "COUNT")):
    uid: str = ident()
    n: int


class Elsewhere(Entity, key=("OTHER#{oid}", "X#{k}")):
    oid: str = ident()
    k: str = ident()


class Near(Entity, key=("U#{uid}", "NEAR#{k}")):
    uid: str = ident()
    k: str = ident()


@read(rps=100, returns=2)
def page(uid: str) -> Bundle2[Card, Tally]:
    return together(Card, Tally).where(Card.uid == uid)


def test_together_does_not_pay_for_entities_in_other_partitions() -> None:
    volumes = {Card: 1000, Tally: 1000, Elsewhere: 10_000_000}
    found = (
        Design("cards", [Card, Tally, Elsewhere], [page], volumes=volumes).plan().pattern("page")
    )
    assert found.units_per_call == 0.5
    assert not found.warnings
    assert found.steps[0].filter is None


def test_together_pays_for_entities_in_the_same_partition() -> None:
    volumes: dict[type[Entity], float | Per] = {Card: 1000, Tally: 1000, Near: per(Card, 1000)}
    found = Design("cards", [Card, Tally, Near], [page], volumes=volumes).plan().pattern("page")
    assert found.units_per_call > 5
    assert any("Near" in warning for warning in found.warnings)


class Ship(Entity, key=("o#{order_id}", "sh#{ship_id}"), index={"Inv": ("sh#{ship_id}", "head")}):
    order_id: str = ident()
    ship_id: str = ident()


class ShipItem(
    Entity,
    key=("o#{order_id}", "si#{ship_id}#{sku}"),
    index={"Inv": ("sh#{ship_id}", "item#{sku}")},
):
    order_id: str = ident()
    ship_id: str = ident()
    sku: str = ident()


@read(rps=5, returns=3)
def ship(ship_id: str) -> Bundle2[Ship, ShipItem]:
    return together(Ship, ShipItem).where(Ship.ship_id == ship_id)


def test_together_takes_an_index_written_by_hand() -> None:
    design = Design("ships", [Ship, ShipItem], [ship])
    plan = design.plan()
    assert [(index.name, index.patterns) for index in plan.tables[0].indexes] == [
        ("Inv", ("ship",))
    ]
    assert plan.pattern("ship").index == "Inv"
    assert plan.pattern("ship").key_condition == 'InvPK = "sh#{ship_id}"'
    objects: list[Any] = [Ship(order_id="o", ship_id="1"), Ship(order_id="o", ship_id="2")]
    objects += [ShipItem(order_id="o", ship_id="1", sku=sku) for sku in "ab"]
    with filled(plan, objects) as engine:
        got = answer(engine, plan, design, "ship", {"ship_id": "1"})
    assert sorted(map(repr, got)) == sorted(map(repr, [objects[0], *objects[2:]]))


# --- the total ------------------------------------------------------------------------------------


@write(rps=50)
def take_card() -> object:
    return creates(Card), creates(Tally), updates(Ticket.queue)


def _total(plan: Plan) -> float:
    patterns = sum(pattern.dollars_per_month for pattern in plan.patterns)
    tables = sum(
        table.storage_dollars_per_month + table.other_dollars_per_month for table in plan.tables
    )
    return patterns + tables


@pytest.mark.parametrize("layout", ["single-table", "aggregate", "table-per-entity"])
def test_the_total_is_the_sum_of_its_parts(layout: Any) -> None:
    volumes = {Card: 1000, Tally: 1000, Ticket: 1_000_000, Job: 5_000_000}
    patterns: list[Any] = [*TICKETS, page, take_card]
    plan = Design(
        "cards", [Card, Tally, Ticket, Job], patterns, volumes=volumes, layout=layout
    ).plan()
    assert plan.dollars_per_month == pytest.approx(_total(plan), abs=1e-6)
    assert sum(table.storage_dollars_per_month for table in plan.tables) > 0.1
    assert Plan.from_json(plan.to_json()) == plan


def test_the_total_counts_the_writes_of_transactions_twice() -> None:
    once = Design(
        "cards", [Card, Tally], [page, take_one], volumes={Card: 1000, Tally: 1000}
    ).plan()
    twice = Design(
        "cards", [Card, Tally], [page, take_both], volumes={Card: 1000, Tally: 1000}
    ).plan()
    writes = once.pattern("take_one").dollars_per_month
    assert twice.pattern("take_both").dollars_per_month == pytest.approx(4 * writes)
    assert twice.dollars_per_month - once.dollars_per_month == pytest.approx(3 * writes)


@write(rps=50)
def take_one() -> object:
    return creates(Card)


@write(rps=50)
def take_both() -> object:
    return creates(Card), creates(Tally)


def test_shop_total() -> None:
    plan = shop.shop.plan()
    assert plan.dollars_per_month == pytest.approx(_total(plan), abs=1e-6)


def test_the_total_holds_writes_that_belong_to_no_pattern() -> None:
    without = Design("jobs", [Job], [jobs]).plan()
    plan = Design("jobs", [Job], [jobs], writes={Job: 10}).plan()
    [table] = plan.tables
    assert table.other_dollars_per_month >= 10 * 730 * 3600 * 0.625e-6 - 1e-4
    assert plan.dollars_per_month == pytest.approx(_total(plan), abs=1e-6)
    assert plan.dollars_per_month > without.dollars_per_month


# --- heat -----------------------------------------------------------------------------------------


class Lamp(Entity):
    lamp_id: str = ident()
    state: bool


@read(rps=1, returns=10)
def lit(state: bool) -> Query[Lamp]:
    return find(Lamp).where(Lamp.state == state).limit(10)


@write(rps=1500)
def switch() -> object:
    return updates(Lamp.state)


def test_a_changed_key_is_two_writes_to_its_partitions() -> None:
    plan = Design("lamps", [Lamp], [lit, switch], volumes={Lamp: 1_000_000}).plan()
    assert plan.pattern("lit").steps[0].shards == 3  # 1,500 a second on each of two values


# --- labels ---------------------------------------------------------------------------------------


class Player(Entity):
    player_id: str = ident()


class FriendList(Entity):
    player_id: str = ident()


class Gear(Entity):
    player_id: str = ident()
    gid: str = ident()


@read(rps=30)
def profile(player_id: str) -> Bundle2[Player, FriendList]:
    return together(Player, FriendList).where(Player.player_id == player_id)


@read(rps=30, returns=10)
def gear(player_id: str) -> Query[Gear]:
    return find(Gear).where(Gear.player_id == player_id)


def test_a_partition_is_labelled_after_the_entity_that_the_field_names() -> None:
    entities = [Player, FriendList, Gear]
    plans = set()
    for seed in range(4):
        random.Random(seed).shuffle(entities)
        plans.add(Design("game", entities, [profile, gear]).plan().to_json())
    [found] = plans
    plan = Plan.from_json(found)
    assert plan.pattern("profile").key_condition.startswith("PK = ")
    assert "PLAYER#{player_id}" in plan.pattern("profile").key_condition
    assert "PLAYER#{player_id}" in plan.pattern("gear").key_condition
    assert "FRIEND_LIST#{player_id}" not in found


# --- how keys meet --------------------------------------------------------------------------------


class Log(Entity, key=("U#{uid}#LOG", "{at}")):
    uid: str = ident()
    at: datetime = ident()


def test_a_longer_partition_key_is_another_partition() -> None:
    volumes: dict[type[Entity], float | Per] = {Card: 1000, Tally: 1000, Log: per(Card, 100_000)}
    found = Design("cards", [Card, Tally, Log], [page], volumes=volumes).plan().pattern("page")
    assert (found.units_per_call, found.steps[0].filter, found.warnings) == (0.5, None, ())


def test_an_index_that_several_entities_are_written_into_counts_once() -> None:
    written = {f"I{at}": ("A#{a}", "{n}") for at in range(11)}
    body = {"__annotations__": {"n": str, "a": str}, "n": ident(), "__module__": __name__}
    entities = [
        types.new_class(name, (Entity,), {"index": written}, lambda found: found.update(body))
        for name in "XY"
    ]
    plan = Design("many", entities, []).plan()
    assert len(plan.tables[0].indexes) == 11


def test_two_entities_cannot_have_the_same_key() -> None:
    class Cat(Entity, key=("PET#{cat_id}", "PET")):
        cat_id: str = ident()

    class Dog(Entity, key=("PET#{dog_id}", "PET")):
        dog_id: str = ident()

    with pytest.raises(DesignError, match="Cat and Dog have the same key"):
        Design("pets", [Dog, Cat]).plan()
    assert len(Design("pets", [Dog, Cat], layout="table-per-entity").plan().tables) == 2


@pytest.mark.parametrize("name", ["xy", "my shop", "x" * 256])
def test_a_table_needs_a_name_that_dynamodb_takes(name: str) -> None:
    class Cat(Entity):
        cat_id: str = ident()

    with pytest.raises(DesignError, match="cannot be the name of a table"):
        Design(name, [Cat]).plan()
    assert Design(name, [Cat], names={name: "cats"}).plan().tables[0].name == "cats"
