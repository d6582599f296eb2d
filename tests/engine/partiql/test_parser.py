"""The grammar of statements, and AWS's words for syntax errors (captured in October 2026)."""

from __future__ import annotations

import pytest

from stator.errors import ResourceNotFound
from tests.engine.partiql.statements import LEFTOVER, NWF, Statements, n, s

OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
DIGITS = "Attempting to store more than 38 significant digits in a Number"
NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"
ALIASING = "Aliasing is not supported"
NOT_BOOLEAN = "WHERE clause must contain an expression that resolves to a boolean"


@pytest.mark.parametrize(
    "literal", ["7.31e6", "7.31E6", "7.31e+6", "731e4", "73100000e-1", "+7310000", "- -7310000"]
)
def test_a_number_may_be_written_in_many_ways(db: Statements, literal: str) -> None:
    db.put("numbers", pk=n(7310000))
    assert db.items(f'SELECT * FROM "numbers" WHERE pk = {literal}') == [{"pk": n(7310000)}]


def test_a_number_needs_no_digit_before_its_point(db: Statements) -> None:
    db.run("INSERT INTO numbers VALUE {'pk': .7325e1}")
    db.run("INSERT INTO numbers VALUE {'pk': -.73e1}")
    assert db.items("SELECT * FROM numbers WHERE pk = 7.325") == [{"pk": n("7.325")}]
    assert db.items("SELECT * FROM numbers WHERE pk = -.73e1") == [{"pk": n("-7.3")}]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM things WHERE pk = 'a' -- a note",
        "SELECT * FROM things -- a note\nWHERE pk = 'a'",
        "-- a note\nSELECT * FROM things WHERE pk = 'a'",
        "SELECT * FROM things /* a\nnote */ WHERE pk = 'a' /**/",
        'select * from "things" where "pk" = \'a\';',
        "SELECT * FROM things WHERE @pk = 'a'",
    ],
)
def test_comments_and_case_and_a_closing_semicolon_change_nothing(
    db: Statements, statement: str
) -> None:
    db.put("things", pk=s("a"))
    db.put("things", pk=s("b"))
    assert db.items(statement) == [{"pk": s("a")}]


def test_a_quote_inside_a_text_is_doubled(db: Statements) -> None:
    db.run("""INSERT INTO things VALUE {'pk': 'it''s', 'a"b': 1}""")
    assert db.items("""SELECT "a""b" FROM things WHERE pk = 'it''s'""") == [{'a"b': n(1)}]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM numbers WHERE pk = 1 foo",
        "SELECT * FROM numbers WHERE pk = 1 e5",
        "SELECT * FROM numbers WHERE pk = 1)",
        "SELECT * FROM numbers ORDER BY pk WHERE pk = 1",
        "INSERT INTO numbers VALUE {'pk': 1} foo",
        "INSERT INTO things t VALUE {'pk': 'x'}",
        "UPDATE numbers SET a = 9 WHERE pk = 1 foo",
        "DELETE FROM numbers WHERE pk = 1 foo",
        "DELETE FROM numbers WHERE pk = 1 ORDER BY pk",
        "FROM things SET c = 1 WHERE pk = 'x'",
        "FROM things SET c = 1 WHERE pk = 'x' SET d = 2",
        "SELECT * FROM things; SELECT * FROM things",
        "SELECT * FROM things;;",
    ],
)
def test_nothing_may_follow_a_statement(db: Statements, statement: str) -> None:
    assert db.refused(statement) == LEFTOVER


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM numbers WHERE pk = 1e2147483648",
        "SELECT * FROM numbers WHERE pk = 1e99999999999",
        "SELECT * FROM numbers WHERE pk = 1.5e-2147483647",
        f"SELECT * FROM numbers WHERE pk = 1e{'9' * 5000}",
        "SELECT * FROM numbers WHERE pk = 1 # note",
        "SELECT * FROM numbers WHERE pk = 1 /* note",
        "SELECT * FROM numbers WHERE pk = 'open",
        'SELECT * FROM "numbers WHERE pk = 1',
        "SELECT * FROM numbers WHERE pk = 1a",
    ],
)
def test_unreadable_text_gets_the_general_error(db: Statements, statement: str) -> None:
    assert db.refused(statement) == NWF


