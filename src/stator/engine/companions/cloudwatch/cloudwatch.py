"""CloudWatch on one engine: its operations, and what it does when minutes end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from stator.engine.companions.cloudwatch.alarms.alarm_actions import AlarmActions
from stator.engine.companions.cloudwatch.alarms.alarm_operations import AlarmOperations
from stator.engine.companions.cloudwatch.alarms.alarm_store import AlarmStore
from stator.engine.companions.cloudwatch.alarms.evaluator import AlarmEvaluator
from stator.engine.companions.cloudwatch.dashboards import Dashboards
from stator.engine.companions.cloudwatch.metric_data import get_metric_data
from stator.engine.companions.cloudwatch.metric_list import list_metrics
from stator.engine.companions.cloudwatch.metric_statistics import get_metric_statistics
from stator.engine.companions.cloudwatch.put_metric_data import put_metric_data
from stator.engine.companions.cloudwatch.resource_tags import ResourceTags
from stator.engine.companions.companion import CompanionOperation
from stator.engine.companions.metrics.metric_store import MetricStore
from stator.engine.companions.records import CompanionRecords
from stator.model.companion_service import CLOUDWATCH, CompanionService
from stator.model.scope import Scope

_HOUR: Final = 3600
_ALARM_MARK: Final = ":alarm:"
_DASHBOARD_MARK: Final = ":dashboard/"


class CloudWatch:
    """The companion that answers CloudWatch's requests.

    ``insight_operations`` are those on Contributor Insights. ``actions`` is where other services
    register for what alarms set off. ``before_alarms`` has what they do at the end of a minute
    before its alarms are evaluated.
    """

    service: CompanionService = CLOUDWATCH

    def __init__(
        self,
        records: CompanionRecords,
        store: MetricStore,
        insight_operations: Mapping[str, CompanionOperation],
    ) -> None:
        self.actions = AlarmActions()
        self.before_alarms: list[Callable[[int], None]] = []
        self._alarms = AlarmStore(records)
        self._evaluator = AlarmEvaluator(store, self._alarms, self.actions)
        tags = ResourceTags(records)
        tags.exists = self._exists
        self._dashboards = Dashboards(records, tags)
        self.operations: Mapping[str, CompanionOperation] = {
            "PutMetricData": partial(put_metric_data, store),
            "GetMetricData": partial(get_metric_data, store),
            "GetMetricStatistics": partial(get_metric_statistics, store),
            "ListMetrics": partial(list_metrics, store),
            **AlarmOperations(self._alarms, self._evaluator, tags).operations,
            **self._dashboards.operations,
            **tags.operations,
            **insight_operations,
        }

    def end_minute(self, end: int) -> None:
        for prepare in self.before_alarms:
            prepare(end)
        self._evaluator.end_minute(end)
        if end % _HOUR == 0:
            self._alarms.forget(end)

    def _exists(self, scope: Scope, arn: str) -> bool:
        """Whether there is an alarm or a dashboard with this ARN."""
        if _ALARM_MARK in arn:
            alarm = self._alarms.find(scope, arn.partition(_ALARM_MARK)[2])
            return alarm is not None and alarm.arn == arn
        return self._dashboards.has(scope, arn.partition(_DASHBOARD_MARK)[2])
