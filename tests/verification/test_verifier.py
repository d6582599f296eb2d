"""``verify``: what is measured, at which size, and that guesses and mistakes are said."""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import stator.verification
from stator import (
    Bundle2,
    Count,
    Design,
    Entity,
    Query,
    attr,
    creates,
    deletes,
    distinct,
    find,
    ident,
    large,
    per,
    read,
    share,
    together,
    unique,
    updates,
    version,
    write,
)
from stator.demo.fleet import fleet as demo_fleet
from stator.errors import ConfigurationError
from stator.verification import VerificationReport, verify

STARTERS = Path(stator.__file__).parent / "cli" / "starters"
EXAMPLES = Path(__file__).parents[2] / "examples"


class User(Entity):
    user_id: str = ident()
    email: str = unique()
    rev: int = version()


class Order(Entity):
    order_id: str = ident()
    user_id: str
    status: str
    placed_at: datetime
    note: str


class Line(Entity):
    order_id: str = ident()
    product_id: str = ident()
    quantity: int


@read(rps=100)
def user_by_email(email: str) -> Query[User]:
    return find(User).where(User.email == email)


@read(rps=100)
def orders_of_user(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id).newest_first(Order.placed_at)


@read(rps=100, returns=30)
def orders_since(user_id: str, since: datetime) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id, Order.placed_at >= since)


@read(rps=100, returns=10)
def latest_orders(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id).newest_first(Order.placed_at).limit(10)


@read(rps=1)
def open_orders(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id).filter(Order.status == "open")


@read(rps=1)
def order_count(user_id: str) -> Count[Order]:
    return find(Order).where(Order.user_id == user_id).count()


@read(rps=100)
def order_page(order_id: str) -> Bundle2[Order, Line]:
    return together(Order, Line).where(Order.order_id == order_id)


@write(rps=10)
def sign_up() -> object:
    return creates(User)


@write(rps=10)
def place_order() -> object:
    return creates(Order), creates(Line, times=3)


@write(rps=10)
def move_order() -> object:
    return updates(Order.status)


@write(rps=10)
def new_email() -> object:
    return updates(User.email)


@write(rps=10)
def drop_line() -> object:
    return deletes(Line, times=0.5)


READS = (
    user_by_email, orders_of_user, orders_since, latest_orders, open_orders, order_count,
    order_page,
)  # fmt: skip
WRITES = (sign_up, place_order, move_order, new_email, drop_line)


def shop(orders: int = 120, facts: Any = ()) -> Design:
    return Design(
        "shop",
        [User, Order, Line],
        [*READS, *WRITES],
        volumes={User: 100_000, Order: per(User, orders), Line: per(Order, 4)},
        writes={Line: 5},
        sizes={User: 200, Order: 1_000, Line: 150},
        facts=[share(Order.status == "open", 0.1), *facts],
    )


@pytest.fixture(scope="module")
def report() -> VerificationReport:
    return verify(shop(), most_items=20_000)


def counts(report: VerificationReport) -> Mapping[str, tuple[float, float]]:
    return {row.pattern: (row.items_read, row.items_returned) for row in report.rows}


def test_reads_find_as_many_items_as_declared(report: VerificationReport) -> None:
    found = counts(report)
    assert found["user_by_email"][1] == 1
    assert found["orders_of_user"] == (120, 120)
    assert found["orders_since"] == (30, 30)
    assert found["latest_orders"] == (10, 10)
    assert found["open_orders"] == (120, 12)
    assert found["order_count"] == (120, 120)
    assert found["order_page"] == (5, 5)


def test_units_are_those_of_the_items(report: VerificationReport) -> None:
    # 120 orders of 1,000 bytes and their keys
    units = report.row("orders_of_user").measured_units
    assert 120 * 1_000 / 8_192 < units < 120 * 1_400 / 8_192
    [place] = report.row("orders_of_user").places
    assert place.place == "shop / GSI1" or place.place.startswith("shop")
    assert report.row("orders_of_user").requests == 1
    assert report.row("order_page").calls >= 3


