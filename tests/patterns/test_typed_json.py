"""Values come back equal and of the same type, or are refused."""

from __future__ import annotations

import contextlib
import enum
import json
import math
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator import Entity, ident
from stator.design.entities.adapters import adapt
from stator.patterns.typed_json import NotTypedJson, is_plain, read_typed, write_typed


class Colour(enum.Enum):
    RED = "r"
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True, slots=True)
class Money:
    amount: Decimal
    currency: str = "EUR"


@dataclass
class Receipt:
    number: int
    lines: tuple[Money, ...] = ()
    computed: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.number += 1  # would run twice if the object were built by its __init__


class Point(NamedTuple):
    x: int
    y: Decimal


class Order(Entity):
    order_id: str = ident()
    total: Decimal
    colour: Colour = Colour.RED


class Model(pydantic.BaseModel):
    key: str
    price: Decimal


class Struct(msgspec.Struct):
    key: str
    price: Decimal


ModelEntity = adapt(Model, ident="key")
StructEntity = adapt(Struct, ident="key")


class Text(str):
    pass


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of equal types, all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(map(repr, one)) == list(map(repr, other)) and all(
            same(one[name], other[name]) for name in one
        )
    if isinstance(one, (set, frozenset)):
        return sorted(map(repr, one)) == sorted(map(repr, other))
    if isinstance(one, (float, Decimal)) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other) and repr(one) == repr(other)


VALUES: list[Any] = [
    Decimal("5.00"),
    Decimal("NaN"),
    2**70,
    -(2**63) - 1,
    float("inf"),
    -0.0,
    b"\x00\xff",
    bytearray(b"x"),
    datetime(2026, 3, 1, 10, tzinfo=UTC),
    datetime(2026, 3, 1, 10, 5, 6, 7),
    datetime(2026, 3, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    date(2026, 3, 1),
    time(10, 30),
    time(2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
    time(2, 30, tzinfo=UTC),
    timedelta(days=-1, microseconds=5),
    UUID(int=5),
    Colour.RED,
    Level.LOW,
    Rights.READ | Rights.WRITE,
    Rights(0),
    (1, (2, [3])),
    {1, 2},
    frozenset({Colour.BLUE}),
    {1: "a", (1, 2): "b", None: "c"},
    {"$decimal": "5"},
    {"$tuple": [1]},
    Money(Decimal("1.50")),
    Receipt(1, (Money(Decimal(1)),)),
    Point(1, Decimal("0.1")),
    Order(order_id="o1", total=Decimal("1.10"), colour=Colour.BLUE),
    Model(key="k", price=Decimal("1.10")),
    Struct(key="k", price=Decimal("1.10")),
    {"deep": [{"er": (Money(Decimal(1)), {date(2026, 1, 1)})}]},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_what_is_read_is_what_was_written(value: Any) -> None:
    text = write_typed(value)
    assert same(read_typed(text), value), text


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.datetimes()
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.sampled_from([*Colour, *Level])
)
keys = st.integers() | st.text() | st.dates() | st.tuples(st.integers(), st.text())
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(keys, inner)
        | st.dictionaries(st.sampled_from(["$dict", "$", "a"]), inner)
        | st.frozensets(keys)
    ),
)


@given(values)
def test_any_nesting_comes_back(value: Any) -> None:
    assert same(read_typed(write_typed(value)), value)


def test_json_stays_json() -> None:
    text = write_typed({"a": [1, 2.5, 'x {"$', True, None], "b": {}})
    assert text == '{"a":[1,2.5,"x {\\"$",true,null],"b":{}}' and is_plain(text)
    assert not is_plain(write_typed([Decimal(1)]))


def looped() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@dataclass
class Holder:
    secret: object


def test_what_would_change_is_refused_without_its_value() -> None:
    @dataclass
    class Local:
        secret: str = "hush"

    refused: list[Any] = [
        object(),
        Text("hush"),
        OrderedDict(hush=1),
        Local(),
        looped(),
        "hush \ud800",
        {"hush": object()},
        Holder(Text("hush")),
        10**5000,
        range(3),
        adapt,
    ]
    for value in refused:
        with pytest.raises(NotTypedJson) as caught:
            write_typed(value)
        if not (isinstance(value, dict) and type(value) is dict):  # keys are names, not values
            assert "hush" not in str(caught.value)


def test_a_class_that_is_gone_or_changed_is_named() -> None:
    with pytest.raises(NotTypedJson, match="missing:Thing"):
        read_typed('{"$object": ["missing:Thing", {}]}')
    with pytest.raises(NotTypedJson, match="has no field amount"):
        read_typed(f'{{"$object": ["{__name__}:Money", {{"old": 1}}]}}')
    assert read_typed(
        f'{{"$object": ["{__name__}:Money", {{"amount": {{"$decimal": "1"}}, "old": 1}}]}}'
    ) == Money(Decimal(1))
    with pytest.raises(NotTypedJson, match="KeyError"):
        read_typed(f'{{"$enum": ["{__name__}:Colour", "GREEN"]}}')
    with pytest.raises(NotTypedJson, match="unknown type"):
        read_typed('{"$later": 1}')


def test_stored_text_cannot_name_other_classes_or_import_modules() -> None:
    with pytest.raises(NotTypedJson):
        read_typed('{"$object": ["subprocess:Popen", {"args": "true"}]}')
    with pytest.raises(NotTypedJson):
        read_typed('{"$object": ["antigravity:Anything", {}]}')
    assert "antigravity" not in sys.modules


_MARKERS = [
    "int", "float", "decimal", "bytes", "bytearray", "datetime", "date", "time", "timedelta",
    "uuid", "tuple", "set", "frozenset", "dict", "enum", "object", "model", "unheard-of",
]  # fmt: skip
_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=4,
)


@given(st.sampled_from(_MARKERS), _JUNK)
def test_damaged_text_is_never_another_error(marker: str, junk: Any) -> None:
    text = json.dumps({f"${marker}": junk})
    with contextlib.suppress(NotTypedJson):
        read_typed(text)


@pytest.mark.parametrize("text", ['{"$decimal": "x"}', '{"$int": "1e3"}', "[" * 5000, "{", ""])
def test_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(NotTypedJson):
        read_typed(text)
