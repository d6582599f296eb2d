"""``"table"."index"``: what an index holds, which reads it allows, and what they cost."""

from __future__ import annotations

from typing import Any

import pytest

from stator.engine import Engine
from tests.engine.partiql.statements import NWF, POVI, Statements, s

SEVERAL = (
    "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or "
    "multi-attribute RANGE keys."
)
UNPROJECTED = [
    "nonproj = 'np1'",
    "nonproj IS MISSING",
    "nonproj IS NOT MISSING",
    "begins_with(nonproj, 'np')",
    "NOT nonproj = 'np1'",
]


@pytest.fixture
def orders(db: Statements) -> Statements:
    for number, gsi in ((1, "x"), (2, "z"), (4, "x")):
        names = {"gsiPk": gsi, "gsiPk2": "y", "projattr": f"proj{number}", "nonproj": f"np{number}"}
        names |= {"lsiSk": f"l{number}", "lsiSk2": f"k{number}", "lsiSk3": f"m{number}"}
        db.put(
            "orders",
            pk=s("p"),
            sk=s(f"s{number}"),
            **{name: s(value) for name, value in names.items()},
        )
    db.put("orders", pk=s("p"), sk=s("s3"), nonproj=s("np3"))
    db.put("orders", pk=s("q"), sk=s("s5"), gsiPk2=s("y2"), projattr=s("proj5"), nonproj=s("np5"))
    return db


def sort_keys(items: list[dict[str, Any]]) -> list[str]:
    return sorted(item["sk"]["S"] for item in items)


def test_an_index_holds_only_items_with_its_key(orders: Statements) -> None:
    assert sort_keys(
        orders.items("""SELECT pk, sk FROM "orders"."gsi-all" WHERE gsiPk = 'x'""")
    ) == ["s1", "s4"]
    assert sort_keys(orders.items('SELECT sk FROM "orders"."gsi-keys"')) == ["s1", "s2", "s4", "s5"]


@pytest.mark.parametrize(
    ("index", "where", "names"),
    [
        ("gsi-keys", "gsiPk2 = 'y'", {"gsiPk2", "pk", "sk"}),
        ("gsi-inc", "gsiPk2 = 'y'", {"gsiPk2", "pk", "projattr", "sk"}),
        ("lsi-keys", "pk = 'p'", {"lsiSk2", "pk", "sk"}),
    ],
)
def test_a_star_is_the_projection_of_the_index(
    orders: Statements, index: str, where: str, names: set[str]
) -> None:
    answer = orders.run(
        f'SELECT * FROM "orders"."{index}" WHERE {where}', ReturnConsumedCapacity="INDEXES"
    )
    assert [set(item) for item in answer["Items"]] == [names] * 3
    assert answer["ConsumedCapacity"]["Table"] == {"CapacityUnits": 0.0}


def test_a_local_index_fetches_from_the_table(orders: Statements) -> None:
    def read(**options: Any) -> dict[str, Any]:
        statement = """SELECT nonproj FROM "orders"."lsi-keys" WHERE pk = 'p'"""
        return orders.run(statement, ReturnConsumedCapacity="INDEXES", **options)

    eventual, consistent, bounded = read(), read(ConsistentRead=True), read(Limit=1)
    assert [item["nonproj"]["S"] for item in eventual["Items"]] == ["np1", "np2", "np4"]
    assert eventual["ConsumedCapacity"]["Table"]["CapacityUnits"] == 1.5
    assert consistent["ConsumedCapacity"]["Table"]["CapacityUnits"] == 3.0
    assert bounded["ConsumedCapacity"]["Table"]["CapacityUnits"] == 0.5
    filtered = orders.run(
        """SELECT nonproj FROM "orders"."lsi-inc" WHERE pk = 'p' AND projattr = 'none'""",
        ReturnConsumedCapacity="INDEXES",
    )
    assert filtered["Items"] == []
    assert filtered["ConsumedCapacity"]["Table"]["CapacityUnits"] == 1.5


@pytest.mark.parametrize("where", ["", " WHERE gsiPk2 = 'y'"])
def test_a_global_index_refuses_columns_it_lacks_in_their_order(
    orders: Statements, where: str
) -> None:
    assert orders.refused(f'SELECT nonproj, pk, m.x FROM "orders"."gsi-inc"{where}') == (
        f"{POVI}Global secondary index gsi-inc does not project [nonproj, m]"
    )


@pytest.mark.parametrize("condition", UNPROJECTED)
@pytest.mark.parametrize(
    ("index", "key"),
    [
        ("gsi-inc", "gsiPk2 = 'y'"),
        ("gsi-inc", "gsiPk2 IN ['y', 'z']"),
        ("lsi-keys", "pk = 'p'"),
        ("lsi-keys", "pk = 'p' AND lsiSk2 BETWEEN 'k1' AND 'k4'"),
    ],
)
def test_a_filter_on_unprojected_attributes_of_a_keyed_index_is_refused(
    orders: Statements, index: str, key: str, condition: str
) -> None:
    assert orders.refused(f'SELECT pk FROM "orders"."{index}" WHERE {key} AND {condition}') == (
        f"{POVI}Secondary index {index} does not project one or more filter attributes: [nonproj]"
    )


