"""ExecuteTransaction."""

from __future__ import annotations

from typing import Any

import pytest

from stator.engine import Engine
from stator.errors import (
    IdempotentParameterMismatch,
    ResourceNotFound,
    TransactionCanceled,
    ValidationFailed,
)
from stator.model.scope import Scope
from tests.engine.partiql.statements import NWF, Statements, n, s

FIRST = "Validation failed in TransactStatements[0]: "
READ = "SELECT * FROM things WHERE pk = 'a'"
WRITE = "UPDATE things SET z = 1 WHERE pk = 'a'"
MIXED = (
    "ExecuteTransaction API does not support both read and write operations in the same request."
)


@pytest.fixture
def things(db: Statements) -> Statements:
    db.put("things", pk=s("a"), v=n(1), m={"M": {"x": n(2)}})
    db.put("things", pk=s("b"), v=n(2))
    return db


def reasons(db: Statements, *statements: str | dict[str, Any]) -> list[dict[str, Any]]:
    with pytest.raises(TransactionCanceled) as caught:
        db.transact(*statements)
    codes = ", ".join(reason["Code"] for reason in caught.value.reasons)
    assert caught.value.message == (
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    )
    return caught.value.reasons


def refused(db: Statements, *statements: str | dict[str, Any]) -> str:
    with pytest.raises(ValidationFailed) as caught:
        db.transact(*statements)
    return caught.value.message


def test_writes_happen_together_and_answer_with_an_empty_list(things: Statements) -> None:
    answer = things.transact(
        "INSERT INTO things VALUE {'pk': 'c'}",
        "UPDATE things SET v = v + 1 WHERE pk = 'a'",
        "DELETE FROM things WHERE pk = 'b'",
        "DELETE FROM things WHERE pk = 'none' AND v = 1",
    )
    assert answer == {"Responses": []}
    stored = things.get("things", pk=s("a"))
    assert stored is not None and stored["v"] == n(2)
    assert things.get("things", pk=s("b")) is None
    assert things.get("things", pk=s("c")) == {"pk": s("c")}


