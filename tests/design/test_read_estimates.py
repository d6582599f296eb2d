"""Estimates of reads against the embedded engine, which is filled with data of the declared shape.

The engine says what DynamoDB would bill. An estimate may be off by a quarter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import pytest

from stator import (
    Bundle2,
    Count,
    Design,
    Entity,
    Query,
    attr,
    connect,
    creates,
    distinct,
    find,
    ident,
    largest,
    per,
    read,
    share,
    together,
    write,
)
from stator.design.plan.plan import Plan

START = datetime(2026, 3, 1, tzinfo=UTC)
PADDING = "x" * 300
SIZE = 450
"""The size of a ride without its key attributes: the padding, three texts of 24, and a time."""


class Driver(Entity):
    driver_id: str = ident()
    pad: str = ""


class Ride(Entity):
    ride_id: str = ident()
    driver_id: str
    region: str
    status: Literal["open", "done", "lost"]
    at: datetime
    pad: str = PADDING


DRIVERS, RIDES = 8, 150
RARE = "a region of one ride ---"


def a_driver(at: int) -> str:
    return f"driver-{at:017}"


def rides(open_every: int = 3) -> list[Any]:
    """Eight drivers with 150 rides each, in four regions; every third ride is open."""
    found: list[Any] = [Driver(driver_id=a_driver(at)) for at in range(DRIVERS)]
    for at in range(DRIVERS * RIDES):
        status = "open" if at % open_every == 0 else "done" if at % 3 == 1 else "lost"
        found.append(
            Ride(
                ride_id=f"ride-{at:019}",
                driver_id=a_driver(at // RIDES),
                region=RARE if at == 3 * RIDES + 7 else f"region-{at % 4:017}",
                status=status,  # type: ignore[arg-type]
                at=START + timedelta(minutes=at % RIDES),
            )
        )
    return found


@read(rps=2, returns=1)
def rides_of(driver_id: str) -> Query[Ride]:
    return find(Ride).where(Ride.driver_id == driver_id)


@read(rps=2, returns=20)
def latest_of(driver_id: str) -> Query[Ride]:
    return find(Ride).where(Ride.driver_id == driver_id).newest_first(Ride.at).limit(20)


@read(rps=0.001, returns=1)
def rare_of(driver_id: str, region: str) -> Query[Ride]:
    return find(Ride).where(Ride.driver_id == driver_id).filter(Ride.region == region)


@read(rps=0.001, returns=50)
def open_of(driver_id: str) -> Query[Ride]:
    mine = find(Ride).where(Ride.driver_id == driver_id)
    return mine.filter(Ride.status == "open")


@read(rps=0.001, returns=5)
def some_open_of(driver_id: str) -> Query[Ride]:
    mine = find(Ride).where(Ride.driver_id == driver_id)
    return mine.filter(Ride.status == "open").limit(5)


@read(rps=2, returns=30)
def since(driver_id: str, moment: datetime) -> Query[Ride]:
    return find(Ride).where(Ride.driver_id == driver_id, Ride.at >= moment)


@read(rps=0.01)
def count_of(driver_id: str) -> Count[Ride]:
    return find(Ride).where(Ride.driver_id == driver_id).count()


@read(rps=1)
def driver_page(driver_id: str) -> Bundle2[Driver, Ride]:
    return together(Driver, Ride).where(Driver.driver_id == driver_id)


@read(rps=1)
def open_rides() -> Query[Ride]:
    return find(Ride).where(Ride.status == "open")


@read(rps=1)
def in_region(region: str) -> Query[Ride]:
    return find(Ride).where(Ride.region == region)


def a_design(*patterns: Any, **more: Any) -> Design:
    return Design(
        "rides",
        [Driver, Ride],
        patterns,
        volumes={Driver: DRIVERS, Ride: per(Driver, RIDES)},
        sizes={Ride: SIZE},
        **more,
    )


def measured(design: Design, items: Iterable[Any], query: Any) -> float:
    """The read units that one call takes in the engine."""
    with connect(design, measure=True) as db:
        db.write_many(items)
        if isinstance(query, Count):
            db.count(query)
        else:
            db.all(query)
        assert db.meter is not None and query.pattern is not None
        return db.meter.by_label[query.pattern.name].read_units


FACTS = [distinct(Ride.region, values=4), share(Ride.status == "open", 1 / 3)]
CALLS: list[tuple[Any, Callable[[], Any]]] = [
    (rides_of, lambda: rides_of(a_driver(3))),
    (latest_of, lambda: latest_of(a_driver(3))),
    (rare_of, lambda: rare_of(a_driver(3), RARE)),
    (open_of, lambda: open_of(a_driver(3))),
    (some_open_of, lambda: some_open_of(a_driver(3))),
    (since, lambda: since(a_driver(3), START + timedelta(minutes=120))),
    (count_of, lambda: count_of(a_driver(3))),
    (driver_page, lambda: driver_page(a_driver(3))),
    (open_rides, lambda: open_rides()),
    (in_region, lambda: in_region(f"region-{2:017}")),
]


@pytest.mark.parametrize(("pattern", "query"), CALLS, ids=[each[0].name for each in CALLS])
def test_the_engine_bills_what_the_plan_says(pattern: Any, query: Any) -> None:
    design = a_design(pattern, facts=FACTS)
    planned = design.plan().pattern(pattern.name).units_per_call
    assert measured(design, rides(), query()) == pytest.approx(planned, rel=0.25)


# --- what is known, and what is guessed -----------------------------------------------------------


def test_returns_never_makes_the_read_smaller_than_the_collection() -> None:
    found = a_design(rides_of).plan().pattern("rides_of")
    assert found.units_per_call == 9.5
    assert found.warnings == (
        (
            "returns=1 contradicts the volumes, which give about 150 Ride items under one "
            "driver_id: correct returns= or volumes="
        ),
    )


def test_a_guess_says_what_to_declare_once_for_each_field() -> None:
    guess = (
        "Ride.region: about 34.6 distinct values is a guess; "
        "declare distinct(Ride.region, values=...)"
    )
    plan = a_design(in_region, rides_of).plan()
    assert plan.pattern("in_region").guesses == (guess,)
    assert plan.pattern("rides_of").guesses == ()
    assert about_values(plan) == [guess]
    assert about_values(a_design(in_region, facts=FACTS).plan()) == []


def test_volumes_and_ranges_that_nothing_declares_are_guesses() -> None:
    @read()
    def after(region: str, moment: datetime) -> Query[Ride]:
        return find(Ride).where(Ride.region == region, Ride.at >= moment)

    facts = [distinct(Ride.region, values=4)]
    plan = Design("rides", [Ride], [after], facts=facts).plan()
    assert about_values(plan) == [
        "Ride: 1,000,000 items is a guess; declare volumes={Ride: ...}",
        "after: the range of at keeps 33% is a guess; declare @read(returns=...) of after",
    ]


def test_sizes_from_types_are_guesses_where_types_leave_them_open() -> None:
    class Point(Entity):
        point_id: UUID = ident()
        at: datetime
        kind: Literal["a", "b"]
        value: int

    class Note(Entity):
        note_id: UUID = ident()
        words: list[int]

    @read()
    def point(point_id: UUID) -> Query[Point]:
        return find(Point).where(Point.point_id == point_id)

    def plan(**more: Any) -> Plan:
        return Design("points", [Point, Note], [point], **more).plan()

    assert [each for each in plan().guesses if "sizes" in each] == [
        "sizes of items (Note 144 bytes) are guesses from types; declare sizes={Note: ...}"
    ]
    assert not [each for each in plan(sizes={Note: 900}).guesses if "sizes" in each]


def about_values(plan: Plan) -> list[str]:
    """The guesses of a plan but for those about the sizes of items."""
    return [each for each in plan.guesses if not each.startswith("sizes of items")]


def test_returns_of_a_plain_pattern_says_how_many_values_a_field_has() -> None:
    @read(returns=20)
    def whole(region: str) -> Query[Ride]:
        return find(Ride).where(Ride.region == region)

    @read()
    def newest(region: str) -> Query[Ride]:
        return find(Ride).where(Ride.region == region).newest_first(Ride.at)

    plan = a_design(whole, newest).plan()
    assert about_values(plan) == []
    assert plan.pattern("newest").units_per_call == plan.pattern("whole").units_per_call == 1.5


def test_together_reads_the_collections_of_its_entities_and_what_returns_adds() -> None:
    class Game(Entity):
        game_id: str = ident()

    class Player(Entity):
        player_id: str = ident()
        match: str
        pad: str = PADDING

    @read(returns=25)
    def board(game_id: str) -> Bundle2[Game, Player]:
        return together(Game, Player).where(Game.game_id == game_id, Player.match == game_id)

    design = Design(
        "games", [Game, Player], [board], volumes={Game: 50, Player: 1_200}, sizes={Player: 400}
    )
    items: list[Any] = [Game(game_id=f"game-{at:019}") for at in range(50)]
    items += [
        Player(player_id=f"player-{at:017}", match=f"game-{at % 50:019}") for at in range(1_200)
    ]
    planned = design.plan().pattern("board").units_per_call
    assert planned > 1
    assert measured(design, items, board(f"game-{3:019}")) == pytest.approx(planned, rel=0.25)


def test_the_largest_value_is_priced_apart_from_the_mean() -> None:
    facts = [*FACTS, largest(Ride.region, 0.7)]
    found = a_design(in_region, facts=facts).plan().pattern("in_region")
    assert found.units_per_call == 18.5
    [reason] = [each for each in found.reasons if each.startswith("for the largest value")]
    assert "with 0.7 of the items, a call takes 51 RCU: $" in reason
    assert "if every call asked for it" in reason


def test_a_hot_value_gets_write_shards() -> None:
    @write(rps=2_000)
    def start() -> object:
        return creates(Ride)

    def shards(*facts: Any) -> int:
        known = [distinct(Ride.region, values=100), *facts]
        design = Design("rides", [Ride], [in_region, start], volumes={Ride: 1_000_000}, facts=known)
        return design.plan().pattern("in_region").steps[0].shards

    assert shards() == 1
    assert shards(largest(Ride.region, 0.9)) == 3


def test_an_index_on_an_optional_field_holds_only_the_items_that_have_it() -> None:
    class Game(Entity):
        game_id: str = ident()
        place: str
        open_since: datetime | None = None
        pad: str = PADDING

    @read(returns=20)
    def open_games(place: str) -> Query[Game]:
        waiting = find(Game).where(Game.place == place, attr(Game.open_since).exists())
        return waiting.oldest_first(Game.open_since).limit(20)

    facts = [distinct(Game.place, values=4), share(attr(Game.open_since).exists(), 0.1)]
    design = Design(
        "games", [Game], [open_games], volumes={Game: 1_000}, sizes={Game: 470}, facts=facts
    )
    items = [
        Game(
            game_id=f"game-{at:019}",
            place=f"place-{at % 4:018}",
            open_since=START + timedelta(minutes=at) if at // 4 % 10 == 0 else None,
        )
        for at in range(1_000)
    ]
    planned = design.plan().pattern("open_games").units_per_call
    found = measured(design, items, open_games(f"place-{2:018}"))
    assert found == pytest.approx(planned, rel=0.25)