def test_without_a_key_the_filter_just_finds_nothing(orders: Statements) -> None:
    for index in ("gsi-inc", "lsi-keys"):
        assert orders.items(f"""SELECT pk FROM "orders"."{index}" WHERE nonproj = 'np1'""") == []
    negated = orders.items("""SELECT pk, sk FROM "orders"."gsi-keys" WHERE NOT nonproj = 'np1'""")
    assert sort_keys(negated) == ["s1", "s2", "s4", "s5"]
    either = (
        """SELECT sk FROM "orders"."gsi-inc" """
        """WHERE (gsiPk2 = 'y' AND nonproj = 'np1') OR (gsiPk2 = 'y2')"""
    )
    assert sort_keys(orders.items(either)) == ["s5"]
    scanned = """SELECT sk FROM "orders"."gsi-all" WHERE pk = 'p'"""
    assert sort_keys(orders.items(scanned)) == ["s1", "s2", "s4"]


def test_pages_of_an_index(orders: Statements) -> None:
    statement = """SELECT pk, sk FROM "orders"."gsi-inc" WHERE gsiPk2 = 'y'"""
    pages = orders.all_items(statement, limit=1)
    assert sort_keys([item for page in pages for item in page]) == ["s1", "s2", "s4"]
    first = orders.run(statement, Limit=1)
    assert set(first["LastEvaluatedKey"]) == {"gsiPk2", "pk", "sk"}
    other = """SELECT pk, sk FROM "orders"."gsi-keys" WHERE gsiPk2 = 'y'"""
    assert orders.refused(other, NextToken=first["NextToken"]) == "NextToken does not match request"


def test_an_index_is_read_in_its_own_order(orders: Statements) -> None:
    found = orders.items(
        """SELECT lsiSk FROM "orders"."lsi-all" WHERE pk = 'p' ORDER BY lsiSk DESC"""
    )
    assert [item["lsiSk"]["S"] for item in found] == ["l4", "l2", "l1"]


@pytest.mark.parametrize("name", ["no-such-index", "orders"])
def test_a_missing_index_is_refused(orders: Statements, name: str) -> None:
    message = "The table does not have the specified index"
    assert orders.refused(f'SELECT * FROM "orders"."{name}"') == message
    assert orders.refused(f'SELECT * FROM "orders"."{name}"', ConsistentRead=True) == message


def test_a_global_index_is_never_strongly_consistent(orders: Statements) -> None:
    assert orders.refused(
        """SELECT * FROM "orders"."gsi-all" WHERE gsiPk = 'x'""", ConsistentRead=True
    ) == ("Strongly consistent read is not supported on Global Secondary Indexes")
    assert orders.items("""SELECT * FROM "orders"."lsi-all" WHERE pk = 'p'""", ConsistentRead=True)


@pytest.mark.parametrize("index", ["gsi-all", "no-such-index"])
def test_nothing_is_written_through_an_index(orders: Statements, index: str) -> None:
    assert orders.refused(f"""INSERT INTO "orders"."{index}" VALUE {{'pk': 'w', 'sk': 'w'}}""") == (
        "FROM clause may only contain a single table name in data manipulation statements"
    )
    for statement in ('UPDATE "orders"."{}" SET a = 1', 'DELETE FROM "orders"."{}"'):
        assert orders.refused(f"{statement.format(index)} WHERE pk = 'p' AND sk = 's1'") == (
            "This operation is not supported on an index"
        )


# -- index keys of several attributes


@pytest.fixture
def several(engine: Engine, db: Statements) -> Statements:
    schema = [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in (("h1", "HASH"), ("h2", "HASH"), ("r1", "RANGE"))
    ]
    engine.call(
        "CreateTable",
        {
            "TableName": "several",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": "S"} for name in ("id", "h1", "h2", "r1")
            ],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "GlobalSecondaryIndexes": [
                {"IndexName": "gsi", "KeySchema": schema, "Projection": {"ProjectionType": "ALL"}}
            ],
        },
    )
    db.put("several", id=s("i1"), h1=s("a"), h2=s("x"), r1=s("m"))
    return db


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM several.gsi WHERE h1 = 'a'",
        "SELECT id FROM several.gsi WHERE h1 = 'a' AND h2 = 'x' ORDER BY r1 DESC",
        "SELECT * FROM several.gsi WHERE h1 = 5",
        "SELECT * FROM several.gsi WHERE id = 'i1'",
        "SELECT * FROM several.gsi",
        "SELECT COUNT(*) FROM several.gsi",
    ],
)
def test_an_index_key_of_several_attributes_is_beyond_partiql(
    several: Statements, statement: str
) -> None:
    assert several.refused(statement) == SEVERAL


def test_earlier_errors_come_first(several: Statements) -> None:
    assert several.refused("SELECT * FROM several.gsi WHERE") == NWF + "Unexpected term"
    assert several.refused("SELECT * FROM several.gsi WHERE h1 = 1e99999999999") == NWF
    assert several.refused("SELECT * FROM several.gsi WHERE h1 = ?", {"N": "1e99999999999"}) == (
        "The parameter cannot be converted to a numeric value: 1e99999999999"
    )


def test_the_table_under_it_is_not(several: Statements) -> None:
    batch = several.batch(
        "SELECT * FROM several.gsi WHERE h1 = 'a'", "SELECT * FROM several WHERE id = 'i1'"
    )
    refused, found = batch["Responses"]
    assert refused["Error"] == {"Code": "ValidationError", "Message": SEVERAL}
    assert found["Item"]["id"] == s("i1")
