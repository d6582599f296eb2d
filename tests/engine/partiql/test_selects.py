"""SELECT: conditions, projections, plans, order and pages."""

from __future__ import annotations

from typing import Any

import pytest

from stator.errors import ValidationFailed
from tests.engine.partiql.statements import Statements, n, s

KEY_TYPE = "Key attribute's data type should match its data type in table's schema: Key "
OVERLAPPING = "Overlapping conditions with range keys are not supported in where clause"


@pytest.fixture
def orders(db: Statements) -> Statements:
    for sk in "1234":
        db.put("orders", pk=s("p"), sk=s(sk), v=n(sk), tag=s(f"t{sk}"))
    db.put("orders", pk=s("q"), sk=s("2"), v=n(9))
    return db


@pytest.fixture
def thing(db: Statements) -> Statements:
    db.put(
        "things",
        pk=s("a"),
        text=s("str"),
        num=n(5),
        flag={"BOOL": True},
        nul={"NULL": True},
        ss={"SS": ["a", "b", "c"]},
        m={"M": {"sub": s("x"), "l": {"L": [n(10), n(20)]}}},
        bin={"B": "AQID"},
    )
    return db


def holds(db: Statements, condition: str, *parameters: dict[str, Any]) -> bool:
    return len(db.items(f"SELECT pk FROM things WHERE pk = 'a' AND {condition}", *parameters)) == 1


@pytest.mark.parametrize(
    "condition",
    [
        "attribute_exists(ss)",
        "NOT attribute_exists(nope)",
        "attribute_not_exists(nope)",
        'ATTRIBUTE_EXISTS("ss")',
        "(attribute_exists(nope) OR attribute_exists(ss))",
        "attribute_exists(ss) = true",
        "attribute_exists(nope) = false",
        "true <> attribute_exists(nope)",
        "attribute_exists(m.sub)",
        "attribute_exists(m['l'][1])",
        "size(text) = 3",
        "size(text) BETWEEN 1 AND 3",
        "size(ss) IN [3, 4]",
        "attribute_type(ss, 'SS')",
        "begins_with(text, 'st')",
        "NOT begins_with(text, 'x')",
        "contains(text, 'tr')",
        "contains(ss, 'b')",
        "nul IS NULL",
        "nul = null",
        "text IS NOT NULL",
        "nope IS NOT NULL",
        "nope IS MISSING",
        "text IS NOT MISSING",
        "flag IS BOOL",
        "flag IS BOOLEAN",
        "flag = true",
        "text IS STRING",
        "num IS NUMERIC",
        "m IS STRUCT",
        "m IS TUPLE",
        "m.l IS LIST",
        "bin IS BLOB",
        "num <> 4",
        "num != 4",
        "nope <> 4",
        "num > 4 AND num >= 5 AND num < 6 AND num <= 5",
        "4 < num",
        "num BETWEEN 5 AND 6",
        "num NOT BETWEEN 6 AND 7",
        "num IN [4, 5]",
        "num IN (4, 5)",
        "num NOT IN [4, 6]",
        "ss = <<'c', 'b', 'a'>>",
        "m.l = [10, 20]",
        "m = {'l': [10, 20], 'sub': 'x'}",
        "(num = 5) = true",
        "NOT NOT num = 5",
        "1 = 1",
    ],
)
def test_conditions_that_hold(thing: Statements, condition: str) -> None:
    assert holds(thing, condition)
    assert not holds(thing, f"NOT ({condition})")


@pytest.mark.parametrize(
    "condition",
    [
        "attribute_exists(nope)",
        "attribute_exists(m.nope)",
        "size(text) = 4",
        "size(num) = 1",
        "text IS NULL",
        "nope IS NULL",
        "text IS BOOL",
        "m.l = [20, 10]",
        "PK = 'a'",
        "text < num",
        "nope < 5",
    ],
)
def test_conditions_that_do_not_hold(thing: Statements, condition: str) -> None:
    assert not holds(thing, condition)