@pytest.mark.parametrize(
    ("statement", "detail"),
    [
        ("SELECT * FROM things WHERE", "Unexpected term"),
        ("SELECT * FROM things WHERE;", "Unexpected term"),
        ("SELECT * FROM things WHERE   ", "Unexpected term"),
        ("UPDATE things SET a = 1 WHERE", "Unexpected term"),
        ("DELETE FROM things WHERE", "Unexpected term"),
        ("SELECT * FROM things WHERE NOT", "Unexpected term"),
        ("SELECT * FROM things WHERE (", "Unexpected term"),
        ("SELECT * FROM never-created WHERE", "Unexpected term"),
        ("SELECT * FROM", "Unexpected term"),
        (
            "SELECT * FROM things WHERE pk = 'a' AND",
            "Missing right-hand side expression of infix operator",
        ),
        (
            "SELECT * FROM things WHERE pk = 'a' OR",
            "Missing right-hand side expression of infix operator",
        ),
        ("SELECT * FROM things WHERE ORDER BY pk", "Unexpected keyword"),
        ("SELECT * FROM things WHERE IS NULL", "Unexpected operator"),
        ("SELECT * FROM things WHERE pk = LIKE", "Unexpected operator"),
        ("SELECT * FROM things WHERE x IS FOO", "Expected type name"),
        ("SELECT * FROM things WHERE x IS 'STRING'", "Expected type name"),
        ("SELECT * FROM things WHERE m.inner = 1", "Invalid path dot component"),
        ("SELECT * FROM things WHERE date = 1", "Unexpected keyword"),
        ("SELECT * FROM (SELECT * FROM things)", "Expected RIGHT_PAREN"),
        ("SELECT * FROM things WHERE (pk = 'a'", "Expected RIGHT_PAREN"),
        ("DELETE FROM", "Expected identifier for simple path"),
        ("DELETE FROM   ", "Expected identifier for simple path"),
        ("DELETE FROM;", "Expected identifier for simple path"),
        ("DELETE FROM WHERE pk = 'a'", "Expected identifier for simple path"),
        ("SLECT * FROM things WHERE pk = 'a'", "Expected data manipulation"),
        ("UPDATE things WHERE pk = 'a'", "Expected data manipulation"),
        ("SELECTT * FROMM things", "Unexpected token after expression"),
        ("", None),
    ],
)
def test_syntax_errors_are_worded_as_on_aws(
    db: Statements, statement: str, detail: str | None
) -> None:
    message = db.refused(statement)
    if detail is None:
        assert message.startswith(
            "1 validation error detected: Value '' at 'statement' failed to satisfy constraint"
        )
    else:
        assert message == NWF + detail


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT * FROM things t WHERE pk = 'x'", ALIASING),
        ("SELECT * FROM things AS t WHERE pk = 'x'", ALIASING),
        ("UPDATE things t SET a = 3 WHERE pk = 'x'", ALIASING),
        ("DELETE FROM things t WHERE pk = 'x'", ALIASING),
        ("SELECT pk AS key FROM things", NWF + "Expected identifier for alias"),
        ("SELECT pk AS k FROM things", ALIASING),
        ("SELECT * FROM things, orders", "Only select from a single table or index is supported."),
        ("SELECT * FROM things LIMIT 1", "Unsupported clause: LIMIT at 1:28:1"),
        ("SELECT * FROM things GROUP BY a", "Unsupported clause: GROUP BY"),
        ("SELECT DISTINCT a FROM things", "Unsupported token in expression: DISTINCT"),
        ("SELECT VALUE a FROM things", "Select projection doesn't support value or pivot keywords"),
        ("SELECT attribute_exists(ss) FROM things", "Unexpected path component at 1:8:16"),
        ("SELECT COUNT(*) FROM things", "Unexpected path component at 1:8:5"),
        ("SELECT a, a FROM things", "Duplicate identifiers in select clause: a"),
        ("SELECT * FROM 'things'", "Unexpected from source"),
        ('SELECT * FROM ""', "Path component cannot be an empty string"),
        ('SELECT * FROM things.""', "Path component cannot be an empty string"),
        ("SELECT * FROM a.b.c", "A path may contain at most 2 components in the FROM clause"),
        ("SELECT * FROM things WHERE pk", NOT_BOOLEAN),
        ("SELECT * FROM things WHERE true", NOT_BOOLEAN),
        ("SELECT * FROM things WHERE size(a)", NOT_BOOLEAN),
        ("SELECT * FROM things WHERE a = missing", "MISSING must be compared using IS operator"),
        (
            "SELECT * FROM things WHERE a = 1 + 1",
            "Unsupported operator in Condition Expression. Operator: +",
        ),
        (
            "SELECT * FROM things WHERE a LIKE 'x'",
            "Unsupported operator in Condition Expression. Operator: like",
        ),
        (
            "SELECT * FROM things WHERE a.b[*] = 1",
            "Wildcard path component like a[*].b are not supported at 1:32:1",
        ),
        ("x IS INT4", "Unsupported operation: IsType"),
        ("x IS INT8", "Unsupported operation: IsType"),
        ("x IS DOUBLE PRECISION", "Unsupported operation: IsType"),
        ("x IS CHARACTER VARYING", "Unsupported operation: IsType"),
        ("1", "Unsupported operation: Literal"),
        ("CREATE TABLE x", "Unsupported operation: CreateTable"),
        ("FROM things SET c = 1", NO_KEY),
        ("FROM things REMOVE a", NO_KEY),
        ("FROM things WHERE a = 1 SET c = 1", NO_KEY),
    ],
)
def test_unsupported_statements_are_refused_as_on_aws(
    db: Statements, statement: str, message: str
) -> None:
    assert db.refused(statement) == message


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT * FROM numbers WHERE pk = 1e126", f"{OVERFLOW} under root"),
        ("SELECT * FROM numbers WHERE pk = 1e-131", f"{UNDERFLOW} under root"),
        (f"SELECT * FROM numbers WHERE pk = {'123456789' * 4}123", f"{DIGITS} under root"),
        ("INSERT INTO numbers VALUE {'pk': 1e126}", f"{OVERFLOW} under root"),
        ("UPDATE numbers SET a = 1e-131 WHERE pk = 5", f"{UNDERFLOW} under root"),
        ("INSERT INTO numbers VALUE {'pk': 6, 'm': {'x': 1e126}}", f"{OVERFLOW} under root.x"),
        ("INSERT INTO numbers VALUE {'pk': 7, 'l': [1, 1e126]}", f"{OVERFLOW} under root[1]"),
    ],
)
def test_a_number_out_of_range_is_named_by_its_place(
    db: Statements, statement: str, message: str
) -> None:
    assert db.refused(statement) == message


