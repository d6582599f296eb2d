"""The alarms of a design: every kind has a runbook, and limits come from the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from stator import ProvisionedCapacity
from stator.ops.dashboards.design_alarms import RATE_FACTOR, design_alarms
from stator.ops.dashboards.design_dashboard import design_dashboard
from stator.ops.dashboards.monitored_design import MonitoredDesign, requests_per_call
from stator.ops.dashboards.planned_alarm import PlannedAlarm
from stator.ops.dashboards.runbooks import RUNBOOKS, runbook_address

from ...design.export.sources import sources
from .watched_shop import watched
from .windowed import windowed

ROOT = Path(__file__).parents[3]
CAPACITY = ProvisionedCapacity(100, 50, most_read_units=400)


def every_alarm() -> list[PlannedAlarm]:
    designs = [watched(), watched(CAPACITY)]
    designs += [MonitoredDesign(source) for source in sources().values()]
    return [alarm for design in designs for alarm in design_alarms(design)]


def test_every_alarm_has_a_runbook_and_every_runbook_an_alarm() -> None:
    pages = {page.stem for page in (ROOT / RUNBOOKS).glob("*.md")}
    assert {alarm.runbook for alarm in every_alarm()} == pages


@pytest.mark.parametrize("page", sorted((ROOT / RUNBOOKS).glob("*.md")), ids=lambda page: page.stem)
def test_a_runbook_says_what_it_means_what_to_look_at_and_what_to_do(page: Path) -> None:
    title, meaning, *rest = page.read_text().split("\n\n")
    assert title.startswith("# ") and not meaning.startswith(("#", "-"))
    assert [part for part in rest if part.startswith("#")] == ["## Look at", "## Do"]
    assert len(page.read_text().splitlines()) <= 40, "a page to read at night is short"


def test_a_runbook_s_address_is_a_file_or_a_page() -> None:
    assert runbook_address("hot-key", "docs/runbooks") == "docs/runbooks/hot-key.md"
    assert runbook_address("hot-key", "https://x.org/rb/") == "https://x.org/rb/hot-key"


def test_a_pattern_is_compared_with_its_declared_rate() -> None:
    [alarm] = [
        each
        for each in design_alarms(watched())
        if (each.runbook, each.about) == ("traffic-above-plan", "orders_of_user")
    ]
    assert alarm.prometheus is not None
    declared = 120 * requests_per_call(watched().source.plan.pattern("orders_of_user"))
    assert alarm.prometheus.expression.endswith(f"> {RATE_FACTOR * declared:g}")


def test_a_pattern_with_a_window_is_compared_with_the_rate_in_it() -> None:
    expressions = {
        each.about: each.prometheus.expression
        for each in design_alarms(windowed())
        if each.runbook == "traffic-above-plan" and each.prometheus
    }
    assert expressions["bill"].endswith(f"> {RATE_FACTOR * 2400:g}")
    assert expressions["bill_of"].endswith(f"> {RATE_FACTOR * 40:g}")


def test_a_budget_with_windows_is_compared_with_the_use_of_a_day() -> None:
    def expression(design: MonitoredDesign) -> str:
        found = [each for each in design_alarms(design) if each.runbook == "cost-above-budget"]
        assert found[0].prometheus is not None
        return found[0].prometheus.expression

    assert expression(windowed()).count("[1d]") == 2 and "[1h]" not in expression(windowed())
    assert expression(watched()).count("[1h]") == 2


def test_a_dashboard_draws_the_rate_in_the_window() -> None:
    panels = [panel for row in design_dashboard(windowed()).rows for panel in row.panels]
    lines = {(line.legend, round(line.value, 3)) for panel in panels for line in panel.lines}
    assert {("declared", 2400.0), ("planned", 2400.0), ("declared", 40.0)} <= lines


def test_capacity_alarms_need_capacity_and_a_budget_on_demand() -> None:
    kinds = {each.runbook for each in design_alarms(watched())}
    provisioned = {each.runbook for each in design_alarms(watched(CAPACITY))}
    assert "capacity-used" not in kinds and "cost-above-budget" in kinds
    assert "capacity-used" in provisioned and "cost-above-budget" not in provisioned


def test_capacity_is_what_scaling_may_reach() -> None:
    expressions = {
        each.about: each.prometheus.expression
        for each in design_alarms(watched(CAPACITY))
        if each.runbook == "capacity-used" and each.prometheus
    }
    assert expressions["shop read"].endswith("> 320")
    assert expressions["shop write"].endswith("> 40")


def test_names_have_the_prefix() -> None:
    design = watched(prefix="prod-")
    for alarm in design_alarms(design):
        if alarm.cloudwatch is not None:
            for metric in alarm.cloudwatch.query.metrics:
                assert dict(metric.dimensions)["TableName"].startswith("prod-shop")
    assert design.name == "prod-shop" and "prod-shop" in design.calls