@pytest.mark.parametrize("kind", ["SS", "NS", "BS"])
def test_sets_compare_whatever_their_order(db: Statements, kind: str) -> None:
    first, second = {"SS": ("a", "b"), "NS": ("1", "2"), "BS": ("AQI=", "AwQ=")}[kind]
    db.put("things", pk=s("a"), val={kind: [first, second]})
    assert holds(db, "val = ?", {kind: [second, first]})
    assert not holds(db, "val <> ?", {kind: [second, first]})
    assert not holds(db, "val = ?", {kind: [first]})


UNORDERED: list[dict[str, Any]] = [
    {"BOOL": True},
    {"NULL": True},
    {"L": [{"S": "a"}]},
    {"M": {"a": {"S": "b"}}},
    {"SS": ["a"]},
    {"NS": ["1"]},
    {"BS": ["AQ=="]},
]


@pytest.mark.parametrize("value", UNORDERED)
def test_only_texts_numbers_and_bytes_have_an_order(db: Statements, value: dict[str, Any]) -> None:
    [kind] = value
    for operator in ("<", "<=", ">", ">="):
        assert db.refused(f"SELECT pk FROM never WHERE val {operator} ?", value) == (
            "Incorrect operand type for operator or function; operator or function: "
            f"{operator}, operand type: {kind}"
        )
    assert "operator or function: BETWEEN" in db.refused(
        "SELECT pk FROM never WHERE v BETWEEN ? AND ?", value, value
    )
    assert db.items("SELECT pk FROM things WHERE pk = 'x' AND val = ?", value) == []


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (
            "attribute_exists('ss')",
            "Operator or function requires a document path; operator or function: attribute_exists",
        ),
        (
            "attribute_exists()",
            (
                "Incorrect number of operands for operator or function; operator or function: "
                "attribute_exists, number of operands: 0"
            ),
        ),
        (
            "attribute_exists(ss, ns)",
            (
                "Incorrect number of operands for operator or function; operator or function: "
                "attribute_exists, number of operands: 2"
            ),
        ),
        ("EXISTS(ss)", "Unrecognized function: exists at 1:41:6"),
        ("set_add(ss, <<'x'>>) = ss", "Unrecognized function: set_add at 1:41:7"),
        ("Foo(ss)", "Unrecognized function: foo at 1:41:3"),
        (
            "if_not_exists(a, 1) = 1",
            "The function is not allowed in a condition expression; function: if_not_exists",
        ),
        (
            "a = a",
            (
                "The first operand must be distinct from the remaining operands for this "
                "operator or function; operator: =, first operand: [a]"
            ),
        ),
        (
            "a IS INT",
            (
                "Unsupported data type for IS operator: INTEGER. Supported data types are "
                "[MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST] at 1:43:2"
            ),
        ),
        (
            "a IN []",
            (
                "IN operator must have a left hand argument of type Variable Reference and "
                "right hand argument of type Seq with at least one member"
            ),
        ),
        (
            "pk = 'b' AND begins_with(a, 5)",
            (
                "Incorrect operand type for operator or function; operator or function: "
                "begins_with, operand type: N"
            ),
        ),
    ],
)
def test_an_invalid_condition_is_refused(db: Statements, condition: str, message: str) -> None:
    assert db.refused(f"SELECT * FROM things WHERE pk = 'a' AND {condition}") == message


def test_a_function_takes_no_parameter_for_a_path(db: Statements) -> None:
    assert db.refused("SELECT * FROM things WHERE attribute_exists(?)", s("ss")) == (
        "Operator or function requires a document path; operator or function: attribute_exists"
    )


