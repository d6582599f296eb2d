"""What patterns may ask in less usual ways: types local to a function, time without a field, many entities at once, one of several values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from stator.design.design import Design
from stator.design.entity import Entity
from stator.design.markers import ident
from stator.design.patterns import BundleMany, Query, find, read, together
from stator.errors import DesignError

from .test_planner_engine import answer, filled

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
    with pytest.raises(DesignError, match="nowhere has an argument whose type cannot be found: name 'Paint'") as raised:
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

    with pytest.raises(DesignError, match=f"wants the {which} first, but Trip has no one time") as raised:
        Design("sites", [Trip], [trips]).plan()
    assert f".{which}_first(Trip." in str(raised.value.hint)


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
    objects = [part(house=house, number=at) for part in parts for at in range(2) for house in ("a", "b")]
    with filled(plan, objects) as engine:
        found = answer(engine, plan, design, "whole", {"house": "a"})
    assert sorted(map(repr, found)) == sorted(repr(each) for each in objects if each.house == "a")


def test_together_is_about_several_entities() -> None:
    for entities in ((), (Visit,), (Visit, Visit)):
        with pytest.raises(DesignError, match="two or more different entities"):
            together(*entities)  # type: ignore[call-overload]
