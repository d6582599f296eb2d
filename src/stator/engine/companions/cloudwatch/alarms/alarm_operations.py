"""The operations on alarms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from stator.engine.companions.cloudwatch.alarms.alarm import ACTIONS_OF, Alarm
from stator.engine.companions.cloudwatch.alarms.alarm_checks import check_definition
from stator.engine.companions.cloudwatch.alarms.alarm_store import AlarmStore
from stator.engine.companions.cloudwatch.alarms.evaluator import AlarmEvaluator
from stator.engine.companions.cloudwatch.metric_fields import (
    INVALID_COMBINATION,
    VALIDATION,
    read_dimensions,
)
from stator.engine.companions.cloudwatch.page_tokens import page_of
from stator.engine.companions.cloudwatch.resource_tags import ResourceTags
from stator.engine.companions.companion import CompanionCall, CompanionOperation
from stator.errors import CompanionRefused

_MOST_ALARMS: Final = 5_000
_MOST_NAMES: Final = 100
_PAGE: Final = 50
_HISTORY_PAGE: Final = 100


class AlarmOperations:
    """The operations on the alarms of one engine."""

    def __init__(self, alarms: AlarmStore, evaluator: AlarmEvaluator, tags: ResourceTags) -> None:
        self._alarms = alarms
        self._evaluator = evaluator
        self._tags = tags
        self.operations: Mapping[str, CompanionOperation] = {
            "PutMetricAlarm": self.put_metric_alarm,
            "DescribeAlarms": self.describe_alarms,
            "DescribeAlarmsForMetric": self.describe_alarms_for_metric,
            "DescribeAlarmHistory": self.describe_alarm_history,
            "DeleteAlarms": self.delete_alarms,
            "SetAlarmState": self.set_alarm_state,
            "EnableAlarmActions": self.enable_alarm_actions,
            "DisableAlarmActions": self.disable_alarm_actions,
        }

    def put_metric_alarm(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        """Create an alarm, or replace its definition. Its state stays as it is."""
        definition = {name: value for name, value in request.items() if name != "Tags"}
        check_definition(call.scope, definition)
        alarm = self._alarms.find(call.scope, request["AlarmName"])
        if alarm is None:
            if len(self._alarms.of(call.scope)) >= _MOST_ALARMS:
                raise CompanionRefused(
                    "LimitExceededFault", f"The account has {_MOST_ALARMS} alarms, the quota."
                )
            alarm = Alarm(*call.scope, definition, call.now, call.now, call.now)
            if "Tags" in request:
                self._tags.add(call.scope, alarm.arn, request["Tags"])
            self._configured(call, alarm, "Create", "created")
        else:  # as on AWS, tags of an existing alarm change only by TagResource
            alarm.definition, alarm.configured = definition, call.now
            self._configured(call, alarm, "Update", "updated")
        return {}

    def _configured(self, call: CompanionCall, alarm: Alarm, change: str, done: str) -> None:
        self._alarms.save(alarm)
        data = {"version": "1.0", "type": change, f"{done}Alarm": alarm.described()}
        summary = f'Alarm "{alarm.name}" {done}'
        self._alarms.note(alarm, call.now, "ConfigurationUpdate", summary, data)

    def describe_alarms(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        if "AlarmNames" in request and "AlarmNamePrefix" in request:
            raise CompanionRefused(
                INVALID_COMBINATION,
                "The parameters AlarmNames and AlarmNamePrefix are mutually exclusive.",
            )
        found = [alarm for alarm in self._alarms.of(call.scope) if _matches(alarm, request)]
        page, more = page_of(found, request, request.get("MaxRecords", _PAGE))
        return {
            "MetricAlarms": [alarm.described() for alarm in page],
            "CompositeAlarms": [],
            **more,
        }

    def describe_alarms_for_metric(
        self, call: CompanionCall, request: dict[str, Any]
    ) -> dict[str, Any]:
        dimensions = read_dimensions(request.get("Dimensions", []))
        names = ("MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Period", "Unit")
        asked = {name: request[name] for name in names if name in request}
        found = [
            alarm.described()
            for alarm in self._alarms.of(call.scope)
            if asked.items() <= {n: alarm.definition.get(n) for n in names}.items()
            and read_dimensions(alarm.definition.get("Dimensions", [])) == dimensions
        ]
        return {"MetricAlarms": found}

    def describe_alarm_history(
        self, call: CompanionCall, request: dict[str, Any]
    ) -> dict[str, Any]:
        if "AlarmContributorId" in request:
            raise CompanionRefused(
                VALIDATION, "Stator does not support the parameter AlarmContributorId."
            )
        start, end = request.get("StartDate", 0.0), request.get("EndDate", float("inf"))
        wanted = request.get("HistoryItemType")
        items = [
            item
            for item in self._alarms.history(call.scope, request.get("AlarmName"))
            if start <= item["Timestamp"] <= end
            and wanted in (None, item["HistoryItemType"])
            and item["AlarmType"] in request.get("AlarmTypes", ["MetricAlarm"])
        ]
        if request.get("ScanBy", "TimestampDescending") == "TimestampDescending":
            items.reverse()
        page, more = page_of(items, request, request.get("MaxRecords", _HISTORY_PAGE))
        return {"AlarmHistoryItems": page, **more}

    def delete_alarms(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        """Delete alarms. If one of them does not exist, delete none."""
        for alarm in self._named(call, request):
            data = {"version": "1.0", "type": "Delete", "deletedAlarm": alarm.described()}
            summary = f'Alarm "{alarm.name}" deleted'
            self._alarms.note(alarm, call.now, "ConfigurationUpdate", summary, data)
            self._alarms.delete(alarm)
            self._tags.forget(call.scope, alarm.arn)
        return {}

    def set_alarm_state(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        [alarm] = self._named(call, {"AlarmNames": [request["AlarmName"]]})
        data = request.get("StateReasonData")
        if data is not None:
            try:
                orjson.loads(data)
            except orjson.JSONDecodeError:
                raise CompanionRefused(
                    "InvalidFormatFault", "The parameter StateReasonData is not JSON."
                ) from None
        self._evaluator.change(alarm, request["StateValue"], request["StateReason"], data, call.now)
        return {}

    def enable_alarm_actions(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        return self._switch(call, request, enabled=True)

    def disable_alarm_actions(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        return self._switch(call, request, enabled=False)

    def _switch(
        self, call: CompanionCall, request: dict[str, Any], *, enabled: bool
    ) -> dict[str, Any]:
        for name in request["AlarmNames"]:
            alarm = self._alarms.find(call.scope, name)
            if alarm is not None and alarm.has_actions != enabled:
                alarm.definition = {**alarm.definition, "ActionsEnabled": enabled}
                alarm.configured = call.now
                self._configured(call, alarm, "Update", "updated")
        return {}

    def _named(self, call: CompanionCall, request: dict[str, Any]) -> list[Alarm]:
        names = list(dict.fromkeys(request["AlarmNames"]))
        if len(names) > _MOST_NAMES:
            raise CompanionRefused(VALIDATION, f"At most {_MOST_NAMES} alarms can be deleted.")
        found: list[Alarm] = []
        for name in names:
            alarm = self._alarms.find(call.scope, name)
            if alarm is None:
                raise CompanionRefused("ResourceNotFound", f"There is no alarm named {name}.")
            found.append(alarm)
        return found


def _matches(alarm: Alarm, request: dict[str, Any]) -> bool:
    if "MetricAlarm" not in request.get("AlarmTypes", ["MetricAlarm"]):
        return False
    # Only composite alarms have children and parents, and there are none here.
    if "ChildrenOfAlarmName" in request or "ParentsOfAlarmName" in request:
        return False
    if alarm.name not in request.get("AlarmNames", [alarm.name]):
        return False
    if not alarm.name.startswith(request.get("AlarmNamePrefix", "")):
        return False
    if request.get("StateValue", alarm.state) != alarm.state:
        return False
    prefix = request.get("ActionPrefix")
    return prefix is None or any(
        arn.startswith(prefix) for state in ACTIONS_OF for arn in alarm.actions(state)
    )
