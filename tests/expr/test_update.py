"""Planned updates: the size of the finished item is known first, and nothing is copied twice."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.expr.bind import bind_update
from stator.expr.lexer import ExpressionError
from stator.expr.parser import parse_update
from stator.expr.update import PlannedUpdate
from stator.model.values import Item, item_size

ITEM: Item = {
    "n": {"N": "5"},
    "text": {"S": "grüße"},
    "set": {"SS": ["p", "q"]},
    "l": {"L": [{"N": "1"}, {"M": {"x": {"S": "e"}}}, {"L": [{"N": "2"}, {"N": "33"}]}]},
    "m": {"M": {"x": {"S": "deep"}, "y": {"L": [{"S": "e"}, {"BOOL": True}]}}},
}
VALUES: Item = {
    ":n": {"N": "1000"},
    ":l": {"L": [{"N": "9"}, {"S": "ü"}]},
    ":m": {"M": {"k": {"NULL": True}}},
    ":set": {"SS": ["q", "rr"]},
    ":all": {"SS": ["p", "q"]},
}
PATHS = [
    "n", "new", "text", "set", "l", "l[0]", "l[1]", "l[1].x", "l[1].w", "l[2]", "l[2][0]",
    "l[2][1]", "l[2][7]", "l[3]", "l[7]", "l[9]", "m", "m.x", "m.w", "m.y", "m.y[0]", "m.y[5]",
]  # fmt: skip
RIGHT_SIDES = [
    ":n", ":l", ":m", ":set", "l", "m", "m.y", "n + :n", "n - :n", "if_not_exists(n, :n)",
    "if_not_exists(zz, l)", "list_append(l, l)", "list_append(:l, m.y)", "list_append(l, :l)",
]  # fmt: skip


def planned(text: str, item: Item) -> PlannedUpdate:
    values = {name: value for name, value in VALUES.items() if name in text}
    return PlannedUpdate(bind_update(parse_update(text), {}, values), item)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    clauses: dict[str, list[str]] = {}
    for path in draw(st.lists(st.sampled_from(PATHS), min_size=1, max_size=6, unique=True)):
        verb = draw(st.sampled_from(["SET", "SET", "REMOVE", "ADD", "DELETE"]))
        right = {
            "SET": f"= {draw(st.sampled_from(RIGHT_SIDES))}",
            "ADD": draw(st.sampled_from([":n", ":set"])),
            "DELETE": draw(st.sampled_from([":set", ":all"])),
        }
        clauses.setdefault(verb, []).append(f"{path} {right.get(verb, '')}")
    return " ".join(f"{verb} {', '.join(parts)}" for verb, parts in clauses.items())


@given(expressions())
def test_the_growth_is_known_exactly_before_the_item_is_changed(text: str) -> None:
    old = deepcopy(ITEM)
    new = dict(old)
    try:
        plan = planned(text, new)
    except ExpressionError:
        return
    assert new == ITEM
    plan.carry_out(new)
    assert plan.growth == item_size(new) - item_size(ITEM)
    assert old == ITEM  # the old item is intact, although the new one shares values with it


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("REMOVE l[0], l[1].x", "l", {"L": [{"M": {}}, ITEM["l"]["L"][2]]}),
        ("REMOVE l[1], l[2][0]", "l", {"L": [{"N": "1"}, {"L": [{"N": "33"}]}]}),
        ("SET l[9] = :n REMOVE l[3]", "l", {"L": [*ITEM["l"]["L"], {"N": "1000"}]}),
        ("SET l[2][9] = :n REMOVE l[0]", "l", {
            "L": [ITEM["l"]["L"][1], {"L": [{"N": "2"}, {"N": "33"}, {"N": "1000"}]}]
        }),
    ],
)  # fmt: skip
def test_every_path_refers_to_the_item_before_the_update(
    text: str, name: str, value: dict[str, Any]
) -> None:
    new = deepcopy(ITEM)
    planned(text, new).carry_out(new)
    assert new[name] == value


@pytest.mark.parametrize(
    "right", ["l", "if_not_exists(zz, l)", "m.y", ":l", "if_not_exists(zz, :l)", ":m"]
)
def test_a_value_that_is_set_is_shared(right: str) -> None:
    new = deepcopy(ITEM)
    planned(f"SET a = {right}, b = {right}", new).carry_out(new)
    assert new["a"] is new["b"]


class Counted(list[Any]):
    """A list that counts how often somebody goes through it."""

    walks = 0

    def __iter__(self) -> Iterator[Any]:
        Counted.walks += 1
        return super().__iter__()

    def copy(self) -> Counted:
        Counted.walks += 1
        return Counted(self[:])


def walks(text: str) -> int:
    item: Item = {
        "l": {"L": Counted({"N": "1"} for _ in range(50))},
        "m": {"M": {"l": {"L": Counted({"N": "1"} for _ in range(50))}}},
    }
    Counted.walks = 0
    plan = planned(text, item)
    plan.depth()
    plan.carry_out(item)
    return Counted.walks


@pytest.mark.parametrize("clause", ["l[{}] = :n", "m.l[{}] = :n", "m.k{} = :n", "l[9{}] = :n"])
def test_a_list_is_gone_through_once_however_many_places_in_it_change(clause: str) -> None:
    one = walks("SET " + clause.format(0))
    assert walks("SET " + ", ".join(clause.format(at) for at in range(40))) == one


@pytest.mark.parametrize(
    "clause", ["a{} = l", "a{} = if_not_exists(z, l)", "a{} = list_append(l, :l)", "m.a{} = l"]
)
def test_the_growth_by_copies_is_known_after_one_measurement(clause: str) -> None:
    def growth_and_walks(count: int) -> tuple[int, int]:
        item: Item = {"l": {"L": Counted({"N": "1"} for _ in range(50))}, "m": {"M": {}}}
        Counted.walks = 0
        plan = planned("SET " + ", ".join(clause.format(at) for at in range(count)), item)
        return plan.growth, Counted.walks

    one, many = growth_and_walks(1), growth_and_walks(40)
    assert many[1] == one[1]
    assert many[0] > 39 * one[0]
