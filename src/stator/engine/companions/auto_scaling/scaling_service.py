"""Application Auto Scaling on one engine: its operations, and what it does when minutes end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stator.engine.companions.auto_scaling.activity_log import ActivityLog
from stator.engine.companions.auto_scaling.policy_operations import PolicyOperations
from stator.engine.companions.auto_scaling.scaler import Scaler
from stator.engine.companions.auto_scaling.scaling_store import ScalingStore
from stator.engine.companions.auto_scaling.schedule_operations import ScheduleOperations
from stator.engine.companions.auto_scaling.target_capacity import TargetCapacity
from stator.engine.companions.auto_scaling.target_operations import TargetOperations
from stator.engine.companions.cloudwatch.cloudwatch import CloudWatch
from stator.engine.companions.companion import CompanionOperation, EngineCall
from stator.engine.companions.metrics.metric_store import MetricStore
from stator.engine.companions.records import CompanionRecords
from stator.engine.database import Database
from stator.model.companion_service import AUTO_SCALING, CompanionService

_HOUR: Final = 3600
_POLICIES: Final = "arn:aws:autoscaling:"


class AutoScaling:
    """The companion that answers requests for Application Auto Scaling.

    Scaling needs the engine's metrics: without them no alarm rings, but targets and scheduled
    actions still keep units inside their bounds.
    """

    service: CompanionService = AUTO_SCALING

    def __init__(
        self,
        database: Database,
        call_engine: EngineCall,
        records: CompanionRecords,
        store: MetricStore,
        cloudwatch: CloudWatch,
    ) -> None:
        self._definitions = ScalingStore(records)
        self._activities = ActivityLog(records)
        capacity = TargetCapacity(database, call_engine, store)
        self._scaler = Scaler(self._definitions, self._activities, capacity, cloudwatch)
        cloudwatch.before_alarms.append(self._scaler.prepare)
        cloudwatch.actions.register(_POLICIES, self._scaler.ring, repeats=True)
        policies = PolicyOperations(self._definitions, capacity, cloudwatch)
        targets = TargetOperations(
            self._definitions, self._activities, capacity, self._scaler, policies
        )
        self.operations: Mapping[str, CompanionOperation] = {
            **targets.operations,
            **policies.operations,
            **ScheduleOperations(self._definitions).operations,
        }

    def end_minute(self, end: int) -> None:
        self._scaler.end_minute(end)
        if end % _HOUR == 0:
            scopes = {key.scope for key in self._definitions.targets}
            self._activities.forget(scopes, end)
