"""Values of every type come back from every target as they were written."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import Delete, Design, Entity, Query, attr, find, ident, read
from stator.design.entities.entity import info
from stator.design.entities.wire import decoder, encoder
from stator.errors import ItemMismatch
from stator.tables.schema import Schema
from tests.targets import Target

from .test_generated import entries

text = st.text(max_size=5)
names = st.text(min_size=1, max_size=5)
integers = st.integers(-(10**30), 10**30)


def agrees_with_the_closures(made: Any) -> None:
    """Compare the generated codec with the closures, and an entry of a batch with the codec."""
    known = info(type(made))
    item = known.codec.encode(made)
    read = known.codec.decode(item)
    assert read == made
    for name, each in known.fields.items():
        value = getattr(made, name)
        stored = known.codec.attribute(name, value)
        assert item.get(name) == stored
        if stored is not None:
            assert stored == encoder(each.shape)(value)
            assert decoder(each.shape)(stored) == known.codec.decode_field[name](stored) == value


def all_come_back(target: Target, design: Design, strategy: st.SearchStrategy[Any]) -> None:
    """Write and read drawn entities, alone and in a batch."""
    db, schema = target.connect(design), Schema(design, design.plan())

    @settings(max_examples=15, deadline=None)
    @given(strategy)
    def comes_back(made: Any) -> None:
        entries(schema, [made])
        cls = type(made)
        identity = {name: getattr(made, name) for name in info(cls).identity}
        db.write_many([Delete(cls, **identity)])
        db.create(made)
        assert db.get(cls, **identity) == made
        db.delete(cls, **identity)
        db.write_many([made])
        assert db.get(cls, **identity) == made

    comes_back()


# --- None -----------------------------------------------------------------------------------------


@dataclass
class Room:
    floor: int | None
    number: int | None = None
    beds: int | None = 2
    marks: list[str | None] = field(default_factory=list)


class Hotel(Entity):
    name: str = ident()
    scores: list[int | None] = field(default_factory=list)
    prices: dict[str, int | None] = field(default_factory=dict)
    pair: tuple[int | None, str] = (None, "")
    many: tuple[str | None, ...] = ()
    rooms: list[Room | None] = field(default_factory=list)
    best: Room | None = None
    stars: int | None = 3
    teams: list[set[str] | None] = field(default_factory=list)
    bags: dict[str, frozenset[int]] = field(default_factory=dict)
    words: set[str] = field(default_factory=lambda: {"new"})
    extra: dict[str, Any] = field(default_factory=dict)


@read()
def hotel(name: str) -> Query[Hotel]:
    return find(Hotel).where(Hotel.name == name)


@read()
def hotels_without_stars() -> Query[Hotel]:
    return find(Hotel).where(attr(Hotel.name).is_in(["a", "b", "c"])).filter(Hotel.stars == None)  # noqa: E711


rooms = st.builds(
    Room,
    floor=st.none() | integers,
    number=st.none() | integers,
    beds=st.none() | integers,
    marks=st.lists(st.none() | text, max_size=3),
)
hotels = st.builds(
    Hotel,
    name=names,
    scores=st.lists(st.none() | integers, max_size=3),
    prices=st.dictionaries(names, st.none() | integers, max_size=3),
    pair=st.tuples(st.none() | integers, text),
    many=st.lists(st.none() | text, max_size=3).map(tuple),
    rooms=st.lists(st.none() | rooms, max_size=2),
    best=st.none() | rooms,
    stars=st.none() | integers,
    teams=st.lists(st.none() | st.sets(text, max_size=2), max_size=3),
    bags=st.dictionaries(names, st.frozensets(integers, max_size=2), max_size=3),
    words=st.sets(text, max_size=2),
    extra=st.dictionaries(names, st.none() | text | st.lists(st.none()), max_size=2),
)


def hotel_design() -> Design:
    return Design("hotels", [Hotel], [hotel, hotels_without_stars], volumes={Hotel: 1000})


@given(hotels)
def test_none_is_kept_where_a_value_that_is_left_out_would_not_be_read_as_none(
    made: Hotel,
) -> None:
    agrees_with_the_closures(made)


def test_none_comes_back_from_every_target(target: Target) -> None:
    all_come_back(target, hotel_design(), hotels)


def test_none_is_left_out_where_it_is_the_default() -> None:
    item = info(Hotel).codec.encode(Hotel(name="n", best=Room(None), stars=None, scores=[None]))
    assert "best" in item
    assert item["best"]["M"] == {"beds": {"N": "2"}, "marks": {"L": []}}
    assert (item["stars"], item["scores"]) == ({"NULL": True}, {"L": [{"NULL": True}]})
    assert "best" not in info(Hotel).codec.encode(Hotel(name="n"))


@pytest.mark.parametrize("change", [{"pair": (1, None)}, {"bags": {"a": None}}, {"words": {None}}])
def test_none_is_refused_where_the_type_has_none(change: dict[str, Any]) -> None:
    with pytest.raises(ItemMismatch) as caught:
        info(Hotel).codec.encode(Hotel(name="n", **change))
    assert (caught.value.field, caught.value.value) == (next(iter(change)), None)


def test_updates_store_none_as_puts_do(target: Target) -> None:
    db = target.connect(hotel_design())
    db.create(Hotel(name="n", scores=[1, 2], prices={"a": 1}, best=Room(1, 2, 3)))
    with db.update(Hotel, name="n") as changing:
        changing.stars = None
        changing.scores[0] = None
        changing.prices["a"] = None
        changing.prices["b"] = None
        assert changing.best is not None
        changing.best.floor = None
        changing.best.beds = None
    assert db.get(Hotel, name="n") == Hotel(
        name="n",
        stars=None,
        scores=[None, 2],
        prices={"a": None, "b": None},
        best=Room(None, 2, None),
    )
    with db.update(Hotel, name="n") as changing:
        changing.scores.append(None)
        changing.stars = 5
    found = db.get(Hotel, name="n")
    assert found is not None
    assert (found.scores, found.stars) == ([None, 2, None], 5)


def test_conditions_find_none_however_it_is_stored(target: Target) -> None:
    db = target.connect(hotel_design())
    for name, stars in (("a", None), ("b", 4), ("c", 3)):
        db.create(Hotel(name=name, stars=stars, scores=[stars]))
    assert [each.name for each in db.fetch(hotels_without_stars())] == ["a"]
    db.put(Hotel(name="a", stars=1), when=Hotel.stars == None)  # noqa: E711
    db.put(Hotel(name="b"), when=(Hotel.stars != None) & (Hotel.scores[0] != None))  # noqa: E711
    assert list(db.fetch(hotels_without_stars())) == []


# --- values without a declared type ---------------------------------------------------------------


class Note(Entity):
    name: str = ident()
    content: Any = None
    more: dict[str, Any] = field(default_factory=dict)


decimals = st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9))
anything = st.recursive(
    st.none() | st.booleans() | text | integers | decimals | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
notes = st.builds(
    Note, name=names, content=anything, more=st.dictionaries(names, anything, max_size=3)
)


def kinds(value: Any) -> Any:
    """The types inside a value. A whole Decimal counts as an int, as it is read."""
    match value:
        case list():
            return [kinds(each) for each in value]
        case dict():
            return {name: kinds(each) for name, each in value.items()}
        case Decimal() if value == int(value):
            return int
    return type(value)


@given(notes)
def test_whole_numbers_without_a_declared_type_are_read_as_int(made: Note) -> None:
    agrees_with_the_closures(made)
    codec = info(Note).codec
    found = codec.decode(codec.encode(made))
    assert (kinds(found.content), kinds(found.more)) == (kinds(made.content), kinds(made.more))


def test_values_without_a_declared_type_come_back_from_every_target(target: Target) -> None:
    all_come_back(target, Design("notes", [Note], [], volumes={Note: 100}), notes)


def test_a_float_without_a_declared_type_is_read_as_an_exact_number() -> None:
    codec = info(Note).codec
    found = codec.decode(codec.encode(Note(name="n", content=[0.1, 2.0, 1e300])))
    assert found.content == [Decimal("0.1"), 2, 10**300]
    assert list(map(type, found.content)) == [Decimal, int, int]
