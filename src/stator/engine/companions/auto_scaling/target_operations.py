"""RegisterScalableTarget and its family, scaling activities, and the tags of targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from stator.engine.companions.auto_scaling.activity_log import ActivityLog
from stator.engine.companions.auto_scaling.answer_page import page
from stator.engine.companions.auto_scaling.policy_operations import PolicyOperations
from stator.engine.companions.auto_scaling.scalable_target import ScalableTarget
from stator.engine.companions.auto_scaling.scaler import Scaler
from stator.engine.companions.auto_scaling.scaling_store import ScalingStore
from stator.engine.companions.auto_scaling.target_capacity import TargetCapacity
from stator.engine.companions.auto_scaling.target_key import (
    VALIDATION,
    TargetKey,
    check_place,
    read_key,
)
from stator.engine.companions.companion import CompanionCall, CompanionOperation
from stator.errors import CompanionRefused
from stator.model.scope import Scope

_MOST_TAGS: Final = 50
_ROLE: Final = (
    "aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)


class TargetOperations:
    """The operations on the targets of one engine."""

    def __init__(
        self,
        store: ScalingStore,
        activities: ActivityLog,
        capacity: TargetCapacity,
        scaler: Scaler,
        policies: PolicyOperations,
    ) -> None:
        self._store = store
        self._activities = activities
        self._capacity = capacity
        self._scaler = scaler
        self._policies = policies
        self.operations: Mapping[str, CompanionOperation] = {
            "RegisterScalableTarget": self.register,
            "DeregisterScalableTarget": self.deregister,
            "DescribeScalableTargets": self.describe,
            "DescribeScalingActivities": self.describe_activities,
            "TagResource": self.tag,
            "UntagResource": self.untag,
            "ListTagsForResource": self.list_tags,
        }

    def register(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        """Create a target, or change an existing one as the request says."""
        key = read_key(call.scope, request)
        target = self._store.targets.get(key)
        if target is None:
            target = self._new(key, call, request)
        elif "Tags" in request:
            raise CompanionRefused(
                VALIDATION,
                "Tags cannot be specified when updating a scalable target; use TagResource.",
            )
        least = request.get("MinCapacity", target.least)
        most = request.get("MaxCapacity", target.most)
        _check_bounds(least, most)
        target.least, target.most = least, most
        target.role_arn = request.get("RoleARN", target.role_arn)
        given = request.get("SuspendedState", {})
        kept = [name for name in target.suspended if name not in given]
        target.suspended = kept + [name for name, is_suspended in given.items() if is_suspended]
        # Captured: units outside the bounds change within a second of the registration.
        self._scaler.pull(target, call.now)
        return {"ScalableTargetARN": target.arn}

    def _new(self, key: TargetKey, call: CompanionCall, request: dict[str, Any]) -> ScalableTarget:
        if "MinCapacity" not in request or "MaxCapacity" not in request:
            raise CompanionRefused(
                VALIDATION,
                "Both minimum and maximum capacity must be specified when registering a new "
                "scalable target.",
            )
        if not self._capacity.exists(key):
            holder = "table" if key.index is None else "index"
            raise CompanionRefused(
                VALIDATION, f"DynamoDB {holder} does not exist: {key.resource_id}"
            )
        account, region = call.scope
        arn = f"arn:aws:application-autoscaling:{region}:{account}:scalable-target/{_short_id()}"
        role = request.get("RoleARN", f"arn:aws:iam::{account}:role/{_ROLE}")
        target = ScalableTarget(
            key, arn, call.now, request["MinCapacity"], request["MaxCapacity"], role
        )
        _check_tags(request.get("Tags", {}))
        target.tags = dict(request.get("Tags", {}))
        return target

    def deregister(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        """Remove a target with its policies, their alarms, and its scheduled actions."""
        key = read_key(call.scope, request)
        target = self._store.targets.get(key)
        if target is None:
            raise CompanionRefused(
                "ObjectNotFoundException", f"No scalable target found for {key.words}"
            )
        for policy in self._store.policies_of(key):
            self._policies.remove(policy, call.now)
        for schedule in self._store.schedules_of(key):
            self._store.delete_schedule(schedule)
        self._store.delete_target(target)
        return {}

    def describe(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        check_place(request, "ResourceIds")
        wanted = request.get("ResourceIds")
        dimension = request.get("ScalableDimension")
        found = [
            target.described()
            for target in self._store.targets_of(call.scope)
            if request["ServiceNamespace"] == target.key.identity["ServiceNamespace"]
            and (not wanted or target.key.resource_id in wanted)
            and dimension in (None, target.key.dimension)
        ]
        return page("ScalableTargets", found, request)

    def describe_activities(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("IncludeNotScaledActivities"):
            raise CompanionRefused(
                VALIDATION, "Stator does not support the parameter IncludeNotScaledActivities."
            )
        names = ("ServiceNamespace", "ResourceId", "ScalableDimension")
        check_place(request)
        asked = {name: request[name] for name in names if name in request}
        found = [
            activity
            for activity in self._activities.of(call.scope)
            if asked.items() <= activity.items()
        ]
        return page("ScalingActivities", found, request)

    # -- tags

    def tag(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        target = self._by_arn(call.scope, request["ResourceARN"])
        tags = {**target.tags, **request["Tags"]}
        _check_tags(tags)
        target.tags = tags
        self._store.save_target(target)
        return {}

    def untag(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        target = self._by_arn(call.scope, request["ResourceARN"])
        removed = request["TagKeys"]
        target.tags = {name: tag for name, tag in target.tags.items() if name not in removed}
        self._store.save_target(target)
        return {}

    def list_tags(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        return {"Tags": self._by_arn(call.scope, request["ResourceARN"]).tags}

    def _by_arn(self, scope: Scope, arn: str) -> ScalableTarget:
        for target in self._store.targets_of(scope):
            if target.arn == arn:
                return target
        raise CompanionRefused(
            "ResourceNotFoundException",
            f"The specified resource doesn't exist: {arn}",
            facts={"ResourceName": arn},
        )


def _check_bounds(least: int, most: int) -> None:
    if least < 1:
        raise CompanionRefused(
            VALIDATION, f"Minimum capacity must be at least 1 for DynamoDB; it is {least}."
        )
    if least > most:
        raise CompanionRefused(VALIDATION, "Maximum capacity cannot be less than minimum capacity")


def _check_tags(tags: dict[str, str]) -> None:
    if len(tags) > _MOST_TAGS:
        raise CompanionRefused(
            "TooManyTagsException", f"A scalable target can have at most {_MOST_TAGS} tags."
        )


def _short_id() -> str:
    return uuid4().hex
