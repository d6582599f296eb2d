"""pydantic and msgspec models as entities: the same claims for both."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.design.design import Design, per
from stator.design.entities.adapters import adapt
from stator.design.entities.conditions import Comparison, attr
from stator.design.entities.entity import Entity, info
from stator.design.entities.markers import ident, ttl, unique, version
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import updates
from stator.errors import DesignError, ItemMismatch


class Status(Enum):
    OPEN = "open"
    SHIPPED = "shipped"


class PydanticAddress(pydantic.BaseModel):
    street: str
    floor: int | None = None


class PydanticOrder(pydantic.BaseModel):
    order_id: str
    customer: str
    placed_at: datetime
    total: Decimal = pydantic.Field(ge=0)
    status: Status = Status.OPEN
    channel: Literal["web", "shop"] = "web"
    address: PydanticAddress | None = None
    stops: list[PydanticAddress] = []
    by_name: dict[str, PydanticAddress] = {}
    tags: set[str] = set()
    token: UUID | None = None
    pair: tuple[int, str] = (1, "a")


class MsgspecAddress(msgspec.Struct):
    street: str
    floor: int | None = None


class MsgspecOrder(msgspec.Struct, kw_only=True):
    order_id: str
    customer: str
    placed_at: datetime
    total: Decimal
    status: Status = Status.OPEN
    channel: Literal["web", "shop"] = "web"
    address: MsgspecAddress | None = None
    stops: list[MsgspecAddress] = []
    by_name: dict[str, MsgspecAddress] = {}
    tags: set[str] = set()
    token: UUID | None = None
    pair: tuple[int, str] = (1, "a")


POrder = adapt(PydanticOrder, ident=("customer", "order_id"))
MOrder = adapt(MsgspecOrder, ident=("customer", "order_id"))
ADDRESS: dict[Any, Any] = {POrder: PydanticAddress, MOrder: MsgspecAddress}
both = pytest.mark.parametrize("order", [POrder, MOrder], ids=["pydantic", "msgspec"])

REQUIRED: dict[str, Any] = {
    "order_id": "o1",
    "customer": "c1",
    "placed_at": datetime(2026, 11, 15, tzinfo=UTC),
    "total": Decimal("9.50"),
}


@both
def test_the_handle_has_references_and_makes_models(order: Any) -> None:
    condition = order.total > 10
    assert isinstance(condition, Comparison)
    assert (condition.field.owner, condition.field.path, repr(condition.field)) == (
        order,
        ("total",),
        f"{order.__name__}.total",
    )
    assert repr(attr(order.status).is_in([Status.OPEN]))
    assert (order.address.street == "x").field.path == ("address", "street")
    made = order(**REQUIRED)
    assert type(made) in (PydanticOrder, MsgspecOrder)
    assert isinstance(made, order)
    assert not isinstance(5, order)
    assert info(type(made)) is info(order)


@both
def test_the_identity_is_in_the_order_given(order: Any) -> None:
    assert info(order).identity == ("customer", "order_id")
    assert info(order).fields["customer"].role == "ident"
    assert not info(order).fields["customer"].has_default
    assert info(order).fields["tags"].has_default


@both
def test_straight_to_the_wire_and_back(order: Any) -> None:
    address = ADDRESS[order]
    made = order(
        **REQUIRED,
        status=Status.SHIPPED,
        address=address(street="a", floor=2),
        stops=[address(street="b")],
        by_name={"home": address(street="c")},
        tags={"y", "x"},
        token=UUID(int=1),
        pair=(2, "b"),
    )
    item = info(order).codec.encode(made)
    assert item == {
        "order_id": {"S": "o1"},
        "customer": {"S": "c1"},
        "placed_at": {"S": "2026-11-15T00:00:00.000000Z"},
        "total": {"N": "9.50"},
        "status": {"S": "shipped"},
        "channel": {"S": "web"},
        "address": {"M": {"street": {"S": "a"}, "floor": {"N": "2"}}},
        "stops": {"L": [{"M": {"street": {"S": "b"}}}]},
        "by_name": {"M": {"home": {"M": {"street": {"S": "c"}}}}},
        "tags": {"SS": ["x", "y"]},
        "token": {"S": "00000000-0000-0000-0000-000000000001"},
        "pair": {"L": [{"N": "2"}, {"S": "b"}]},
    }
    assert info(order).codec.decode(item) == made
    assert type(info(order).codec.decode(item).stops[0]) is address


@both
def test_what_is_absent_takes_the_model_s_default(order: Any) -> None:
    codec = info(order).codec
    item = {
        name: value for name, value in codec.encode(order(**REQUIRED)).items() if name in REQUIRED
    }
    first, second = codec.decode(item), codec.decode(item)
    assert first == order(**REQUIRED)
    assert first.tags == set()
    assert first.stops is not second.stops


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "order_id": st.text(),
            "placed_at": st.datetimes(timezones=st.just(UTC)),
            "total": st.decimals(min_value=0, allow_nan=False, allow_infinity=False),
            "status": st.sampled_from(Status),
            "tags": st.sets(st.text(), max_size=3),
            "token": st.none() | st.uuids(),
        },
    )
)
def test_what_is_encoded_decodes_to_the_same(changes: dict[str, Any]) -> None:
    for order in (POrder, MOrder):
        made = order(**{**REQUIRED, **changes})
        codec = info(order).codec
        assert codec.decode(codec.encode(made)) == made


@both
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"total": {"S": "9"}}, "total"),
        ({"status": {"S": "lost"}}, "status"),
        ({"channel": {"S": "fax"}}, "channel"),
        ({"placed_at": {"S": "yesterday"}}, "placed_at"),
        ({"address": {"M": {}}}, "address"),
        ({"tags": {"L": []}}, "tags"),
    ],
)
def test_a_wrong_stored_value_is_named(order: Any, change: dict[str, Any], field: str) -> None:
    codec = info(order).codec
    with pytest.raises(ItemMismatch) as caught:
        codec.decode({**codec.encode(order(**REQUIRED)), **change})
    assert (caught.value.entity, caught.value.field) == (order.__name__, field)


@both
def test_a_missing_attribute_is_named(order: Any) -> None:
    codec = info(order).codec
    item = codec.encode(order(**REQUIRED))
    del item["customer"]
    with pytest.raises(ItemMismatch, match=r"Order.customer: the item has no such attribute"):
        codec.decode(item)


@both
def test_a_wrong_value_is_named_when_it_is_written(order: Any) -> None:
    made = order(**REQUIRED)
    made.total = "nine"
    with pytest.raises(ItemMismatch) as caught:
        info(order).codec.encode(made)
    assert (caught.value.entity, caught.value.field, caught.value.value) == (
        order.__name__,
        "total",
        "nine",
    )
    made = order(**REQUIRED)
    made.stops = [ADDRESS[order](street="a")]
    made.stops[0].street = 5
    with pytest.raises(ItemMismatch) as caught:
        info(order).codec.encode(made)
    assert (caught.value.field, caught.value.value) == ("stops", 5)


def test_what_pydantic_refuses_is_named() -> None:
    codec = info(POrder).codec
    with pytest.raises(ItemMismatch) as caught:
        codec.decode({**codec.encode(POrder(**REQUIRED)), "total": {"N": "-3"}})
    assert (caught.value.entity, caught.value.field, caught.value.value) == (
        "PydanticOrder",
        "total",
        Decimal(-3),
    )
    assert "greater than or equal to 0" in str(caught.value)


def test_aliases_are_for_json_only() -> None:
    class Aliased(pydantic.BaseModel):
        key: str = pydantic.Field(alias="theKey")
        other: int = pydantic.Field(2, validation_alias=pydantic.AliasChoices("theOther", "that"))

    handle = adapt(Aliased, ident="key")
    codec = info(handle).codec
    made = Aliased.model_validate({"theKey": "k", "theOther": 7})
    assert codec.encode(made) == {"key": {"S": "k"}, "other": {"N": "7"}}
    assert codec.decode(codec.encode(made)) == made
    with pytest.raises(ItemMismatch) as caught:
        codec.decode({"key": {"S": "k"}, "other": {"S": "x"}})
    assert caught.value.field == "other"


def test_nested_models_have_aliases_and_rules_of_their_own() -> None:
    class Inner(pydantic.BaseModel):
        size: int = pydantic.Field(alias="theSize", ge=0)

    class Outer(pydantic.BaseModel):
        key: str
        inner: Inner
        more: list[Inner] = []

    codec = info(adapt(Outer, ident="key")).codec
    inner = Inner.model_validate({"theSize": 3})
    made = Outer(key="k", inner=inner, more=[inner])
    item = codec.encode(made)
    assert item["inner"] == {"M": {"size": {"N": "3"}}}
    assert codec.decode(item) == made
    assert codec.decode_field["inner"](item["inner"]) == inner
    with pytest.raises(ItemMismatch) as caught:
        codec.decode({**item, "more": {"L": [{"M": {"size": {"N": "-1"}}}]}})
    assert (caught.value.field, caught.value.value) == ("more", -1)
    assert "size: Input should be greater than or equal to 0" in str(caught.value)


def test_types_of_pydantic_s_own() -> None:
    class Typed(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(frozen=True, extra="forbid")
        key: str
        at: pydantic.AwareDatetime
        count: pydantic.PositiveInt = 1

    codec = info(adapt(Typed, ident="key")).codec
    made = Typed(key="k", at=datetime(2026, 1, 1, tzinfo=UTC))
    assert codec.decode(codec.encode(made)) == made


def test_markers_and_overrides() -> None:
    class User(pydantic.BaseModel):
        user_id: str
        email: str
        rev: int = 0
        expires: datetime | None = None

    handle = adapt(
        User,
        ident="user_id",
        markers={"email": unique(), "rev": version(), "expires": ttl(days=90)},
        key=("USER#{user_id}", "PROFILE"),
        index={"GSI1": ("MAIL#{email}",)},
        name="Person",
    )
    known = info(handle)
    assert {name: field.role for name, field in known.fields.items()} == {
        "user_id": "ident", "email": "unique", "rev": "version", "expires": "ttl",
    }  # fmt: skip
    assert (known.name, known.overrides.key) == ("Person", ("USER#{user_id}", "PROFILE"))
    with pytest.raises(DesignError, match="has no field 'nope'"):
        adapt(User, ident="nope")
    with pytest.raises(DesignError, match="is not a marker"):
        adapt(User, ident="user_id", markers={"email": "unique"})
    with pytest.raises(DesignError, match=r"version\(\) on user_id and rev"):
        _ = info(
            adapt(User, ident="email", markers={"user_id": version(), "rev": version()})
        ).fields


def test_adapted_models_and_entities_in_one_design() -> None:
    class Customer(Entity):
        customer: str = ident()

    @read(rps=10, returns=5)
    def orders_of(customer: str) -> Query[Any]:
        return find(POrder).where(POrder.customer == customer).newest_first(POrder.placed_at)

    entities: list[Any] = [Customer, POrder, MOrder]
    volumes: dict[Any, Any] = {POrder: per(Customer, 3), Customer: 10}
    design = Design("shop", entities, [orders_of], volumes=volumes)
    assert design.volume(entities[1]) == 30
    assert orders_of.trace().targets == (POrder,)
    assert updates(POrder.status).entity is POrder
    with pytest.raises(DesignError, match="is not a field of MsgspecOrder"):
        find(MOrder).where(POrder.customer == "c")


def test_adapting_again_gives_the_same_handle_unless_something_changed() -> None:
    assert adapt(PydanticOrder, ident=("customer", "order_id")) is POrder

    class Twice(msgspec.Struct):
        a: str
        b: str

    first = adapt(Twice, ident="a")
    second = adapt(Twice, ident="b")
    assert first is not second
    assert info(first).identity == ("a",)
    assert info(Twice) is info(second)


class Tree(pydantic.BaseModel):
    name: str
    children: list[Tree] = []


def test_what_cannot_be_adapted_is_refused() -> None:
    class Odd(msgspec.Struct):
        key: str
        value: complex = 0j

    with pytest.raises(DesignError, match=r"Odd.value: complex cannot be stored"):
        _ = info(adapt(Odd, ident="key")).fields
    with pytest.raises(DesignError, match=r"Tree.children: Tree contains itself"):
        _ = info(adapt(Tree, ident="name")).fields
    with pytest.raises(DesignError, match="int is not a model"):
        adapt(int, ident="real")
    with pytest.raises(DesignError, match="'x' is not a model"):
        adapt("x", ident="a")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(DesignError, match="has no identity"):
        _ = info(adapt(MsgspecAddress, ident=())).identity


@pytest.mark.parametrize(
    ("model", "library"), [(PydanticAddress, "pydantic"), (MsgspecAddress, "msgspec")]
)
def test_a_missing_library_says_what_to_install(
    model: Any, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(DesignError, match=f"{library} is not installed") as caught:
        adapt(model, ident="street")
    assert caught.value.hint == f"pip install 'stator[{library}]'"


def test_neither_library_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, stator.design.entities.adapters; "
        "sys.exit(any(name in sys.modules for name in ('pydantic', 'msgspec')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