def test_reads_answer_one_by_one(things: Statements) -> None:
    answer = things.transact(
        "SELECT m.x FROM things WHERE pk = 'a'",
        "SELECT * FROM things WHERE pk = 'none'",
        "SELECT * FROM things WHERE pk = 'b'",
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["Responses"] == [{"Item": {"x": n(2)}}, {}, {"Item": {"pk": s("b"), "v": n(2)}}]
    [report] = answer["ConsumedCapacity"]
    assert report == {"TableName": "things", "CapacityUnits": 6.0, "ReadCapacityUnits": 6.0}


def test_one_failure_cancels_the_whole_transaction(things: Statements) -> None:
    found = reasons(
        things,
        "INSERT INTO things VALUE {'pk': 'a'}",
        "UPDATE things SET v = 9 WHERE pk = 'none'",
        "DELETE FROM things WHERE pk = 'b'",
    )
    assert found == [
        {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"},
        {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"},
        {"Code": "None"},
    ]
    assert things.get("things", pk=s("b")) is not None


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO things VALUE {'pk': 5}",
        "UPDATE things SET v = 1 WHERE pk = 5",
        "DELETE FROM things WHERE pk = 5",
    ],
)
def test_a_key_of_the_wrong_type_cancels_it_too(things: Statements, statement: str) -> None:
    message = "Key attribute's data type should match its data type in table's schema: Key pk"
    assert reasons(things, WRITE, statement) == [
        {"Code": "None"},
        {"Code": "ValidationError", "Message": message},
    ]


def test_the_item_of_a_failed_condition_is_returned_when_asked_for(things: Statements) -> None:
    member = {
        "Statement": "UPDATE things SET v = 2 WHERE pk = ? AND v = ?",
        "Parameters": [s("b"), n(99)],
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    first, second = reasons(things, WRITE, member)
    assert first == {"Code": "None"}
    assert second["Item"] == {"pk": s("b"), "v": n(2)}


def test_exists_checks_an_item_without_changing_it(things: Statements) -> None:
    assert things.transact("EXISTS(SELECT * FROM things WHERE pk = 'b' AND v = 2)", WRITE) == {
        "Responses": []
    }
    assert things.transact("exists (select * from things where pk = 'b' and nope is missing)") == {
        "Responses": []
    }
    for condition in (
        "pk = 'b' AND v = 7",
        "pk = 'b' AND v IS MISSING",
        "pk = 'none' AND v IS MISSING",
    ):
        found = reasons(things, f"EXISTS(SELECT * FROM things WHERE {condition})", WRITE)
        assert [reason["Code"] for reason in found] == ["ConditionalCheckFailed", "None"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT * FROM things WHERE", NWF + "Unexpected term"),
        (
            f"{WRITE} RETURNING ALL NEW *",
            "RETURNING clause is not supported in ExecuteTransaction.",
        ),
        (
            "SELECT * FROM orders.\"gsi-all\" WHERE gsiPk = 'x'",
            "Reads on indices are not supported within transactions.",
        ),
        (
            "SELECT * FROM orders WHERE pk = 'p'",
            (
                "Select statements within ExecuteTransaction must specify the primary key in "
                "the where clause."
            ),
        ),
        (
            f"{READ} AND attribute_exists(v)",
            (
                "Select statements within ExecuteTransaction must specify the primary key in "
                "the where clause."
            ),
        ),
        (
            "EXISTS(SELECT * FROM things WHERE pk = 'b')",
            "EXISTS() must contain a single item read with additional condition",
        ),
        (
            "EXISTS(SELECT * FROM things WHERE v = 1)",
            "EXISTS() must contain a single item read with additional condition",
        ),
        (
            "UPDATE things SET v = ? WHERE pk = 'a'",
            "Number of parameters in request and statement don't match.",
        ),
        (
            "UPDATE things SET v = v + 'a' WHERE pk = 'a'",
            (
                "Incorrect operand type for operator or function; operator or function: +, "
                "operand type: S"
            ),
        ),
        (
            "UPDATE things SET v = 1 WHERE v = 1",
            "Where clause does not contain a mandatory equality on all key attributes",
        ),
    ],
)
def test_a_refused_statement_is_named_by_its_position(
    things: Statements, statement: str, message: str
) -> None:
    assert refused(things, statement) == FIRST + message
    if not statement.startswith("SELECT"):
        assert (
            refused(things, WRITE.replace("'a'", "'b'"), statement)
            == FIRST.replace("0", "1") + message
        )
        stored = things.get("things", pk=s("b"))
        assert stored is not None and "z" not in stored


def test_reads_and_writes_do_not_mix(things: Statements) -> None:
    assert refused(things, READ, WRITE) == MIXED
    assert refused(things, "EXISTS(SELECT * FROM things WHERE pk = 'b' AND v = 2)", READ) == MIXED


def test_an_item_is_named_once(things: Statements) -> None:
    message = "Transaction request cannot include multiple operations on one item"
    assert refused(things, WRITE, "DELETE FROM things WHERE pk = 'a'") == message
    assert refused(things, READ, READ) == message


def test_a_transaction_has_one_to_a_hundred_statements(things: Statements) -> None:
    assert "length greater than or equal to 1" in refused(things)
    assert "length less than or equal to 100" in refused(things, *[READ] * 101)
    things.transact(*[f"INSERT INTO things VALUE {{'pk': '{at}'}}" for at in range(100)])


def test_an_absent_table(things: Statements) -> None:
    with pytest.raises(ResourceNotFound):
        things.transact("SELECT * FROM never WHERE pk = 'x'")
    with pytest.raises(ResourceNotFound):
        things.transact(WRITE, "DELETE FROM never WHERE pk = 'x'")


def test_a_token_makes_a_transaction_happen_once(things: Statements) -> None:
    def increment(amount: int) -> dict[str, Any]:
        member = {
            "Statement": "UPDATE things SET v = v + ? WHERE pk = 'a'",
            "Parameters": [{"N": f"{amount}.0"}],
        }
        [report] = things.transact(
            member, ClientRequestToken="once", ReturnConsumedCapacity="INDEXES"
        )["ConsumedCapacity"]
        return dict(report)

    first, replay = increment(1), increment(1)
    assert first["WriteCapacityUnits"] == replay["ReadCapacityUnits"] == 2.0
    assert "ReadCapacityUnits" not in first
    assert "WriteCapacityUnits" not in replay
    stored = things.get("things", pk=s("a"))
    assert stored is not None and stored["v"] == n(2)
    with pytest.raises(IdempotentParameterMismatch):
        increment(2)


def test_a_transaction_under_way_is_a_conflict(engine: Engine, things: Statements) -> None:
    table = engine.database.catalog.find(_scope(engine), "things")
    assert table is not None
    with engine.database.transaction_locks.hold([table.encode_key({"pk": s("a")})]):
        [reason] = reasons(things, WRITE)
        assert reason["Code"] == "TransactionConflict"
        [answer] = things.batch(WRITE)["Responses"]
        assert answer["Error"]["Code"] == "TransactionConflict"


def _scope(engine: Engine) -> Scope:
    return next(engine.database.catalog.all()).scope
