"""Changes capacity at the ends of minutes.

Before a minute's alarms are evaluated, ``prepare`` completes changes that are in force, runs
scheduled actions and gives alarms their thresholds. Alarms that ring call ``ring``. Then
``end_minute`` asks ``stator.model.scaling`` for decisions, and carries out at most one for each
table and index, an increase before a decrease: while a table changes, it takes no further change.
A decision that has to wait is not kept. The alarm still rings a minute later, and asks again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stator.engine.companions.auto_scaling.activity_log import ActivityLog
from stator.engine.companions.auto_scaling.capacity_schedule import CapacitySchedule
from stator.engine.companions.auto_scaling.policy_alarms import put_alarms
from stator.engine.companions.auto_scaling.scalable_target import CapacityChange, ScalableTarget
from stator.engine.companions.auto_scaling.scaling_policy import HIGH, LOW, ScalingPolicy
from stator.engine.companions.auto_scaling.scaling_store import ScalingStore
from stator.engine.companions.auto_scaling.target_capacity import (
    HeldCapacity,
    TargetCapacity,
)
from stator.engine.companions.cloudwatch.alarms.alarm import ALARM
from stator.engine.companions.cloudwatch.alarms.alarm_actions import AlarmEvent
from stator.engine.companions.cloudwatch.cloudwatch import CloudWatch
from stator.errors import ServiceError
from stator.model.scaling.target_tracking import (
    LOW_MINUTES,
    ScalingDecision,
    ScalingState,
    decide,
    pull_inside,
)
from stator.model.scope import Scope

_ALARM_OF: Final = {"high": HIGH, "low": LOW}


@dataclass(frozen=True, slots=True)
class _Wish:
    """A change of units that a target needs now, and the reason."""

    target: ScalableTarget
    decision: ScalingDecision
    held: HeldCapacity
    cause: str


class Scaler:
    """Scales the targets of one engine. The caller holds the engine's lock."""

    def __init__(
        self,
        store: ScalingStore,
        activities: ActivityLog,
        capacity: TargetCapacity,
        cloudwatch: CloudWatch,
    ) -> None:
        self._store = store
        self._activities = activities
        self._capacity = capacity
        self._cloudwatch = cloudwatch
        # The alarms that rang since minutes were last ended, by the ARN of their policy.
        self._rang: dict[str, set[str]] = {}

    # -- before the alarms of a minute are evaluated

    def prepare(self, end: int) -> None:
        """Complete changes of units that are in force, and run scheduled actions that are due."""
        for target in list(self._store.targets.values()):
            self._complete(target, float(end))
        due = [
            (at, schedule)
            for schedule in self._store.schedules.values()
            for at in schedule.action.times(schedule.checked, end)
        ]
        for schedule in self._store.schedules.values():
            schedule.checked = float(end)
        for at, schedule in sorted(due, key=lambda each: each[0]):
            self._run_schedule(schedule, at)

    def _complete(self, target: ScalableTarget, now: float) -> None:
        change = target.change
        if change is None:
            return
        held = self._capacity.held(target.key, now)
        if held is not None and held.is_busy:
            return
        target.change = None
        if change.direction == "out":
            target.last_out = now
        else:
            target.last_in = now
        gone = f"{target.key.resource_id} is gone or on-demand." if held is None else None
        self._activities.end(change.activity, target.key, change.units, now, gone)
        self._store.save_target(target)
        for policy in self._store.policies_of(target.key):
            self.follow(policy, now)

    def follow(self, policy: ScalingPolicy, now: float) -> None:
        """Give a policy's alarms the thresholds that belong to the units in force."""
        held = self._capacity.held(policy.key, now)
        if held is not None and held.units(policy.key) != policy.alarm_units:
            policy.alarm_units = held.units(policy.key)
            self._store.save_policy(policy)
            put_alarms(self._cloudwatch, policy, now)

    def _run_schedule(self, schedule: CapacitySchedule, at: float) -> None:
        self._store.save_schedule(schedule)
        target = self._store.targets[schedule.key]
        if "ScheduledScalingSuspended" in target.suspended:
            return
        bounds = schedule.action.bounds_after(target.bounds)
        target.least, target.most, target.owed = bounds.least, bounds.most, True
        self._store.save_target(target)
        self._activities.note_bounds(target.key, schedule.sets, schedule.name, at)

    # -- what alarms set off

    def ring(self, event: AlarmEvent) -> None:
        """Remember that an alarm rang, so that ``end_minute`` acts on it."""
        policy = next((p for p in self._store.policies.values() if p.arn == event.action_arn), None)
        if policy is None or event.state != ALARM:
            return
        name = event.alarm["AlarmName"]
        for kind in (HIGH, LOW):
            if name == policy.alarm_name(kind):
                self._rang.setdefault(policy.arn, set()).add(kind)
                return
        self.follow(policy, event.at)

    # -- after the alarms of a minute were evaluated

    def end_minute(self, end: int) -> None:
        """Carry out the changes of units that this minute's alarms and changed bounds require."""
        places: dict[tuple[Scope, str, str], list[ScalableTarget]] = {}
        for target in self._store.targets.values():
            places.setdefault(target.key.place, []).append(target)
        # A table before its indexes, which cannot change while the table does.
        for place in sorted(places):
            targets = sorted(places[place], key=lambda each: each.key.kind)
            self._scale(targets, end)
        self._rang.clear()

    def pull(self, target: ScalableTarget, now: float) -> None:
        """Move units inside the bounds of a target now, or as soon as its table can be changed."""
        target.owed = True
        self._store.save_target(target)
        held = self._capacity.held(target.key, now)
        if held is not None and not held.is_busy:
            wish = self._owed(target, held, now)
            if wish is not None and wish.decision.not_before <= now:
                self._carry_out(wish, now)

    def _scale(self, targets: list[ScalableTarget], end: int) -> None:
        wishes: list[_Wish] = []
        for target in targets:
            held = self._capacity.held(target.key, end)
            if held is None or held.is_busy:
                return
            wish = self._owed(target, held, end) or self._wanted(target, held, end)
            if wish is not None and wish.decision.not_before <= end:
                wishes.append(wish)
        if wishes:
            self._carry_out(min(wishes, key=lambda each: each.decision.direction == "in"), end)

    def _owed(self, target: ScalableTarget, held: HeldCapacity, now: float) -> _Wish | None:
        """Return the change that moves units inside changed bounds, if it has not been made yet."""
        if not target.owed:
            return None
        decision = pull_inside(target.bounds, held.units(target.key), now, held.decreases)
        if decision is None:
            target.owed = False
            self._store.save_target(target)
            return None
        bound = "minimum" if decision.direction == "out" else "maximum"
        return _Wish(target, decision, held, f"{bound} capacity was set to {decision.units}")

    def _wanted(self, target: ScalableTarget, held: HeldCapacity, end: int) -> _Wish | None:
        """Return the change that the policies whose alarms rang decide on."""
        state = ScalingState(held.units(target.key), target.last_out, target.last_in)
        for policy in self._store.policies_of(target.key):
            rang = self._rang.get(policy.arn)
            if rang is None:
                continue
            used = self._capacity.used(target.key, end, LOW_MINUTES)
            decision = decide(
                policy.tracking, target.bounds, state, used, float(end), held.decreases
            )
            if decision is None or _ALARM_OF[decision.alarm] not in rang:
                continue
            if f"DynamicScaling{decision.direction.capitalize()}Suspended" not in target.suspended:
                alarm = policy.alarm_name(_ALARM_OF[decision.alarm])
                cause = f"monitor alarm {alarm} in state ALARM triggered policy {policy.name}"
                return _Wish(target, decision, held, cause)
        return None

    def _carry_out(self, wish: _Wish, now: float) -> None:
        target, units = wish.target, wish.decision.units
        try:
            self._capacity.change(target.key, units, wish.held)
        except ServiceError as error:
            self._activities.fail(target.key, units, wish.cause, error.message, now)
            return
        activity = self._activities.begin(target.key, units, wish.cause, now)
        target.change = CapacityChange(activity, units, wish.decision.direction)
        if wish.decision.alarm == "bounds":
            target.owed = False
        self._store.save_target(target)
        self._complete(target, float(now))