def test_a_table_is_looked_up_only_once_the_statement_makes_sense(db: Statements) -> None:
    with pytest.raises(ResourceNotFound) as caught:
        db.run("FROM never WHERE pk = 'x' SET c = 1")
    assert caught.value.message == "Requested resource not found"
    assert "operand type: BOOL" in db.refused("SELECT * FROM never WHERE a < true")


def test_a_statement_has_at_most_8192_characters(db: Statements) -> None:
    assert "length less than or equal to 8192" in db.refused(
        f"SELECT * FROM things WHERE pk = '{'x' * 8192}'"
    )


@pytest.mark.parametrize("opening", ["(", "[", "{'a':", "NOT ", "- ", "a[", "size("])
def test_endless_nesting_is_refused(db: Statements, opening: str) -> None:
    assert db.refused(f"SELECT * FROM things WHERE {opening * 1000}").startswith(NWF)


def test_a_long_chain_of_operators_is_no_trouble(db: Statements) -> None:
    db.put("things", pk=s("a"), a=n(1))
    assert len(db.items(f"SELECT * FROM things WHERE pk = 'a'{' AND a = 1' * 700}")) == 1
    assert "too many operators" in db.refused(
        f"UPDATE things SET a = 1{' + 1' * 400} WHERE pk = 'a'"
    )
