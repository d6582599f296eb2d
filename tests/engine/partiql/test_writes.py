"""INSERT, UPDATE and DELETE through ExecuteStatement."""

from __future__ import annotations

from typing import Any

import pytest

from stator.errors import ConditionFailed, DuplicateItem, ResourceNotFound
from tests.engine.partiql.statements import NWF, POVI, Statements, n, s

NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"
WRONG_TYPE = "An operand in the update expression has an incorrect data type"


@pytest.fixture
def thing(db: Statements) -> Statements:
    db.put(
        "things",
        pk=s("a"),
        v=n(1),
        b=s("bee"),
        l={"L": [n(1), n(2), n(3)]},
        m={"M": {"x": n(1)}},
        ss={"SS": ["a", "b", "c"]},
        ns={"NS": ["1", "2", "3"]},
    )
    return db


def updated(db: Statements, changes: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    [item] = db.items(f"UPDATE things {changes} WHERE pk = 'a' RETURNING ALL NEW *", *parameters)
    assert item == db.get("things", pk=s("a"))
    return item


# -- INSERT


def test_insert_takes_every_kind_of_literal(db: Statements) -> None:
    answer = db.run(
        "INSERT INTO things VALUE {'pk': 'x', 'n': -1.50, 't': true, 'f': false, 'z': null, "
        "'l': [1, 'a', [], {}], 'm': {'k': {'': 'v'}}, 'ss': <<'b', 'a'>>, 'ns': <<2, 1>>, 'e': "
        "''}"
    )
    assert answer == {"Items": []}
    assert db.get("things", pk=s("x")) == {
        "pk": s("x"),
        "n": n("-1.5"),
        "t": {"BOOL": True},
        "f": {"BOOL": False},
        "z": {"NULL": True},
        "l": {"L": [n(1), s("a"), {"L": []}, {"M": {}}]},
        "m": {"M": {"k": {"M": {"": s("v")}}}},
        "ss": {"SS": ["a", "b"]},
        "ns": {"NS": ["1", "2"]},
        "e": s(""),
    }


def test_insert_takes_parameters(db: Statements) -> None:
    db.run("INSERT INTO things VALUE {'pk': ?, 'b': ?}", s("x"), {"B": "AQID"})
    assert db.get("things", pk=s("x")) == {"pk": s("x"), "b": {"B": "AQID"}}


def test_insert_never_replaces(db: Statements) -> None:
    db.run("INSERT INTO things VALUE {'pk': 'x', 'a': 1}")
    with pytest.raises(DuplicateItem) as caught:
        db.run("INSERT INTO things VALUE {'pk': 'x', 'a': 2}")
    assert caught.value.message == "Duplicate primary key exists in table"
    assert db.get("things", pk=s("x")) == {"pk": s("x"), "a": n(1)}
    db.run("DELETE FROM things WHERE pk = 'x'")
    db.run("INSERT INTO things VALUE {'pk': 'x', 'a': 3}")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{'a': 1}", "Key attribute should be present in the item: Key pk"),
        (
            "{'pk': 5}",
            "Key attribute's data type should match its data type in table's schema: Key pk",
        ),
        ("{'pk': 'x', 'a': missing}", "Unsupported data type: MISSING under key root at 1:43:7"),
        ("{'pk': 'x', 'a': b}", "Unsupported data type: b under key root at 1:43:1"),
        (
            "{'pk': 'x', 'a': [set_add(a, b)]}",
            "Unsupported data type: set_add under key root.0 at 1:44:7",
        ),
        (
            "{'pk': 'x', 'ss': set_add(<<'a'>>, <<'b'>>)}",
            "Unsupported data type: set_add under key root at 1:44:7",
        ),
        ("{'pk': 'x', 'a': 1, 'a': 2}", "Duplicate keys in tuple. Key: a under root at 1:46:3"),
        ("{'pk': 'x', '': 2}", "Path component cannot be an empty string"),
        (
            "{pk: 'x'}",
            (
                "Tuple keys must be of type String. Actual type: VariableReference under "
                "root at 1:27:2"
            ),
        ),
        (
            "{'pk': 'x', 's': <<'a', 1>>}",
            (
                "Unsupported data type in Bag. DynamoDB only supports either numbers or "
                "strings in bags at 1:50:1"
            ),
        ),
        ("{'pk': 'x', 's': <<>>}", "Empty bags are not supported"),
        ("{'pk': 'x', 's': <<'x', 'x'>>}", f"{POVI}Input collection [x, x] contains duplicates."),
        (
            "{'pk': 'x', 's': `a`}",
            "Ion Literals are not supported: SYMBOL under key root at 1:43:3",
        ),
        (
            "[1]",
            (
                "Unsupported format in item expression. Please use struct format {...} to "
                "express item values for insert statement. at 1:26:1"
            ),
        ),
        ("{'pk': 'x'} RETURNING ALL OLD *", "RETURNING is not supported in INSERT"),
        (
            f"{{'pk': 'x', 'd': {'[' * 32}1{']' * 32}}}",
            (
                "Nesting Levels have exceeded supported limits: Attributes in the item have "
                "nested levels beyond supported limit"
            ),
        ),
    ],
)
def test_an_invalid_insert_is_refused(db: Statements, value: str, message: str) -> None:
    assert db.refused(f"INSERT INTO things VALUE {value}") == message
    assert db.items("SELECT * FROM things") == []


