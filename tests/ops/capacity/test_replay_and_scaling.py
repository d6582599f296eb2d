"""The replay against the engine's own Application Auto Scaling: unit for unit, minute for minute.

Both run the same policy on the same series. The engine has its own alarms, its own UpdateTable and
its own buckets; only the rules of ``stator.model.scaling`` are shared.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.model.scaling.scheduled_action import ScheduledAction
from stator.model.scaling.target_tracking import CapacityBounds, TargetTracking
from stator.ops.capacity.policies import FixedPolicy, Policy, ScaledPolicy, Scenario
from stator.ops.capacity.replay import Replay, replay
from stator.ops.capacity.use_series import Dimension, TableHistory

from .histories import MONDAY, READS, WRITES, history
from .scaled_table import INDEX, ScaledTable

INDEX_READS, INDEX_WRITES = Dimension(INDEX, "read"), Dimension(INDEX, "write")


def instant(update_minutes: int = 1) -> Scenario:
    """The delays of the engine: it knows a minute when it ends."""
    return Scenario(0, update_minutes, update_minutes, 1)


def compare(
    policies: dict[Dimension, ScaledPolicy],
    writes: Sequence[int],
    reads: Sequence[int] = (),
    update_minutes: int = 1,
) -> Replay:
    """Run both, and check that they agree in every minute of every scaled dimension."""
    found = replay(_history(policies, writes, reads), _all(policies), instant(update_minutes))
    table = ScaledTable(policies, update_minutes)
    table.run(writes, reads)
    for dimension, course in table.courses.items():
        wanted = found.of(dimension)
        assert course.capacity == list(wanted.capacity), dimension
        if dimension.is_front:
            asked = writes if dimension.kind == "write" else reads or [0] * len(writes)
            served = [round(units - lost) for units, lost in zip(asked, wanted.throttled)]
            assert course.admitted == served, dimension
        changes = [
            (minute, units)
            for minute, units in enumerate(wanted.capacity)
            if minute and units != wanted.capacity[minute - 1]
        ]
        # A change that ends with the last minute is in no minute of the replay.
        assert [each for each in course.changes if each[0] < len(writes)] == changes, dimension
    return found


def _history(
    policies: dict[Dimension, ScaledPolicy], writes: Sequence[int], reads: Sequence[int]
) -> TableHistory:
    indexes = {INDEX: ((), writes)} if any(each.index for each in policies) else None
    return history(writes, reads, indexes=indexes)


def _all(policies: dict[Dimension, ScaledPolicy]) -> dict[Dimension, Policy]:
    fixed = {each: FixedPolicy(1) for each in (READS, WRITES, INDEX_READS, INDEX_WRITES)}
    return {**fixed, **policies}


def scaled(
    target: float = 70,
    least: int = 1,
    most: int = 20,
    start: int | None = None,
    actions: tuple[ScheduledAction, ...] = (),
    cooldowns: tuple[float, float] = (0.0, 0.0),
    can_scale_in: bool = True,
) -> ScaledPolicy:
    """A policy; ``cooldowns`` are those of scaling out and in."""
    tracking = TargetTracking(target, *cooldowns, can_scale_in)
    return ScaledPolicy(tracking, CapacityBounds(least, most), actions, start)


# -- by hand


def test_a_load_that_grows_stays_and_ends() -> None:
    found = compare({WRITES: scaled(least=2)}, [30] * 5 + [420] * 20 + [10] * 20)
    capacity = found.of(WRITES).capacity
    # 420 a minute are 7 a second: 10 units at 70 percent. Low after 15 minutes, in force at 41.
    assert capacity[0] == 2 and max(capacity) == 10 and capacity[-1] == 2
    assert found.of(WRITES).throttled_units > 0


def test_a_peak_of_one_minute_changes_nothing() -> None:
    found = compare({WRITES: scaled(least=3)}, ([30] * 3 + [240]) * 5)
    assert found.changes == 0


def test_units_change_at_once_if_updates_take_no_time() -> None:
    compare({WRITES: scaled()}, [60] * 3 + [300] * 10 + [0] * 20, update_minutes=0)


def test_updates_of_three_minutes() -> None:
    compare({WRITES: scaled()}, [60] * 3 + [300] * 20 + [0] * 30, update_minutes=3)


def test_cooldowns() -> None:
    policy = scaled(cooldowns=(300.0, 600.0))
    compare({WRITES: policy}, [100, 150, 200, 250, 300, 350] * 3 + [120] * 20 + [0] * 30)


def test_scale_in_that_is_disabled() -> None:
    compare({WRITES: scaled(can_scale_in=False)}, [200] * 10 + [0] * 25)


def test_decreases_end_when_the_day_has_no_more() -> None:
    """Four decreases at will, then one an hour after the last."""
    series = ([300] * 4 + [0] * 17) * 7
    found = compare({WRITES: scaled(most=8)}, series)
    falls = sum(
        later < earlier
        for earlier, later in zip(found.of(WRITES).capacity, found.of(WRITES).capacity[1:])
    )
    assert 4 <= falls < 7


def test_reads_and_writes_share_changes_and_decreases() -> None:
    policies = {READS: scaled(60), WRITES: scaled(70)}
    writes = [20] * 3 + [240] * 10 + [0] * 35
    reads = [20] * 3 + [200] * 14 + [0] * 31
    compare(policies, writes, reads)


def test_an_index_waits_while_its_table_changes() -> None:
    policies = {WRITES: scaled(70), INDEX_WRITES: scaled(50)}
    compare(policies, [30] * 3 + [240] * 15 + [0] * 25)


def test_scheduled_actions_pull_units_inside_their_bounds() -> None:
    actions = (
        ScheduledAction("at(2026-11-02T01:05:00)", least=6, timezone="Europe/Zurich"),
        ScheduledAction("cron(12 0 2 11 ? 2026)", least=2, most=4),
        ScheduledAction("rate(7 minutes)", most=9, start=float(MONDAY) + 830.0),
    )
    found = compare({WRITES: scaled(actions=actions)}, [30] * 10 + [300] * 30 + [0] * 20)
    capacity = found.of(WRITES).capacity
    assert capacity[5] == 1 and capacity[6] == 6 and capacity[13] == 4


@pytest.mark.parametrize("target", [20.0, 33.3, 90.0])
def test_targets(target: float) -> None:
    compare({WRITES: scaled(target)}, [17] * 5 + [123] * 12 + [311] * 12 + [5] * 20)


# -- at random

_SPANS = st.lists(st.tuples(st.integers(0, 240), st.integers(1, 18)), min_size=2, max_size=6).map(
    lambda spans: [units for units, minutes in spans for _ in range(minutes)][:70]
)


@st.composite
def _policies(draw: st.DrawFn) -> ScaledPolicy:
    least = draw(st.integers(1, 3))
    most = draw(st.integers(least, 12))
    return scaled(
        float(draw(st.integers(20, 90))),
        least,
        most,
        draw(st.integers(least, most)),
        cooldowns=(
            float(draw(st.sampled_from([0, 90, 300]))),
            float(draw(st.sampled_from([0, 90, 600]))),
        ),
    )


@settings(max_examples=12, deadline=None)
@given(_SPANS, _policies(), st.integers(0, 2))
def test_random_writes(series: list[int], policy: ScaledPolicy, update_minutes: int) -> None:
    compare({WRITES: policy}, series, update_minutes=update_minutes)


@settings(max_examples=8, deadline=None)
@given(_SPANS, _SPANS, _policies(), _policies())
def test_random_reads_and_writes(
    writes: list[int], reads: list[int], on_writes: ScaledPolicy, on_reads: ScaledPolicy
) -> None:
    minutes = min(len(writes), len(reads))
    compare({READS: on_reads, WRITES: on_writes}, writes[:minutes], reads[:minutes])


@settings(max_examples=6, deadline=None)
@given(_SPANS, _policies(), _policies())
def test_random_writes_with_an_index(
    series: list[int], on_table: ScaledPolicy, on_index: ScaledPolicy
) -> None:
    compare({WRITES: on_table, INDEX_WRITES: on_index}, series)
