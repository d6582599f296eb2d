"""PutScheduledAction, DeleteScheduledAction and DescribeScheduledActions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from stator.engine.companions.auto_scaling.answer_page import described_page
from stator.engine.companions.auto_scaling.capacity_schedule import CapacitySchedule
from stator.engine.companions.auto_scaling.scaling_store import ScalingStore
from stator.engine.companions.auto_scaling.target_key import (
    VALIDATION,
    TargetKey,
    read_key,
)
from stator.engine.companions.companion import CompanionCall, CompanionOperation
from stator.errors import CompanionRefused, ConfigurationError


class ScheduleOperations:
    """The operations on the scheduled actions of one engine."""

    def __init__(self, store: ScalingStore) -> None:
        self._store = store
        self.operations: Mapping[str, CompanionOperation] = {
            "PutScheduledAction": self.put,
            "DeleteScheduledAction": self.delete,
            "DescribeScheduledActions": self.describe,
        }

    def put(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        """Create a scheduled action, or change an existing one as the request says."""
        key, name = read_key(call.scope, request), request["ScheduledActionName"]
        if key not in self._store.targets:
            raise CompanionRefused(
                "ObjectNotFoundException", f"No scalable target registered for {key.words}"
            )
        before = self._store.schedules.get((key, name))
        if before is None and "Schedule" not in request:
            raise CompanionRefused(VALIDATION, "The parameter Schedule is required.")
        bounds = request.get("ScalableTargetAction", {})
        schedule = CapacitySchedule(
            key,
            name,
            _arn(key, name) if before is None else before.arn,
            call.now if before is None else before.created,
            call.now,
            request["Schedule"] if before is None else request.get("Schedule", before.schedule),
        )
        former = (None,) * 5 if before is None else _optional(before)
        schedule.timezone = request.get("Timezone", former[0])
        schedule.start = request.get("StartTime", former[1])
        schedule.end = request.get("EndTime", former[2])
        schedule.least = bounds.get("MinCapacity", None if bounds else former[3])
        schedule.most = bounds.get("MaxCapacity", None if bounds else former[4])
        _check(schedule)
        self._store.save_schedule(schedule)
        return {}

    def delete(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        key, name = read_key(call.scope, request), request["ScheduledActionName"]
        schedule = self._store.schedules.get((key, name))
        if schedule is None:
            raise CompanionRefused(
                "ObjectNotFoundException",
                f"No scheduled action found for {key.words}, scheduled action name: {name}",
            )
        self._store.delete_schedule(schedule)
        return {}

    def describe(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        entries = self._store.schedules.values()
        return described_page("ScheduledActions", "ScheduledActionNames", entries, call, request)


def _optional(schedule: CapacitySchedule) -> tuple[Any, ...]:
    return schedule.timezone, schedule.start, schedule.end, schedule.least, schedule.most


def _check(schedule: CapacitySchedule) -> None:
    if schedule.least is None and schedule.most is None:
        raise CompanionRefused(
            VALIDATION, "ScalableTargetAction must have MinCapacity, MaxCapacity or both."
        )
    for name, units in (("MinCapacity", schedule.least), ("MaxCapacity", schedule.most)):
        if units is not None and units < 1:
            raise CompanionRefused(
                VALIDATION, f"{name} must be at least 1 for DynamoDB; it is {units}."
            )
    if schedule.least is not None and schedule.most is not None and schedule.least > schedule.most:
        raise CompanionRefused(VALIDATION, "Maximum capacity cannot be less than minimum capacity")
    if schedule.start is not None and schedule.end is not None and schedule.start >= schedule.end:
        raise CompanionRefused(VALIDATION, "StartTime must be before EndTime.")
    try:
        _ = schedule.action
    except ConfigurationError as error:
        raise CompanionRefused(VALIDATION, f"{error}; {error.hint}") from None


def _arn(key: TargetKey, name: str) -> str:
    account, region = key.scope
    return (
        f"arn:aws:autoscaling:{region}:{account}:scheduledAction:{uuid4()}:resource/dynamodb/"
        f"{key.resource_id}:scheduledActionName/{name}"
    )
