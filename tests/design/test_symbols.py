"""What needs the value of a symbol works by its meaning, or is refused with an error of ours."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import pytest

from stator import Design, Entity, Query, connect, find, ident, read
from stator.errors import DesignError, RequestRefused
from stator.tables.writes.recorder import if_not_exists


class Counted(Entity, key=("COUNTED#{id}", "COUNTED")):
    id: str = ident()
    n: int = 0
    name: str = ""
    flag: bool = False
    tags: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)


@contextmanager
def symbols() -> Iterator[dict[str, tuple[Any, type[Exception]]]]:
    found: dict[str, tuple[Any, type[Exception]]] = {
        "class": (Counted.n, DesignError),
        "set of a class": (Counted.tags, DesignError),
    }

    @read()
    def by_name(name: str) -> Query[Counted]:
        found["argument"] = (name, DesignError)
        return find(Counted).where(Counted.name == name)

    db = connect(Design("symbols", [Counted], [by_name]))
    with db.update(Counted, id="1", or_create=True) as x:
        more: dict[str, Any] = {
            "item": x,
            "number": x.n,
            "text": x.name,
            "flag": x.flag,
            "set": x.tags,
            "list": x.lines,
            "sum": x.n + 1,
            "joined": x.lines + ["a"],  # noqa: RUF005 - the case
            "members": x.tags | {"a"},
            "default": if_not_exists(x.n, 1),
            "sum from a default": if_not_exists(x.n, 1) + 1,
        }
        found |= {name: (symbol, RequestRefused) for name, symbol in more.items()}
        yield found
        x.flag = True  # the update itself is still good
    assert db.get(Counted, id="1") == Counted(id="1", flag=True)


NEEDS_A_VALUE: dict[str, Callable[[Any], Any]] = {
    "str": str,
    "f-string": lambda x: f"{x}",
    "f-string with a format": lambda x: f"{x:>10}",
    "percent": lambda x: "%s" % x,  # noqa: UP031 - the case
    "str.format": lambda x: "{}".format(x),  # noqa: UP032 - the case
    "format": format,
    "print": lambda x: print(x),
    "bytes": bytes,
    "int": int,
    "float": float,
    "complex": complex,
    "round": round,
    "floor": math.floor,
    "index": lambda x: [1, 2][x],
    "bool": bool,
    "not": lambda x: not x,
    "and": lambda x: x and 1,
    "or": lambda x: x or 1,
    "if": lambda x: 1 if x else 2,
    "len": len,
    "iter": list,
    "for": lambda x: [each for each in x],  # noqa: C416 - the case
    "sorted": sorted,
    "sum": sum,
    "in it": lambda x: "a" in x,
    "reversed": reversed,
    "times": lambda x: x * 2,
    "divided": lambda x: x / 2,
    "modulo": lambda x: x % 2,
    "power": lambda x: x**2,
    "negative": operator.neg,
    "absolute": abs,
    "number minus it": lambda x: 5 - x,
    "call": lambda x: x(),
    "join": lambda x: "".join(x),
}
COMPARISONS: dict[str, Callable[[Any], Any]] = {
    "equal": lambda x: x == 5,
    "unequal": lambda x: x != 5,
    "less": lambda x: x < 5,
    "more": lambda x: x >= 5,
    "in a list": lambda x: x in ["a", "b"],
}


def test_uses_that_need_a_value_are_refused_with_a_hint() -> None:
    with symbols() as all_symbols:
        for kind, (symbol, expected) in all_symbols.items():
            uses = dict(NEEDS_A_VALUE)
            if expected is RequestRefused or kind == "argument":
                uses |= COMPARISONS | {
                    "hash": lambda x: hash(x),
                    "set": lambda x: {x},
                    "in a set": lambda x: x in {"a", "b"},
                    "key": lambda x: {x: 1},
                }
            for use, function in uses.items():
                with pytest.raises(expected) as caught:
                    function(symbol)
                    pytest.fail(f"{use} of {kind} was accepted")
                assert getattr(caught.value, "hint", None), (kind, use)


def test_comparing_a_field_of_a_class_builds_a_condition() -> None:
    for function in list(COMPARISONS.values())[:4]:
        assert "Counted.n" in repr(function(Counted.n))
    with pytest.raises(DesignError, match="no truth value"):
        _ = Counted.n in [1, 2]


def test_repr_always_works() -> None:
    with symbols() as all_symbols:
        for symbol, _ in all_symbols.values():
            assert repr(symbol)


def test_text_from_a_recorded_field_is_never_stored() -> None:
    db = connect(Design("symbols", [Counted]))
    db.put(Counted(id="1", name="kept"))
    makers: list[Callable[[Any], str]] = [
        lambda x: f"{x.id}-{x.n}",
        lambda x: str(x.n),
        lambda x: "%s" % x.n,  # noqa: UP031 - the case
        lambda x: f"{x.n + 1}",
        lambda x: x.name.upper(),
        lambda x: f"{Counted.id}",
        lambda x: f"{x}",
    ]
    for make in makers:
        with pytest.raises((RequestRefused, DesignError)), db.update(Counted, id="1") as x:
            x.name = make(x)
    found = db.get(Counted, id="1")
    assert found is not None and found.name == "kept"


@pytest.mark.parametrize(
    "body",
    [
        lambda a: Counted.name == f"{a}-x",
        lambda a: Counted.name == str(a),
        lambda a: Counted.name == a + "x",
        lambda a: Counted.n == int(a),
        lambda a: Counted.name == ("x" if a == "y" else "z"),
        lambda a: Counted.name == ("x" if a in {"y", "w"} else "z"),
        lambda a: Counted.name == ("x" if a in ["y", "w"] else "z"),
        lambda a: Counted.name == {"y": "x"}.get(a, "z"),
        lambda a: Counted.n == len(a),
        lambda a: Counted.name == next(iter(a)),
        lambda a: Counted.name == a.strip(),
    ],
)
def test_a_pattern_that_computes_with_an_argument_is_not_planned(body: Any) -> None:
    @read()
    def computed(a: str) -> Query[Counted]:
        return find(Counted).where(body(a))

    with pytest.raises(DesignError, match="computed"):
        Design("symbols", [Counted], [computed]).plan()


def test_an_argument_may_stand_on_either_side() -> None:
    @read()
    def reversed_order(name: str) -> Query[Counted]:
        return find(Counted).where(name == Counted.name)

    db = connect(Design("symbols", [Counted], [reversed_order]))
    db.put(Counted(id="1", name="a"))
    assert [each.id for each in db.fetch(reversed_order("a"))] == ["1"]


ORDERS: list[Callable[[Query[Counted]], Query[Counted]]] = [
    lambda query: query.order_by(Counted.n),
    lambda query: query.newest_first(Counted.n),
    lambda query: query.oldest_first(),
    lambda query: query.newest_first(),
]


@pytest.mark.parametrize("first", ORDERS)
@pytest.mark.parametrize("second", ORDERS)
def test_an_order_is_given_once(first: Any, second: Any) -> None:
    with pytest.raises(DesignError, match="order is given twice"):
        second(first(find(Counted)))


def test_a_limit_is_given_once_and_is_a_whole_number() -> None:
    with pytest.raises(DesignError, match="limit is given twice: 5 and 6"):
        find(Counted).limit(5).limit(6)
    for wrong in (0, -1, 2.5, "3", None, True):
        with pytest.raises(DesignError, match="limit"):
            find(Counted).limit(wrong)  # type: ignore[arg-type]

    @read()
    def newest(count: int) -> Query[Counted]:
        return find(Counted).where(Counted.name == "a").limit(count)

    connect(Design("symbols", [Counted], [newest]))
    for wrong in (0, 2.5, "3", None):
        with pytest.raises(DesignError, match="limit"):
            newest(wrong)  # type: ignore[arg-type]
