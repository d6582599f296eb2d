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
    hour_of,
    ident,
    large,
    per,
    prefix_of,
    read,
    share,
    together,
    unique,
    updated,
    updates,
    version,
    write,
)
from stator.demo.fleet import fleet as demo_fleet
from stator.design.plan.plan import Plan
from stator.errors import ConfigurationError
from stator.verification import VerificationReport, verify

STARTERS = Path(stator.__file__).parent / "cli" / "starters"
EXAMPLES = Path(__file__).parents[2] / "examples"
WITH_DESIGNS = {each.stem for each in EXAMPLES.glob("*.py")} - {"shop_demo"}


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


class Ticket(Entity):
    ticket_id: str = ident()
    team: str
    note: str = ""
    changed_at: datetime = updated()


@read(rps=5)
def last_changed(team: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.team == team).newest_first(Ticket.changed_at).limit(20)


@write(rps=10)
def annotate() -> object:
    return updates(Ticket.note)


@write(rps=10)
def annotate_and_say_when() -> object:
    return updates(Ticket.note, Ticket.changed_at)


def test_an_update_moves_its_item_in_an_index_by_the_time_of_the_change() -> None:
    """The update sets the time itself, whether its pattern names it or not."""
    tickets = Design(
        "tickets",
        [Ticket],
        [last_changed, annotate, annotate_and_say_when],
        volumes={Ticket: 20_000},
        sizes={Ticket: 200},
    )
    report = verify(tickets, most_items=2_000)
    for pattern in ("annotate", "annotate_and_say_when"):
        assert report.row(pattern).measured_units == 3, pattern
    assert report.ok


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


def test_returns_that_contradict_the_volumes_are_noted_and_measured() -> None:
    @read(returns=50)
    def mine(user_id: str) -> Query[Order]:
        return find(Order).where(Order.user_id == user_id)

    design = Design("shop", [User, Order], [mine], volumes={User: 1_000, Order: per(User, 5)})
    row = verify(design).row("mine")
    assert row.items_returned == 50  # the plan, too, assumes larger collections than the mean
    assert row.ok
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


class Sample(Entity):
    device: str = ident()
    at: datetime = ident()
    value: int
    kind: str
    batch: str | None = None


@read(rps=1)
def of_an_hour(hour: str) -> Query[Sample]:
    return find(Sample).where(hour_of(Sample.at) == hour).limit(100)


@read(rps=1)
def newest_of_a_kind(kind: str) -> Query[Sample]:
    return find(Sample).where(Sample.kind == kind).newest_first(Sample.at).limit(50)


@read(rps=1)
def newest_checked(kind: str) -> Query[Sample]:
    found = find(Sample).where(Sample.kind == kind).newest_first(Sample.at)
    return found.filter(Sample.value > 7).limit(20)


@read(rps=1)
def of_a_kind_since(kind: str, since: datetime) -> Query[Sample]:
    return find(Sample).where(Sample.kind == kind, Sample.at >= since).limit(40)


@write(rps=20_000)
def measure() -> object:
    return creates(Sample)


LIMITED = (of_an_hour, newest_of_a_kind, newest_checked, of_a_kind_since)


@pytest.mark.parametrize("most_items", [1_500, 15_000, 120_000])
@pytest.mark.parametrize("pattern", LIMITED, ids=lambda each: each.name)
def test_a_limited_read_is_never_extended_beyond_its_limit(pattern: Any, most_items: int) -> None:
    """However many items follow, on one partition or over shards: each query ends at its limit."""
    design = Design(
        "samples",
        [Sample],
        [pattern, measure],
        volumes={Sample: 5_000_000_000},
        sizes={Sample: 120},
        facts=[
            distinct(Sample.device, values=1_000_000),
            distinct(Sample.kind, values=40),
            distinct(hour_of(Sample.at), values=8_000),
            share(Sample.value > 7, 0.1),
        ],
    )
    plan = design.plan()
    step, limit = plan.pattern(pattern.name).steps[0], pattern.trace().limit
    row = verify(design, plan, most_items=most_items).row(pattern.name)
    most = limit * step.shards if step.filter is None else 10 * limit + 100 * step.shards
    most = most * 2 if step.fetch else most
    assert row.items_returned == limit
    assert row.items_read <= most * 1.3
    assert row.ok, (row.estimated_units, row.measured_units, row.items_read)


def test_returns_say_how_many_items_have_an_optional_field() -> None:
    @read(returns=40)
    def of_batch(batch: str) -> Query[Sample]:
        return find(Sample).where(Sample.batch == batch)

    design = Design(
        "samples",
        [Sample],
        [of_batch],
        volumes={Sample: 4_000},
        sizes={Sample: 300},
        facts=[distinct(Sample.batch, values=100)],
    )
    row = verify(design).row("of_batch")
    assert row.items_returned == 40
    assert row.guesses == design.plan().pattern("of_batch").guesses
    assert row.notes == ()


