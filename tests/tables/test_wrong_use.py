"""Wrong use of the public API raises an error of ours that says what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stator import Design, Entity, Query, connect, find, ident, read
from stator.errors import StatorError

SOURCE = """
class Prompted(Entity, key=("PROMPTED#{id}", "PROMPTED")):
    id: str = ident()
    n: int = 0

@read()
def by_n(n: int) -> Query[Prompted]:
    return find(Prompted).where(Prompted.n == n)

design = Design("prompted", [Prompted], [by_n])
"""


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
        "no such pattern": lambda: plan.pattern("none"),
        "no such entity": lambda: plan.entity("None"),
        "no such table": lambda: plan.table("none"),
    }
    for name, call in calls.items():
        with pytest.raises(StatorError) as caught:
            call()
            pytest.fail(f"{name} was accepted")
        assert caught.value.message, name


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
