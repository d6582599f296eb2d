"""BatchExecuteStatement."""

from __future__ import annotations

from typing import Any

import pytest

from stator.errors import ValidationFailed
from tests.engine.partiql.statements import NWF, Statements, n, s

KEY_ONLY = (
    "Select statements within BatchExecuteStatement must specify the primary key in the "
    "where clause."
)
READ = "SELECT * FROM things WHERE pk = 'a'"


@pytest.fixture
def things(db: Statements) -> Statements:
    db.put("things", pk=s("a"), v=n(1), m={"M": {"x": n(2)}})
    db.put("things", pk=s("b"), v=n(2))
    return db


def test_reads_answer_one_by_one(things: Statements) -> None:
    answer = things.batch(
        READ,
        "SELECT m.x FROM things WHERE pk = 'a' AND pk = 'a'".replace("'a'", "'b'"),
        "SELECT * FROM things WHERE pk = 'z'",
    )
    assert answer == {
        "Responses": [
            {"TableName": "things", "Item": {"pk": s("a"), "v": n(1), "m": {"M": {"x": n(2)}}}},
            {"TableName": "things", "Item": {}},
            {"TableName": "things"},
        ]
    }


def test_writes_answer_one_by_one(things: Statements) -> None:
    answer = things.batch(
        "INSERT INTO things VALUE {'pk': 'c'}",
        "UPDATE things SET v = 9 WHERE pk = 'a' RETURNING MODIFIED NEW *",
        "UPDATE things SET w = 9 WHERE pk = 'b' RETURNING MODIFIED OLD *",
        "FROM things WHERE pk = 'none' SET a = 1",
        "DELETE FROM things WHERE pk = 'd' RETURNING ALL OLD *",
    )
    failed = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
    assert answer["Responses"] == [
        {"TableName": "things"},
        {"TableName": "things", "Item": {"v": n(9)}},
        {"TableName": "things"},
        {"TableName": "things", "Error": failed},
        {"TableName": "things"},
    ]
    assert things.get("things", pk=s("c")) == {"pk": s("c")}


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ("SLECT * FROM things", "ValidationError", NWF + "Expected data manipulation"),
        ("SELECT * FROM things WHERE", "ValidationError", NWF + "Unexpected term"),
        ("SELECT * FROM never WHERE pk = 'x'", "ResourceNotFound", "Requested resource not found"),
        ("SELECT * FROM things WHERE v = 1", "ValidationError", KEY_ONLY),
        ("SELECT * FROM things", "ValidationError", KEY_ONLY),
        (
            "SELECT * FROM things WHERE pk = 'b' AND attribute_exists(v)",
            "ValidationError",
            KEY_ONLY,
        ),
        ("SELECT * FROM things WHERE pk IN ['b']", "ValidationError", KEY_ONLY),
        ("SELECT * FROM orders WHERE pk = 'p'", "ValidationError", KEY_ONLY),
        ('SELECT * FROM "orders"."gsi-all" WHERE gsiPk = \'x\'', "ValidationError", KEY_ONLY),
        (
            "SELECT * FROM \"orders\".\"gsi-all\" WHERE pk = 'p' AND sk = 's1' AND gsiPk = 'x'",
            "ValidationError",
            KEY_ONLY,
        ),
        (
            "EXISTS(SELECT * FROM things WHERE pk = 'b' AND v = 2)",
            "ValidationError",
            "EXISTS can only be used in ExecuteTransaction write requests.",
        ),
    ],
)
def test_one_bad_statement_leaves_the_others_running(
    things: Statements, statement: str, code: str, message: str
) -> None:
    bad, good = things.batch(statement, READ)["Responses"]
    assert bad == {"Error": {"Code": code, "Message": message}}
    assert good["Item"]["pk"] == s("a")


def test_a_failed_write_that_reached_its_table_names_it(things: Statements) -> None:
    taken, refused, wrong = things.batch(
        "INSERT INTO things VALUE {'pk': 'a'}",
        "UPDATE things SET v = 1 WHERE v = 1",
        "DELETE FROM things WHERE pk = 'b' RETURNING MODIFIED OLD *",
    )["Responses"]
    assert taken == {
        "TableName": "things",
        "Error": {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"},
    }
    assert refused["Error"]["Code"] == wrong["Error"]["Code"] == "ValidationError"
    assert "TableName" not in refused
    assert wrong["Error"]["Message"].startswith(
        "Invalid returning clause: RETURNING MODIFIED OLD *."
    )


@pytest.mark.parametrize("setting", ["ALL_OLD", "NONE"])
def test_the_item_of_a_failed_condition_is_not_returned(things: Statements, setting: str) -> None:
    member = {
        "Statement": "UPDATE things SET w = 1 WHERE pk = ? AND v = ?",
        "Parameters": [s("a"), n(77)],
        "ReturnValuesOnConditionCheckFailure": setting,
    }
    [answer] = things.batch(member)["Responses"]
    assert answer["Error"] == {
        "Code": "ConditionalCheckFailed",
        "Message": "The conditional request failed",
    }
    assert set(answer) == {"Error", "TableName"}


def test_reads_and_writes_do_not_mix(things: Statements) -> None:
    with pytest.raises(ValidationFailed, match="Read and write requests together"):
        things.batch(READ, "UPDATE things SET v = 5 WHERE pk = 'b'")
    assert things.get("things", pk=s("b")) == {"pk": s("b"), "v": n(2)}


@pytest.mark.parametrize(
    "statements",
    [(READ, READ), ("UPDATE things SET v = 5 WHERE pk = 'b'", "DELETE FROM things WHERE pk = 'b'")],
)
def test_an_item_is_named_once(things: Statements, statements: tuple[str, ...]) -> None:
    with pytest.raises(ValidationFailed) as caught:
        things.batch(*statements)
    assert caught.value.message == "Provided list of item keys contains duplicates"
    assert things.get("things", pk=s("b")) == {"pk": s("b"), "v": n(2)}


def test_a_batch_has_one_to_25_statements(things: Statements) -> None:
    with pytest.raises(ValidationFailed, match="length greater than or equal to 1"):
        things.batch()
    with pytest.raises(ValidationFailed, match="length less than or equal to 25"):
        things.batch(*[f"SELECT * FROM things WHERE pk = '{at}'" for at in range(26)])


def test_capacity_is_reported_per_table(things: Statements) -> None:
    def units(*members: str | dict[str, Any]) -> list[Any]:
        reports = things.batch(*members, ReturnConsumedCapacity="TOTAL")["ConsumedCapacity"]
        return [(report["TableName"], report["CapacityUnits"]) for report in reports]

    consistent = {"Statement": "SELECT * FROM things WHERE pk = 'b'", "ConsistentRead": True}
    assert units(READ) == [("things", 0.5)]
    assert units(consistent) == [("things", 1.0)]
    assert units(READ, consistent, "SELECT * FROM orders WHERE pk = 'p' AND sk = 's'") == [
        ("things", 1.5),
        ("orders", 0.5),
    ]
    assert units("UPDATE things SET v = 1 WHERE pk = 'a'", "DELETE FROM things WHERE pk = 'b'") == [
        ("things", 2.0)
    ]
