"""Keys written by hand whose attributes are named, are fields themselves, or have options."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from stator import (
    Bundle2,
    Count,
    Design,
    Engine,
    Entity,
    IndexKey,
    Only,
    Query,
    attr,
    connect,
    find,
    ident,
    read,
    stored,
    together,
)
from stator.design.plan.drift import drift
from stator.errors import DesignError


class Song(
    Entity,
    key={"Artist": "{artist}", "SongTitle": "{title}"},
    index={
        "ByYear": IndexKey({"Artist": "{artist}", "year": "{year}"}, local=True, projection=("n",)),
        "ByGenre": IndexKey({"genre": "{genre}"}, projection="KEYS_ONLY"),
        "ByGenreYear": {"genre": "{genre}", "sort": "YEAR#{year}"},
    },
):
    artist: str = ident(stored="Artist")
    title: str = ident(stored="SongTitle")
    year: int
    genre: str | None = None
    note: str | None = stored("n", default=None)


@read(rps=1, returns=2)
def songs_of(artist: str) -> Query[Song]:
    return find(Song).where(Song.artist == artist)


@read(rps=1, returns=2)
def songs_between(artist: str, first: str, last: str) -> Query[Song]:
    return find(Song).where(Song.artist == artist, Song.title >= first, Song.title <= last)


@read(rps=1, returns=2)
def recent_of_genre(genre: str, year: int) -> Query[Song]:
    return find(Song).where(Song.genre == genre, Song.year >= year)


@read(rps=1, returns=2, consistent=True)
def by_year(artist: str) -> Query[Song]:
    return find(Song).where(Song.artist == artist).order_by(Song.year)


music = Design("Music", [Song], [songs_of, songs_between, recent_of_genre, by_year])


def test_a_table_has_the_attributes_that_the_keys_name() -> None:
    request = music.plan().tables[0].create_request()
    assert request["KeySchema"] == [
        {"AttributeName": "Artist", "KeyType": "HASH"},
        {"AttributeName": "SongTitle", "KeyType": "RANGE"},
    ]
    assert {
        each["AttributeName"]: each["AttributeType"] for each in request["AttributeDefinitions"]
    } == {"Artist": "S", "SongTitle": "S", "genre": "S", "sort": "S", "year": "N"}
    [local] = request["LocalSecondaryIndexes"]
    assert local["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["n"]}
    shown = {
        each["IndexName"]: (
            [part["AttributeName"] for part in each["KeySchema"]],
            each["Projection"]["ProjectionType"],
        )
        for each in request["GlobalSecondaryIndexes"]
    }
    assert shown == {
        "ByGenre": (["genre"], "KEYS_ONLY"),
        "ByGenreYear": (["genre", "sort"], "ALL"),
    }


def test_items_under_native_keys_are_written_and_read() -> None:
    made = [
        Song(artist="The B#$s", title=f"{number} x", year=1990 + number, genre="rock")
        for number in range(5)
    ]
    with Engine.open() as engine, connect(music, engine) as db:
        db.write_many(made)
        assert db.get(Song, artist="The B#$s", title="3 x") == made[3]
        assert db.all(songs_of("The B#$s")) == made
        assert db.all(songs_between("The B#$s", "1 x", "3 x")) == made[1:4]
        assert db.all(recent_of_genre("rock", 1993)) == made[3:]
        assert db.all(by_year("The B#$s")) == made
        described = engine.call("DescribeTable", {"TableName": "Music"})["Table"]
        assert drift(music.plan(), {"Music": described}) == []
        [item] = engine.call(
            "Query",
            {
                "TableName": "Music",
                "KeyConditionExpression": "Artist = :a AND SongTitle = :t",
                "ExpressionAttributeValues": {":a": {"S": "The B#$s"}, ":t": {"S": "3 x"}},
            },
        )["Items"]
        assert item == {
            "Artist": {"S": "The B#$s"},
            "SongTitle": {"S": "3 x"},
            "year": {"N": "1993"},
            "genre": {"S": "rock"},
            "sort": {"S": "YEAR#a41993"},
        }


def test_an_index_may_have_several_attributes_on_each_side() -> None:
    class Sale(
        Entity,
        key={"id": "{id}"},
        index={
            "ByPlace": (
                {"region": "{region}", "city": "{city}"},
                {"day": "{day}", "amount": "{amount}"},
            )
        },
    ):
        id: int = ident()
        region: str
        city: str
        day: str
        amount: Decimal

    [table] = Design("sales", [Sale]).plan().tables
    assert (table.partition, table.sort, dict(table.attributes)["id"]) == ("id", None, "N")
    [index] = table.indexes
    assert (index.partition, index.sort) == (("region", "city"), ("day", "amount"))


class Member(Entity, key={"pk": "TEAM#{team}", "sk": "{name}"}, table="teams"):
    team: str = ident()
    name: str = ident()


class Team(Entity, key={"pk": "TEAM#{team}", "sk": "INFO"}, table="teams"):
    team: str = ident()
    motto: str | None = None


class City(Entity, key={"id": "{id}"}, table="cities"):
    id: str = ident()


@read(rps=1, returns=5)
def members_of(team: str) -> Query[Member]:
    return find(Member).where(Member.team == team)


@read(rps=1, returns=5)
def team_page(team: str) -> Bundle2[Team, Member]:
    return together(Team, Member).where(Team.team == team)


@read(rps=1, returns=5)
def page_with_motto(team: str) -> Bundle2[Team, Member]:
    return together(Team, Member).where(Team.team == team, attr(Team.motto).exists())


league = Design(
    "league",
    [Member, Team, City],
    [members_of, team_page, page_with_motto],
    names={"teams/_type": ""},
)


def test_entities_choose_their_table() -> None:
    plan = league.plan()
    assert {each.name: each.entities for each in plan.tables} == {
        "teams": ("Member", "Team"),
        "cities": ("City",),
    }


def test_keys_tell_the_entities_of_a_table_without_a_type_attribute() -> None:
    items: list[dict[str, Any]] = [
        {"pk": {"S": "TEAM#a"}, "sk": {"S": "INFO"}, "motto": {"S": "go"}},
        {"pk": {"S": "TEAM#a"}, "sk": {"S": "Anna"}, "shoe": {"N": "41"}},
        {"pk": {"S": "TEAM#b"}, "sk": {"S": "Bo"}},
    ]
    with Engine.open() as engine, connect(league, engine) as db:
        for item in items:
            engine.call("PutItem", {"TableName": "teams", "Item": item})
        anna, team = Member(team="a", name="Anna"), Team(team="a", motto="go")
        assert db.all(members_of("a")) == [anna]
        assert db.all(team_page("a")) == [anna, team]
        assert sorted(map(repr, db.all(page_with_motto("a")))) == [repr(anna), repr(team)]
        assert list(db.scan(Team, allow=True)) == [team]
        assert len(list(db.scan(Member, allow=True))) == 2
        found = db.get(Member, team="a", name="Anna")
        assert found is not None
        db.put(found)
        again = engine.call("Scan", {"TableName": "teams"})["Items"]
        assert items[1] | {"team": {"S": "a"}, "name": {"S": "Anna"}} in again
        assert len(again) == len(items)


def test_items_without_a_type_are_counted_limited_and_selected_by_their_keys() -> None:
    @read(rps=1, returns=5)
    def how_many(team: str) -> Count[Member]:
        return find(Member).where(Member.team == team).count()

    @read(rps=1, returns=5)
    def first_two(team: str) -> Query[Member]:
        return find(Member).where(Member.team == team).limit(2)

    @read(rps=1, returns=5)
    def names(team: str) -> Only[tuple[str]]:
        return find(Member).where(Member.team == team).only(Member.name)

    patterns = [how_many, first_two, names, members_of]
    design = Design("league", [Member, Team], patterns, names={"teams/_type": ""})
    with Engine.open() as engine, connect(design, engine) as db:
        for sort in ("Anna", "INFO", "Jo", "Mo"):
            item = {"pk": {"S": "TEAM#a"}, "sk": {"S": sort}}
            engine.call("PutItem", {"TableName": "teams", "Item": item})
        assert db.count(how_many("a")) == 3
        assert db.count(members_of("a")) == 3
        assert [each.name for each in db.all(first_two("a"))] == ["Anna", "Jo"]
        assert list(db.all(names("a"))) == [("Anna",), ("Jo",), ("Mo",)]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ({"flag": "{flag}", "id": "{id}"}, "flag cannot be a key attribute by itself"),
        ({"id": "X#{id}"}, "the attribute id is also a field"),
        ({}, "is not a valid key"),
        (({"id": "{id}", "other": "{other}"},), "of a table cannot have several"),
        (({"id": "{id}", "other": "X#{other}"},), "each must be a field"),
    ],
)
def test_a_key_that_cannot_be_is_refused(key: Any, said: str) -> None:
    class Wrong(Entity, key=key):
        id: str = ident()
        flag: bool
        other: str

    with pytest.raises(DesignError, match=said):
        Design("wrong", [Wrong]).plan()


def test_entities_of_a_table_agree_on_its_key() -> None:
    class One(Entity, key={"a": "ONE#{id}"}):
        id: str = ident()

    class Two(Entity, key={"b": "TWO#{id}"}):
        id: str = ident()

    class Three(Entity, key={"id": "{id}"}):
        id: int = ident()

    class Four(Entity, key={"id": "FOUR#{number}"}):
        number: int = ident()

    with pytest.raises(DesignError, match="different attributes"):
        Design("both", [One, Two]).plan()
    with pytest.raises(DesignError, match="has type S in Four, and N in Three"):
        Design("both", [Three, Four]).plan()
