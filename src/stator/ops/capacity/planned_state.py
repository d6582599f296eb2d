"""From an option to the state that a table should have."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from stator.ops.capacity.capacity_state import CapacityState, ScaledDimension
from stator.ops.capacity.options import CapacityOption
from stator.ops.capacity.policies import FixedPolicy, OnDemandPolicy, Policy, ScaledPolicy
from stator.ops.capacity.use_series import MINUTE, Dimension, TableHistory

_LAST_MINUTES = 60


def planned_state(
    option: CapacityOption, before: CapacityState, history: TableHistory
) -> CapacityState:
    """Return the capacity state that a table gets if it takes an option.

    Units that scale start with the need of the last hour. If the table already has units within the
    bounds, they stay.
    """
    if not option.policies:
        return replace(before, table_class=option.table_class)
    after = replace(before, table_class=option.table_class, units={}, maxima={}, scaling={})
    if all(isinstance(each, OnDemandPolicy) for each in option.policies.values()):
        maxima = {
            dimension: policy.maximum
            for dimension, policy in option.policies.items()
            if isinstance(policy, OnDemandPolicy) and policy.maximum is not None
        }
        return replace(after, maxima=maxima)
    return replace(
        after,
        units={
            dimension: _units(policy, dimension, before, history)
            for dimension, policy in option.policies.items()
        },
        scaling={
            dimension: ScaledDimension(policy.bounds, policy.tracking, policy.actions)
            for dimension, policy in option.policies.items()
            if isinstance(policy, ScaledPolicy)
        },
    )


def _units(
    policy: Policy, dimension: Dimension, before: CapacityState, history: TableHistory
) -> int:
    if isinstance(policy, FixedPolicy):
        return policy.units
    assert isinstance(policy, ScaledPolicy)
    there = before.units.get(dimension)
    if there is not None:
        return policy.bounds.clamp(there)
    last = history.of(dimension).demand()[-_LAST_MINUTES:]
    highest = max(last, default=0.0) / MINUTE
    return policy.bounds.clamp(ceil(highest * 100.0 / policy.tracking.target_percent))
