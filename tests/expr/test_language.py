"""The expression language: what parses, what is refused, and that nothing else ever comes out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.errors import ValidationFailed
from stator.expr.bind import bind_condition, bind_projection, bind_update
from stator.expr.condition import evaluate
from stator.expr.parser import parse_condition, parse_projection, parse_update
from stator.expr.paths import project
from stator.expr.update import PlannedUpdate

ITEM: dict[str, Any] = {
    "a": {"N": "5"},
    "s": {"S": "hello"},
    "l": {"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]},
    "m": {"M": {"x": {"S": "deep"}, "y": {"L": [{"S": "e"}]}}},
    "ss": {"SS": ["p", "q"]},
}
VALUES: dict[str, Any] = {
    ":five": {"N": "5"}, ":six": {"N": "6"}, ":one": {"N": "1"}, ":hel": {"S": "hel"},
    ":p": {"S": "p"},
    ":l": {"L": [{"N": "9"}]}, ":set": {"SS": ["q", "r"]}, ":t": {"S": "L"},
}  # fmt: skip


def holds(text: str) -> bool:
    return evaluate(bind_condition(parse_condition(text), {}, VALUES), ITEM)


@pytest.mark.parametrize(
    "text",
    [
        "a = :five", "a < :six AND a >= :five", "NOT a > :five", "a BETWEEN :one AND :six",
        "a IN (:one, :five)",
        "begins_with(s, :hel)", "contains(ss, :p)", "contains(l, :one)", "attribute_exists(m.y[0])",
        "attribute_not_exists(m.z)", "attribute_type(l, :t)", "size(l) < :five", "l[0] = :one",
        "zz <> :one",
        "a = :six OR a = :five AND s <> :hel", "(a = :six OR a = :five) AND (s <> :hel)",
        ":five = a",
        "not a = :six and a = :five", "size(s) = :five", "l[1] < l[2]",
    ],
)  # fmt: skip
def test_conditions_that_hold(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "a = :six",
        "zz = :one",
        "zz < :one",
        "s < :one",
        "l[7] = :one",
        "contains(s, :one)",
        "size(a) = :one",
    ],
)
def test_conditions_that_do_not(text: str) -> None:
    assert not holds(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "The expression can not be empty;"),
        ("a = = b", 'Syntax error; token: "=", near: "= = b"'),
        ("a =", 'Syntax error; token: "<EOF>", near: "="'),
        ("!!! INVALID !!!", 'Syntax error; token: "!", near: "!!"'),
        ("((a = :five))", "The expression has redundant parentheses;"),
        ("status = :five", "Attribute name is a reserved keyword; reserved keyword: status"),
        ("foo(a)", "Invalid function name; function: foo"),
        (
            "size(a)",
            "The function is not allowed to be used this way in an expression; function: size",
        ),
        ("a = :missing", "not defined; attribute value: :missing"),
        ("#a = :five", "not defined; attribute name: #a"),
        ("a < :l", "operator or function: <, operand type: L"),
        ("begins_with(a, :one)", "operator or function: begins_with, operand type: N"),
        ("contains(a)", "operator or function: contains, number of operands: 1"),
        ("attribute_exists(:one)", "requires a document path"),
        ("a = a", "The first operand must be distinct"),
        ("a BETWEEN :six AND :one", "upper bound to be greater than or equal to lower bound"),
        ("a BETWEEN :p AND :one", "same data type for lower and upper bounds"),
        ("a = :one AND", 'token: "<EOF>"'),
    ],
)
def test_conditions_that_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        holds(text)
    assert problem in caught.value.message


def updated(text: str) -> dict[str, Any]:
    item = {name: dict(value) for name, value in ITEM.items()}
    PlannedUpdate(bind_update(parse_update(text), {}, VALUES), item).carry_out(item)
    return item


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("SET a = a + :one", "a", {"N": "6"}),
        ("SET b = a, a = :one", "b", {"N": "5"}),
        ("SET b = if_not_exists(zz, :six)", "b", {"N": "6"}),
        (
            "SET l = list_append(l, :l)",
            "l",
            {"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}, {"N": "9"}]},
        ),
        ("SET l[9] = :six", "l", {"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}, {"N": "6"}]}),
        ("REMOVE l[0], l[2]", "l", {"L": [{"N": "2"}]}),
        ("SET m.x = :one REMOVE m.y", "m", {"M": {"x": {"N": "1"}}}),
        ("ADD a :one", "a", {"N": "6"}),
        ("ADD ss :set", "ss", {"SS": ["p", "q", "r"]}),
        ("DELETE ss :set", "ss", {"SS": ["p"]}),
    ],
)
def test_updates(text: str, name: str, value: dict[str, Any]) -> None:
    assert updated(text)[name] == value


def test_an_update_leaves_what_it_shares_with_the_old_item_alone() -> None:
    old = {"m": {"M": {"x": {"M": {"y": {"N": "1"}}}}}}
    new: dict[str, Any] = dict(old)
    text = "SET m.x.y = :one, m.x.z = :six REMOVE m.w"
    PlannedUpdate(bind_update(parse_update(text), {}, VALUES), new).carry_out(new)
    assert old == {"m": {"M": {"x": {"M": {"y": {"N": "1"}}}}}}
    assert new["m"]["M"]["x"]["M"]["z"] == {"N": "6"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SET a = zz", "refers to an attribute that does not exist in the item"),
        ("SET a = s + :one", "incorrect data type"),
        (
            "SET zz.b = :one",
            "document path provided in the update expression is invalid for update",
        ),
        ("SET a = :one, a = :six", "Two document paths overlap with each other"),
        ("SET m.x = :one, m[0] = :one", "Two document paths conflict with each other"),
        ("SET a = :one SET b = :one", 'The "SET" section can only be used once'),
        ("ADD a :p", "operator: ADD, operand type: STRING"),
        ("DELETE a :one", "operator: DELETE, operand type: NUMBER"),
    ],
)
def test_updates_that_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        updated(text)
    assert problem in caught.value.message


def test_a_projection_picks_and_closes_up() -> None:
    paths = bind_projection(parse_projection("#m.x, l[2], l[0], zz, m.q"), {"#m": "m"}).paths
    assert project(ITEM, paths) == {
        "m": {"M": {"x": {"S": "deep"}}},
        "l": {"L": [{"N": "1"}, {"N": "3"}]},
    }


words = st.sampled_from(
    ["a", "b", "#n", ":one", "=", "<", "<>", "(", ")", "AND", "OR", "NOT", "IN", "BETWEEN",
     "size", "contains", ",", ".",
     "[", "]", "0", "SET", "REMOVE", "ADD", "DELETE", "+", "-", "if_not_exists", "list_append",
     "!", "é", "_x", "status"]
)  # fmt: skip


@given(
    st.lists(words, max_size=12).map(" ".join),
    st.sampled_from(["condition", "update", "projection"]),
)
def test_whatever_is_written_either_works_or_is_refused(text: str, kind: str) -> None:
    try:
        if kind == "condition":
            evaluate(bind_condition(parse_condition(text), {"#n": "a"}, VALUES), ITEM)
        elif kind == "update":
            item = dict(ITEM)
            update = bind_update(parse_update(text), {"#n": "a"}, VALUES)
            PlannedUpdate(update, item).carry_out(item)
        else:
            project(ITEM, bind_projection(parse_projection(text), {"#n": "a"}).paths)
    except ValidationFailed:
        return
