"""What a report says to change, and its totals."""

from __future__ import annotations

import json

import pytest

from stator.design.cost.prices import prices
from stator.ops.capacity.advice import advise
from stator.ops.capacity.options import OptionSearch
from stator.ops.capacity.use_series import Dimension
from stator.ops.report.month import Month
from stator.ops.report.month_report import MonthReport, suggested_changes
from stator.ops.report.month_use import DimensionMonth, MonthSpan, PlaceMonth

from ..capacity.histories import history

US = prices("us-east-1")
MONTH = Month(2026, 11)


def place(dollars: float = 0.0, **throttles: int) -> PlaceMonth:
    reads, writes = (
        DimensionMonth(Dimension(None, kind), 0.0, 0.0, 0.0, dollars / 2)
        for kind in ("read", "write")
    )
    named = {words.replace("_", " "): count for words, count in throttles.items()}
    return PlaceMonth("orders", None, reads, writes, 0.0, 0.0, named)


def test_refusals_come_first_with_their_cause_and_runbook() -> None:
    found = suggested_changes([place(write_hot_key=12, read_capacity=1)], None)
    assert [each.text for each in found] == [
        (
            "12 writes of orders were refused: one key is asked for more than a partition serves "
            "(docs/runbooks/hot-key.md)."
        ),
        (
            "1 read of orders was refused: the provisioned units were used up "
            "(docs/runbooks/no-capacity.md)."
        ),
    ]


def test_advice_becomes_changes_with_what_they_save() -> None:
    used = [6000.0] * 1440 * 7
    told = advise([OptionSearch(history(used, indexes={"GSI1": ((), used)}), US)])
    change, unused, reserved = suggested_changes([], told)
    assert change.text.startswith("Change to fixed, highest minute. Use is even enough")
    assert change.saves == told.tables[0].saves
    assert change.command == "stator advise --table orders --calls"
    assert unused.text == "Drop GSI1: it is written and never read." and unused.saves
    assert reserved.text.startswith("Reserve 2 blocks of 100 write units for 1 year")


def test_a_month_that_goes_on_costs_in_proportion() -> None:
    span = MonthSpan.of(MONTH, MONTH.start + 72 * 3600)
    found = MonthReport(span, US, (place(3.0), place(4.0)), (), (), ())
    assert found.dollars == 7.0 and found.whole_dollars == pytest.approx(70.0)
    data = json.loads(json.dumps(found.to_data()))
    assert (data["month"], data["hours"], data["of_hours"]) == ("2026-11", 72, 720)
    assert (data["dollars"], data["whole_month_dollars"]) == (7.0, 70.0)
