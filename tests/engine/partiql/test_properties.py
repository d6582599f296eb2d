"""Properties of all values and texts: literals keep their value, only ServiceError is raised."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stator.engine import Engine
from stator.engine.partiql.keywords import KEYWORDS
from stator.engine.partiql.parser import parse
from stator.engine.partiql.statements import BoundSelect, bind
from stator.engine.partiql.writes import BoundWrite
from stator.engine.tables.table import Table
from stator.errors import ServiceError
from stator.expr.condition import evaluate
from stator.model.values import Item, Value, normalise
from tests.engine.partiql.statements import NWF, Statements, create_tables, n, s


@cache
def _things() -> Table:
    with Engine.open() as engine:
        create_tables(engine)
        return next(table for table in engine.database.catalog.all() if table.name == "things")


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
NUMBERS = st.builds(
    "{}{}".format,
    st.decimals(
        allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=3
    ).map("{:f}".format),
    st.sampled_from(["", "e3", "E-2", "e+0"]),
)
SCALARS = st.one_of(
    TEXTS.map(lambda text: {"S": text}),
    NUMBERS.map(lambda number: {"N": number}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
    st.lists(TEXTS, min_size=1, max_size=3, unique=True).map(lambda texts: {"SS": texts}),
    st.lists(st.integers(-99, 99), min_size=1, max_size=3, unique=True).map(
        lambda ints: {"NS": list(map(str, ints))}
    ),
)
VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda members: {"L": members}),
        st.dictionaries(TEXTS, inner, max_size=3).map(lambda members: {"M": members}),
    ),
    max_leaves=8,
)
SPACES = st.sampled_from(["", " ", "\n", " /* note */ ", " -- note\n"])


def literal(value: Value, space: str) -> str:
    [(kind, content)] = value.items()
    match kind:
        case "S":
            return _quoted(content)
        case "N":
            return str(content)
        case "BOOL":
            return "TRUE" if content else "false"
        case "NULL":
            return "null"
        case "SS":
            return f"<<{space}{f',{space}'.join(map(_quoted, content))}>>"
        case "NS":
            return f"<<{f',{space}'.join(content)}{space}>>"
        case "L":
            return f"[{f',{space}'.join(literal(member, space) for member in content)}]"
        case _:
            members = (
                f"{_quoted(name)}{space}:{literal(member, space)}"
                for name, member in content.items()
            )
            return f"{{{space}{','.join(members)}}}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@given(VALUES, SPACES)
def test_a_literal_is_the_value_it_was_written_for(value: Value, space: str) -> None:
    text = f"INSERT INTO{space or ' '}things VALUE {{'pk': {literal(value, space)}}}"
    if len(text) > 8192:
        return
    bound = bind(text, [])
    assert isinstance(bound, BoundWrite)
    normalise(value)
    assert bound.action(_things(), False).keyed == {"pk": value}


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12))
def test_a_quoted_name_is_any_name(name: str) -> None:
    quoted = name.replace('"', '""')
    bound = bind(f'SELECT "{quoted}" FROM things WHERE "{quoted}" = \'x\'', [])
    assert isinstance(bound, BoundSelect) and bound.where is not None
    assert evaluate(bound.where, {name: s("x")})


WORDS = st.one_of(
    st.sampled_from(sorted(KEYWORDS)),
    st.sampled_from(
        ["things", "orders", "pk", "sk", "gsi-all", '"orders"."gsi-all"', "a", "m.a[0]", "nope"]
    ),
    st.sampled_from(
        [
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "<<",
            ">>",
            ",",
            ".",
            ":",
            ";",
            "?",
            "*",
            "+",
            "-",
            "/",
            "%",
            "@",
            "=",
            "<>",
            "!=",
            "<",
            "<=",
            ">",
            ">=",
            "||",
            "'",
            '"',
            "`",
            "#",
            "--",
            "/*",
            "*/",
        ]
    ),
    st.sampled_from(["'p'", "'it''s'", "1", "-1.5e3", "1e126", "1e99999999999", ".5", "1a", "?"]),
    st.sampled_from(
        [
            "attribute_exists(a)",
            "size(a)",
            "begins_with(sk, 'p')",
            "set_add(a, <<1>>)",
            "list_append(a, [1])",
        ]
    ),
    st.sampled_from(
        [
            "ORDER BY sk DESC",
            "RETURNING ALL OLD *",
            "INSERT INTO",
            "IS NOT",
            "pk = 'p'",
            "sk = '1'",
            "VALUE {'pk': 'p', 'sk': '1'}",
        ]
    ),
    TEXTS,
)
STARTS = st.sampled_from(
    [
        "",
        "SELECT * FROM orders WHERE",
        "SELECT",
        "INSERT INTO orders VALUE",
        "UPDATE orders SET",
        "DELETE FROM orders WHERE",
        "FROM orders WHERE",
        "EXISTS(SELECT * FROM orders WHERE",
        "SELECT * FROM orders WHERE pk = 'p' AND",
    ]
)
GARBAGE = st.builds(
    lambda start, words: f"{start} {' '.join(words)}", STARTS, st.lists(WORDS, max_size=14)
)


def _refusal(call: Callable[[], object]) -> ServiceError | None:
    try:
        call()
    except ServiceError as error:
        return error
    return None


@pytest.fixture(scope="module")
def stocked() -> Statements:
    engine = Engine.open()
    create_tables(engine)
    db = Statements(engine)
    db.put("orders", pk=s("p"), sk=s("1"), a={"NS": ["1"]})
    return db


@settings(max_examples=600, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(GARBAGE, st.lists(VALUES, max_size=2))
def test_garbage_is_answered_with_a_service_error(
    stocked: Statements, text: str, parameters: list[Value]
) -> None:
    member: dict[str, Any] = {"Statement": text[:8192]}
    if parameters:
        member["Parameters"] = parameters
    for operation, request in (
        ("ExecuteStatement", member),
        ("BatchExecuteStatement", {"Statements": [member]}),
        ("ExecuteTransaction", {"TransactStatements": [member]}),
    ):
        refused = _refusal(partial(stocked.engine.call, operation, request))
        assert refused is None or refused.status == 400


@given(st.text(max_size=200))
def test_the_parser_reads_any_text_or_says_why_not(text: str) -> None:
    refused = _refusal(lambda: parse(text))
    assert refused is None or refused.message.startswith(NWF)


KEYS = st.sampled_from(["p", "q", "r"])
SORTS = st.sampled_from(["1", "2", "3", "4"])
TERMS = st.one_of(
    KEYS.map("pk = '{}'".format),
    st.lists(KEYS, min_size=1, max_size=3).map(
        lambda keys: f"pk IN [{', '.join(map(repr, keys))}]"
    ),
    st.builds("sk {} '{}'".format, st.sampled_from(["=", "<", "<=", ">", ">="]), SORTS),
    st.builds("sk BETWEEN '{0}' AND '{0}'".format, SORTS),
    SORTS.map("begins_with(sk, '{}')".format),
    st.lists(SORTS, min_size=1, max_size=3).map(
        lambda sorts: f"sk IN [{', '.join(map(repr, sorts))}]"
    ),
    st.integers(0, 3).map("v = {}".format),
    st.integers(0, 3).map("NOT v < {}".format),
)
CONDITIONS = st.recursive(
    TERMS,
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def grid() -> Statements:
    engine = Engine.open()
    create_tables(engine)
    db = Statements(engine)
    for at, pk in enumerate("pqr"):
        for sk in "1234":
            db.put("orders", pk=s(pk), sk=s(sk), v=n((at + int(sk)) % 4))
    return db


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CONDITIONS, st.integers(1, 5))
def test_a_plan_finds_the_same_items_as_a_full_scan(
    grid: Statements, condition: str, limit: int
) -> None:
    where: Any = bind(f"SELECT * FROM orders WHERE {condition}", [])
    everything: list[Item] = grid.items("SELECT * FROM orders")
    expected = sorted(_key(item) for item in everything if evaluate(where.where, item))
    statement = f"SELECT * FROM orders WHERE {condition}"
    refused = _refusal(lambda: grid.run(statement))
    if refused is not None:
        assert (
            refused.message
            == "Overlapping conditions with range keys are not supported in where clause"
        )
        return
    pages = grid.all_items(statement, limit=limit)
    assert sorted(_key(item) for page in pages for item in page) == expected


def _key(item: Item) -> str:
    return str(item["pk"]["S"] + item["sk"]["S"])
