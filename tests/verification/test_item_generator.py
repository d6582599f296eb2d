"""Generated items: the declared sizes and shares hold, identities differ, the same every time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pytest

from stator import (
    Design,
    Entity,
    connect,
    created,
    distinct,
    find,
    ident,
    large,
    largest,
    per,
    read,
    share,
    soft_delete,
    stored,
    ttl,
    unique,
    updated,
    version,
    write_token,
)
from stator.design.entities.entity import info
from stator.design.entities.entity_versions import UNKNOWN
from stator.model.values import item_size
from stator.verification.declared_shape import DeclaredShape
from stator.verification.item_generator import ItemGenerator


class Status(Enum):
    OPEN = "open"
    PAID = "paid"
    SENT = "sent"


@dataclass
class Address:
    street: str
    city: str


class User(Entity):
    user_id: str = ident()
    email: str = unique()


class Order(Entity):
    order_id: str = ident()
    user_id: str
    status: Status
    region: str
    placed_at: datetime
    total: Decimal
    note: str


class Line(Entity):
    order_id: str = ident()
    product_id: str = ident()
    quantity: int


class Everything(Entity):
    number: int = ident()
    at: datetime = ident()
    token: UUID
    flags: set[str]
    names: list[str]
    settings: dict[str, int]
    address: Address
    kind: Literal["a", "b"]
    raw: bytes
    ratio: float
    maybe: str | None = None
    temperature: float = stored("t", default=0.0)
    body: str = large(default="")
    rev: int = version()
    made: datetime = created()
    changed: datetime = updated()
    proof: str = write_token()
    gone_at: datetime | None = soft_delete()
    expires_at: datetime | None = ttl(days=1, default=None)


class Animal(Entity):
    animal_id: str = ident()
    name: str


class Dog(Animal, variant="dog"):
    breed: str


class Cat(Animal, variant="cat"):
    lives: int


def generator(*facts: Any, sizes: dict[type[Entity], int] | None = None) -> ItemGenerator:
    design = Design(
        "shop",
        [User, Order, Line],
        volumes={User: 1_000, Order: per(User, 12), Line: per(Order, 3)},
        facts=facts,
        sizes=sizes or {},
    )
    named: dict[type[Entity], frozenset[str]] = {
        Order: frozenset({"order_id", "user_id", "status", "region", "placed_at"})
    }
    return ItemGenerator(DeclaredShape(design), named)


def test_items_of_a_collection_share_its_values_and_have_their_own_identity() -> None:
    orders = generator().items(Order, {"user_id": "u1"}, 1_200)
    assert {each.user_id for each in orders} == {"u1"}
    assert len({each.order_id for each in orders}) == 1_200


def test_a_compound_identity_is_unique_in_every_collection() -> None:
    made = generator()
    lines = made.items(Line, {"order_id": "o1"}, 30) + made.items(Line, {"order_id": "o2"}, 30)
    assert len({(each.order_id, each.product_id) for each in lines}) == 60


def test_values_are_spread_evenly_and_independently() -> None:
    orders = generator(distinct(Order.region, values=10)).items(Order, {}, 3_000)
    counts = Counter((each.status, each.region) for each in orders)
    assert len(counts) == 30
    assert max(counts.values()) - min(counts.values()) <= 20  # of 100 each
    times = sorted(each.placed_at for each in orders)
    halves = Counter(each.placed_at < times[1_500] for each in orders if each.status is Status.OPEN)
    assert 450 <= halves[True] <= 550


def test_declared_shares_and_a_largest_value_hold() -> None:
    made = generator(share(Order.status == Status.OPEN, 0.05), largest(Order.region, 0.3))
    orders = made.items(Order, {}, 2_000)
    assert sum(each.status is Status.OPEN for each in orders) == pytest.approx(100, abs=5)
    [(_, most), (_, second)] = Counter(each.region for each in orders).most_common(2)
    assert most == pytest.approx(600, abs=10)
    assert second < 60


class Shift(Entity):
    shift_id: str = ident()
    is_open: bool
    code: str
    level: int
    kind: Literal["day", "night"]


CONSTANTS: list[tuple[str, Any, Any]] = [
    ("is_open", Shift.is_open == True, True),  # noqa: E712 - a condition
    ("is_open", Shift.is_open == False, False),  # noqa: E712
    ("code", Shift.code == "late", "late"),
    ("level", Shift.level == 3, 3),
    ("kind", Shift.kind == "night", "night"),
]


@pytest.mark.parametrize(("name", "condition", "value"), CONSTANTS, ids=repr)
@pytest.mark.parametrize("part", [0.0, 0.1, 0.4, 0.9])
def test_a_constant_that_a_pattern_asks_for_has_its_declared_share(
    name: str, condition: Any, value: Any, part: float
) -> None:
    @read()
    def asked() -> Any:
        return find(Shift).where(condition)

    design = Design(
        "shifts", [Shift], [asked], volumes={Shift: 5_000}, facts=[share(condition, part)]
    )
    made = ItemGenerator(DeclaredShape(design), {Shift: frozenset({name})})
    shifts = made.items(Shift, {}, 1_000)
    found = sum(getattr(each, name) == value for each in shifts)
    assert found == pytest.approx(1_000 * part, abs=8)


@pytest.mark.parametrize("size_bytes", [150, 400, 2_500])
def test_items_have_their_declared_size(size_bytes: int) -> None:
    orders = generator(sizes={Order: size_bytes}).items(Order, {}, 50)
    sizes = [item_size(info(Order).codec.encode(each)) for each in orders]
    assert sum(sizes) / 50 == pytest.approx(size_bytes, rel=0.05)


class Listed(Entity):
    listed_id: str = ident()
    lines: list[str]


class Mapped(Entity):
    mapped_id: str = ident()
    notes: dict[str, str]
    more: list[str]


class Written(Entity):
    written_id: str = ident()
    title: str
    text: str
    parent: str | None = None


class Counted(Entity):
    counted_id: str = ident()
    count: int
    at: datetime


@pytest.mark.parametrize("entity", [Listed, Mapped, Written, Counted])
@pytest.mark.parametrize("size_bytes", [98, 333, 980, 1_000, 1_024, 2_010, 3_999, 40_000])
def test_the_mean_size_is_the_declared_one_to_the_byte(entity: Any, size_bytes: int) -> None:
    """A few bytes are the difference between one unit and two."""
    design = Design("sized", [entity], volumes={entity: 1_000}, sizes={entity: size_bytes})
    shape = DeclaredShape(design)
    made = ItemGenerator(shape, {entity: frozenset({"parent"})}).items(entity, {}, 60)
    sizes = [
        item_size({**info(entity).codec.encode(each), **vars(each).get(UNKNOWN, {})})
        for each in made
    ]
    if entity is Mapped and size_bytes == 98:  # less than its keys and names take
        assert len(shape.guesses.texts) == 1
        return
    assert sum(sizes) / len(sizes) == pytest.approx(size_bytes, abs=1)
    assert shape.guesses.texts == ()


def test_a_declared_size_that_the_fields_exceed_is_said() -> None:
    design = Design("sized", [Counted], volumes={Counted: 10}, sizes={Counted: 40})
    shape = DeclaredShape(design)
    ItemGenerator(shape, {}).items(Counted, {}, 1)
    [guess] = shape.guesses.texts
    assert guess == (
        "a Counted has at least 71 bytes, with identifiers of 24; declare sizes={Counted: ...} "
        "of that or more"
    )


def test_items_without_a_text_to_pad_have_their_declared_size_when_stored() -> None:
    class Point(Entity):
        point_id: int = ident()
        value: float

    design = Design("plot", [Point], volumes={Point: 100}, sizes={Point: 500})
    made = ItemGenerator(DeclaredShape(design), {}).items(Point, {}, 5)
    with connect(design) as db:
        for each in made:
            db.create(each)
        for stored_item in db.call("Scan", {"TableName": "plot"})["Items"]:
            assert 500 <= item_size(stored_item) <= 600  # and its keys


def test_padding_leaves_named_fields_alone() -> None:
    plain = generator().items(Order, {}, 1)[0]
    padded = generator(sizes={Order: 4_000}).items(Order, {}, 1)[0]
    assert len(padded.note) > 3_000
    assert replace(padded, note=plain.note) == plain


def test_conditions_hold_for_their_share() -> None:
    made = generator()
    condition: Any = Order.total > Decimal(100)
    orders = made.items(Order, {"user_id": "u1"}, 500, conditions=[(condition, 0.1)])
    assert sum(each.total > 100 for each in orders) == pytest.approx(50, abs=5)


def test_the_same_declaration_gives_the_same_items() -> None:
    facts = (share(Order.status == Status.OPEN, 0.2),)
    assert generator(*facts).items(Order, {}, 200) == generator(*facts).items(Order, {}, 200)


def test_every_type_has_sample_values() -> None:
    design = Design("all", [Everything], volumes={Everything: 1_000})
    named: dict[type[Entity], frozenset[str]] = {Everything: frozenset({"number", "at", "maybe"})}
    made = ItemGenerator(DeclaredShape(design), named).items(Everything, {}, 40)
    for each in made:
        info(Everything).codec.encode(each)
    assert sum(each.maybe is None for each in made) == pytest.approx(20, abs=3)
    assert all(each.gone_at is None for each in made)
    now = datetime(2027, 1, 1, tzinfo=UTC)
    assert all(each.expires_at is not None and each.expires_at > now for each in made)
    assert max(each.made for each in made) - min(each.made for each in made) > timedelta(days=200)
    assert all(each.rev == 1 and len(each.proof) == 16 for each in made)


def test_the_variants_of_an_entity_take_turns() -> None:
    @read()
    def dogs() -> Any:
        return find(Dog).where(Dog.breed == "pug")

    design = Design("zoo", [Animal], volumes={Animal: 100})
    made = ItemGenerator(DeclaredShape(design), {}).items(Animal, {}, 10)
    assert Counter(type(each) for each in made) == {Dog: 5, Cat: 5}
    only = ItemGenerator(DeclaredShape(design), {}).items(Animal, {"_class": "dog"}, 3)
    assert [type(each) for each in only] == [Dog] * 3
