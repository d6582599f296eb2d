"""Reserved blocks: how many pay, over all tables together."""

from __future__ import annotations

import pytest

from stator.design.cost.prices import prices
from stator.ops.capacity.policies import FixedPolicy, OnDemandPolicy
from stator.ops.capacity.replay import DimensionReplay, Replay, replay
from stator.ops.capacity.reserved import break_even_share, reserved_blocks
from stator.ops.capacity.use_series import TableHistory

from .histories import MONDAY, READS, WRITES, history

US = prices("us-east-1")


def hours(*units: int) -> tuple[TableHistory, Replay]:
    """A table that held these write units, hour by hour."""
    found = DimensionReplay(WRITES, 0, 0, [], [1], [(each, 1.0) for each in units])
    return history([0.0] * 60 * len(units)), Replay((found,))


@pytest.mark.parametrize(
    ("kind", "years", "share"),
    [("write", 1, 0.460), ("read", 1, 0.456), ("write", 3, 0.230), ("read", 3, 0.228)],
)
def test_a_block_pays_if_used_in_these_shares_of_hours(kind: str, years: int, share: float) -> None:
    found = break_even_share(US, kind, years)  # type: ignore[arg-type]
    assert found == pytest.approx(share, abs=0.001)


@pytest.mark.parametrize(("used", "blocks"), [(45, 0), (47, 1)])
def test_a_block_used_in_just_less_than_half_of_the_hours_pays(used: int, blocks: int) -> None:
    found = reserved_blocks([hours(*([100] * used + [0] * (100 - used)))], US, 1)
    assert sum(each.blocks for each in found) == blocks


def test_blocks_are_bought_over_all_tables_and_later_ones_are_used_less() -> None:
    day = [*[80] * 12, *[20] * 12]
    night = [*[20] * 12, *[80] * 12]
    assert reserved_blocks([hours(*day)], US, 1)[0].blocks == 1  # 50 of 100 units on average
    (found,) = reserved_blocks([hours(*day), hours(*night)], US, 1)
    assert found.blocks == 1  # 100 units in each hour
    price = US.reserved("write", 1)
    full = 100 * float(US["write_capacity_hour"]) * 730
    assert found.saves == pytest.approx(full - float(price.upfront) / 12 - float(price.hour) * 730)
    assert found.upfront == float(price.upfront)
    monthly = full - float(price.hour) * 730
    assert found.pays_after_months == pytest.approx(float(price.upfront) / monthly)


def test_a_longer_term_pays_for_more_blocks() -> None:
    used = [*[300] * 30, *[60] * 70]
    one, three = (reserved_blocks([hours(*used)], US, years) for years in (1, 3))
    assert (one[0].blocks, three[0].blocks) == (1, 3)


def test_reads_and_writes_are_reserved_apart_and_on_demand_not_at_all() -> None:
    found_history = history([60.0] * 120, [60.0] * 120)
    found = replay(found_history, {READS: FixedPolicy(100), WRITES: FixedPolicy(200)})
    blocks = {each.kind: each.blocks for each in reserved_blocks([(found_history, found)], US, 1)}
    assert blocks == {"read": 1, "write": 2}
    paid = replay(found_history, {READS: OnDemandPolicy(), WRITES: OnDemandPolicy()})
    assert reserved_blocks([(found_history, paid)], US, 1) == ()
    assert MONDAY % 3600 == 0
