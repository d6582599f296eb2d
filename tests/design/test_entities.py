"""Entities: dataclasses with references on the class, and codecs that fit them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.design.entities.conditions import Comparison, attr, same_field
from stator.design.entities.entity import Entity, info
from stator.design.entities.markers import NOT_YET, counter, ident, ttl, version
from stator.errors import DesignError, ItemMismatch

from .shop import Address, Order, Status, User


def order(**changes: Any) -> Order:
    values: dict[str, Any] = {
        "order_id": "o1",
        "user_id": "u1",
        "placed_at": datetime(2026, 11, 15, tzinfo=UTC),
        "total": Decimal("9.50"),
        **changes,
    }
    return Order(**values)


def test_an_entity_is_a_dataclass() -> None:
    user = User(user_id="u", email="e", name="n")
    assert dataclasses.is_dataclass(user)
    assert user.name == "n"
    assert (user.rev, user.address) == (0, None)
    assert user == copy.copy(user) == pickle.loads(pickle.dumps(user))
    assert dataclasses.replace(user, name="z").name == "z"
    with pytest.raises(TypeError):
        User(user_id="u", email="e")  # type: ignore[call-arg]  # wrong on purpose


def test_a_subclass_has_its_parent_s_fields_and_references_of_its_own() -> None:
    class Vip(User):
        name: str
        discount: int = 5

    vip = Vip(user_id="u", email="e", name="n")
    assert info(Vip).codec.decode(info(Vip).codec.encode(vip)) == vip
    with pytest.raises(TypeError):
        Vip(user_id="u", email="e")  # type: ignore[call-arg]  # wrong on purpose
    reference: Any = Vip.email
    assert reference.owner is Vip


def test_references_build_conditions() -> None:
    condition: Any = Order.total > 10
    assert isinstance(condition, Comparison)
    assert (condition.field.path, condition.operator, condition.values) == (("total",), ">", (10,))
    flipped: Any = Decimal(10) < Order.total
    assert (flipped.operator, flipped.values) == (">", (Decimal(10),))
    nested: Any = User.address.city == "Rome"  # type: ignore[union-attr]  # optional
    assert nested.field.path == ("address", "city")
    element: Any = Order.lines[0] == "x"
    assert element.field.path == ("lines", 0)
    assert repr(attr(Order.status).is_in([Status.PENDING]) & ~attr(Order.token).exists())
    assert same_field(condition.field, flipped.field)


def test_and_or_and_not_are_refused_with_what_to_write() -> None:
    with pytest.raises(DesignError) as caught:
        bool((Order.total > 10) and (Order.user_id == "u"))
    assert "&" in str(caught.value.hint)
    with pytest.raises(DesignError):
        bool(10 < Order.total < 20)
    with pytest.raises(DesignError, match="not a condition"):
        (Order.total > 10) & True


scalars = {
    "order_id": st.text(),
    "placed_at": st.datetimes(
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5, minutes=-30))])
    ),
    "status": st.sampled_from(Status),
    "total": st.decimals(allow_nan=False, allow_infinity=False),
    "tags": st.sets(st.text(), max_size=3),
    "lines": st.lists(st.text(), max_size=3),
    "token": st.none() | st.uuids(),
    "weights": st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3).map(tuple),
    "extra": st.dictionaries(st.text(), st.integers(), max_size=3),
}


@given(st.fixed_dictionaries({}, optional=scalars))
def test_what_is_encoded_decodes_to_the_same(changes: dict[str, Any]) -> None:
    made = order(**changes)
    codec = info(Order).codec
    assert codec.decode(codec.encode(made)) == made


@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=2))
def test_times_sort_as_text(times: list[datetime]) -> None:
    encode = info(Order).codec.encode_field["placed_at"]
    assert [encode(moment)["S"] for moment in sorted(times)] == sorted(
        encode(moment)["S"] for moment in times
    )


class Level(IntEnum):
    LOW = 1
    HIGH = 2


def test_every_type_on_the_wire() -> None:
    class Everything(Entity):
        text: str = ident()
        whole: int = 3
        real: float = 0.5
        exact: Decimal = Decimal("1.10")
        flag: bool = True
        raw: bytes = b"\x00"
        day: date = date(2026, 1, 2)
        hour: time = time(3, 4)
        uid: UUID = UUID(int=1)
        level: Level = Level.HIGH
        pair: tuple[int, str] = (1, "a")
        home: Address = dataclasses.field(default_factory=lambda: Address("s", "c"))
        bag: frozenset[int] = frozenset({2, 1})
        rest: Any = None
        hits: int = counter(default=0)
        rev: int = version()

    made = Everything(text="t", rest={"a": [1, "b", None, True, b"x"]})
    item = info(Everything).codec.encode(made)
    assert item == {
        "text": {"S": "t"},
        "whole": {"N": "3"},
        "real": {"N": "0.5"},
        "exact": {"N": "1.10"},
        "flag": {"BOOL": True},
        "raw": {"B": "AA=="},
        "day": {"S": "2026-01-02"},
        "hour": {"S": "03:04:00.000000"},
        "uid": {"S": "00000000-0000-0000-0000-000000000001"},
        "level": {"N": "2"},
        "pair": {"L": [{"N": "1"}, {"S": "a"}]},
        "home": {"M": {"street": {"S": "s"}, "city": {"S": "c"}}},
        "bag": {"NS": ["1", "2"]},
        "hits": {"N": "0"},
        "rev": {"N": "0"},
        "rest": {
            "M": {
                "a": {"L": [{"N": "1"}, {"S": "b"}, {"NULL": True}, {"BOOL": True}, {"B": "eA=="}]}
            }
        },
    }
    assert info(Everything).codec.decode(item) == made


def test_what_is_absent_takes_the_default() -> None:
    codec = info(Order).codec
    item = {
        name: value
        for name, value in codec.encode(order()).items()
        if name in ("order_id", "user_id", "placed_at", "total")
    }
    assert codec.decode(item) == order()
    assert codec.decode(item).made == NOT_YET
    assert codec.decode({**item, "token": {"NULL": True}}).token is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"order_id": 5}, "order_id"),
        ({"total": "9"}, "total"),
        ({"total": Decimal("NaN")}, "total"),
        ({"total": 1.5}, "total"),
        ({"placed_at": datetime(2026, 1, 1)}, "placed_at"),
        ({"status": "pending"}, "status"),
        ({"channel": "fax"}, "channel"),
        ({"tags": {1}}, "tags"),
        ({"lines": "ab"}, "lines"),
        ({"extra": {1: 1}}, "extra"),
        ({"token": "x"}, "token"),
        ({"weights": (float("inf"),)}, "weights"),
        ({"user_id": None}, "user_id"),
    ],
)
def test_a_wrong_value_is_named_when_it_is_written(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ItemMismatch) as caught:
        info(Order).codec.encode(order(**changes))
    assert (caught.value.entity, caught.value.field) == ("Order", field)
    assert f"Order.{field}" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"total": {"S": "9"}}, "total"),
        ({"total": {"N": "x"}}, "total"),
        ({"status": {"S": "lost"}}, "status"),
        ({"placed_at": {"S": "yesterday"}}, "placed_at"),
        ({"tags": {"L": []}}, "tags"),
        ({"token": {"S": "no"}}, "token"),
    ],
)
def test_a_wrong_value_is_named_when_it_is_read(change: dict[str, Any], field: str) -> None:
    codec = info(Order).codec
    with pytest.raises(ItemMismatch) as caught:
        codec.decode({**codec.encode(order()), **change})
    assert (caught.value.entity, caught.value.field) == ("Order", field)


def test_a_missing_attribute_is_named() -> None:
    codec = info(Order).codec
    item = codec.encode(order())
    del item["user_id"]
    with pytest.raises(ItemMismatch, match=r"Order.user_id: the item has no such attribute"):
        codec.decode(item)


def test_post_init_runs_when_an_item_is_read() -> None:
    class Shouting(Entity):
        word: str = ident()
        rev: int = version()

        def __post_init__(self) -> None:
            self.word = self.word.upper()

    codec = info(Shouting).codec
    read = codec.decode({"word": {"S": "hi"}, "rev": {"N": "7"}})
    assert (read.word, read.rev) == ("HI", 7)


def test_what_cannot_be_stored_is_refused_by_name() -> None:
    class Odd(Entity):
        key: str = ident()
        value: complex = 0j

    class Mixed(Entity):
        key: str = ident()
        value: int | str = 0

    class Bag(Entity):
        key: str = ident()
        value: set[bool] = dataclasses.field(default_factory=set)

    class Nameless(Entity):
        value: int = 0

    with pytest.raises(DesignError, match=r"Odd.value: complex cannot be stored"):
        _ = info(Odd).fields
    with pytest.raises(DesignError, match=r"Mixed.value: a union of several types"):
        _ = info(Mixed).fields
    with pytest.raises(DesignError, match=r"Bag.value: a set holds"):
        _ = info(Bag).fields
    with pytest.raises(DesignError, match="has no identity"):
        _ = info(Nameless).identity
    with pytest.raises(DesignError, match="is not an entity"):
        info(int)


def test_a_time_to_live_is_stored_as_dynamodb_reads_it() -> None:
    """Whole seconds since 1970, never before the moment itself; and a filter compares with the
    same.
    """

    class Session(Entity):
        session_id: str = ident()
        expires: datetime | None = ttl(days=1, default=None)

    moment = datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    codec = info(Session).codec
    item = codec.encode(Session(session_id="s", expires=moment))
    assert item["expires"] == {"N": "1767225601"}
    assert codec.decode(item).expires == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert "expires" not in codec.encode(Session(session_id="s"))
    with pytest.raises(ItemMismatch, match=r"Session\.expires"):
        codec.encode(Session(session_id="s", expires=datetime(2026, 1, 1)))
