"""What a design costs: the parts make up the whole, the units are the planner's, and the dollars
can be worked out by hand.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.design.cost.difference import CostDiff, cause_of, compare_costs
from stator.design.cost.origin import Origin
from stator.design.cost.report import MODES, CostOptions, CostReport, cost
from stator.design.cost.workload import workload_of
from stator.design.design import Design
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import Pattern, read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import WritePattern, creates, updates, write
from stator.design.plan.plan import Plan
from stator.errors import DesignError

from . import models

MONTH = 730 * 3600


class Parcel(Entity):
    parcel_id: str = ident()
    depot: str
    weight: int


@read(rps=100)
def parcel(parcel_id: str) -> Query[Parcel]:
    return find(Parcel).where(Parcel.parcel_id == parcel_id)


@read(rps=10, returns=4)
def parcels_in(depot: str) -> Query[Parcel]:
    return find(Parcel).where(Parcel.depot == depot)


@write(rps=8)
def accept() -> object:
    return creates(Parcel)


@write(rps=5)
def move() -> object:
    return updates(Parcel.depot)


@write(rps=3)
def weigh() -> object:
    return updates(Parcel.weight)


def post(*patterns: Any, **options: Any) -> Design:
    return Design(
        "post", [Parcel], patterns, volumes={Parcel: 1_000_000}, sizes={Parcel: 500}, **options
    )


@cache
def designs() -> tuple[tuple[Design, Plan], ...]:
    made = (
        models.shop(),
        models.shop("table-per-entity"),
        models.social(),
        models.social("aggregate"),
        post(parcel, parcels_in, accept, move, weigh, writes={Parcel: 2.5}),
        Design("empty", [Parcel], [], volumes={Parcel: 0}),
    )
    return tuple((design, design.plan()) for design in made)


# --- sums -----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    at=st.integers(0, 5),
    mode=st.sampled_from(MODES),
    utilisation=st.floats(0.05, 1),
    years=st.sampled_from([1, 3]),
    pitr=st.booleans(),
    backups=st.floats(0, 40),
    consumers=st.integers(0, 5),
    alone=st.booleans(),
)
def test_the_parts_make_up_the_whole_to_the_last_digit(
    at: int,
    mode: Any,
    utilisation: float,
    years: Any,
    pitr: bool,
    backups: float,
    consumers: int,
    alone: bool,
) -> None:
    _, plan = designs()[at]
    options = CostOptions(
        mode=mode,
        utilisation=utilisation,
        years=years,
        pitr=pitr,
        backups=backups,
        stream_consumers=consumers,
    )
    found = cost(replace(plan, demand=None) if alone else plan, **options)
    assert all(line.dollars >= 0 for line in found.lines)
    for group in (
        found.by_kind(),
        found.by_pattern(),
        found.by_entity(),
        found.by_place(),
        found.by(cause_of),
    ):
        assert sum(group.values()) == found.total
    data = found.to_data()
    assert sum(line["dollars_per_month"] for line in data["lines"]) == pytest.approx(
        data["dollars_per_month"]
    )


@pytest.mark.parametrize("at", range(6))
def test_the_units_of_every_pattern_are_those_of_the_plan(at: int) -> None:
    design, plan = designs()[at]
    uses = workload_of(plan, design).uses
    for pattern in plan.patterns:
        counted = sum(
            use.units for use in uses if (use.pattern, use.kind) == (pattern.name, pattern.kind)
        )
        assert float(counted) == pytest.approx(
            pattern.units_per_call * pattern.requests_per_second, rel=1e-3
        ), pattern.name


@pytest.mark.parametrize("at", range(6))
def test_a_frozen_plan_has_the_whole_workload(at: int) -> None:
    design, plan = designs()[at]
    assert workload_of(Plan.from_json(plan.to_json())) == workload_of(plan, design)
    assert workload_of(replace(plan, demand=None), design) == workload_of(plan)


@pytest.mark.parametrize("at", range(6))
def test_the_plan_of_an_old_lock_has_the_requests_of_its_patterns(at: int) -> None:
    design, plan = designs()[at]
    kinds = {pattern.name: pattern.kind for pattern in plan.patterns}
    whole = [use for use in workload_of(plan, design).uses if kinds.get(use.pattern) == use.kind]
    alone = workload_of(replace(plan, demand=None, uses=(), stored=())).uses
    assert float(sum(use.units for use in alone)) == pytest.approx(
        float(sum(use.units for use in whole)), rel=1e-3
    )


# --- by hand --------------------------------------------------------------------------------------


def test_reads_and_storage_of_one_table_can_be_worked_out_by_hand() -> None:
    found = post(parcel).cost()
    # 100 eventually consistent reads a second of less than 4 KB at $0.125 a million; a million
    # items of 500 bytes, 41 of keys (PK PARCEL# and 24, SK PARCEL) and 100 of overhead at $0.25
    # a GB, and $0.20 for recovery, which is on by default.
    assert found.by_kind()["reads"] == Decimal("16.425000000")
    assert float(found.by_kind()["storage"]) == pytest.approx(
        1_000_000 * (500 + 41 + 100) / 2**30 * 0.25
    )
    assert float(found.by_kind()["backups"]) == pytest.approx(641e6 / 2**30 * 0.20)
    assert float(found.total) == pytest.approx(100 * 0.5 * MONTH * 0.125e-6 + 641e6 / 2**30 * 0.45)


def test_a_change_of_an_index_key_pays_for_taking_out_and_putting_in() -> None:
    uses = workload_of(*reversed_pair(post(parcels_in, accept, move, weigh))).uses
    in_index = {
        use.pattern: float(use.units)
        for use in uses
        if use.index is not None and use.kind == "write"
    }
    in_table = {
        use.pattern: float(use.units) for use in uses if use.index is None and use.kind == "write"
    }
    assert in_table == {"accept": 8, "move": 5, "weigh": 3}
    assert in_index["accept"] == 8
    assert in_index["move"] == 10
    assert in_index.get("weigh", 0) in (0, 3)  # by the projection the planner chose


def reversed_pair(design: Design) -> tuple[Plan, Design]:
    return design.plan(), design


def test_declared_writes_are_paid_for_in_the_table_and_its_indexes() -> None:
    found = post(parcel, parcels_in, writes={Parcel: 8}).cost()
    assert found.by_pattern()["writes of Parcel"] == 2 * 8 * MONTH * Decimal("0.625e-6")


def test_a_transaction_pays_twice_in_the_table_and_once_in_the_indexes() -> None:
    design = models.shop()
    uses = [use for use in workload_of(design.plan(), design).uses if use.pattern == "place_order"]
    assert sum(use.units for use in uses if use.index is None) == 30 * (1 + 3) * 2
    assert {use.index for use in uses} > {None}


def test_provisioned_capacity_is_whole_and_never_less_than_one() -> None:
    found = post(parcel, parcels_in).cost(mode="provisioned", utilisation=0.7)
    index = next(line for line in found.lines if line.pattern == "parcels_in")
    # 10 queries a second at half a unit or more: 5 / 0.7 is 8 units; and the items of an index of
    # keys are fetched.
    units = float(index.quantity) / MONTH
    assert float(index.dollars) == pytest.approx(-(-units // 0.7) * 730 * 0.00013)
    idle = [line for line in found.lines if line.unit == "idle capacity units"]
    assert {(line.kind, line.index) for line in idle} >= {("writes", None), ("writes", index.index)}
    assert found.by_pattern()["(idle capacity)"] == sum(line.dollars for line in idle)


def test_reserved_capacity_costs_less_where_there_are_blocks_of_it() -> None:
    totals = {mode: models.social().cost(mode=mode).by_kind()["writes"] for mode in MODES}
    assert totals["reserved"] < totals["provisioned"] < totals["on-demand"]


def test_backups_are_of_tables_and_not_of_global_indexes() -> None:
    design = post(parcel, parcels_in)
    found = design.cost(pitr=True, backups=3)
    lines = [line for line in found.lines if line.kind == "backups"]
    assert {line.index for line in lines} == {None}
    size = 1_000_000 * 641 / 2**30
    assert float(found.by_kind()["backups"]) == pytest.approx(size * 0.20 + 3 * size * 0.10)


def test_a_consumer_of_the_stream_polls_every_second() -> None:
    found = post(parcel).cost(stream_consumers=2)
    assert found.by_kind()["streams"] == 2 * MONTH * Decimal("0.0000002")


def test_another_region_has_its_own_prices() -> None:
    design = post(parcel)
    assert design.cost(region="eu-west-1").total > design.cost().total
    assert design.cost().prices_as_of == "2026-09-11"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"region": "mars-1"}, "no prices for region 'mars-1'"),
        ({"mode": "free"}, "billing mode 'free' is not supported"),
        ({"mode": "provisioned", "utilisation": 0}, "utilisation=0 must be greater than 0"),
        ({"utilisation": 1.5}, "utilisation=1.5 must be greater than 0 and at most 1"),
        ({"backups": -1}, "must not be negative"),
        ({"mode": "reserved", "table_class": "infrequent_access"}, "only the Standard table class"),
    ],
)
def test_what_cannot_be_is_refused_with_a_hint(options: Any, message: str) -> None:
    with pytest.raises(DesignError, match=message) as raised:
        post(parcel).cost(**options)
    assert raised.value.hint


# --- differences ----------------------------------------------------------------------------------


def both(before: Design, after: Design, **options: Any) -> tuple[CostReport, CostReport]:
    return cost(before.plan(), facts=after, **options), after.cost(**options)


def test_a_difference_is_the_sum_of_its_causes() -> None:
    for mode in MODES:
        found = compare_costs(
            *both(post(parcel, accept), post(parcel, parcels_in, accept, move), mode=mode)
        )
        assert sum(each.dollars for each in found.changes) == found.dollars
        assert found.dollars > 0


def test_a_difference_says_what_it_adds_and_because_of_what() -> None:
    found = compare_costs(*both(post(parcel, accept), post(parcel, parcels_in, accept)))
    assert found.sentence.startswith(f"This change adds ${found.dollars:,.2f} a month, +")
    assert "index of Parcel by depot is new" in found.sentence
    assert "parcels_in is new" in found.sentence
    back = compare_costs(found.after, found.before)
    assert back.sentence.startswith("This change saves $")
    assert "parcels_in is gone" in back.sentence


def test_no_difference_is_said_as_such() -> None:
    found = compare_costs(*both(post(parcel), post(parcel)))
    assert (
        found.sentence
        == f"This change costs nothing: it stays at ${found.after.total:,.2f} a month."
    )
    assert found.changes == ()


def test_a_difference_needs_one_basis() -> None:
    with pytest.raises(DesignError, match="cannot be compared"):
        compare_costs(post(parcel).cost(), post(parcel).cost(mode="provisioned"))


# --- where a difference comes from ----------------------------------------------------------------


def apart(before: Design, after: Design) -> tuple[CostDiff, Origin]:
    old, new = before.plan(), after.plan()
    found = compare_costs(cost(old), cost(new), (old, new))
    assert found.origin is not None
    parts = found.origin.workload + found.origin.keys + found.origin.new_or_gone
    assert parts == found.dollars
    return found, found.origin


def at_rate(pattern: Any, rps: float) -> Any:
    if isinstance(pattern, WritePattern):
        return WritePattern(pattern.function, rps)
    return Pattern(pattern.function, replace(pattern.traffic, rps=rps))


def test_each_side_is_priced_by_its_own_workload() -> None:
    """Twice the writes: the old lock must not be priced at the new rate."""
    old, new = post(parcel, accept), post(parcel, at_rate(accept, accept.rps * 2))
    assert cost(old.plan(), facts=new) == old.cost()
    found, origin = apart(old, new)
    assert found.dollars > 0
    assert origin.keys == 0 and origin.new_or_gone == 0
    assert f"accept {accept.rps * 2:g} times a second instead of {accept.rps:g}" in origin.sentence
    assert origin.sentence.startswith(f"Of this, +${found.dollars:,.2f} from the workload (")


def test_a_new_pattern_is_told_from_the_index_it_needs_and_from_the_workload() -> None:
    _, origin = apart(post(parcel, accept), post(at_rate(parcel, 300), parcels_in, accept))
    assert origin.workload > 0 and origin.keys > 0 and origin.new_or_gone > 0
    for words in (
        "from the workload (parcel 300 times",
        "from the keys and indexes",
        "new or gone",
    ):
        assert words in origin.sentence


def test_a_read_that_goes_another_way_differs_because_of_both() -> None:
    plan = post(parcel, parcels_in, accept).plan()
    busy = post(parcel, at_rate(parcels_in, 4 * parcels_in.traffic.rps), accept).plan()
    [step] = busy.pattern("parcels_in").steps
    moved = replace(
        busy,
        patterns=tuple(
            replace(each, steps=(replace(step, units=step.units * 3, forward=False),))
            if each.name == "parcels_in"
            else each
            for each in busy.patterns
        ),
    )
    found = compare_costs(cost(plan), cost(moved), (plan, moved))
    [change] = [each for each in found.changes if each.cause == "parcels_in"]
    assert found.origin is not None and change.before is not None and change.after is not None
    assert found.origin.workload == pytest.approx(change.before * 3, abs=Decimal("1e-6"))
    assert found.origin.keys == pytest.approx(change.after - 4 * change.before, abs=Decimal("1e-6"))


def test_without_a_frozen_workload_nothing_is_told_apart() -> None:
    old, new = post(parcel).plan(), post(parcel, accept).plan()
    bare = replace(old, demand=None)
    both = post(parcel, accept)
    found = compare_costs(cost(bare, facts=both), cost(new, facts=both), (bare, new))
    assert found.origin is None


def test_what_is_asked_otherwise_is_said() -> None:
    old = Design(
        "post", [Parcel], [parcel, accept, move], volumes={Parcel: 1000}, writes={Parcel: 1}
    )
    new = Design(
        "post",
        [Parcel],
        [parcel, accept, move],
        volumes={Parcel: 2000},
        writes={Parcel: 3},
        sizes={Parcel: 700},
    )
    _, origin = apart(old, new)
    assert "2,000 items of Parcel instead of 1,000" in origin.sentence
    assert "3 writes of Parcel a second instead of 1" in origin.asked
    assert any(each.startswith("items of Parcel of 741 bytes") for each in origin.asked)
