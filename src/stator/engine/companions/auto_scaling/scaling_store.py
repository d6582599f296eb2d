"""Keeps targets, policies and scheduled actions in memory and in storage.

They belong to the account, not to the table: as on AWS, deleting a table leaves them behind.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeVar

from stator.engine.companions.auto_scaling.capacity_schedule import CapacitySchedule
from stator.engine.companions.auto_scaling.scalable_target import ScalableTarget
from stator.engine.companions.auto_scaling.scaling_policy import ScalingPolicy
from stator.engine.companions.auto_scaling.target_key import TargetKey
from stator.engine.companions.records import CompanionRecords
from stator.model.scope import Scope

_TARGET: Final = "scalable-target"
_POLICY: Final = "scaling-policy"
_SCHEDULE: Final = "scheduled-action"


class _Kept(Protocol):
    key: TargetKey

    def to_json(self) -> dict[str, Any]: ...


Entry = TypeVar("Entry", ScalingPolicy, CapacitySchedule)


class ScalingStore:
    """The definitions of one engine. The caller holds the engine's lock."""

    def __init__(self, records: CompanionRecords) -> None:
        self._records = records
        self.targets: dict[TargetKey, ScalableTarget] = {}
        self.policies: dict[tuple[TargetKey, str], ScalingPolicy] = {}
        self.schedules: dict[tuple[TargetKey, str], CapacitySchedule] = {}
        for data in records.everywhere(_TARGET):
            target = ScalableTarget.from_json(data)
            self.targets[target.key] = target
        for data in records.everywhere(_POLICY):
            policy = ScalingPolicy.from_json(data)
            self.policies[policy.key, policy.name] = policy
        for data in records.everywhere(_SCHEDULE):
            schedule = CapacitySchedule.from_json(data)
            self.schedules[schedule.key, schedule.name] = schedule

    def save_target(self, target: ScalableTarget) -> None:
        self.targets[target.key] = target
        self._put(_TARGET, target, "")

    def save_policy(self, policy: ScalingPolicy) -> None:
        self.policies[policy.key, policy.name] = policy
        self._put(_POLICY, policy, policy.name)

    def save_schedule(self, schedule: CapacitySchedule) -> None:
        self.schedules[schedule.key, schedule.name] = schedule
        self._put(_SCHEDULE, schedule, schedule.name)

    def delete_target(self, target: ScalableTarget) -> None:
        del self.targets[target.key]
        self._delete(_TARGET, target, "")

    def delete_policy(self, policy: ScalingPolicy) -> None:
        del self.policies[policy.key, policy.name]
        self._delete(_POLICY, policy, policy.name)

    def delete_schedule(self, schedule: CapacitySchedule) -> None:
        del self.schedules[schedule.key, schedule.name]
        self._delete(_SCHEDULE, schedule, schedule.name)

    def policies_of(self, key: TargetKey) -> list[ScalingPolicy]:
        return _of(key, self.policies)

    def schedules_of(self, key: TargetKey) -> list[CapacitySchedule]:
        return _of(key, self.schedules)

    def targets_of(self, scope: Scope) -> list[ScalableTarget]:
        """Return the targets of an account and region, ordered by resource and dimension."""
        found = [target for target in self.targets.values() if target.key.scope == scope]
        return sorted(found, key=lambda each: (each.key.resource_id, each.key.dimension))

    def _put(self, kind: str, entry: _Kept, name: str) -> None:
        self._records.put(kind, entry.key.scope, _place(entry.key, name), entry.to_json())

    def _delete(self, kind: str, entry: _Kept, name: str) -> None:
        self._records.delete(kind, entry.key.scope, _place(entry.key, name))


def _of(key: TargetKey, entries: dict[tuple[TargetKey, str], Entry]) -> list[Entry]:
    return [entry for (owner, _), entry in sorted(entries.items(), key=_by_name) if owner == key]


def _by_name(entry: tuple[tuple[TargetKey, str], object]) -> str:
    return entry[0][1]


def _place(key: TargetKey, name: str) -> str:
    return f"{key.resource_id}\0{key.dimension}\0{name}"
