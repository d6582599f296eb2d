"""PutScalingPolicy, DeleteScalingPolicy and DescribeScalingPolicies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from stator.engine.companions.auto_scaling.answer_page import described_page
from stator.engine.companions.auto_scaling.policy_alarms import delete_alarms, put_alarms
from stator.engine.companions.auto_scaling.scaling_policy import ALARM_KINDS, ScalingPolicy
from stator.engine.companions.auto_scaling.scaling_store import ScalingStore
from stator.engine.companions.auto_scaling.target_capacity import TargetCapacity
from stator.engine.companions.auto_scaling.target_key import (
    VALIDATION,
    TargetKey,
    read_key,
)
from stator.engine.companions.cloudwatch.cloudwatch import CloudWatch
from stator.engine.companions.companion import CompanionCall, CompanionOperation
from stator.errors import CompanionRefused, ConfigurationError

_TRACKING: Final = "TargetTrackingScaling"
_CONFIGURATION: Final = "TargetTrackingScalingPolicyConfiguration"


class PolicyOperations:
    """The operations on the policies of one engine."""

    def __init__(
        self, store: ScalingStore, capacity: TargetCapacity, cloudwatch: CloudWatch
    ) -> None:
        self._store = store
        self._capacity = capacity
        self._cloudwatch = cloudwatch
        self.operations: Mapping[str, CompanionOperation] = {
            "PutScalingPolicy": self.put,
            "DeleteScalingPolicy": self.delete,
            "DescribeScalingPolicies": self.describe,
        }

    def put(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        """Create a policy with its alarms, or change an existing policy and its alarms."""
        key = read_key(call.scope, request)
        if key not in self._store.targets:
            raise CompanionRefused(
                "ObjectNotFoundException", f"No scalable target registered for {key.words}"
            )
        name = request["PolicyName"]
        policy = self._store.policies.get((key, name))
        configuration = _configuration(key, request, is_new=policy is None)
        if policy is None:
            policy = self._new(key, name, configuration, call.now)
        policy.configuration = configuration
        try:
            _ = policy.tracking
        except ConfigurationError as error:
            raise CompanionRefused(VALIDATION, f"{error}; {error.hint}") from None
        self._store.save_policy(policy)
        put_alarms(self._cloudwatch, policy, call.now)
        return {"PolicyARN": policy.arn, "Alarms": policy.alarms}

    def _new(
        self, key: TargetKey, name: str, configuration: dict[str, Any], now: float
    ) -> ScalingPolicy:
        # All policies of a target have the same metric. The words are a public capture's.
        if self._store.policies_of(key):
            raise CompanionRefused(
                VALIDATION,
                "Only one TargetTrackingScaling policy for a given metric specification is "
                "allowed.",
            )
        account, region = key.scope
        arn = (
            f"arn:aws:autoscaling:{region}:{account}:scalingPolicy:{uuid4()}:resource/dynamodb/"
            f"{key.resource_id}:policyName/{name}"
        )
        held = self._capacity.held(key, now)
        units = 1 if held is None else held.units(key)
        ids = {kind: str(uuid4()) for kind in ALARM_KINDS}
        return ScalingPolicy(key, name, arn, now, configuration, ids, units)

    def delete(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        key, name = read_key(call.scope, request), request["PolicyName"]
        policy = self._store.policies.get((key, name))
        if policy is None:
            raise CompanionRefused(
                "ObjectNotFoundException",
                f"No scaling policy found for {key.words}, policy name: {name}",
            )
        self.remove(policy, call.now)
        return {}

    def remove(self, policy: ScalingPolicy, now: float) -> None:
        """Delete a policy and its alarms."""
        delete_alarms(self._cloudwatch, policy, now)
        self._store.delete_policy(policy)

    def describe(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        entries = self._store.policies.values()
        return described_page("ScalingPolicies", "PolicyNames", entries, call, request)


def _configuration(key: TargetKey, request: dict[str, Any], *, is_new: bool) -> dict[str, Any]:
    """Return the configuration of a policy.

    Raises CompanionRefused if DynamoDB has no such policy.
    """
    # AWS's default for a new policy is StepScaling.
    kind = request.get("PolicyType", "StepScaling" if is_new else _TRACKING)
    if kind != _TRACKING or "StepScalingPolicyConfiguration" in request:
        raise CompanionRefused(
            VALIDATION,
            f"The policy type {kind} is not supported for DynamoDB.",
            hint=f"use PolicyType={_TRACKING}, the only type that DynamoDB supports",
        )
    if _CONFIGURATION not in request:
        raise CompanionRefused(VALIDATION, f"The parameter {_CONFIGURATION} is required.")
    configuration: dict[str, Any] = request[_CONFIGURATION]
    if "CustomizedMetricSpecification" in configuration:
        raise CompanionRefused(
            VALIDATION, "Stator does not support the parameter CustomizedMetricSpecification."
        )
    specification = configuration.get("PredefinedMetricSpecification", {})
    wanted = f"DynamoDB{key.kind.capitalize()}CapacityUtilization"
    given = specification.get("PredefinedMetricType")
    if given != wanted:
        raise CompanionRefused(
            VALIDATION,
            f"The metric type {given} is not valid for the scalable dimension {key.dimension}; "
            f"use {wanted}.",
        )
    if "ResourceLabel" in specification:
        raise CompanionRefused(
            VALIDATION, "The parameter ResourceLabel is not supported for DynamoDB metrics."
        )
    for member in ("ScaleOutCooldown", "ScaleInCooldown"):
        if configuration.get(member, 0) < 0:
            raise CompanionRefused(VALIDATION, f"{member} must be 0 or more seconds.")
    return configuration
