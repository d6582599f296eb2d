"""Wrong use of the public API raises an error of ours that says what to write instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from stator import (
    Delete,
    Design,
    Entity,
    Get,
    Query,
    connect,
    connect_async,
    counter,
    find,
    ident,
    patterns,
    read,
)
from stator.design.entities.entity import CALL_ARGUMENTS
from stator.errors import ConfigurationError, DesignError, StatorError
from stator.tables.argument_rules import checked_method, rules_of
from stator.tables.db_operations import DbOperations
from stator.tables.operation import OnDb
from stator.tables.read_operations import ReadOperations
from stator.tables.write_operations import WriteOperations
from stator.tables.writes.transactions import Transaction

PATTERN_OBJECTS = [
    found
    for name in patterns.__all__
    if isinstance(found := getattr(patterns, name), type) and issubclass(found, OnDb)
]

SOURCE = """
class Prompted(Entity, key=("PROMPTED#{id}", "PROMPTED")):
    id: str = ident()
    n: int = 0

@read()
def by_n(n: int) -> Query[Prompted]:
    return find(Prompted).where(Prompted.n == n)

design = Design("prompted", [Prompted], [by_n])
"""


@dataclass
class Inner:
    text: str


class Thing(Entity, key=("THING#{id}", "THING")):
    id: str = ident()
    n: int = 0
    by_name: dict[str, int | None]
    numbers: list[int | None]
    anything: Any = None


@read()
def numbered(n: int) -> Query[Thing]:
    return find(Thing).where(Thing.n == n)


DESIGN = Design("things", [Thing], [numbered])


def thing(**changed: Any) -> Thing:
    return Thing(**{"id": "1", "by_name": {}, "numbers": []} | changed)


def endless_list() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def endless_dict() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["again"] = [made]
    return made


def set_anything(db: Any, value: Any) -> None:
    with db.update(Thing, id="1") as changing:
        changing.anything = value


def test_wrong_use_raises_errors_of_ours() -> None:
    db: Any = connect(DESIGN)
    plan: Any = DESIGN.plan()
    make: Any = Design
    start: Any = find
    calls: dict[str, Callable[[], Any]] = {
        "a number of 40 digits": lambda: db.put(thing(n=10**39 + 1)),
        "keys that are numbers": lambda: db.put(thing(by_name={1: 2})),
        "any object": lambda: db.put(thing(anything=object())),
        "None as an argument": lambda: list(db.fetch(numbered(None))),  # type: ignore[arg-type]
        "text as a number": lambda: list(db.fetch(numbered("x"))),  # type: ignore[arg-type]
        "a class for a query": lambda: list(db.fetch(Thing)),
        "a pattern for a query": lambda: list(db.fetch(numbered)),
        "a page of text": lambda: db.page(numbered(1), limit="5"),
        "a page of nothing": lambda: db.page(numbered(1), limit=0),
        "a fetch of text": lambda: list(db.fetch(numbered(1), limit="5")),
        "explain nothing": lambda: db.explain(None),
        "explain a class": lambda: db.explain(Thing),
        "get by None": lambda: db.get(Thing, id=None),
        "get of text": lambda: db.get("Thing", id="1"),
        "get of None": lambda: db.get(None, id="1"),
        "an unknown field": lambda: db.get(Thing, ident="1"),
        "put a class": lambda: db.put(Thing),
        "put a dictionary": lambda: db.put({"id": "1"}),
        "put None": lambda: db.put(None),
        "a condition of text": lambda: db.put(thing(), when="n > 1"),
        "connect to a number": lambda: connect(DESIGN, 5),  # type: ignore[arg-type]
        "connect a class": lambda: connect(Thing),  # type: ignore[arg-type]
        "connect nothing": lambda: connect(None),  # type: ignore[arg-type]
        "a design of None": lambda: make("things", None),
        "a design of text": lambda: make("things", "Thing"),
        "a design of names": lambda: make("things", ["Thing"]).plan(),
        "a design without a name": lambda: make(None, [Thing]),
        "find None": lambda: start(None),
        "find text": lambda: start("Thing"),
        "where None": lambda: start(Thing).where(None),
        "is_in None": lambda: Thing.n.is_in(None),  # type: ignore[attr-defined]
        "is_in text": lambda: Thing.id.is_in("ab"),  # type: ignore[attr-defined]
        "write_many of None": lambda: db.write_many(None),
        "write_many of one entity": lambda: db.write_many(thing()),
        "write_many of one Delete": lambda: db.write_many(Delete(Thing, id="1")),
        "write_many of text": lambda: db.write_many("1"),
        "get_many of None": lambda: db.get_many(Thing, None),
        "get_many of one text": lambda: db.get_many(Thing, "12"),
        "get_many of one identity": lambda: db.get_many(Thing, {"id": "1"}),
        "delete_many of None": lambda: db.delete_many(Thing, None),
        "delete_many of one text": lambda: db.delete_many(Thing, "12"),
        "a snapshot of None": lambda: db.snapshot(None),
        "a snapshot of entities": lambda: db.snapshot([thing()]),
        "call without a request": lambda: db.call("ListTables", None),
        "call with a list": lambda: db.call("ListTables", [1]),
        "call without a name": lambda: db.call(None, {}),
        "segments of text": lambda: list(db.scan(Thing, allow=True, segments="2")),
        "segments of None": lambda: list(db.scan(Thing, allow=True, segments=None)),
        "no segments": lambda: list(db.scan(Thing, allow=True, segments=0)),
        "Any with keys that are numbers": lambda: db.put(thing(anything={1: 2})),
        "Any with such keys inside": lambda: db.put(thing(anything=[{"a": {1: 2}}])),
        "Any in a batch with such keys": lambda: db.write_many([thing(anything={1: 2})]),
        "a list in itself": lambda: db.put(thing(anything=endless_list())),
        "a dict in itself": lambda: db.put(thing(anything=endless_dict())),
        "an update with a list in itself": lambda: set_anything(db, endless_list()),
        "an update with keys that are numbers": lambda: set_anything(db, {1: 2}),
        "a condition with a list in itself": lambda: db.put(
            thing(), when=Thing.anything == endless_list()
        ),
        "no such pattern": lambda: plan.pattern("none"),
        "no such entity": lambda: plan.entity("None"),
        "no such table": lambda: plan.table("none"),
    }
    for name, call in calls.items():
        with pytest.raises(StatorError) as caught:
            call()
            pytest.fail(f"{name} was accepted")
        assert caught.value.message, name


lax: Any = patterns  # type checkers refuse the calls below
WRONG_OPTIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    # A call with a wrong option, and what the error says.
    "update_where": (lambda db: db.update_where(numbered(1), None), "change is None"),
    "delete_where": (
        lambda db: db.delete_where(numbered(1), max_failures="x"), "max_failures is a str"),
    "parallel": (lambda db: db.delete_where(numbered(1), parallel=True), "parallel is True"),
    "progress": (lambda db: db.delete_where(numbered(1), on_progress=5), "on_progress is 5"),
    "dry_run": (lambda db: db.delete_where(numbered(1), dry_run="yes"), "dry_run is a str"),
    "cursor": (lambda db: db.page(numbered(1), limit=1, cursor=5), "cursor is 5"),
    "returns": (lambda db: db.put(thing(), returns="bogus"), "returns is 'bogus'"),
    "returns of update": (lambda db: opened(db.update(Thing, id="1", returns="all")), "'all'"),
    "or_create": (lambda db: opened(db.update(Thing, id="1", or_create="x")), "or_create is"),
    "once": (lambda db: db.put(thing(), once="x"), "once is a str"),
    "consistent": (lambda db: db.get(Thing, id="1", consistent="x"), "consistent is a str"),
    "consistent 1": (lambda db: db.exists(Thing, id="1", consistent=1), "consistent is 1"),
    "must_exist": (lambda db: db.delete(Thing, id="1", must_exist="x"), "must_exist is"),
    "on_error": (lambda db: db.delete_many(Thing, ["1"], on_error="skip"), "on_error is 'skip'"),
    "allow": (lambda db: list(db.scan(Thing, allow="yes")), "allow is a str"),
    "ensure": (lambda db: db.ensure(5), "settings is 5"),
    "patch": (lambda db: db.patch(Thing, 5, id="1"), "changes is 5"),
    "restore": (lambda db: db.restore(5), "entity is 5"),
    "token": (lambda db: opened(db.transaction(token=5)), "token is 5"),
    "an empty address": (lambda db: connect(DESIGN, ""), "the address is an empty text"),
    "an empty cursor key": (lambda db: connect(DESIGN, cursor_key=b""), "cursor_key is a bytes"),
    "a budget": (lambda db: db.within(0), "db.within(): seconds=0 is not a number of seconds"),
    "a function of none": (
        lambda db: db.update_where(numbered(1), lambda: None), "a function that takes 1 argument"),
    "a map": (
        lambda db: updated(db, lambda one: one.by_name.update({"u": 1})),
        "Thing.by_name is a dict"),
    "dry run": (lambda db: db.dry_run().put(thing(), once="x"), "once is a str"),
    "run": (lambda db: db.run(5), "takes work, not an int"),
    # pattern objects: how they are made
    "no db": (lambda db: lax.Lock(5, "x"), "Lock() works on a Db"),
    "Links": (lambda db: lax.Links(db, Thing, 5), "right is 5"),
    "Links by name": (lambda db: lax.Links(db, "Thing", Thing), "left is a str"),
    "Links that copy": (
        lambda db: lax.Links(db, Thing, Thing, copy_left="n"), "copy_left is a str"),
    "Outbox": (lambda db: lax.Outbox(db, 5), "name is 5"),
    "Lock": (lambda db: lax.Lock(db, 5), "name is 5"),
    "Sequence": (lambda db: lax.Sequence(db, None), "name is None"),
    "Sequence in blocks": (lambda db: lax.Sequence(db, "x", block="5"), "block is a str"),
    "Once": (lambda db: lax.Once(db, 5), "name is 5"),
    "Once, errors": (lambda db: lax.Once(db, "x", unknown_errors=5), "unknown_errors is 5"),
    "Tree": (lambda db: lax.Tree(db, 5), "entity is 5"),
    "Tree, siblings": (lambda db: lax.Tree(db, Thing, unique_siblings="x"), "unique_siblings is"),
    "Counter": (lambda db: lax.Counter(db, 5), "name is 5"),
    "Counter, shards": (lambda db: lax.Counter(db, "x", shards="many"), "shards is 'many'"),
    "Counter, exact": (lambda db: lax.Counter(db, "x", exact="no"), "exact is a str"),
    "Leaderboard": (lambda db: lax.Leaderboard(db, "x", shards="2"), "shards is a str"),
    "Series": (lambda db: lax.Series(db, Thing, by=Thing.id, at=Thing.n, keep=5), "keep is 5"),
    "UniqueAudit": (lambda db: lax.UniqueAudit(db, 5), "entity is 5"),
    "BlobAudit": (lambda db: lax.BlobAudit(db, 5), "entity is 5"),
    # and how they are used
    "a score": (lambda db: lax.Leaderboard(db, "x").set_score("a", "x"), "score is a str"),
    "the top": (lambda db: lax.Leaderboard(db, "x").top("5"), "n is a str"),
    "an amount": (lambda db: lax.Counter(db, "x").add("1"), "amount is a str"),
    "work of once": (lambda db: lax.Once(db, "x").run("k", 5), "work is 5"),
    "an attempt": (lambda db: lax.Once(db, "x").finish(5), "attempt is 5: pass an Attempt"),
    "a lease": (lambda db: lax.Lock(db, "x").renew(5), "lease is 5"),
    "waiting": (lambda db: lax.Lock(db, "x").held(wait_seconds="1"), "wait_seconds='1'"),
    "a maker": (lambda db: lax.Sequence(db, "x").create(None), "make is None"),
    "a sender": (lambda db: lax.Outbox(db, "x").relay(5), "send is 5"),
    "a topic": (lambda db: lax.Outbox(db, "x").add(None, topic=5, body=1), "topic is 5"),
    "levels": (
        lambda db: list(lax.Tree(db, Thing).descendants("a", levels="x")), "levels is a str"),
    "links": (lambda db: lax.Links(db, Thing, Thing).page(left="a", limit="x"), "limit is a str"),
}  # fmt: skip


def updated(db: Any, change: Callable[[Any], Any]) -> None:
    with db.update(Thing, id="1") as opened:
        change(opened)


def opened(block: Any) -> None:
    with block:
        pass


@pytest.mark.parametrize("name", WRONG_OPTIONS)
def test_a_wrong_option_of_a_method_names_the_option_and_what_to_pass(name: str) -> None:
    call, said = WRONG_OPTIONS[name]
    with pytest.raises(StatorError) as caught:
        call(connect(DESIGN))
    assert caught.value.hint
    assert said in f"{caught.value.message}: {caught.value.hint}"


def test_every_public_option_with_a_plain_type_refuses_other_values() -> None:
    """Any object is no flag, number, text, function or time, in any method of any class."""
    other: Any = object()
    tried = 0
    for owner in (DbOperations, ReadOperations, WriteOperations, Transaction, *PATTERN_OBJECTS):
        for name, method in vars(owner).items():
            plan = getattr(method, "_plan", getattr(method, "_start", method))
            if not callable(plan) or (name.startswith("_") and name != "__init__"):
                continue
            parameters = inspect.signature(plan).parameters
            for option in rules_of(plan):
                is_unnamed = parameters[option].kind is inspect.Parameter.POSITIONAL_ONLY
                with pytest.raises(StatorError) as caught:
                    if is_unnamed:
                        plan(*[None] * list(parameters).index(option), other)
                    else:
                        plan(None, **{option: other})
                assert f"{option} is an object" in caught.value.message
                tried += 1
    assert tried > 150


def test_values_that_mean_the_same_to_python_are_accepted() -> None:
    from decimal import Decimal
    from fractions import Fraction

    def takes(a: bool, b: int, c: float, d: str | None, e: Callable[[], None] | None) -> None: ...

    rules = rules_of(takes)
    right: dict[str, list[Any]] = {
        "a": [True], "b": [5], "c": [5, 5.0, Decimal(5), Fraction(5)], "d": ["x", None],
        "e": [print, None],
    }  # fmt: skip
    for name, values in right.items():
        assert all(rules[name].allows(value) for value in values), name
    wrong: dict[str, list[Any]] = {
        "a": [1, None, "x"], "b": [True, 5.0, "5", None], "c": [True, "5"], "d": [5, b"x"],
        "e": [5, "x"],
    }  # fmt: skip
    for name, values in wrong.items():
        assert not any(rules[name].allows(value) for value in values), name


def test_a_keyword_after_any_number_of_arguments_has_no_position() -> None:
    def takes(*several: object, flag: bool = False) -> int:
        return len(several)

    checked = checked_method(takes, shown="takes")
    assert checked(1, 2, 3, flag=True) == 3
    wrong: Any = "yes"
    with pytest.raises(StatorError, match=r"takes\(\): flag is a str"):
        checked(1, flag=wrong)


def test_a_counter_field_has_no_shards() -> None:
    with pytest.raises(DesignError) as caught:
        counter(shards=8)
    assert "Counter(db, name, shards=8)" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("option", "value", "shown"),
    [
        ("prefix", 5, "5"),
        ("prefix", None, "NoneType"),
        ("threads", 0, "0"),
        ("threads", "4", "str"),
        ("threads", None, "NoneType"),
        ("threads", True, "bool"),
        ("deadline_seconds", "1", "str"),
        ("deadline_seconds", 0, "0"),
        ("cursor_key", "secret", "str"),
        ("measure", "yes", "str"),
        ("observers", None, "NoneType"),
        ("observers", [1], "list"),
        ("plan", 5, "5"),
    ],
)
@pytest.mark.parametrize("opening", [connect, connect_async])
def test_an_option_of_the_wrong_kind_is_refused(
    opening: Callable[..., Any], option: str, value: Any, shown: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        opening(DESIGN, **{option: value})
    assert option in caught.value.message and shown in caught.value.message
    assert "secret" not in caught.value.message
    assert caught.value.hint


def test_a_plan_file_that_is_missing_or_no_plan_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "things.design.json"
    with pytest.raises(ConfigurationError, match=r"things\.design\.json.*no such file"):
        connect(DESIGN, plan=missing)
    missing.write_text("[]")
    with pytest.raises(ConfigurationError, match="is not a plan"):
        connect(DESIGN, plan=str(missing))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        connect(DESIGN, plan=tmp_path)
    missing.write_text(DESIGN.plan().to_json())
    assert connect(DESIGN, plan=str(missing)).get(Thing, id="1") is None


@pytest.mark.parametrize("traced", [False, True])
def test_wrong_arguments_of_a_pattern_name_the_pattern_and_the_argument(traced: bool) -> None:
    @read()
    def between(low: int, high: int) -> Query[Thing]:
        return find(Thing).where(Thing.n >= low, Thing.n <= high)

    if traced:
        between.trace()
    call: Any = between
    wrong: dict[str, Callable[[], Any]] = {
        "missing a required argument: 'high'": lambda: call(1),
        "missing a required argument: 'low'": lambda: call(high=1),
        "too many positional arguments": lambda: call(1, 2, 3),
        "unexpected keyword argument 'hight'": lambda: call(1, high=2, hight=3),
        "multiple values for argument 'low'": lambda: call(1, low=2),
    }
    for problem, made in wrong.items():
        with pytest.raises(TypeError) as caught:
            made()
        assert "pattern between" in str(caught.value) and problem in str(caught.value)
        assert "between(low, high)" in str(caught.value)


def test_any_keeps_text_keys_and_the_levels_that_dynamodb_stores() -> None:
    class Kind(str, Enum):  # noqa: UP042 - str() of a member is not its value
        A = "a"

    db = connect(DESIGN)
    deep: Any = "end"
    for _ in range(28):
        deep = [deep]
    db.put(thing(anything={Kind.A: deep}))
    assert db.get_one(Thing, id="1").anything == {"a": deep}
    same = [1]  # twice in a value is not inside itself
    db.put(thing(anything=[same, same]))
    assert db.get_one(Thing, id="1").anything == [[1], [1]]


def test_numbers_of_38_digits_and_none_inside_values_are_stored() -> None:
    db = connect(DESIGN)
    stored = thing(n=2**70, numbers=[1, None], by_name={"a": None})
    db.put(stored)
    assert db.get(Thing, id="1") == stored


def test_a_design_without_a_source_file_is_checked() -> None:
    names: dict[str, Any] = {
        "Design": Design, "Entity": Entity, "Query": Query, "find": find, "ident": ident,
        "read": read, "__name__": "prompt",
    }  # fmt: skip
    exec(compile(SOURCE, "<prompt>", "exec", dont_inherit=True), names)
    assert names["design"].check().findings is not None


def test_an_identity_field_is_not_named_like_an_argument_of_a_call() -> None:
    """Such an item could not be updated or deleted by its class."""
    arguments: set[str] = set()
    for owner in (DbOperations, Transaction, Get, Delete):
        methods = [owner.__init__, *(each for _, each in inspect.getmembers(owner))]
        for method in filter(inspect.isfunction, methods):
            names = inspect.signature(method).parameters
            if "identity" in names and names["identity"].kind is inspect.Parameter.VAR_KEYWORD:
                arguments |= names.keys() - {"self", "identity"}
    assert arguments == CALL_ARGUMENTS
    for name in sorted(arguments):
        wrong = type("Wrong", (Entity,), {"__annotations__": {name: str}, name: ident()})
        with pytest.raises(DesignError, match=rf"Wrong\.{name}: an identity field cannot have"):
            Design("wrong", [wrong]).plan()
        type("Right", (Entity,), {"__annotations__": {"id": str, name: str}, "id": ident()})


class Pair(Entity):
    pair_id: str = ident()
    thing: Inner | None = None
    names: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        (lambda pair: pair.thing == Inner("a"), "Inner"),
        (lambda pair: pair.names == frozenset({"a"}), "frozenset"),
        (lambda pair: pair.names == {"a"}, "set"),
    ],
)
def test_a_comparison_with_a_whole_set_or_dataclass_says_what_is_not_possible(
    condition: Callable[[Any], Any], kind: str
) -> None:
    db = connect(Design("pairs", [Pair]))
    db.put(Pair(pair_id="1", thing=Inner("a"), names=frozenset({"a"})))
    with pytest.raises(DesignError, match=rf"a condition cannot compare this {kind}\b"):
        db.delete(Pair, pair_id="1", when=condition(Pair))
