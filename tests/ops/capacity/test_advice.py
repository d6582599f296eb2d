"""The advice: which option wins and why, and what it says about itself."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

from stator.design.cost.prices import prices
from stator.errors import ConfigurationError
from stator.model.quantities import cents, dollars
from stator.model.scaling.target_tracking import CapacityBounds, target_warning
from stator.ops.capacity.advice import CapacityAdvice, TableAdvice, advise
from stator.ops.capacity.capacity_state import CapacityState
from stator.ops.capacity.options import OptionSearch
from stator.ops.capacity.planned_state import planned_state
from stator.ops.capacity.reason import throttled_when
from stator.ops.capacity.use_series import TableHistory

from .histories import READS, WRITES, history
from .test_options import rate

US = prices("us-east-1")
DAY = 1440


def on(*histories: TableHistory, most_throttled: float = 0.0001) -> CapacityAdvice:
    return advise([OptionSearch(each, US, most_throttled=most_throttled) for each in histories])


def advice(found: TableHistory, **options: float) -> TableAdvice:
    return on(found, **options).tables[0]


@cache
def evenings() -> TableAdvice:
    return advice(history([60 * rate(minute) for minute in range(8 * DAY)]))


def test_steady_traffic_gets_fixed_units() -> None:
    found = advice(history([6000.0] * DAY))
    assert found.recommended.kind == "fixed"
    saved = f"{dollars(found.recommended.dollars.middle)} a month instead of "
    assert found.reason == (
        f"Use is even enough for units that never change: {saved}"
        f"{dollars(found.now.dollars.middle)}. On average 100 write units a second are used, and "
        "100 in the busiest minute."
    )
    assert found.saves == pytest.approx(found.now.dollars.middle - found.recommended.dollars.middle)


def test_rare_traffic_stays_on_demand() -> None:
    quiet = [0.0] * DAY
    quiet[100:103] = [60_000.0] * 3
    found = advice(history(quiet))
    assert (found.recommended, found.is_change) == (found.now, False)
    assert found.reason.startswith(
        "Of the other options that refuse at most 0.01 %, the cheapest (fixed, highest minute) "
        "would cost $"
    )
    assert found.reason.endswith(
        "On average 2.08 write units a second are used, and 1,000 in the busiest minute."
    )
    assert found.note(found.now, "UTC") == "<- keep"


def test_evenings_get_a_schedule_and_the_reason_says_so() -> None:
    found = evenings()
    assert found.recommended.kind == "scheduled"
    assert found.reason.startswith(
        "Use has the same shape every week, and a schedule raises units before it rises. At best, "
        "auto scaling 70 % alone would be late and refuse up to 0."
    )
    assert "minutes, mostly 18:00-19:00. On average " in found.reason
    assert found.note(found.recommended, "UTC") == f"<- saves ${found.saves:.2f}"
    plain = next(each for each in found.options if each.name == "auto scaling 70 %")
    assert found.note(plain, "UTC") == "18:00-19:00"
    assert found.note(plain, "America/New_York") == "13:00-14:00"


def test_who_may_refuse_more_may_pay_less() -> None:
    strict, loose = evenings(), advice(evenings().history, most_throttled=0.05)
    assert loose.recommended.dollars.middle < strict.recommended.dollars.middle
    assert loose.recommended.throttled_share.high > 0


def test_no_target_is_recommended_of_which_scale_warns() -> None:
    loose = advice(evenings().history, most_throttled=0.5)
    cheapest = min(loose.options, key=lambda each: each.dollars.middle)
    assert cheapest.name == "auto scaling 90 %"
    assert cheapest.warning == target_warning(90) != "" and not cheapest.is_eligible
    assert loose.recommended.name == "auto scaling 80 %"
    for option in loose.options:
        assert option.is_eligible or option is not loose.recommended


def weekly_batch() -> TableHistory:
    """Busy weekday evenings, and a batch on Sundays at two."""
    units = [
        60 * (600 if minute // DAY % 7 == 6 and 120 <= minute % DAY < 240 else rate(minute))
        for minute in range(7 * DAY)
    ]
    return history(units)


def test_a_weekly_batch_has_a_schedule_and_a_name_of_its_own() -> None:
    found = advice(weekly_batch())
    assert found.recommended.kind == "scheduled"
    assert found.recommended.throttled_units.high == 0
    ((_, schedule),) = found.recommended.schedules
    windows = list(schedule.windows())
    assert [each for each in windows if each.endswith(("min=857", "min=858"))] == [
        next(each for each in windows if each.startswith("sunday 01:50-04:00"))
    ]
    quiet = [60.0] * (7 * DAY)
    quiet[6 * DAY + 120 : 6 * DAY + 240] = [36_000.0] * 120
    plain = next(each for each in advice(history(quiet)).options if each.kind == "scaled")
    assert throttled_when(history(quiet), plain, "UTC") == "Sunday 02:00-03:00"


def test_a_table_that_refuses_gets_something_that_does_not_even_if_it_costs_more() -> None:
    throttled = history([1200.0] * DAY, provisioned=20, throttles=[600.0] * DAY)
    found = advice(throttled)
    assert found.recommended.throttled_share.high < found.now.throttled_share.low
    assert found.saves < 0
    assert found.note(found.recommended, "UTC") == "<- refuses less"
    assert "Now 33 % of what is asked for is refused." in found.reason
    assert any("hid at least 864,000 units" in each for each in found.notes)


def test_on_demand_that_refused_stays_and_the_note_looks_for_hot_keys() -> None:
    quiet = [0.0] * DAY
    quiet[100:103] = [60_000.0] * 3
    found = advice(history(quiet, throttles=[50.0] * 10))
    assert found.recommended is found.now
    assert any("look for hot keys" in each for each in found.notes)


def test_a_large_quiet_table_gets_the_other_class() -> None:
    quiet = [0.0] * DAY
    quiet[100:103] = [60_000.0] * 3
    found = advice(history(quiet, size_bytes=1e12))
    assert found.recommended.table_class == "infrequent_access"
    assert found.reason.startswith("Storage is $")
    before = CapacityState("orders", {})
    after = planned_state(found.recommended, before, found.history)
    assert after == CapacityState("orders", {}, table_class="infrequent_access")


def test_the_price_of_being_wrong_is_that_of_twice_the_traffic() -> None:
    found = advice(history([6000.0] * DAY))
    assert found.wrong.throttled_share == pytest.approx(0.5, abs=0.02)
    assert found.wrong.on_demand_dollars == pytest.approx(2 * found.now.dollars.middle)
    assert "if traffic were 2 times as high" in str(found.wrong)


def test_on_demand_is_not_compared_with_itself() -> None:
    quiet = [0.0] * DAY
    quiet[100:103] = [60_000.0] * 3
    assert "on-demand would cost" not in str(advice(history(quiet)).wrong)


def test_a_named_option_has_its_own_price_of_being_wrong_and_its_own_blocks() -> None:
    steady = history([6000.0] * DAY)
    search = OptionSearch(steady, US)
    whole = advise([search])
    for option in whole.tables[0].options:
        found = advise([search], option=option.name).tables[0]
        assert found.recommended.name == option.name
        data = found.to_data()
        assert data["if_wrong"]["dollars"] == round(found.wrong.dollars, 2)
        if option.kind == "now":
            assert found.wrong.dollars == pytest.approx(found.wrong.on_demand_dollars)
            assert found.wrong.throttled_share == 0
        elif option.kind == "fixed":
            assert found.wrong.dollars == pytest.approx(option.dollars.middle)
    assert whole.reserved
    assert not advise([search], option="on-demand (now)").reserved
    with pytest.raises(ConfigurationError, match="no option 'free'"):
        advise([search], option="free")


def test_a_dearer_option_that_refuses_no_less_says_what_it_costs() -> None:
    quiet = [0.0] * DAY
    quiet[100:103] = [60_000.0] * 3
    found = advise([OptionSearch(history(quiet), US)], option="fixed, highest minute").tables[0]
    assert found.saves < 0
    assert found.note(found.recommended, "UTC") == f"<- costs ${cents(-found.saves)} more"


@pytest.mark.parametrize("provisioned", [0.0, 200.0])
def test_a_table_that_has_another_mode_than_its_history_is_not_called_by_it(
    provisioned: float,
) -> None:
    found = history([6000.0] * DAY, provisioned=provisioned)
    for is_provisioned in (None, False, True):
        search = OptionSearch(found, US, is_provisioned_now=is_provisioned)
        (table,) = advise([search]).tables
        differs = is_provisioned not in (None, provisioned > 0)
        assert table.now.name.endswith("(in the history)" if differs else "(now)")
        assert any("in the history" in each for each in table.notes) is differs


def test_a_cheaper_schedule_that_comes_late_is_named_with_the_minute_and_what_it_refuses() -> None:
    busy = [60.0 if minute % DAY // 60 < 18 else 24_000.0 for minute in range(8 * DAY)]
    found = history(busy, busy, indexes=dict.fromkeys("AB", (busy, busy)))
    (table,) = advise([OptionSearch(found, US)]).tables
    late = [
        each
        for each in table.options
        if each.kind == "scheduled"
        and each.is_eligible
        and each.throttled_share.high > 0.0001
        and each.dollars.middle < table.recommended.dollars.middle
    ]
    assert late and table.recommended.kind != "scheduled"
    cheap = min(late, key=lambda each: each.throttled_share.high)
    refused = max(cheap.worst.front, key=lambda each: each.throttled_units)
    assert f"{cheap.name[1:]} would cost {dollars(cheap.dollars.middle)}" in table.reason
    assert f"the {refused.dimension} most, worst on" in table.reason
    assert " at 18:0" in table.reason
    assert "one after another" in table.reason


def test_an_index_that_is_only_written_is_named_with_what_it_costs() -> None:
    used = [60.0] * DAY * 7
    found = advice(history(used, indexes={"GSI1": ((), used)}))
    (unused,) = found.unused
    assert unused.index == "GSI1"
    assert unused.dollars == pytest.approx(730 * 3600 * 0.625e-6)
    assert advice(history([60.0] * DAY, indexes={"GSI1": ((), [60.0] * DAY)})).unused == ()


def test_little_history_is_said_and_less_than_a_day_is_refused() -> None:
    found = advice(history([60.0] * (DAY + 300)))
    assert "1 day 5 h of history is little" in found.notes[0]
    with pytest.raises(ConfigurationError, match="orders has 5 h 10 min of history") as raised:
        advice(history([60.0] * 310))
    assert "14 days" in str(raised.value.hint)


def test_points_of_five_minutes_are_marked() -> None:
    coarse = replace(history([60.0] * DAY * 14), source_seconds=300)
    assert "a point for every 5 minutes" in advice(coarse).notes[0]


def test_reserved_blocks_are_those_of_all_tables_together() -> None:
    one = history([6000.0 * 0.9] * DAY, table="one")
    two = history([6000.0 * 0.9] * DAY, table="two")
    assert on(one).reserved[0].blocks == 1
    both = on(one, two)
    assert [each.table for each in both.tables] == ["one", "two"]
    assert both.reserved[0].blocks == 2


def test_the_advice_is_json() -> None:
    found = json.loads(json.dumps(CapacityAdvice((evenings(),), (), US, "UTC").to_data()))
    (table,) = found["tables"]
    assert table["recommended"] == "scheduled scaling 70 %"
    scheduled = next(each for each in table["options"] if each["name"] == table["recommended"])
    assert scheduled["throttled_units"] == [0, 0]
    assert scheduled["policies"]["writes"]["schedule"][0]["timezone"] == "UTC"
    assert found["region"] == "us-east-1"


# --- the state that an option means ---------------------------------------------------------------


def test_a_switch_to_scaling_starts_with_what_the_last_hour_needs() -> None:
    found = evenings()
    before = CapacityState("orders", {}, maxima={WRITES: 500})
    after = planned_state(found.recommended, before, found.history)
    policy = found.recommended.policies[WRITES]
    assert after.is_provisioned and after.maxima == {}
    assert after.scaling[WRITES].actions and after.scaling[WRITES].actions == policy.actions  # type: ignore[union-attr]
    last = max(found.history.of(WRITES).consumed[-60:]) / 60
    assert after.units[WRITES] >= last / 0.7
    assert after.units[READS] == 1


def test_units_of_a_provisioned_table_stay_if_they_are_within_the_bounds() -> None:
    found = evenings()
    bounds: CapacityBounds = found.recommended.policies[WRITES].bounds  # type: ignore[union-attr]
    before = CapacityState("orders", {READS: 3, WRITES: bounds.least + 1})
    assert planned_state(found.recommended, before, found.history).units == {
        READS: 3, WRITES: bounds.least + 1
    }  # fmt: skip


def test_what_there_is_now_changes_nothing_and_a_maximum_is_set() -> None:
    found = evenings()
    before = CapacityState("orders", {READS: 3, WRITES: 4})
    assert planned_state(found.now, before, found.history) == before
    capped = next(each for each in found.options if each.kind == "capped")
    after = planned_state(capped, before, found.history)
    assert after.units == {} and after.maxima == {READS: 1, WRITES: 169}
