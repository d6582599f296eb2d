"""String keys in an index are as short as what is asked allows: the identity is at their end only
where somebody reads by it.
"""

from __future__ import annotations

from typing import Any

from stator.design.design import Design
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.plan.plan import Plan

from .test_planner_engine import filled


class Track(Entity):
    album: str = ident()
    number: str = ident()
    genre: str
    plays: int = 0
    mood: str = ""


@read(rps=50)
def track(album: str, number: str) -> Query[Track]:
    return find(Track).where(Track.album == album, Track.number == number)


@read(rps=20, returns=30)
def of_genre(genre: str) -> Query[Track]:
    return find(Track).where(Track.genre == genre)


@read(rps=20, returns=30)
def of_genre_in_albums(genre: str, first: str, last: str) -> Query[Track]:
    return (
        find(Track)
        .where(Track.genre == genre, Track.album >= first, Track.album < last)
        .order_by(Track.album)
    )


@read(rps=20, returns=30)
def of_genre_by_mood(genre: str, before: str) -> Query[Track]:
    return (
        find(Track).where(Track.genre == genre, Track.mood < before).order_by(Track.mood).limit(3)
    )


def planned(*patterns: Any) -> Plan:
    return Design("music", [Track], [track, *patterns], volumes={Track: 1_000_000}).plan()


def index_key(plan: Plan) -> list[str]:
    return [str(key.template) for key in plan.entity(Track).keys if key.index is not None]


def test_an_index_key_that_nobody_reads_further_has_no_identity() -> None:
    plan = planned(of_genre)
    [index] = plan.tables[0].indexes
    assert not index.native or index.sort == ()
    assert all("album" not in template and "number" not in template for template in index_key(plan))


def test_a_read_by_the_identity_puts_it_into_the_index_key() -> None:
    fields = {
        name
        for name in ("album", "number")
        if any(name in each for each in index_key(planned(of_genre_in_albums)))
    }
    assert "album" in fields


def test_an_excluded_end_of_a_string_range_is_not_left_to_a_filter() -> None:
    """There is no string just below another; what follows in the key makes the bound exact."""
    plan = planned(of_genre_by_mood)
    step = plan.pattern("of_genre_by_mood").steps[0]
    assert step.filter is None
    tracks = [
        Track(album="a", number=str(at), genre="jazz", mood=mood)
        for at, mood in enumerate(["b", "c", "bb", "c"])
    ]
    with filled(plan, tracks) as engine:
        found = engine.call(
            "Query", plan.pattern("of_genre_by_mood").request(genre="jazz", before="c")
        )
    assert [item["mood"]["S"] for item in found["Items"]] == ["b", "bb"]


def test_pages_go_through_index_keys_that_are_all_equal() -> None:
    plan = planned(of_genre)
    tracks = [Track(album=f"a{at % 7}", number=str(at), genre="jazz") for at in range(25)]
    request = plan.pattern("of_genre").request(genre="jazz") | {"Limit": 4}
    seen: list[tuple[str, str]] = []
    with filled(plan, tracks) as engine:
        while True:
            page = engine.call("Query", request)
            seen += [(item["album"]["S"], item["number"]["S"]) for item in page["Items"]]
            if "LastEvaluatedKey" not in page:
                break
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    assert sorted(seen) == sorted((each.album, each.number) for each in tracks)
