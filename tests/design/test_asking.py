"""What patterns may ask in less usual ways: types local to a function, time without a field, many
entities at once, one of several values.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

import pytest

from stator.design.design import Design
from stator.design.entities.conditions import attr
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.export.iam import policy
from stator.design.patterns.pattern import read
from stator.design.patterns.query import BundleMany, Count, Query, find, together
from stator.design.patterns.write_pattern import creates, updates, write
from stator.design.plan.plan import Plan
from stator.errors import DesignError

from .test_planner_engine import answer, expected, filled

START = datetime(2026, 3, 1, tzinfo=UTC)


# --- types that are local to a function


def local_design() -> Design:
    Colour = Literal["red", "blue"]

    class Car(Entity):
        plate: str = ident()
        colour: str

    @read(rps=5, returns=3)
    def cars_of(colour: Colour) -> Query[Car]:
        return find(Car).where(Car.colour == colour)

    @read(rps=5)
    def car(plate: str) -> Query[Car]:
        return find(Car).where(Car.plate == plate)

    return Design("cars", [Car], [cars_of, car])


def test_annotations_may_name_classes_of_the_function_around() -> None:
    design = local_design()
    [cars_of] = [each for each in design.reads if each.name == "cars_of"]
    assert cars_of.parameters == {"colour": Literal["red", "blue"]}
    assert "red" in design.plan().pattern("cars_of").example


def test_a_type_that_is_nowhere_is_named_with_what_to_do() -> None:
    def nowhere(colour: Paint) -> Any:  # type: ignore[name-defined]  # noqa: F821
        return colour

    pattern = read()(nowhere)
    with pytest.raises(
        DesignError, match="the type of an argument of nowhere cannot be resolved: name 'Paint'"
    ) as raised:
        pattern.trace()
    assert "top level" in str(raised.value.hint)


# --- time without a field


class Visit(Entity):
    visit_id: str = ident()
    site: str
    at: datetime


class Trip(Entity):
    trip_id: str = ident()
    site: str
    begins: datetime
    ends: datetime


@pytest.mark.parametrize("newest", [True, False])
def test_newest_and_oldest_first_find_the_time_by_themselves(newest: bool) -> None:
    @read(returns=5)
    def visits(site: str) -> Query[Visit]:
        query = find(Visit).where(Visit.site == site)
        return query.newest_first() if newest else query.oldest_first()

    design = Design("sites", [Visit], [visits])
    plan = design.plan()
    order = [3, 1, 2]
    objects = [Visit(visit_id=f"v{at}", site="x", at=START + timedelta(hours=at)) for at in order]
    with filled(plan, objects) as engine:
        found = [each.visit_id for each in answer(engine, plan, design, "visits", {"site": "x"})]
    assert found == (["v3", "v2", "v1"] if newest else ["v1", "v2", "v3"])


@pytest.mark.parametrize("which", ["newest", "oldest"])
def test_two_times_must_be_told_apart(which: str) -> None:
    @read()
    def trips(site: str) -> Query[Trip]:
        query = find(Trip).where(Trip.site == site)
        return query.newest_first() if which == "newest" else query.oldest_first()

    with pytest.raises(
        DesignError, match=f"asks for the {which} first, but Trip does not have exactly one"
    ) as raised:
        Design("sites", [Trip], [trips]).plan()
    assert f".{which}_first(Trip." in str(raised.value.hint)


@pytest.mark.parametrize("which", ["newest", "oldest"])
def test_several_entities_without_one_time_are_refused_too(which: str) -> None:
    class Seat(Entity):
        trip_id: str = ident()
        number: int = ident()

    @read()
    def seats(trip_id: str) -> Any:
        query = together(Trip, Seat).where(Trip.trip_id == trip_id)
        return query.newest_first() if which == "newest" else query.oldest_first()

    with pytest.raises(DesignError, match=f"asks for the {which} first, but none of its entities"):
        Design("sites", [Trip, Seat], [seats]).plan()


# --- many entities at once


def many(count: int) -> list[type[Entity]]:
    def body(at: int) -> type[Entity]:
        class Part(Entity, name=f"Part{at}"):
            house: str = ident()
            number: int = ident()

        return Part

    return [body(at) for at in range(count)]


def test_more_than_four_entities_are_read_together() -> None:
    parts: list[Any] = many(6)

    @read(rps=5, returns=12)
    def whole(house: str) -> BundleMany:
        return together(*parts).where(parts[0].house == house).limit(100)

    design = Design("houses", parts, [whole])
    plan = design.plan()
    [step] = plan.pattern("whole").steps
    assert (step.operation, len(step.entities)) == ("Query", 6)
    objects = [
        part(house=house, number=at) for part in parts for at in range(2) for house in ("a", "b")
    ]
    with filled(plan, objects) as engine:
        found = answer(engine, plan, design, "whole", {"house": "a"})
    assert sorted(map(repr, found)) == sorted(repr(each) for each in objects if each.house == "a")


def test_together_is_about_several_entities() -> None:
    for entities in ((), (Visit,), (Visit, Visit)):
        with pytest.raises(DesignError, match="two or more different entities"):
            together(*entities)


# --- one of several values


State = Literal["new", "open", "held", "done", "lost"]


class Ticket(Entity):
    ticket_id: str = ident()
    owner: str
    state: State
    at: datetime
    text: str = ""


@read(rps=50)
def ticket(ticket_id: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.ticket_id == ticket_id)


@read(rps=20, returns=4)
def active(owner: str, limit: int) -> Query[Ticket]:
    return (
        find(Ticket)
        .where(Ticket.owner == owner, attr(Ticket.state).is_in(["new", "open"]))
        .newest_first(Ticket.at)
        .limit(limit)
    )


@read(rps=20, returns=4)
def of_either(one: str, other: str) -> Query[Ticket]:
    return find(Ticket).where(attr(Ticket.owner).is_in([one, other]), Ticket.state == "open")


@read(rps=20, returns=2)
def these(one: str, other: str) -> Query[Ticket]:
    return find(Ticket).where(attr(Ticket.ticket_id).is_in([one, other]))


@read(rps=5, returns=500)
def counted(owner: str) -> Count[Ticket]:
    return (
        find(Ticket)
        .where(Ticket.owner == owner, attr(Ticket.state).is_in(["held", "lost"]))
        .count()
    )


@read(rps=5, returns=300, paged=True)
def history(owner: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.owner == owner).newest_first(Ticket.at)


@read(rps=5, returns=900, paged=True)
def nearly_all(owner: str) -> Query[Ticket]:
    """Two states of five, of a history that is read anyway."""
    states = attr(Ticket.state).is_in(["new", "open", "held", "done"])
    return find(Ticket).where(Ticket.owner == owner, states).newest_first(Ticket.at)


def tickets() -> list[Ticket]:
    chance = random.Random(5)
    states = get_args(State)
    return [
        Ticket(
            ticket_id=f"t{at}",
            owner=chance.choice(["ann", "bo", "cy"]),
            state=chance.choice(states),
            at=START + timedelta(hours=at),
        )
        for at in range(120)
    ]


def tracker(*patterns: Any, layout: Any = "single-table") -> Design:
    return Design("tracker", [Ticket], patterns, volumes={Ticket: 500_000}, layout=layout)


@pytest.mark.parametrize("layout", ["single-table", "table-per-entity"])
def test_one_of_several_values_is_a_query_for_each(layout: Any) -> None:
    design = tracker(ticket, active, of_either, these, counted, layout=layout)
    plan, objects = design.plan(), tickets()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("active", {"owner": "ann", "limit": 4}),
        ("of_either", {"one": "ann", "other": "cy"}),
        ("of_either", {"one": "bo", "other": "bo"}),
        ("these", {"one": "t3", "other": "t99"}),
        ("counted", {"owner": "bo"}),
    ]
    patterns = {each.name: each for each in design.reads}
    with filled(plan, objects) as engine:
        for name, arguments in calls:
            ask = patterns[name].function(**arguments).ask
            found, wanted = (
                answer(engine, plan, design, name, arguments),
                expected(replace(ask, limit=None), objects),
            )
            if ask.is_count:
                assert sum(found) == len(wanted)
                continue
            [step] = plan.pattern(name).steps
            assert step.order == (ask.order.name if ask.order is not None else None)
            if ask.order is not None:
                found, wanted = (
                    sorted(each, key=lambda one: one.at, reverse=True)[: ask.limit]
                    for each in (found, wanted)
                )
            assert sorted(map(repr, found)) == sorted(map(repr, wanted)), name
            assert wanted
    assert len(plan.pattern("these").requests(one="t3", other="t99")) == 2
    assert len(plan.pattern("these").requests(one="t3", other="t3")) == 1
    assert all(step.operation != "Scan" for pattern in plan.patterns for step in pattern.steps)


def test_queries_for_each_value_are_priced_as_such() -> None:
    plan = tracker(ticket, these).plan()
    [step] = plan.pattern("these").steps
    assert (step.operation, len(step.conditions), step.filter) == ("Query", 2, None)
    assert plan.pattern("these").units_per_call == 2 * 0.5
    assert "one query for each of 2 values" in " ".join(plan.pattern("these").reasons)
    assert Plan.from_json(plan.to_json()) == plan


def test_a_filter_is_taken_where_it_is_cheaper_than_a_key_of_its_own() -> None:
    plan = tracker(
        ticket, history, nearly_all, write(rps=900)(lambda: creates(Ticket)), write(rps=1)(_held)
    ).plan()
    [step] = plan.pattern("nearly_all").steps
    assert not step.alternatives
    assert step.filter is not None and " IN (" in step.filter.expression


def _held() -> object:
    return updates(Ticket.state)


def test_more_values_than_anybody_asks_one_by_one_are_a_filter() -> None:
    @read(returns=5)
    def many_of(owner: str) -> Query[Ticket]:
        return find(Ticket).where(
            Ticket.owner == owner, attr(Ticket.text).is_in([str(at) for at in range(40)])
        )

    [step] = tracker(ticket, many_of).plan().pattern("many_of").steps
    assert not step.alternatives and step.filter is not None


def test_every_value_has_its_place_in_the_policy() -> None:
    @read(rps=5, returns=4)
    def two_states() -> Query[Ticket]:
        return find(Ticket).where(attr(Ticket.state).is_in(["new", "open"])).limit(4)

    plan = tracker(ticket, two_states).plan()
    text = policy(plan, ["two_states"]).text
    [step] = plan.pattern("two_states").steps
    assert len(step.conditions) == 2
    for tests in step.conditions:
        [bound] = tests[0].bounds
        assert tests[0].attribute == "state" or str(bound) in text
