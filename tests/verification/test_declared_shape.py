"""The second reading of a declaration: volumes, references, chances, and what is guessed."""

from __future__ import annotations

from datetime import date, datetime
from enum import Enum
from typing import Any, Literal

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
from stator.design.value_facts import Fact
from stator.verification.declared_shape import DeclaredShape
from stator.verification.item_generator import ItemGenerator


class Severity(Enum):
    LOW = "low"
    HIGH = "high"


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
    assert shape.chance(Order, {"user_id": "u1"}) == pytest.approx(1 / 1_000)
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


class Tenant(Entity):
    tenant_id: str = ident()


class Meter(Entity):
    tenant_id: str = ident()
    meter: str = ident()


class Hour(Entity):
    tenant_id: str = ident()
    meter: str = ident()
    hour: datetime = ident()
    kind: Literal["raw", "summed", "billed"]
    source: str


HOURS: dict[type[Entity], Any] = {Tenant: 4_000, Meter: per(Tenant, 6), Hour: per(Meter, 400)}
FIXED: list[dict[str, Any]] = [
    {"tenant_id": "t"},
    {"meter": "m"},
    {"kind": "raw"},
    {"source": "s"},
    {"tenant_id": "t", "meter": "m"},
    {"tenant_id": "t", "kind": "raw"},
    {"tenant_id": "t", "meter": "m", "kind": "raw", "source": "s"},
]


@pytest.mark.parametrize("fixed", FIXED, ids=str)
@pytest.mark.parametrize(
    "facts",
    [
        (),
        (distinct(Hour.tenant_id, Hour.meter, values=24_000),),
        (distinct(Hour.meter, values=6),),
        (share(Hour.kind == "raw", 0.2), distinct(Hour.source, values=9)),
    ],
    ids=["volumes", "pair", "alone", "share"],
)
def test_a_largest_value_takes_nothing_from_the_others(facts: Any, fixed: dict[str, Any]) -> None:
    """Volumes and facts about counts are averages, which a usual value has."""
    skewed = (largest(Hour.tenant_id, 0.3), largest(Hour.meter, 0.5), largest(Hour.source, 0.4))
    plain, uneven = (
        DeclaredShape(Design("usage", [Tenant, Meter, Hour], volumes=HOURS, facts=each))
        for each in (facts, (*facts, *skewed))
    )
    with plain.unrecorded(), uneven.unrecorded():
        assert uneven.chance(Hour, fixed) == pytest.approx(plain.chance(Hour, fixed))


def test_a_collection_under_per_has_its_declared_size_whatever_is_largest() -> None:
    design = Design(
        "usage",
        [Tenant, Meter, Hour],
        volumes=HOURS,
        facts=[largest(Hour.tenant_id, 0.3), largest(Hour.meter, 0.2)],
    )
    shape = DeclaredShape(design)
    chance = shape.chance(Hour, {"tenant_id": "t", "meter": "m"})
    assert shape.volume(Hour) * chance == pytest.approx(400)
    assert shape.guesses.texts == ()


class Alert(Entity):
    alert_id: str = ident()
    closed_at: datetime | None = None
    level: Severity | None = None


SAYS_CLOSED: list[Fact] = [
    share(Alert.closed_at == None, 0.1),  # noqa: E711 - a condition
    share(attr(Alert.closed_at).not_exists(), 0.1),
    share(attr(Alert.closed_at).exists(), 0.9),
]


@pytest.mark.parametrize("fact", SAYS_CLOSED, ids=str)
def test_the_share_of_items_without_a_field_can_be_declared_in_every_form(fact: Fact) -> None:
    design = Design("alerts", [Alert], volumes={Alert: 5_000}, facts=[fact])
    shape = DeclaredShape(design)
    assert shape.present_share(Alert, "closed_at") == pytest.approx(0.9)
    assert shape.volume(Alert) * shape.chance(Alert, {"closed_at": None}) == pytest.approx(500)
    exists = attr(Alert.closed_at).exists()
    for condition, wanted in (
        (exists, 0.9),
        (attr(Alert.closed_at).not_exists(), 0.1),
        (Alert.closed_at == None, 0.1),  # noqa: E711
        (~exists, 0.1),
    ):
        assert shape.condition_share(Alert, condition) == pytest.approx(wanted)
    assert shape.guesses.texts == ()
    made = ItemGenerator(shape, {Alert: frozenset({"closed_at"})}).items(Alert, {}, 500)
    assert sum(each.closed_at is None for each in made) == pytest.approx(50, abs=5)


def test_the_share_of_a_missing_enum_is_no_value_of_it() -> None:
    facts = [share(Alert.level == None, 0.6), share(Alert.level == Severity.HIGH, 0.1)]  # noqa: E711
    shape = DeclaredShape(Design("alerts", [Alert], volumes={Alert: 5_000}, facts=facts))
    made = ItemGenerator(shape, {Alert: frozenset({"level"})}).items(Alert, {}, 1_000)
    assert sum(each.level is None for each in made) == pytest.approx(600, abs=10)
    assert {each.level for each in made} == {None, *Severity}