def test_an_item_has_at_most_400_kilobytes(db: Statements) -> None:
    big = s("x" * 409_600)
    assert db.refused("INSERT INTO things VALUE {'pk': 'x', 'a': ?}", big) == (
        "Item size has exceeded the maximum allowed size"
    )
    db.put("things", pk=s("a"))
    # Unlike UpdateItem, PartiQL is not charged for its clauses: an item of exactly the limit goes
    # in.
    db.run("UPDATE things SET a = ? WHERE pk = 'a'", s("x" * (409_600 - 4)))
    assert db.refused("UPDATE things SET a = ? WHERE pk = 'a'", big) == (
        "Item size to update has exceeded the maximum allowed size"
    )


def test_an_absent_table(db: Statements) -> None:
    for statement in (
        "INSERT INTO never VALUE {'pk': 'x'}",
        "UPDATE never SET a = 1 WHERE pk = 'x'",
        "DELETE FROM never",
    ):
        with pytest.raises(ResourceNotFound, match="Requested resource not found"):
            db.run(statement)


# -- UPDATE


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ("SET v = 2", "v", n(2)),
        ("SET v = v + 1", "v", n(2)),
        ("SET v = v - 1 SET w = v", "w", n(1)),
        ("SET v = 1 + 2 + 3", "v", n(6)),
        ("SET v = (1 + 2)", "v", n(3)),
        ("SET w = 'x', x = 1", "x", n(1)),
        ("SET v = null", "v", {"NULL": True}),
        ("SET v = [1, {'a': true}]", "v", {"L": [n(1), {"M": {"a": {"BOOL": True}}}]}),
        ("SET m.y = m.x", "m", {"M": {"x": n(1), "y": n(1)}}),
        ("SET m['y'] = 2", "m", {"M": {"x": n(1), "y": n(2)}}),
        ("SET l[0] = 9", "l", {"L": [n(9), n(2), n(3)]}),
        ("SET l[7] = 9", "l", {"L": [n(1), n(2), n(3), n(9)]}),
        ("SET l = list_append(l, [4])", "l", {"L": [n(1), n(2), n(3), n(4)]}),
        ("SET l = LIST_APPEND([0], l)", "l", {"L": [n(0), n(1), n(2), n(3)]}),
        ("SET q = if_not_exists(q, 1)", "q", n(1)),
        ("SET q = if_not_exists(v, 7) + 1", "q", n(2)),
        ("REMOVE l[0] REMOVE l[1]", "l", {"L": [n(3)]}),
        ("REMOVE m.x", "m", {"M": {}}),
        ("SET ss = set_add(ss, <<'0', 'z'>>)", "ss", {"SS": ["0", "a", "b", "c", "z"]}),
        ("SET ss = SET_ADD(ss, <<'a'>>)", "ss", {"SS": ["a", "b", "c"]}),
        ("SET ns = set_add(ns, <<4, 1>>)", "ns", {"NS": ["1", "2", "3", "4"]}),
        ("SET new = set_add(new, <<'x'>>)", "new", None),
        ("SET nss = set_add(nss, <<'x'>>)", "nss", {"SS": ["x"]}),
        ("SET ss = set_delete(ss, <<'a'>>)", "ss", {"SS": ["b", "c"]}),
        ("SET ss = set_delete(ss, <<'zz'>>)", "ss", {"SS": ["a", "b", "c"]}),
    ],
)
def test_an_update_changes_one_attribute(
    thing: Statements, changes: str, name: str, value: dict[str, Any] | None
) -> None:
    if value is None:  # ``new`` is a keyword
        assert (
            thing.refused(f"UPDATE things {changes} WHERE pk = 'a'")
            == NWF + "Expected identifier for simple path"
        )
    else:
        assert updated(thing, changes)[name] == value


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ("REMOVE b", "b"),
        ("REMOVE nope", "nope"),
        ("SET ss = set_delete(ss, <<'a', 'b', 'c'>>)", "ss"),
        ("SET nss = set_delete(nss, <<'a'>>)", "nss"),
    ],
)
def test_an_update_takes_one_attribute_away(thing: Statements, changes: str, name: str) -> None:
    assert name not in updated(thing, changes)