def test_writes_are_measured_with_guards_and_transactions(report: VerificationReport) -> None:
    places = {each.place: each.measured for each in report.row("sign_up").places}
    assert places["shop"] == 2  # a transaction
    assert places["shop-stator"] == 2  # the guard of the address
    assert report.row("new_email").read_units > 0  # the old address is read first
    assert report.row("place_order").measured_units >= 2 * 2 + 3 * 2
    assert report.row("drop_line").requests == 0.5
    assert report.row("writes of Line").estimated_units > 0


def test_the_plan_may_be_another_one() -> None:
    design = shop()
    plan = design.plan()
    wrong = dataclasses.replace(
        plan,
        patterns=tuple(
            dataclasses.replace(each, units_per_call=99.0) if each.name == "order_page" else each
            for each in plan.patterns
        ),
    )
    report = verify(design, wrong, most_items=5_000)
    assert report.row("order_page").estimated_units == 99
    assert "order_page" in {row.pattern for row in report.failed}


def test_two_runs_measure_the_same() -> None:
    def without_times(report: VerificationReport) -> list[Any]:
        return [dataclasses.replace(row, milliseconds=0) for row in report.rows]

    design = shop()
    first, second = (verify(design, most_items=3_000) for _ in range(2))
    assert without_times(first) == without_times(second)


def test_a_collection_larger_than_the_budget_is_extrapolated() -> None:
    design = Design(
        "shop",
        [User, Order],
        [orders_of_user, open_orders],
        volumes={User: 100_000, Order: per(User, 1_500)},
        sizes={Order: 1_000},
        facts=[share(Order.status == "open", 0.1)],
    )
    whole = verify(design, most_items=9_000)
    part = verify(design, most_items=1_200)
    assert not whole.row("orders_of_user").extrapolated
    row = part.row("orders_of_user")
    assert row.extrapolated
    assert row.measured_units == pytest.approx(whole.row("orders_of_user").measured_units, rel=0.02)
    assert row.items_read == pytest.approx(1_500, rel=0.01)
    assert row.pages == whole.row("orders_of_user").pages == 2
    assert part.items_stored <= 1_200
    filtered = part.row("open_orders")
    assert filtered.items_returned == pytest.approx(150, rel=0.05)


def test_a_read_that_ends_early_needs_no_extrapolation() -> None:
    part = verify(shop(orders=3_000), most_items=2_000)
    assert counts(part)["latest_orders"] == (10, 10)
    assert counts(part)["orders_since"] == (30, 30)
    assert not part.row("latest_orders").extrapolated


def test_declared_numbers_are_no_guesses_and_others_are_said(report: VerificationReport) -> None:
    assert report.guesses == ()
    undeclared = verify(Design("shop", [User, Order], [orders_of_user]), most_items=5_000)
    assert "User has 1,000,000 items; declare volumes={User: ...}" in undeclared.guesses
    assert any("sizes={Order: ...}" in each for each in undeclared.guesses)


def test_returns_decide_what_nothing_else_does() -> None:
    @read(returns=2)
    def late(user_id: str) -> Query[Order]:
        return find(Order).where(Order.user_id == user_id, Order.status == "late")

    design = Design(
        "shop",
        [User, Order],
        [late, move_order],
        volumes={User: 1_000, Order: per(User, 400)},
        sizes={Order: 500},
    )
    row = verify(design, most_items=10_000).row("late")
    assert row.items_returned == 2
    assert row.guesses == ()


def test_returns_that_contradict_the_volumes_are_noted() -> None:
    @read(returns=50)
    def mine(user_id: str) -> Query[Order]:
        return find(Order).where(Order.user_id == user_id)

    design = Design("shop", [User, Order], [mine], volumes={User: 1_000, Order: per(User, 5)})
    row = verify(design).row("mine")
    assert row.items_returned == 5
    assert row.notes == (
        "returns=50, but the declared volumes and facts give 5 items; correct one of them",
    )