# -- projections


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("num, text", {"num": n(5), "text": s("str")}),
        ("m.sub", {"sub": s("x")}),
        ("m.l[1]", {"l[1]": n(20)}),
        ("m['sub'], m.l[0]", {"sub": s("x"), "l[0]": n(10)}),
        ("nope", {}),
        ("m.nope, num", {"num": n(5)}),
    ],
)
def test_a_selected_path_comes_back_by_its_last_part(
    thing: Statements, columns: str, expected: dict[str, Any]
) -> None:
    assert thing.items(f"SELECT {columns} FROM things WHERE pk = 'a'") == [expected]


def test_paths_inside_one_another_are_refused(thing: Statements) -> None:
    assert thing.refused("SELECT m, m.sub FROM things WHERE pk = 'a'").startswith(
        "Two document paths overlap"
    )
    assert thing.refused("SELECT pk.a FROM things").startswith("Key attributes must be scalars")


def test_a_select_without_matches_returns_an_empty_list(db: Statements) -> None:
    assert db.run("SELECT * FROM things WHERE pk = 'none'") == {"Items": []}


# -- plans

PLANS = [
    ("pk = 'p'", ["p1", "p2", "p3", "p4"], 1),
    ("'p' = pk", ["p1", "p2", "p3", "p4"], 1),
    ("pk = 'p' AND sk = '2'", ["p2"], 1),
    ("pk = 'p' AND sk > '1' AND sk < '4'", ["p2", "p3"], 1),
    ("pk = 'p' AND sk BETWEEN '2' AND '3'", ["p2", "p3"], 1),
    ("pk = 'p' AND begins_with(sk, '2')", ["p2"], 1),
    ("pk = 'p' AND sk IN ['3', '1', '3', '9']", ["p1", "p3"], 1),
    ("pk = 'p' AND (sk = '3' OR sk = '1')", ["p1", "p3"], 1),
    ("pk IN ['q', 'p', 'p'] AND sk = '2'", ["p2", "q2"], 1),
    ("pk IN ('q', 'p') AND sk > '2'", ["p3", "p4"], 1),
    ("pk = 'p' AND sk = '3' OR pk = 'q'", ["p3", "q2"], 1),
    ("(pk = 'p' OR pk = 'q') AND v = 9", ["q2"], 1),
    ("pk = 'p' AND sk > '3' OR pk = 'p' AND sk < '2'", ["p1", "p4"], 1),
    ("pk = 'p' AND v = 1 OR pk = 'p' AND v = 2", ["p1", "p2"], 1),
    ("pk = 'p' AND sk = '1' OR pk = 'p' AND sk = '1'", ["p1"], 1),
    ("pk = 'p' AND pk = 'q'", [], 1),
    ("pk = 'p' AND sk > '3' AND sk < '2'", [], 1),
    ("pk = 'p' OR v = 9", ["p1", "p2", "p3", "p4", "q2"], 0),
    ("pk > 'p'", ["q2"], 0),
    ("v = 9", ["q2"], 0),
    ("NOT pk = 'p'", ["q2"], 0),
]


@pytest.mark.parametrize(("where", "expected", "ordered"), PLANS)
def test_every_plan_finds_all_matching_items(
    orders: Statements, where: str, expected: list[str], ordered: int
) -> None:
    found = [
        item["pk"]["S"] + item["sk"]["S"]
        for item in orders.items(f"SELECT * FROM orders WHERE {where}")
    ]
    assert (found if ordered else sorted(found)) == expected