def test_a_parameter_can_carry_a_set(thing: Statements) -> None:
    assert updated(thing, "SET bs = set_add(bs, ?)", {"BS": ["AQ=="]})["bs"] == {"BS": ["AQ=="]}
    assert updated(thing, "SET bs = set_add(bs, ?)", {"BS": ["Ag=="]})["bs"] == {
        "BS": ["AQ==", "Ag=="]
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            "SET t = set_add(ss, <<'x'>>)",
            "The first argument to SET_ADD must equal the assignment value at 1:23:7",
        ),
        (
            "SET ss = set_add(<<'a'>>, <<'b'>>)",
            "The first argument to SET_ADD must equal the assignment value at 1:24:7",
        ),
        (
            "SET t = set_delete(ss, <<'x'>>)",
            "The first argument to SET_DELETE must equal the assignment value at 1:23:10",
        ),
        (
            "SET ss = set_add(ss, 'x')",
            "The second argument to SET_ADD must be a value with type SET at 1:32:2",
        ),
        (
            "SET ss = set_add(ss, ['x'])",
            "The second argument to SET_ADD must be a value with type SET at 1:32:2",
        ),
        ("SET ss = set_add(ss)", "SET_ADD must have exactly two arguments at 1:24:7"),
        (
            "SET ss = set_add(ss, <<'x'>>, <<'y'>>)",
            "SET_ADD must have exactly two arguments at 1:24:7",
        ),
        ("SET ss = set_add(ss, <<1>>)", WRONG_TYPE),
        ("SET ss = set_delete(ss, <<1>>)", WRONG_TYPE),
        ("SET b = set_add(b, <<'x'>>)", WRONG_TYPE),
        (
            "SET ss = set_add(ss, <<'x', 'x'>>)",
            f"{POVI}Input collection [x, x] contains duplicates.",
        ),
        ("SET ss = set_add(ss, <<>>)", "Empty bags are not supported"),
        ("SET m.inner = set_add(m.inner, <<'y'>>)", NWF + "Invalid path dot component"),
        (
            "SET z.b = 3",
            "The document path provided in the update expression is invalid for update",
        ),
        (
            "SET z[0] = 3",
            "The document path provided in the update expression is invalid for update",
        ),
        (
            "SET v = nope + 1",
            "The provided expression refers to an attribute that does not exist in the item",
        ),
        ("SET v = b + 1", WRONG_TYPE),
        (
            "SET v = 's' + 1",
            (
                "Incorrect operand type for operator or function; operator or function: +, "
                "operand type: S"
            ),
        ),
        ("SET v = 1 * 2", "Unsupported operator in Update Expression. Operator: *"),
        ("SET v = size(m)", "The function is not allowed in an update expression; function: size"),
        ("SET v = foo(m)", "Unrecognized function: foo at 1:23:3"),
        ("SET v = missing", "MISSING must be compared using IS operator"),
        (
            "SET v = 1, v = 2",
            (
                "Two document paths overlap with each other; must remove or rewrite one of "
                "these paths; path one: [v], path two: [v]"
            ),
        ),
        ("SET pk = 'z'", f"{POVI}Cannot update attribute pk. This attribute is part of the key"),
        (
            "SET v = pk.x",
            (
                "Key attributes must be scalars; list random access '[]' and map lookup '.' "
                "are not allowed: Key: pk"
            ),
        ),
    ],
)
def test_an_invalid_update_is_refused(thing: Statements, changes: str, message: str) -> None:
    before = thing.get("things", pk=s("a"))
    assert thing.refused(f"UPDATE things {changes} WHERE pk = 'a'") == message
    assert thing.get("things", pk=s("a")) == before


