"""Parameters: how many, and how AWS reads the numbers in them (captured October 2026)."""

from __future__ import annotations

from typing import Any

import pytest

from stator.errors import ValidationFailed
from tests.engine.partiql.statements import POVI, Statements, n, s

NEST = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested "
    "levels beyond supported limit"
)
UNCONVERTIBLE = "The parameter cannot be converted to a numeric value"
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
POSITIONS = [
    "SELECT * FROM orders WHERE pk = 'a' AND v = ?",
    "INSERT INTO orders VALUE {'pk': 'a', 'sk': 's', 'v': ?}",
    "UPDATE orders SET v = ? WHERE pk = 'a' AND sk = 's'",
    "SELECT * FROM orders WHERE pk = ?",
]
PAIR = "SELECT * FROM orders WHERE pk = 'a' AND x = ? AND y = ?"


def deep(levels: int, leaf: dict[str, Any] | None = None) -> dict[str, Any]:
    value = leaf or s("leaf")
    for _ in range(levels):
        value = {"M": {"n": value}}
    return value


@pytest.mark.parametrize("statement", POSITIONS)
@pytest.mark.parametrize(
    "number",
    [
        "1e99999999999",
        "-1e99999999999",
        "1e-99999999999",
        "1e2147483648",
        "1e-2147483648",
        f"1e{'9' * 5000}",
    ],
)
def test_an_exponent_past_32_bits_is_no_number(db: Statements, statement: str, number: str) -> None:
    assert db.refused(statement, {"N": number}) == f"{UNCONVERTIBLE}: {number}"


@pytest.mark.parametrize("statement", POSITIONS)
def test_the_edges_of_that(db: Statements, statement: str) -> None:
    assert db.refused(statement, {"N": "1e2147483647"}) == UNDERFLOW
    assert db.refused(statement, {"N": "1e126"}) == OVERFLOW
    assert db.refused(statement, {"N": ""}) == UNCONVERTIBLE
    assert db.refused(statement, {"N": "abc"}) == f"{UNCONVERTIBLE}: abc"


@pytest.mark.parametrize(
    "value",
    [
        {"L": [n(1), {"N": "1e99999999999"}]},
        {"M": {"x": {"N": "1e99999999999"}}},
        {"NS": ["1", "1e99999999999"]},
    ],
)
def test_a_bad_number_is_found_inside_other_values(db: Statements, value: dict[str, Any]) -> None:
    assert db.refused(POSITIONS[0], value) == f"{UNCONVERTIBLE}: 1e99999999999"


@pytest.mark.parametrize("levels", [40, 100])
def test_the_first_fault_in_the_order_of_the_document_wins(db: Statements, levels: int) -> None:
    bad = {"N": "abc"}
    assert db.refused(PAIR, deep(levels), bad) == NEST
    assert db.refused(PAIR, bad, deep(levels)) == f"{UNCONVERTIBLE}: abc"
    assert db.refused(PAIR, {"M": {"d": deep(levels), "bad": bad}}, n(1)) == NEST
    assert db.refused(PAIR, {"M": {"bad": bad, "d": deep(levels)}}, n(1)) == f"{UNCONVERTIBLE}: abc"
    assert db.refused(PAIR, deep(levels, bad), n(1)) == NEST
    assert db.refused(PAIR, deep(levels), {"N": "1e126"}) == NEST


def test_in_a_batch_a_bad_parameter_is_its_statements_own(db: Statements) -> None:
    member = {"Statement": PAIR, "Parameters": [deep(40), {"N": "abc"}]}
    [answer] = db.batch(member)["Responses"]
    assert answer == {"Error": {"Code": "ValidationError", "Message": NEST}}


def test_in_a_transaction_a_bad_parameter_is_the_requests(db: Statements) -> None:
    member = {"Statement": POSITIONS[2], "Parameters": [{"N": "1e99999999999"}]}
    with pytest.raises(ValidationFailed) as caught:
        db.transact(member)
    assert caught.value.message == f"{UNCONVERTIBLE}: 1e99999999999"


def test_there_are_as_many_parameters_as_question_marks(db: Statements) -> None:
    message = "Number of parameters in request and statement don't match."
    assert db.refused("SELECT * FROM things WHERE pk = ?") == message
    assert db.refused("INSERT INTO things VALUE {'pk': ?, 'a': ?}", s("x")) == message


def test_parameters_are_values_and_nothing_else(db: Statements) -> None:
    assert (
        db.refused("SELECT * FROM things WHERE pk = 'a' AND m[?] = 1", n(0))
        == "Unexpected path component at 1:43:1"
    )
    assert db.refused("INSERT INTO things VALUE {'pk': 'x', 'l': [?]}", n(0)) == (
        "Unsupported data type: Parameter under key root.0 at 1:44:1"
    )
    assert db.refused("SELECT * FROM ?", s("things")) == "Unexpected from source"


def test_parameters_are_normalised(db: Statements) -> None:
    db.run(
        "INSERT INTO things VALUE {'pk': 'x', 'v': ?, 's': ?}", {"N": "+01.50"}, {"SS": ["b", "a"]}
    )
    assert db.items("SELECT v, s FROM things WHERE pk = 'x' AND v = ?", {"N": "15e-1"}) == [
        {"v": n("1.5"), "s": {"SS": ["a", "b"]}}
    ]
    assert db.refused("SELECT * FROM things WHERE a = ?", {"SS": ["b", "a", "b"]}) == (
        f"{POVI}Input collection [b, a, b] contains duplicates."
    )
