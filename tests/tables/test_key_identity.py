"""The entity and the identity of an item, read from nothing but its key."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from stator import Design, Entity, Query, find, ident, read
from stator.tables.connection import make_context
from stator.tables.schema.schema import Schema


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Parcel(Entity):
    depot: str = ident()
    number: int = ident()
    size: Size = ident()
    note: str = ""


class Visit(Entity):
    depot: str = ident()
    at: datetime = ident()
    guest: UUID = ident()


class Price(Entity):
    day: date = ident()
    amount: Decimal = ident()
    is_net: bool = ident()


@read()
def parcels(depot: str) -> Query[Parcel]:
    return find(Parcel).where(Parcel.depot == depot)


@read()
def visits(depot: str) -> Query[Visit]:
    return find(Visit).where(Visit.depot == depot).order_by(Visit.at)


@read()
def prices(day: date) -> Query[Price]:
    return find(Price).where(Price.day == day)


depots = Design("depots", [Parcel, Visit, Price], [parcels, visits, prices])
schema: Schema = make_context(depots, {}).schema
alone_by_class: dict[type[Any], Schema] = {
    cls: make_context(Design("alone", [cls], [pattern]), {}).schema
    for cls, pattern in ((Parcel, parcels), (Visit, visits), (Price, prices))
}
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
entities = st.one_of(
    st.builds(
        Parcel, depot=texts, number=st.integers(-(10**20), 10**20), size=st.sampled_from(Size)
    ),
    st.builds(
        Visit,
        depot=texts,
        at=st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)).map(
            lambda each: each.replace(tzinfo=UTC)
        ),
        guest=st.uuids(),
    ),
    st.builds(
        Price,
        day=st.dates(),
        amount=st.decimals(-(10**9), 10**9, places=3),
        is_net=st.booleans(),
    ),
)


def identity_of(entity: Any) -> dict[str, Any]:
    return {name: getattr(entity, name) for name in schema.of_object(entity).identity}


@given(entities)
def test_a_key_tells_the_entity_and_its_typed_identity(entity: Any) -> None:
    of = schema.of_object(entity)
    keys = schema.table_keys(of.table.name)
    key = of.key_of(entity)
    assert keys.entity_of(key) is of
    found = keys.identity_of(of, key)
    assert found == identity_of(entity)
    assert found is not None
    assert [type(each) for each in found.values()] == [
        type(each) for each in identity_of(entity).values()
    ]


@given(entities)
def test_a_key_of_an_entity_in_a_table_of_its_own_holds_its_identity(entity: Any) -> None:
    alone = alone_by_class[type(entity)]
    of = alone.of_object(entity)
    keys = alone.table_keys(of.table.name)
    assert keys.entity_of(of.key_of(entity)) is of
    assert keys.identity_of(of, of.key_of(entity)) == identity_of(entity)


@given(texts, texts)
def test_a_key_of_another_form_is_no_entity(partition: str, sort: str) -> None:
    [table] = schema.tables.values()
    keys = schema.table_keys(table.name)
    key = {table.partition: {"S": f"?{partition}"}, str(table.sort): {"S": f"?{sort}"}}
    assert keys.entity_of(key) is None


def test_entities_whose_keys_have_the_same_form_are_not_told_apart() -> None:
    class Cat(Entity):
        owner: str = ident()
        cat: str = ident()

    class Dog(Entity):
        owner: str = ident()
        dog: str = ident()

    class Bird(Entity):
        bird: str = ident()

    @read()
    def cats(owner: str) -> Query[Cat]:
        return find(Cat).where(Cat.owner == owner)

    @read()
    def birds(bird: str) -> Query[Bird]:
        return find(Bird).where(Bird.bird == bird)

    pets = make_context(Design("pets", [Cat, Dog, Bird], [cats, birds]), {}).schema
    for table in pets.tables.values():
        keys = pets.table_keys(table.name)
        maps = [pets.named(name) for name in table.entities]
        for of in maps:
            others = [each for each in maps if each is not of]
            same_form = [each for each in others if _form(each) == _form(of)]
            assert keys.is_certain(of) == (not same_form)


def _form(of: Any) -> list[str]:
    return [
        "".join(part.value if part.kind == "text" else "*" for part in key.template.parts)
        for key in of.plan.keys
        if key.index is None
    ]