@pytest.mark.parametrize(
    ("changes", "returning", "expected"),
    [
        ("SET v = 2", "MODIFIED NEW", [{"v": n(2)}]),
        ("SET v = 2 REMOVE b", "MODIFIED OLD", [{"v": n(1), "b": s("bee")}]),
        ("SET m.y = 2", "MODIFIED NEW", [{"m": {"M": {"y": n(2)}}}]),
        ("SET l[2] = 7, l[0] = 9", "MODIFIED NEW", [{"l": {"L": [n(9), n(7)]}}]),
        ("SET l[0] = 9", "MODIFIED OLD", [{"l": {"L": [n(1)]}}]),
        ("REMOVE b", "MODIFIED NEW", []),
        ("REMOVE m.x", "MODIFIED NEW", []),
        ("SET w = 1", "MODIFIED OLD", []),
    ],
)
def test_returning_the_changed_part(
    thing: Statements, changes: str, returning: str, expected: list[dict[str, Any]]
) -> None:
    assert (
        thing.items(f"UPDATE things {changes} WHERE pk = 'a' RETURNING {returning} *") == expected
    )


def test_returning_the_whole_item(thing: Statements) -> None:
    before = thing.get("things", pk=s("a"))
    assert thing.items("UPDATE things SET v = 5 WHERE pk = 'a' RETURNING ALL OLD *") == [before]
    assert thing.items("UPDATE things SET v = 6 WHERE pk = 'a'") == []


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        (
            "RETURNING ALL *",
            NWF + "Expected ( MODIFIED | ALL ) ( NEW | OLD ) in each returning element.",
        ),
        (
            "RETURNING ALL NEW v",
            "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause",
        ),
        (
            "RETURNING ALL NEW *, ALL OLD *",
            "Invalid syntax with multiple returning elements in RETURNING clause",
        ),
    ],
)
def test_an_invalid_returning_clause_is_refused(
    thing: Statements, clause: str, message: str
) -> None:
    assert thing.refused(f"UPDATE things SET v = 2 WHERE pk = 'a' {clause}") == message


@pytest.mark.parametrize(
    "where",
    [
        "",
        "WHERE v = 1",
        "WHERE pk = 'a' OR pk = 'b'",
        "WHERE pk IN ['a']",
        "WHERE pk > 'a'",
        "WHERE NOT pk = 'a'",
    ],
)
def test_a_write_is_of_one_item_by_its_whole_key(thing: Statements, where: str) -> None:
    assert thing.refused(f"UPDATE things SET v = 2 {where}") == NO_KEY
    assert thing.refused(f"DELETE FROM things {where}") == NO_KEY


def test_a_key_may_be_repeated_but_not_contradicted(thing: Statements) -> None:
    assert thing.items("UPDATE things SET v = 2 WHERE pk = 'a' AND pk = 'a'") == []
    assert thing.refused("UPDATE things SET v = 2 WHERE pk = 'a' AND pk = 'b'") == (
        "Multiple conditions on same key pk. Only single item Update/Insert/Delete are supported"
    )
    assert thing.refused("UPDATE orders SET v = 2 WHERE pk = 'a'") == NO_KEY
    assert thing.refused("UPDATE things SET v = 2 WHERE pk = 5") == (
        "Key attribute's data type should match its data type in table's schema: Key pk"
    )


