"""Values of every type come back from every target as they were written."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import Flag, IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NewType, NotRequired, TypedDict, TypeVar

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import (
    Delete,
    Design,
    Entity,
    Query,
    adapt,
    attr,
    find,
    ident,
    read,
    register_codec,
)
from stator.design.entities.entity import info
from stator.design.entities.wire import decoder, encoder
from stator.errors import DesignError, ItemMismatch
from stator.tables.schema.schema import Schema
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


# --- further types --------------------------------------------------------------------------------

T = TypeVar("T")
UserId = NewType("UserId", str)


class Size(StrEnum):
    SMALL = "s"
    LARGE = "l"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Access(Flag):
    READ = 1
    WRITE = 2
    OWN = 4


@dataclass
class Cat:
    lives: int = 9
    kind: Literal["cat"] = "cat"


@dataclass
class Dog:
    name: str
    kind: Literal["dog", "wolf"] = "dog"


@dataclass
class Circle:
    radius: int


@dataclass
class Square:
    side: int


@dataclass
class Box(Generic[T]):
    content: T
    spares: list[T | None] = field(default_factory=list)


@dataclass
class Pair(Box[list[T]], Generic[T]):
    second: T | None = None


class Options(TypedDict):
    size: int
    colour: NotRequired[str | None]


class Loose(TypedDict, total=False):
    depth: timedelta


class Money:
    """A class that Stator knows nothing of."""

    def __init__(self, cents: int, currency: str) -> None:
        self.cents, self.currency = cents, currency

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.cents, self.currency))

    def __str__(self) -> str:
        return f"{self.cents} {self.currency}"

    @staticmethod
    def parse(text: str) -> Money:
        cents, currency = text.split(" ")
        return Money(int(cents), currency)


register_codec(Money, encode=str, decode=Money.parse, stored=str)


class PointModel(pydantic.BaseModel):
    x: int
    label: str | None = "none"


class Created(msgspec.Struct, tag="created", tag_field="event"):
    by: str


class Renamed(msgspec.Struct, tag="renamed", tag_field="event"):
    to: str


class Base(Entity, Generic[T]):
    key: str = ident()
    took: timedelta
    payload: T


class Thing(Base[list[int]]):
    owner: UserId = UserId("u")
    size: Size = Size.SMALL
    level: Level = Level.LOW
    access: Access = Access(0)
    limited: Literal[Size.SMALL] = Size.SMALL
    pet: Cat | Dog | None = None
    shapes: list[Circle | Square] = field(default_factory=list)
    box: Box[int] = field(default_factory=lambda: Box(1))
    pair: Pair[str] = field(default_factory=lambda: Pair([]))
    options: Options = field(default_factory=lambda: Options(size=1))
    loose: Loose = field(default_factory=lambda: Loose())
    price: Money = Money(1, "EUR")
    prices: set[Money] = field(default_factory=set)
    by_owner: dict[UserId, Annotated[int, {"an": "annotation"}]] = field(default_factory=dict)
    path: Path = Path("a")
    address: ipaddress.IPv4Address = ipaddress.IPv4Address("192.0.2.1")
    url: pydantic.HttpUrl | None = None
    secret: pydantic.SecretStr = pydantic.SecretStr("s")
    point: PointModel | None = None
    event: Created | Renamed | None = None


durations = st.timedeltas()
money = st.builds(Money, integers, st.sampled_from(["EUR", "CHF"]))
numbers = st.integers(-(10**9), 10**9)
things = st.builds(
    Thing,
    key=names,
    took=durations,
    payload=st.lists(numbers, max_size=3),
    owner=names,
    size=st.sampled_from(Size),
    level=st.sampled_from(Level),
    access=st.integers(0, 7).map(Access),
    pet=st.none()
    | st.builds(Cat, lives=numbers)
    | st.builds(Dog, name=text, kind=st.sampled_from(["dog", "wolf"])),
    shapes=st.lists(st.builds(Circle, numbers) | st.builds(Square, numbers), max_size=3),
    box=st.builds(Box, numbers, st.lists(st.none() | numbers, max_size=2)),
    pair=st.builds(Pair, st.lists(text, max_size=2), second=st.none() | text),
    options=st.fixed_dictionaries({"size": numbers}, optional={"colour": st.none() | text}),
    loose=st.fixed_dictionaries({}, optional={"depth": durations}),
    price=money,
    prices=st.sets(money, max_size=2),
    by_owner=st.dictionaries(names, numbers, max_size=2),
    path=st.sampled_from([Path("a/b"), Path("/x")]),
    address=st.ip_addresses(v=4),
    url=st.none() | st.sampled_from([pydantic.HttpUrl("https://example.org/x?y=1")]),
    secret=text.map(pydantic.SecretStr),
    point=st.none() | st.builds(PointModel, x=numbers, label=st.none() | text),
    event=st.none() | st.builds(Created, text) | st.builds(Renamed, text),
)


@read(returns=5)
def slow_things(owner: UserId, least: timedelta) -> Query[Thing]:
    return find(Thing).where(Thing.owner == owner, Thing.took > least).oldest_first(Thing.took)


@read(rps=500)
def thing_by_key(key: str) -> Query[Thing]:
    return find(Thing).where(Thing.key == key)


@read()
def things_for(price: Money) -> Query[Thing]:
    return find(Thing).where(Thing.price == price)


def thing_design() -> Design:
    return Design("things", [Thing], [thing_by_key, slow_things, things_for], volumes={Thing: 1000})


def thing(key: str, **values: Any) -> Thing:
    return Thing(**{"key": key, "took": timedelta(0), "payload": [], **values})


@settings(deadline=None)
@given(things)
def test_generated_codecs_of_further_types_agree_with_the_closures(made: Thing) -> None:
    agrees_with_the_closures(made)


def test_further_types_come_back_from_every_target(target: Target) -> None:
    all_come_back(target, thing_design(), things)


def test_durations_and_registered_types_are_in_keys(target: Target) -> None:
    db = target.connect(thing_design())
    took = [timedelta(days=-1), timedelta(0), timedelta(microseconds=9), timedelta(days=99)]
    for at, each in enumerate(took):
        db.create(thing(str(at), took=each, price=Money(at, "EUR")))
    found = db.fetch(slow_things(UserId("u"), timedelta(days=-1)))
    assert [each.took for each in found] == took[1:]
    assert [each.key for each in db.fetch(things_for(Money(2, "EUR")))] == ["2"]
    with db.update(Thing, key="0", when=Thing.access == Access(0)) as changing:
        changing.access = Access.READ | Access.OWN
        changing.pet = Dog("rex")
        changing.url = pydantic.HttpUrl("https://example.org/")
    got = db.get(Thing, key="0")
    assert got is not None
    assert (got.access, got.pet) == (Access.READ | Access.OWN, Dog("rex"))


def test_how_further_types_are_stored() -> None:
    made = thing(
        "k",
        took=timedelta(seconds=1.5),
        pet=Dog("rex"),
        shapes=[Circle(2)],
        event=Renamed("b"),
        access=Access.READ | Access.OWN,
    )
    item = info(Thing).codec.encode(made)
    assert item["took"] == {"N": "1500000"}
    assert item["pet"] == {"M": {"name": {"S": "rex"}, "kind": {"S": "dog"}}}
    assert item["shapes"] == {"L": [{"M": {"_class": {"S": "Circle"}, "radius": {"N": "2"}}}]}
    assert item["event"] == {"M": {"event": {"S": "renamed"}, "to": {"S": "b"}}}
    assert (item["access"], item["price"]) == ({"N": "5"}, {"S": "1 EUR"})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"pet": Circle(1)}, "pet"),
        ({"options": {"colour": "red"}}, "options"),
        ({"options": {"size": 1, "weight": 2}}, "options"),
        ({"price": "1 EUR"}, "price"),
        ({"limited": Size.LARGE}, "limited"),
        ({"took": 5}, "took"),
        ({"access": 1}, "access"),
    ],
)
def test_wrong_values_of_further_types_are_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ItemMismatch) as caught:
        info(Thing).codec.encode(thing("k", **change))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"pet": {"M": {"kind": {"S": "bird"}}}}, "pet"),
        ({"pet": {"M": {}}}, "pet"),
        ({"options": {"M": {}}}, "options"),
        ({"price": {"S": "nothing"}}, "price"),
        ({"limited": {"S": "l"}}, "limited"),
    ],
)
def test_wrong_stored_values_of_further_types_are_named(change: dict[str, Any], field: str) -> None:
    codec = info(Thing).codec
    with pytest.raises(ItemMismatch) as caught:
        codec.decode({**codec.encode(thing("k")), **change})
    assert caught.value.field == field


def test_a_secret_is_never_shown() -> None:
    codec = info(Thing).codec
    secret = "hunter2"
    made = thing("k", secret=pydantic.SecretStr(secret))
    item = codec.encode(made)
    assert item["secret"] == {"S": secret}
    assert secret not in repr(codec.decode(item))
    for faulty in (
        lambda: codec.encode(thing("k", secret=secret)),
        lambda: codec.decode({**item, "secret": {"B": secret}}),
        lambda: codec.decode({**item, "secret": {"L": [{"S": secret}]}}),
        lambda: codec.decode({**item, "took": {"S": "x"}}),
    ):
        with pytest.raises(ItemMismatch) as caught:
            faulty()
        assert secret not in str(caught.value)

    @read()
    def by_secret(secret: pydantic.SecretStr) -> Query[Thing]:
        return find(Thing).where(Thing.secret == secret)

    with pytest.raises(DesignError):
        Design("leak", [Thing], [by_secret]).plan()


def test_unions_that_cannot_be_told_apart_and_open_types_are_refused() -> None:
    class Mixed(Entity):
        key: str = ident()
        value: Circle | int

    class Open(Entity, Generic[T]):
        key: str = ident()
        value: T

    class Raw(Entity):
        key: str = ident()
        value: list[complex]

    class Loop(Entity):
        key: str = ident()
        value: Endless | None = None

    with pytest.raises(DesignError, match=r"Mixed.value: a union of several types"):
        _ = info(Mixed).fields
    with pytest.raises(DesignError, match=r"Open.value: the type parameter T has no type here"):
        _ = info(Open).fields
    with pytest.raises(DesignError, match=r"Raw.value: complex cannot be stored") as caught:
        _ = info(Raw).fields
    assert "register_codec(complex" in str(caught.value.hint)
    with pytest.raises(DesignError, match=r"Loop.value.next: Endless contains itself"):
        _ = info(Loop).fields


@dataclass
class Endless:
    next: Endless | None = None


class MeowModel(pydantic.BaseModel):
    kind: Literal["meow"] = "meow"
    volume: int


class BarkModel(pydantic.BaseModel):
    kind: Literal["bark"] = "bark"
    loud: bool


class NoiseModel(pydantic.BaseModel):
    noise_id: str
    noise: Annotated[MeowModel | BarkModel, pydantic.Field(discriminator="kind")]
    token: pydantic.SecretStr
    site: pydantic.AnyUrl
    length: timedelta


def test_a_pydantic_model_has_discriminated_unions_urls_and_secrets(target: Target) -> None:
    Noise: Any = adapt(NoiseModel, ident="noise_id")
    db = target.connect(Design("noises", [Noise], []))
    made = Noise(
        noise_id="n",
        noise=BarkModel(loud=True),
        token=pydantic.SecretStr("t"),
        site=pydantic.AnyUrl("ftp://example.org/a"),
        length=timedelta(minutes=3),
    )
    db.create(made)
    assert db.get(Noise, noise_id="n") == made
