"""Switches to on-demand: four in any 24 hours."""

from __future__ import annotations

from stator.model.scaling.billing_switches import next_switch_at

HOUR = 3600.0
NOW = 1_790_000_000.0


def test_the_fifth_switch_waits_until_the_first_is_a_day_old() -> None:
    switches = [NOW - hours * HOUR for hours in (20, 3, 2, 1)]
    assert next_switch_at(switches, NOW) == NOW + 4 * HOUR
    assert next_switch_at(switches[1:], NOW) == NOW


def test_a_switch_of_more_than_a_day_ago_does_not_count() -> None:
    assert next_switch_at([NOW - 24 * HOUR, NOW - 3, NOW - 2, NOW - 1], NOW) == NOW
