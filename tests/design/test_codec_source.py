"""Generated codecs do what the closures they replace do, whatever kind of class is nested."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal
from uuid import UUID

import pytest

from stator.design.entities.codec_source import is_plain
from stator.design.entities.entity import Entity, info
from stator.design.entities.markers import ident
from stator.design.entities.wire import decoder, encoder
from stator.errors import ItemMismatch


@dataclass
class Plain:
    name: str
    size: int = 3
    tags: set[str] = field(default_factory=set)
    note: str | None = None


@dataclass(frozen=True)
class Frozen:
    name: str


@dataclass(slots=True)
class Slotted:
    name: str
    size: int = 3


@dataclass
class Shouting:
    name: str

    def __post_init__(self) -> None:
        self.name = self.name.upper()


@dataclass
class Watched:
    name: str

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, f"set {value}" if not str(value).startswith("set ") else value)


class Handmade(Plain):
    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.made_by_hand = True


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Holder(Entity):
    key: str = ident()
    plain: Plain | None = None
    frozen: Frozen | None = None
    slotted: Slotted | None = None
    shouting: Shouting | None = None
    watched: Watched | None = None
    handmade: Handmade | None = None
    many: list[Plain] = field(default_factory=list)
    named: dict[str, Plain] = field(default_factory=dict)
    several: tuple[Frozen, ...] = ()
    words: set[str] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)
    amounts: frozenset[Decimal] = frozenset()
    raw: set[bytes] = field(default_factory=set)
    ids: set[UUID] = field(default_factory=set)
    colours: list[Colour] = field(default_factory=list)
    levels: set[Level] = field(default_factory=set)
    kind: Literal["a", "b"] = "a"
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)


def full() -> Holder:
    return Holder(
        key="k",
        plain=Plain("p", 1, {"t"}, "n"),
        frozen=Frozen("f"),
        slotted=Slotted("s", 2),
        shouting=Shouting("x"),
        watched=Watched("w"),
        handmade=Handmade(name="h"),
        many=[Plain("a"), Plain("b", note="c")],
        named={"x": Plain("y")},
        several=(Frozen("1"), Frozen("2")),
        words={"b", "a"},
        numbers={3, 1},
        amounts=frozenset({Decimal("1.5")}),
        raw={b"\x00"},
        ids={UUID(int=7)},
        colours=[Colour.RED],
        levels={Level.LOW},
        kind="b",
        at=datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))),
    )


def test_only_plain_classes_are_made_without_init() -> None:
    assert {
        cls: is_plain(cls) for cls in (Plain, Frozen, Slotted, Shouting, Watched, Handmade, Holder)
    } == {
        Plain: True,
        Frozen: True,
        Slotted: False,
        Shouting: False,
        Watched: False,
        Handmade: False,
        Holder: True,
    }


def test_generated_and_closures_agree() -> None:
    made, fields = full(), info(Holder).fields
    item = info(Holder).codec.encode(made)
    assert item == {
        name: encoder(field.shape)(getattr(made, name)) for name, field in fields.items()
    }
    read = info(Holder).codec.decode(item)
    assert {name: getattr(read, name) for name in fields} == {
        name: decoder(field.shape)(item[name]) for name, field in fields.items()
    }
    assert read == made
    assert (read.shouting.name, read.handmade.made_by_hand, read.at.tzinfo) == ("X", True, UTC)


def test_the_functions_of_single_fields_agree_with_the_closures() -> None:
    made, known = full(), info(Holder)
    item = known.codec.encode(made)
    for name, each in known.fields.items():
        value = getattr(made, name)
        assert known.codec.encode_field[name](value) == encoder(each.shape)(value), name
        assert known.codec.decode_field[name](item[name]) == decoder(each.shape)(item[name]), name


def test_a_wrong_single_field_is_named_with_what_was_expected() -> None:
    codec = info(Holder).codec
    with pytest.raises(ItemMismatch, match="expected one of 'a', 'b'") as caught:
        codec.decode_field["kind"]({"S": "z"})
    assert caught.value.field == "kind"
    with pytest.raises(ItemMismatch, match="does not fit the field's type"):
        codec.decode_field["plain"]({"S": "x"})


def test_absent_members_of_nested_objects_take_their_defaults() -> None:
    codec = info(Holder).codec
    read = codec.decode(
        {
            "key": {"S": "k"},
            "plain": {"M": {"name": {"S": "p"}}},
            "many": {"L": [{"M": {"name": {"S": "q"}}}]},
        }
    )
    assert read == Holder(key="k", plain=Plain("p"), many=[Plain("q")])
    assert read.plain.tags is not read.many[0].tags


def test_a_subclass_of_a_nested_class_is_stored_as_that_class() -> None:
    @dataclass
    class More(Plain):
        extra: int = 5

    item = info(Holder).codec.encode(Holder(key="k", plain=More("p")))
    assert item["plain"] == {"M": {"name": {"S": "p"}, "size": {"N": "3"}}}


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"plain": Plain(5)}, "plain", 5),  # type: ignore[arg-type]  # wrong on purpose
        ({"many": [Plain("a"), "b"]}, "many", "b"),
        ({"named": {"y": 3}}, "named", 3),
        ({"named": {"x": None}}, "named", None),
        ({"numbers": {"x"}}, "numbers", "x"),
        ({"colours": ["red"]}, "colours", "red"),
        ({"at": datetime(2026, 1, 1)}, "at", datetime(2026, 1, 1)),
        ({"several": (Frozen(None),)}, "several", None),  # type: ignore[arg-type]  # wrong on purpose
        ({"raw": [b""]}, "raw", [b""]),
        ({"kind": "c"}, "kind", "c"),
        ({"words": "abc"}, "words", "abc"),
        ({"words": ["a"]}, "words", ["a"]),
        ({"words": 5}, "words", 5),
        ({"words": {1}}, "words", 1),
    ],
)
def test_what_is_wrong_inside_is_named_by_its_field(
    change: dict[str, Any], field: str, value: Any
) -> None:
    with pytest.raises(ItemMismatch) as caught:
        info(Holder).codec.encode(dataclasses.replace(full(), **change))
    assert (caught.value.entity, caught.value.field, caught.value.value) == ("Holder", field, value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"plain": {"M": {}}}, "plain"),
        ({"many": {"L": [{"S": "x"}]}}, "many"),
        ({"colours": {"L": [{"S": "blue"}]}}, "colours"),
        ({"numbers": {"NS": ["x"]}}, "numbers"),
        ({"plain": {"S": "x"}}, "plain"),
        ({"at": {"N": "5"}}, "at"),
    ],
)
def test_what_is_wrong_in_a_stored_item_is_named_by_its_field(
    change: dict[str, Any], field: str
) -> None:
    codec = info(Holder).codec
    with pytest.raises(ItemMismatch) as caught:
        codec.decode({**codec.encode(full()), **change})
    assert (caught.value.entity, caught.value.field) == ("Holder", field)


def test_an_error_of_the_class_itself_keeps_its_cause() -> None:
    class Picky(Entity):
        key: str = ident()

        def __post_init__(self) -> None:
            raise ValueError(f"not {self.key}")

    with pytest.raises(ItemMismatch) as caught:
        info(Picky).codec.decode({"key": {"S": "k"}})
    assert str(caught.value.__cause__) == "not k"
