"""The options of a table: what they cost beside each other, and when one is left out."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

from stator.design.cost.prices import prices
from stator.ops.capacity.options import CapacityOption, OptionSearch, capacity_options
from stator.ops.capacity.policies import FixedPolicy, ScaledPolicy
from stator.ops.capacity.use_series import Dimension

from .histories import READS, WRITES, history

US = prices("us-east-1")
DAY = 1440


def rate(minute: int) -> float:
    """Units a second: a calm day, and busy weekday evenings that begin at once."""
    hour, day = minute / 60 % 24, minute // DAY % 7
    calm = 20 + 15 * (1 - math.cos(hour / 24 * 2 * math.pi))
    return calm + (100 if day < 5 and 18 <= hour < 22.5 else 0)


@cache
def options(days: int = 8) -> dict[str, CapacityOption]:
    writes = [60 * rate(minute) for minute in range(days * DAY)]
    search = OptionSearch(history(writes, size_bytes=1024**3), US)
    return {each.name: each for each in capacity_options(search)}


def test_every_way_to_pay_is_there_what_there_is_now_first() -> None:
    assert list(options()) == [
        "on-demand (now)",
        "on-demand, max 1/169",
        "fixed, highest minute",
        "fixed, p99 minute",
        *(f"auto scaling {target} %" for target in (50, 60, 70, 80, 90)),
        "scheduled scaling 70 %",
    ]


def test_a_sudden_rise_is_late_for_scaling_and_in_time_for_a_schedule() -> None:
    plain, timely = options()["auto scaling 70 %"], options()["scheduled scaling 70 %"]
    assert plain.throttled_minutes.high > 20 and plain.longest_run > 2
    assert timely.throttled_units.high == 0
    assert timely.dollars.high < options()["fixed, highest minute"].dollars.low
    ((dimension, schedule),) = timely.schedules
    assert dimension == WRITES
    assert any(each.startswith("weekdays 17:50-22:30") for each in schedule.windows())


def test_a_higher_target_costs_less_and_refuses_more() -> None:
    found = [options()[f"auto scaling {target} %"] for target in (50, 70, 90)]
    dollars = [each.dollars.high for each in found]
    refused = [each.throttled_units.high for each in found]
    assert dollars == sorted(dollars, reverse=True) and refused == sorted(refused)


def test_a_figure_is_a_range_from_the_best_to_the_worst_delays() -> None:
    found = options()["auto scaling 70 %"]
    assert len(found.replays) == 2
    assert found.throttled_units.low < found.throttled_units.high
    assert found.worst.throttled_units == found.throttled_units.high


def test_less_than_a_week_has_no_schedule() -> None:
    assert "scheduled scaling 70 %" not in options(2)


def test_units_that_were_given_are_tried() -> None:
    search = OptionSearch(
        history([600.0] * DAY, indexes={"G": ((), [1200.0] * DAY)}), US, fixed={WRITES: 12}
    )
    found = {each.name: each for each in capacity_options(search)}["fixed, as given"]
    assert found.policies[WRITES] == FixedPolicy(12)
    assert found.policies[Dimension("G", "write")] == FixedPolicy(20)
    assert found.throttled_units.high == 0


def test_what_is_not_used_scales_from_one_unit() -> None:
    policy = options()["auto scaling 50 %"].policies[READS]
    assert isinstance(policy, ScaledPolicy) and policy.bounds.least == 1


def test_a_provisioned_table_is_compared_with_what_it_had() -> None:
    found = capacity_options(
        OptionSearch(history([60.0] * DAY, provisioned=100, throttles=[7.0]), US)
    )
    assert [each.name for each in found[:2]] == ["provisioned (now)", "on-demand"]
    assert found[0].throttled_units.high == 7.0
    assert found[1].dollars.high < found[0].dollars.low


def test_infrequent_access_is_offered_where_storage_is_most_of_the_bill() -> None:
    large = replace(history([60.0] * DAY), sizes={None: 1e12})
    names = [each.name for each in capacity_options(OptionSearch(large, US))]
    assert "on-demand (now), Infrequent Access" in names
    small = [each.name for each in capacity_options(OptionSearch(history([60.0] * DAY), US))]
    assert not any("Infrequent" in each for each in small)


def test_infrequent_access_pays_from_storage_of_0_42_times_throughput() -> None:
    # "derived" in the research notes; here from the prices themselves.
    saved = 1 - float(US["ia_storage_gb_month"]) / float(US["storage_gb_month"])
    dearer = float(US["ia_write_request_unit"]) / float(US["write_request_unit"]) - 1
    assert 0.40 < dearer / saved < 0.44