def test_a_period_in_a_sort_key_of_its_own_is_read_whole() -> None:
    """However few of the items under the partition key lie in the period."""

    @read(rps=1)
    def of_device_and_hour(device: str, hour: str) -> Query[Sample]:
        return find(Sample).where(Sample.device == device, hour_of(Sample.at) == hour)

    design = Design(
        "samples",
        [Sample],
        [of_device_and_hour, of_an_hour],
        volumes={Sample: 80_000_000},
        sizes={Sample: 120},
        facts=[distinct(Sample.device, values=1_000), distinct(hour_of(Sample.at), values=8_000)],
    )
    row = verify(design, most_items=2_000).row("of_device_and_hour")
    assert row.items_returned == 10
    assert not row.extrapolated


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
        *((of_example, each) for each in sorted(WITH_DESIGNS)),
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


# --- unit boundaries


class Bill(Entity):
    customer: str = ident()
    number: str = ident()
    lines: list[str]


@read(rps=1)
def bill(customer: str, number: str) -> Query[Bill]:
    return find(Bill).where(Bill.customer == customer, Bill.number == number)


@read(rps=1)
def bills_of(customer: str) -> Query[Bill]:
    return find(Bill).where(Bill.customer == customer)


@write(rps=5)
def send_bill() -> object:
    return creates(Bill)


@write(rps=5)
def change_bill() -> object:
    return updates(Bill.lines)


def bills(size_bytes: int) -> Design:
    return Design(
        "bills",
        [Bill],
        [bill, bills_of, send_bill, change_bill],
        volumes={Bill: 10_000},
        sizes={Bill: size_bytes},
        facts=[distinct(Bill.customer, values=2_000)],
    )


@pytest.mark.parametrize("size_bytes", [*range(960, 1_040, 7), 1_990, 2_010, 4_040, 4_060])
def test_an_estimate_at_a_unit_boundary_is_right_to_the_unit(size_bytes: int) -> None:
    report = verify(bills(size_bytes), most_items=500)
    assert not report.failed
    assert {row.pattern: row.off for row in report.rows if row.kind == "write"} == {
        "send_bill": 0,
        "change_bill": 0,
    }


def with_units(plan: Plan, pattern: str, units: float) -> Plan:
    return dataclasses.replace(
        plan,
        patterns=tuple(
            dataclasses.replace(each, units_per_call=units) if each.name == pattern else each
            for each in plan.patterns
        ),
    )


def stored_bytes(design: Design) -> float:
    [size] = verify(design, most_items=500).row("send_bill").sizes
    return size.measured


@pytest.mark.parametrize(
    ("pattern", "boundary", "units", "other"),
    [("send_bill", 2_048, 2, 3), ("bill", 4_096, 0.5, 1), ("bills_of", 4_096 / 5, 0.5, 1)],
)
def test_an_estimate_a_few_bytes_from_a_boundary_is_not_called_wrong(
    pattern: str, boundary: float, units: float, other: float
) -> None:
    """The next number of units is a few bytes away. Any other is still wrong."""
    keys = round(stored_bytes(bills(1_500)) - 1_500)
    near = bills(int(boundary) - keys - 4)
    plan = near.plan()
    row = verify(near, with_units(plan, pattern, other), most_items=500).row(pattern)
    assert row.measured_units == units
    assert row.ok and row.is_on_boundary
    assert row.nearby_units == (units, other)
    far = bills(int(boundary) - keys - 80)
    row = verify(far, with_units(plan, pattern, other), most_items=500).row(pattern)
    assert not row.ok and not row.is_on_boundary
    row = verify(near, with_units(plan, pattern, 3 * other), most_items=500).row(pattern)
    assert not row.ok and not row.is_on_boundary


@pytest.mark.parametrize("times", [0, 0.25, 3, 1_000_000])
def test_a_call_may_write_any_number_of_items(times: float) -> None:
    """Not all of a million items are made to measure them."""

    @write(rps=1)
    def import_bills() -> object:
        return creates(Bill, times=times)

    design = Design("bills", [Bill], [import_bills], volumes={Bill: 10_000}, sizes={Bill: 1_500})
    row = verify(design, most_items=500).row("import_bills")
    assert row.measured_units == pytest.approx(2 * times)
    assert row.ok
    assert len(row.notes) == (times > 480)


def test_a_change_of_a_field_changes_the_prefix_that_a_key_holds() -> None:
    class Position(Entity):
        driver_id: str = ident()
        cell: str
        name: str

    @read(rps=2_500)
    def nearby(cell: str) -> Any:
        found = find(Position).where(prefix_of(Position.cell, 5) == cell)
        return found.limit(15).only(Position.driver_id)

    @write(rps=50)
    def move() -> object:
        return updates(Position.cell)

    design = Design(
        "cells",
        [Position],
        [nearby, move],
        volumes={Position: 30_000},
        sizes={Position: 120},
        facts=[distinct(prefix_of(Position.cell, 5), values=4_000)],
    )
    row = verify(design, most_items=500).row("move")
    assert row.measured_units == 2  # the item, and in every second update an entry that moves
    assert row.ok
    [guess] = row.guesses
    assert guess.startswith("prefix_of(Position.cell, 5): 0.5 of the updates of Position.cell")
