"""Patterns that run for a part of the day: what they cost, and what they ask of partitions."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Any, Literal

import pytest

from stator import (
    Design,
    Entity,
    ProvisionedCapacity,
    Query,
    TableSettings,
    creates,
    find,
    ident,
    read,
    updates,
    write,
)
from stator.design.cost.windows import window_notes
from stator.design.cost.workload import workload_of
from stator.design.documents import heat_page
from stator.design.lint.facts import Facts
from stator.design.simulation import BatchWindow, Spike, TrafficShape
from stator.errors import DesignError

HOUR = ("02:00", "03:00")


class Line(Entity):
    line_id: str = ident()
    kind: Literal["bought", "sold"]
    text: str = ""


class Run(Entity):
    run_id: str = ident()
    total: int = 0
    state: str = ""


def lines(rps: float, between: Any = None, also: Any = None) -> Design:
    """Lines of one kind: all of them are under one key of the index."""

    @write(rps=rps, between=between)
    def load() -> Any:
        return creates(Line)

    @write(rps=rps, between=also)
    def repair() -> Any:
        return creates(Line)

    @read(rps=1, returns=100)
    def lines_of(kind: Literal["bought", "sold"]) -> Query[Line]:
        return find(Line).where(Line.kind == kind)

    @read(rps=24, between=between)
    def line(line_id: str) -> Query[Line]:
        return find(Line).where(Line.line_id == line_id)

    patterns: list[Any] = [load, lines_of, line, *([repair] if also is not None else [])]
    return Design("lines", [Line], patterns, volumes={Line: 1_000_000})


def shards(design: Design) -> int:
    return design.plan().pattern("lines_of").steps[0].shards


def test_costs_count_the_average_of_a_day() -> None:
    plan = lines(2400, HOUR).plan()
    assert plan.pattern("load").requests_per_second == pytest.approx(100)
    assert plan.pattern("line").requests_per_second == pytest.approx(1)
    even = lines(100).plan().pattern("load")
    assert plan.pattern("load").dollars_per_month == pytest.approx(even.dollars_per_month, rel=0.01)


def test_a_pattern_is_simulated_in_its_window_only() -> None:
    found = lines(20, HOUR).simulate()
    assert found.minutes == 24 * 60
    assert found.pattern("load").calls == pytest.approx(20 * 3600, rel=0.001)
    assert found.pattern("load").peak_per_second == pytest.approx(20)
    assert found.pattern("lines_of").calls == pytest.approx(86_400, rel=0.001)


def test_a_window_may_pass_midnight() -> None:
    found = lines(20, ("23:30", "00:30")).simulate(TrafficShape(start=23 * 3600, minutes=120))
    assert found.pattern("load").calls == pytest.approx(20 * 3600, rel=0.001)


def test_a_window_of_the_simulation_replaces_the_declared_one() -> None:
    window = BatchWindow("load", start=0, end=600)
    found = lines(20, HOUR).simulate(TrafficShape(windows=(window,), minutes=60))
    assert found.pattern("load").calls == pytest.approx(20 * 600, rel=0.001)
    assert found.pattern("line").calls == 0


def test_a_run_without_a_length_covers_all_windows_and_spikes() -> None:
    window = BatchWindow("load", start=2 * 3600, end=3 * 3600)
    for design in (lines(20), lines(20, ("05:00", "06:00"))):
        found = design.simulate(TrafficShape(windows=(window,)))
        assert found.pattern("load").calls == pytest.approx(20 * 3600, rel=0.001)
        assert found.ok and found.never_called == ()
    late = Spike("load", 3, at=4 * 3600, seconds=60)
    assert lines(20).simulate(TrafficShape(spikes=(late,))).pattern("load").peak_per_second == 60
    assert TrafficShape(spikes=(Spike("load", 3, at=600, seconds=60),)).seconds == 3600


def test_a_run_that_misses_a_window_says_so_and_is_not_ok() -> None:
    found = lines(20, HOUR).simulate(TrafficShape(minutes=60))
    assert sorted(found.never_called) == ["line", "load"]
    assert not found.ok
    assert sorted(found.to_data()["never_called"]) == ["line", "load"]


def test_declared_scaling_that_is_left_out_is_said() -> None:
    def notes(capacity: ProvisionedCapacity) -> tuple[str, ...]:
        design = lines(20)
        design.settings = TableSettings(capacity=capacity)
        found = design.simulate(TrafficShape(minutes=1))
        assert found.to_data()["notes"] == list(found.notes)
        assert all(escape(each) in heat_page(found) for each in found.notes)
        return tuple(each for each in found.notes if each.startswith("lines:"))

    fixed = ProvisionedCapacity(80, 300)
    assert notes(fixed) == ()
    scaled = replace(fixed, most_write_units=6000)
    left_out = "is not simulated; the units stay at 300"
    assert notes(scaled) == (f"lines: scaling to 6,000 write units {left_out}",)
    scheduled = replace(scaled, write_schedule=("daily 01:50-04:00 min=3700",))
    assert notes(scheduled) == (
        f"lines: scaling to 6,000 write units with its schedule {left_out}",
    )


def test_the_page_names_what_was_never_called() -> None:
    page = heat_page(lines(20, HOUR).simulate(TrafficShape(minutes=1)))
    assert "Never called: line, load." in page and "not called" in page
    assert "Every pattern is served" not in page


def test_a_bill_says_how_far_units_for_the_busiest_moment_are_used() -> None:
    def notes(design: Design) -> tuple[str, ...]:
        return window_notes(design, workload_of(design.plan(), design))

    # Reads: 1 a second all day, and 24 of an item in an hour. Writes: all of them in the hour.
    found = notes(lines(240, HOUR))
    assert len(found) == 2
    assert any(
        each.startswith("writes take") and "from 02:00" in each and "used to 4.2% at most" in each
        for each in found
    )
    assert notes(lines(240)) == ()


def test_the_profile_of_the_day_does_not_apply_to_a_window() -> None:
    found = lines(20, HOUR).simulate(TrafficShape(profile="office"))
    assert found.pattern("load").peak_per_second == pytest.approx(20)


def test_shards_follow_from_the_busiest_moment() -> None:
    assert shards(lines(10_000, HOUR)) == shards(lines(10_000)) > shards(lines(10_000 / 24))
    together = shards(lines(10_000, HOUR, ("02:30", "04:00")))
    assert together == shards(lines(20_000)) > shards(lines(10_000, HOUR, ("03:00", "04:00")))
    assert shards(lines(10_000, HOUR, ("03:00", "04:00"))) == shards(lines(10_000))


def test_check_warns_of_what_is_refused_in_a_window() -> None:
    def counting(rps: float, between: Any) -> list[str]:
        @write(rps=rps, between=between)
        def count() -> Any:
            return updates(Run.state)

        design = Design("runs", [Run], [count], volumes={Run: 3})
        found = design.check().findings
        return [each.subject for each in found if each.code == "ST107"]

    assert counting(9_000, ("02:00", "02:05")) == ["count"]
    assert counting(9_000 * 5 / (24 * 60), None) == []


def test_rules_about_hot_keys_see_the_rate_of_the_window() -> None:
    def counting(rps: float, between: Any) -> Design:
        @write(rps=rps, between=between)
        def count() -> Any:
            return updates(Run.total)

        return Design("runs", [Run], [count], volumes={Run: 3})

    def said(design: Design, code: str) -> list[tuple[str, str, str]]:
        found = [each for each in design.check().findings if each.code == code]
        return [(each.severity, each.subject, each.message) for each in found]

    def heat(design: Design) -> list[float]:
        facts = Facts(design, design.plan())
        found: list[float] = []
        for each in facts.collections:
            found += [facts.read_units_per_value(each), facts.write_units_per_value(each)]
            found += [facts.created_units(each, entity) for entity in each.entities]
        return found

    windowed, always, mean = lines(600, HOUR), lines(600), lines(25)
    assert said(windowed, "ST101") == said(always, "ST101") != said(mean, "ST101")
    # The other read of the two designs is of single items, at 1 call a second in the mean.
    assert heat(windowed) == pytest.approx(heat(always)) != pytest.approx(heat(mean))
    assert said(counting(1200, HOUR), "ST502") == said(counting(1200, None), "ST502") != []
    assert said(counting(50, None), "ST502") == []


def test_windows_that_do_not_meet_are_not_added_up() -> None:
    design = lines(600, HOUR, ("03:00", "04:00"))
    assert design.busiest({"load": 25, "repair": 25, "lines_of": 1}) == (7200, 601)
    both = lines(600, HOUR, ("02:30", "03:30"))
    assert both.busiest({"load": 25, "repair": 25}) == (9000, 1200)


def test_check_names_the_window_in_which_others_are_refused() -> None:
    @write(rps=60)
    def record() -> Any:
        return creates(Line)

    @write(rps=2500, between=("02:00", "02:20"))
    def batch() -> Any:
        return creates(Line)

    settings = TableSettings(capacity=ProvisionedCapacity(80, 300))
    design = Design("lines", [Line], [record, batch], volumes={Line: 1_000_000}, settings=settings)
    found = {each.subject: each for each in design.check().findings if each.code == "ST107"}
    assert set(found) == {"record", "batch"}
    for each in found.values():
        assert "in the window of batch (02:00 to 02:20), even after 20 minutes" in each.message
    assert design.simulate().pattern("record").healthy_after_minutes == 140


@pytest.mark.parametrize(
    "between",
    ["02:00", ("02:00",), ("2:00", "03:00"), ("24:00", "03:00"), ("02:00", "02:00"), (2, 3), ()],
)
def test_what_is_not_a_part_of_the_day_is_refused(between: Any) -> None:
    for declare in (read, write):
        with pytest.raises(DesignError, match="between"):
            declare(between=between)