@pytest.mark.parametrize(
    "extra", ["v = 9", "attribute_exists(nope)", "NOT v = 1", "v IS MISSING", "pk > 'b'"]
)
@pytest.mark.parametrize(
    "statement", ["UPDATE things SET z = 1 WHERE", "DELETE FROM things WHERE", "FROM things WHERE"]
)
def test_more_in_the_where_clause_is_a_condition(
    thing: Statements, statement: str, extra: str
) -> None:
    before = thing.get("things", pk=s("a"))
    tail = " SET z = 1" if statement.startswith("FROM") else ""
    with pytest.raises(ConditionFailed) as caught:
        thing.run(f"{statement} pk = 'a' AND {extra}{tail}")
    assert caught.value.message == "The conditional request failed"
    assert caught.value.item is None
    with pytest.raises(ConditionFailed) as caught:
        thing.run(
            f"{statement} pk = 'a' AND {extra}{tail}", ReturnValuesOnConditionCheckFailure="ALL_OLD"
        )
    assert caught.value.item == before == thing.get("things", pk=s("a"))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE things SET z = 1 WHERE pk = 'none'",
        "UPDATE things SET z = 1 WHERE pk = 'none' AND attribute_not_exists(pk)",
        "UPDATE things SET ss = set_add(ss, <<'x'>>) WHERE pk = 'none'",
        "FROM things WHERE pk = 'none' SET z = 1",
    ],
)
def test_an_update_creates_nothing(db: Statements, statement: str) -> None:
    with pytest.raises(ConditionFailed):
        db.run(statement)
    assert db.get("things", pk=s("none")) is None


def test_an_update_may_start_with_from(thing: Statements) -> None:
    [item] = thing.items(
        "from things where pk = ? and v = 1 set c = ? remove b returning all new *", s("a"), n(7)
    )
    assert item["c"] == n(7)
    assert "b" not in item


# -- DELETE


def test_a_delete_returns_the_item_it_took(thing: Statements) -> None:
    before = thing.get("things", pk=s("a"))
    assert thing.items(
        "DELETE FROM things WHERE pk = 'a' AND attribute_not_exists(nope) RETURNING ALL OLD *"
    ) == [before]
    assert thing.get("things", pk=s("a")) is None
    assert thing.items("DELETE FROM things WHERE pk = 'a' RETURNING ALL OLD *") == []


def test_deleting_a_missing_item_changes_nothing(db: Statements) -> None:
    assert db.run("DELETE FROM things WHERE pk = 'none'") == {"Items": []}
    assert db.run("DELETE FROM things WHERE pk = 'none' AND v = 1") == {"Items": []}


@pytest.mark.parametrize("clause", ["ALL NEW", "MODIFIED OLD", "MODIFIED NEW"])
def test_a_delete_returns_only_all_old(thing: Statements, clause: str) -> None:
    assert thing.refused(f"DELETE FROM things WHERE pk = 'a' RETURNING {clause} *") == (
        f"Invalid returning clause: RETURNING {clause} *. Only RETURNING ALL OLD * is "
        "allowed in DELETE statements."
    )


# -- indexes and capacity


def test_writes_keep_indexes_and_are_charged_for_them(db: Statements) -> None:
    insert = db.run(
        "INSERT INTO orders VALUE {'pk': 'p', 'sk': 's', 'gsiPk': 'g'}",
        ReturnConsumedCapacity="INDEXES",
    )["ConsumedCapacity"]
    assert insert == {
        "TableName": "orders",
        "CapacityUnits": 2.0,
        "Table": {"CapacityUnits": 1.0},
        "GlobalSecondaryIndexes": {"gsi-all": {"CapacityUnits": 1.0}},
    }
    assert len(db.items("""SELECT * FROM "orders"."gsi-all" WHERE gsiPk = 'g'""")) == 1
    db.run("UPDATE orders SET gsiPk = 'h' WHERE pk = 'p' AND sk = 's'")
    assert db.items("""SELECT * FROM "orders"."gsi-all" WHERE gsiPk = 'g'""") == []
    assert db.refused("UPDATE orders SET gsiPk = 5 WHERE pk = 'p' AND sk = 's'") == (
        f"{POVI}Type mismatch for Index Key gsiPk Expected: S Actual: N IndexName: gsi-all"
    )
    db.run("DELETE FROM orders WHERE pk = 'p' AND sk = 's'")
    assert db.items("""SELECT * FROM "orders"."gsi-all" WHERE gsiPk = 'h'""") == []
