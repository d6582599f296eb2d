"""The second reading of a declaration: volumes, references, chances, and what is guessed."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

import pytest

from stator import (
    Design,
    Entity,
    Query,
    attr,
    distinct,
    find,
    ident,
    largest,
    per,
    read,
    share,
    unique,
)
from stator.verification.declared_shape import DeclaredShape


class User(Entity):
    user_id: str = ident()
    email: str = unique()


class Order(Entity):
    order_id: str = ident()
    user_id: str
    status: Literal["open", "paid", "sent", "late"]
    region: str
    day: date
    placed_at: datetime


class Owner(Entity):
    owner: str = ident()


class Repo(Entity):
    owner: str = ident()
    name: str = ident()


class Issue(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()


def shape_of(*facts: object) -> DeclaredShape:
    design = Design(
        "shop",
        [User, Order],
        volumes={User: 1_000, Order: per(User, 12)},
        facts=facts,  # type: ignore[arg-type]
    )
    return DeclaredShape(design)


def test_a_field_with_the_name_of_an_identity_has_as_many_values_as_there_are_items() -> None:
    shape = shape_of()
    assert shape.values(Order, ["user_id"]) == 1_000
    assert shape.volume(Order) * shape.chance(Order, {"user_id": "u1"}) == pytest.approx(12)
    assert shape.guesses.texts == ()


def test_the_parts_of_a_compound_identity_belong_together() -> None:
    design = Design(
        "host",
        [Owner, Repo, Issue],
        volumes={Owner: 100, Repo: per(Owner, 8), Issue: per(Repo, 50)},
    )
    shape = DeclaredShape(design)
    assert shape.values(Issue, ["owner", "repo"]) == 800
    assert shape.values(Issue, ["owner"]) == 100
    assert shape.guesses.texts == ()


def test_unique_fields_and_identities_find_one_item() -> None:
    shape = shape_of()
    assert shape.volume(User) * shape.chance(User, {"email": "a@example.org"}) == 1
    assert shape.volume(Order) * shape.chance(Order, {"order_id": "o1"}) == 1


def test_types_limit_the_values_of_a_field() -> None:
    shape = shape_of()
    assert shape.values(Order, ["status"]) == 4
    assert shape.chance(Order, {"user_id": "u1", "status": "open"}) == pytest.approx(1 / 4_000)


def test_facts_say_what_types_do_not() -> None:
    shape = shape_of(
        distinct(Order.region, Order.day, values=40),
        share(Order.status == "open", 0.01),
        largest(Order.user_id, 0.3),
    )
    assert shape.values(Order, ["region", "day"]) == 40
    assert shape.chance(Order, {"status": "open"}) == 0.01
    assert shape.chance(Order, {"status": "paid"}) == pytest.approx(0.99 / 3)
    assert shape.chance(Order, {"user_id": "u1"}) == pytest.approx(0.7 / 999)
    assert shape.condition_share(Order, Order.status == "open") == 0.01


def test_what_is_not_declared_is_guessed_and_said() -> None:
    shape = shape_of()
    assert shape.values(Order, ["region"]) == pytest.approx(12_000**0.5)
    [guess] = shape.guesses.texts
    assert guess == "Order.region has 110 values; declare distinct(Order.region, values=...)"
    with shape.unrecorded():
        shape.values(Order, ["day"])
    assert len(shape.guesses.texts) == 1


def test_an_entity_without_a_volume_is_guessed() -> None:
    shape = DeclaredShape(Design("shop", [User]))
    assert shape.volume(User) == 1_000_000
    assert shape.guesses.texts == ("User has 1,000,000 items; declare volumes={User: ...}",)


def test_per_needs_no_equal_names_where_one_field_can_be_meant() -> None:
    class Visit(Entity):
        visit_id: str = ident()
        guest: str
        note: str

    @read()
    def visits(guest: str) -> Query[Visit]:
        return find(Visit).where(Visit.guest == guest)

    design = Design("hotel", [User, Visit], [visits], volumes={User: 50, Visit: per(User, 3)})
    shape = DeclaredShape(design)
    assert shape.values(Visit, ["guest"]) == 50


def test_returns_of_an_equality_says_how_many_items_have_its_values() -> None:
    @read(returns=40)
    def in_region(region: str) -> Query[Order]:
        return find(Order).where(Order.region == region)

    design = Design("shop", [Order], [in_region], volumes={Order: 12_000})
    shape = DeclaredShape(design)
    assert shape.values(Order, ["region"]) == 300
    assert shape.guesses.texts == ()


def test_an_id_in_a_compound_identity_tells_items_apart() -> None:
    class Parcel(Entity):
        depot: str = ident()
        parcel_id: str = ident()

    class Scan(Entity):
        scan_id: str = ident()
        parcel_id: str

    design = Design("post", [Parcel, Scan], volumes={Parcel: 500, Scan: per(Parcel, 6)})
    shape = DeclaredShape(design)
    assert shape.values(Parcel, ["parcel_id"]) == 500
    assert shape.values(Scan, ["parcel_id"]) == 500


def test_an_optional_field_has_its_values_only_where_it_is_set() -> None:
    class Letter(Entity):
        letter_id: str = ident()
        stamp: str | None = None

    design = Design(
        "post",
        [Letter],
        volumes={Letter: 10_000},
        facts=[distinct(Letter.stamp, values=10), share(attr(Letter.stamp).exists(), 0.1)],
    )
    shape = DeclaredShape(design)
    assert shape.volume(Letter) * shape.chance(Letter, {"stamp": "blue"}) == pytest.approx(100)
    assert shape.volume(Letter) * shape.chance(Letter, {"stamp": None}) == pytest.approx(9_000)
