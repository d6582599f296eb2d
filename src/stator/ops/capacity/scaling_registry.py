"""What Application Auto Scaling has registered for a table: targets, policies, scheduled actions.

Reads through a botocore or boto3 client for ``application-autoscaling``. ``target_members`` and
``policy_name`` are also what the calls that change it use.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from stator.model.scaling.scheduled_action import ScheduledAction
from stator.model.scaling.target_tracking import CapacityBounds, TargetTracking
from stator.ops.capacity.capacity_state import CapacityState, ScaledDimension
from stator.ops.capacity.live_table import LiveTable
from stator.ops.capacity.service_calls import pages
from stator.ops.capacity.use_series import Dimension

NAMESPACE: Final = "dynamodb"
_CAPITAL: Final = {"read": "Read", "write": "Write"}


def target_members(table: str, dimension: Dimension) -> dict[str, str]:
    """Return the three members that name a scalable target in every request."""
    is_table = dimension.index is None
    where = f"table/{table}" if is_table else f"table/{table}/index/{dimension.index}"
    what = "table" if is_table else "index"
    return {
        "ServiceNamespace": NAMESPACE,
        "ResourceId": where,
        "ScalableDimension": f"dynamodb:{what}:{_CAPITAL[dimension.kind]}CapacityUnits",
    }


def metric_name(dimension: Dimension) -> str:
    return f"DynamoDB{_CAPITAL[dimension.kind]}CapacityUtilization"


def policy_name(table: str, dimension: Dimension) -> str:
    """Return the name of a policy, the same as ``export-design`` gives it."""
    return f"{table}-{dimension.index or 'table'}-{dimension.kind}"


def capacity_state(client: Any, table: LiveTable) -> CapacityState:
    """Return the whole capacity of a live table, with its scaling."""
    return CapacityState(
        table.name,
        dict(table.units),
        dict(table.maxima),
        table.table_class,
        registered_scaling(client, table.name, table.dimensions),
    )


def registered_scaling(
    client: Any, table: str, dimensions: Sequence[Dimension]
) -> dict[Dimension, ScaledDimension]:
    """Return what is registered for each dimension; dimensions without a target are left out."""
    found = {}
    resources = [target_members(table, each)["ResourceId"] for each in dimensions]
    targets = _all(
        client, "describe_scalable_targets", "ScalableTargets",
        ResourceIds=list(dict.fromkeys(resources)),
    )  # fmt: skip
    by_name = {(each["ResourceId"], each["ScalableDimension"]): each for each in targets}
    for dimension in dimensions:
        members = target_members(table, dimension)
        target = by_name.get((members["ResourceId"], members["ScalableDimension"]))
        if target is not None:
            found[dimension] = _scaled(client, target, members)
    return found


def _scaled(client: Any, target: dict[str, Any], members: dict[str, str]) -> ScaledDimension:
    bounds = CapacityBounds(target["MinCapacity"], target["MaxCapacity"])
    where = {name: members[name] for name in ("ResourceId", "ScalableDimension")}
    policies = [
        each
        for each in _all(client, "describe_scaling_policies", "ScalingPolicies", **where)
        if each["PolicyType"] == "TargetTrackingScaling"
    ]
    actions = _all(client, "describe_scheduled_actions", "ScheduledActions", **where)
    first = policies[0] if policies else None
    return ScaledDimension(
        bounds,
        None if first is None else _tracking(first["TargetTrackingScalingPolicyConfiguration"]),
        tuple(_action(each) for each in actions),
        "" if first is None else first["PolicyName"],
    )


def _all(client: Any, operation: str, member: str, **where: Any) -> list[dict[str, Any]]:
    found = pages(client, operation, ServiceNamespace=NAMESPACE, **where)
    return [each for page in found for each in page[member]]


def _tracking(configuration: dict[str, Any]) -> TargetTracking:
    return TargetTracking(
        float(configuration["TargetValue"]),
        float(configuration.get("ScaleOutCooldown", 0)),
        float(configuration.get("ScaleInCooldown", 0)),
        not configuration.get("DisableScaleIn", False),
    )


def _action(found: dict[str, Any]) -> ScheduledAction:
    bounds = found.get("ScalableTargetAction", {})
    return ScheduledAction(
        found["Schedule"],
        bounds.get("MinCapacity"),
        bounds.get("MaxCapacity"),
        found.get("Timezone") or "UTC",
        _seconds(found.get("StartTime")),
        _seconds(found.get("EndTime")),
        found["ScheduledActionName"],
    )


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