@pytest.mark.parametrize(("where", "expected", "ordered"), PLANS)
def test_pages_of_one_put_together_are_the_whole(
    orders: Statements, where: str, expected: list[str], ordered: int
) -> None:
    pages = orders.all_items(f"SELECT pk, sk FROM orders WHERE {where}", limit=1)
    found = [item["pk"]["S"] + item["sk"]["S"] for page in pages for item in page]
    assert all(len(page) <= 1 for page in pages)
    assert (found if ordered else sorted(found)) == expected


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ("pk = 'p' AND NOT sk = '1'", ["2", "3", "4"]),
        ("pk = 'p' AND sk <> '1'", ["2", "3", "4"]),
        ("pk = 'p' AND NOT begins_with(sk, 'x')", ["1", "2", "3", "4"]),
        ("pk = 'p' AND NOT sk IN ['1', '3']", ["2", "4"]),
        ("pk = 'p' AND NOT sk > '5'", ["1", "2", "3", "4"]),
        ("pk = 'p' AND NOT (sk = '1')", ["2", "3", "4"]),
    ],
)
def test_a_negated_sort_key_may_stand_beside_another(
    orders: Statements, left: str, expected: list[str]
) -> None:
    items = orders.items(f"SELECT sk FROM orders WHERE {left} OR pk = 'p' AND sk = '2'")
    assert [item["sk"]["S"] for item in items] == expected


@pytest.mark.parametrize(
    "where",
    [
        "pk = 'a' AND x = '1' OR pk = 'a' AND sk = '2'",
        "pk = 'a' AND x <> '1' OR pk = 'a' AND sk = '2'",
        "pk = 'a' AND sk > '1' OR pk = 'a' AND sk < '3'",
    ],
)
def test_alternatives_that_overlap_on_the_sort_key_are_refused(db: Statements, where: str) -> None:
    assert db.refused(f"SELECT * FROM orders WHERE {where}") == OVERLAPPING


def test_a_key_is_compared_with_its_own_type_only(orders: Statements) -> None:
    assert orders.refused("SELECT * FROM orders WHERE pk = 5") == f"{KEY_TYPE}pk"
    assert orders.refused("SELECT * FROM orders WHERE pk IN [5]") == f"{KEY_TYPE}pk"
    assert orders.refused("SELECT * FROM orders WHERE pk = 'p' AND sk > 5") == f"{KEY_TYPE}sk"
    assert orders.refused("SELECT * FROM orders WHERE sk = 5").endswith(
        "does not match schema type"
    )
    assert orders.refused("SELECT * FROM orders WHERE pk = ''") == (
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: pk"
    )


# -- order


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("pk = 'p' ORDER BY sk DESC", ["p4", "p3", "p2", "p1"]),
        ("pk = 'p' ORDER BY sk ASC", ["p1", "p2", "p3", "p4"]),
        ("pk = 'p' ORDER BY pk", ["p1", "p2", "p3", "p4"]),
        ("pk IN ['p', 'q'] ORDER BY pk DESC", ["q2", "p1", "p2", "p3", "p4"]),
        ("pk IN ['p', 'q'] ORDER BY pk DESC, sk DESC", ["q2", "p4", "p3", "p2", "p1"]),
        ("pk IN ['p', 'q'] ORDER BY sk", ["p1", "p2", "q2", "p3", "p4"]),
        ("pk IN ['p', 'q'] ORDER BY sk DESC", ["p4", "p3", "p2", "q2", "p1"]),
        ("pk = 'p' AND sk IN ['1', '3'] ORDER BY sk DESC", ["p3", "p1"]),
    ],
)
def test_order_by(orders: Statements, clauses: str, expected: list[str]) -> None:
    statement = f"SELECT pk, sk FROM orders WHERE {clauses}"
    assert [item["pk"]["S"] + item["sk"]["S"] for item in orders.items(statement)] == expected
    paged = [item for page in orders.all_items(statement, limit=1) for item in page]
    assert [item["pk"]["S"] + item["sk"]["S"] for item in paged] == expected


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("", "Must have WHERE clause in the statement when using ORDER BY clause."),
        (
            "WHERE v = 1",
            (
                "Must have at least one non-optional hash key condition in WHERE clause when "
                "using ORDER BY clause."
            ),
        ),
    ],
)
def test_order_by_needs_a_partition(orders: Statements, clauses: str, message: str) -> None:
    assert orders.refused(f"SELECT * FROM orders {clauses} ORDER BY sk") == message