def test_lists_optional_fields_and_large_values() -> None:
    class Task(Entity):
        task_id: str = ident()
        board: str
        state: str
        done_at: datetime | None = None
        text: str = large(default="")

    @read()
    def in_states(board: str, states: list[str]) -> Query[Task]:
        return find(Task).where(Task.board == board, attr(Task.state).is_in(states))

    @read()
    def undone(board: str) -> Query[Task]:
        return find(Task).where(Task.board == board, attr(Task.done_at).not_exists())

    design = Design(
        "tasks",
        [Task],
        [in_states, undone],
        volumes={Task: 10_000},
        facts=[
            distinct(Task.board, values=100),
            distinct(Task.state, values=10),
            share(attr(Task.done_at).exists(), 0.8),
        ],
    )
    found = counts(verify(design, most_items=5_000))
    assert found["in_states"][1] == 50
    assert found["undone"][1] == 20


def test_too_few_items_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="most_items=5") as refused:
        verify(shop(), most_items=5)
    assert "200,000" in (refused.value.hint or "")


def test_progress_goes_from_pattern_to_pattern() -> None:
    seen: list[tuple[float, str]] = []
    verify(shop(), most_items=3_000, progress=lambda part, name: seen.append((part, name)))
    parts = [part for part, _ in seen]
    assert parts == sorted(parts) and parts[-1] == 1.0
    assert {name for _, name in seen} >= {each.name for each in (*READS, *WRITES)}


def test_the_generator_shares_no_code_with_the_estimator() -> None:
    folder = Path(stator.verification.__file__).parent
    imported = {
        (path.name, node.module)
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }
    assert not {each for each in imported if "design.planner" in each[1]}
    estimates = {each for each in imported if "design.cost" in each[1]}
    assert estimates == {("verifier.py", "stator.design.cost.workload")}  # to be compared


# --- the designs of this repository


def loaded(source: str, name: str) -> dict[str, Any]:
    module = ModuleType(name)
    sys.modules[module.__name__] = module
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module.__dict__


def of_starter(name: str) -> Design:
    source = (STARTERS / name / "design.py.txt").read_text().replace("NAME", "app")
    found: Design = loaded(source, f"starter_{name}")["app"]
    return found


def of_example(name: str) -> Design:
    names = loaded((EXAMPLES / f"{name}.py").read_text(), f"example_{name}")
    return next(each for each in names.values() if isinstance(each, Design))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (of_starter, "blank"),
        (of_starter, "routers"),
        (of_example, "ecommerce"),
        (of_example, "hierarchy"),
        (of_example, "time_series"),
        (of_example, "transfer"),
    ],
)
def test_the_estimates_of_starters_and_examples_hold(
    source: Callable[[str], Design], name: str
) -> None:
    report = verify(source(name), most_items=3_000)
    assert report.ok, [(row.pattern, row.off) for row in report.failed]


@pytest.mark.parametrize("design", [of_starter("shop"), demo_fleet], ids=["shop", "demo"])
def test_the_shop_and_the_demo_are_measured(design: Design) -> None:
    report = verify(design, most_items=3_000)
    assert all(row.requests for row in report.rows)
    assert all(row.items_returned for row in report.rows if row.kind == "read")


@pytest.mark.parametrize(
    "name", ["catalogue", "chat", "code_host", "fleet", "metering", "rides"]
)  # fmt: skip
def test_designs_of_many_kinds_are_measured(name: str) -> None:
    design: Design = getattr(import_module(f"tests.verification.designs.{name}"), name)
    report = verify(design, most_items=3_000)
    for row in report.rows:
        assert row.requests > 0, row.pattern
        if row.kind == "read" and not row.extrapolated:
            assert row.items_returned > 0, row.pattern
    rows = [*design.reads, *design.write_patterns, *design.declared_writes]
    assert len(report.rows) == len(rows)