def test_order_by_takes_keys_only(orders: Statements) -> None:
    assert orders.refused("SELECT * FROM orders WHERE pk = 'p' ORDER BY v") == (
        "Variable reference v in ORDER BY clause must be part of the primary key"
    )
    assert orders.refused("SELECT * FROM orders WHERE pk = 'p' ORDER BY m.a") == (
        "Argument to ORDER BY must be of type VariableReference. Type: PATH"
    )


# -- pages and tokens


def test_a_page_ends_with_a_token_and_its_last_key(orders: Statements) -> None:
    first = orders.run("SELECT sk FROM orders WHERE pk = 'p'", Limit=2)
    assert [item["sk"]["S"] for item in first["Items"]] == ["1", "2"]
    assert first["LastEvaluatedKey"] == {"pk": s("p"), "sk": s("2")}
    second = orders.run("SELECT sk FROM orders WHERE pk = 'p'", NextToken=first["NextToken"])
    assert [item["sk"]["S"] for item in second["Items"]] == ["3", "4"]
    assert "NextToken" not in second


def test_the_limit_counts_items_before_the_filter(orders: Statements) -> None:
    page = orders.run("SELECT sk FROM orders WHERE pk = 'p' AND v = 4", Limit=2)
    assert page["Items"] == []
    assert "NextToken" in page


def test_one_item_by_its_key_is_never_half_a_page(orders: Statements) -> None:
    assert "NextToken" not in orders.run(
        "SELECT * FROM orders WHERE pk = 'p' AND sk = '1'", Limit=1
    )


def test_a_page_holds_about_a_megabyte(db: Statements) -> None:
    for at in range(5):
        db.put("orders", pk=s("big"), sk=s(str(at)), blob=s("x" * 300_000))
    page = db.run("SELECT sk FROM orders WHERE pk = 'big'", ReturnConsumedCapacity="TOTAL")
    assert len(page["Items"]) == 4
    assert page["ConsumedCapacity"]["CapacityUnits"] > 100
    rest = db.run("SELECT sk FROM orders WHERE pk = 'big'", NextToken=page["NextToken"])
    assert [item["sk"]["S"] for item in rest["Items"]] == ["4"]


def test_a_token_belongs_to_its_statement_and_parameters(orders: Statements) -> None:
    token = orders.run("SELECT sk FROM orders WHERE pk = ?", s("p"), Limit=1)["NextToken"]
    other = "NextToken does not match request"
    assert orders.refused("SELECT pk FROM orders WHERE pk = ?", s("p"), NextToken=token) == other
    assert orders.refused("SELECT sk FROM orders WHERE pk = ?", s("q"), NextToken=token) == other
    for garbage in ("garbage", "e30=", "bnVsbA==", token[:-8] + "AAAAAAAA", "\u00e9"):
        assert (
            orders.refused("SELECT sk FROM orders WHERE pk = ?", s("p"), NextToken=garbage)
            == "Invalid NextToken"
        )


def test_a_limit_is_at_least_one(db: Statements) -> None:
    with pytest.raises(ValidationFailed, match="greater than or equal to 1"):
        db.run("SELECT * FROM things", Limit=0)


def test_reads_are_charged_as_reads_are(orders: Statements) -> None:
    def units(statement: str, **options: Any) -> Any:
        return orders.run(statement, ReturnConsumedCapacity="INDEXES", **options)[
            "ConsumedCapacity"
        ]

    single = "SELECT * FROM orders WHERE pk = 'p' AND sk = '1'"
    assert units(single) == {
        "TableName": "orders",
        "CapacityUnits": 0.5,
        "Table": {"CapacityUnits": 0.5},
    }
    assert units(single, ConsistentRead=True)["CapacityUnits"] == 1.0
    assert units("SELECT * FROM orders WHERE pk = 'none'")["CapacityUnits"] == 0.5
