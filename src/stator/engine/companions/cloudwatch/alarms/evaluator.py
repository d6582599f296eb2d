"""Evaluates alarms at the end of minutes, carries out transitions, and writes the history."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from stator.engine.companions.cloudwatch.alarms.alarm import Alarm
from stator.engine.companions.cloudwatch.alarms.alarm_actions import AlarmActions, AlarmEvent
from stator.engine.companions.cloudwatch.alarms.alarm_checks import (
    alarm_period,
    alarm_queries,
    alarm_rule,
)
from stator.engine.companions.cloudwatch.alarms.alarm_store import AlarmStore
from stator.engine.companions.cloudwatch.alarms.evaluation import (
    EXTRA_PERIODS,
    AlarmRule,
    Verdict,
    judge,
)
from stator.engine.companions.cloudwatch.metric_queries import MetricDataQuery, MetricQueries
from stator.engine.companions.cloudwatch.statistics import percentile_of
from stator.engine.companions.metrics.metric_store import MetricStore
from stator.errors import CompanionRefused, StatorError

_TEN_SAMPLES: Final = 10.0


class AlarmEvaluator:
    """Evaluates the alarms of one engine. The caller holds the engine's lock."""

    def __init__(self, metrics: MetricStore, alarms: AlarmStore, actions: AlarmActions) -> None:
        self._metrics = metrics
        self._alarms = alarms
        self._actions = actions

    def end_minute(self, end: int) -> None:
        """Evaluate every alarm whose period ends with this minute."""
        for alarm in self._alarms.all():
            if self._alarms.find(alarm.scope, alarm.name) is not alarm:
                continue  # the action of another alarm has removed it
            self._evaluate(alarm, end)

    def _evaluate(self, alarm: Alarm, end: int) -> None:
        definition = alarm.definition
        queries, returned = alarm_queries(alarm.scope, definition)
        period = alarm_period(queries, returned)
        if end % period and period % 60 == 0:
            return
        rule = alarm_rule(definition)
        length = rule.periods + EXTRA_PERIODS
        computed = MetricQueries(
            self._metrics, alarm.scope, queries, end - length * period, end, end
        )
        try:
            lines = computed.lines(returned)
        except CompanionRefused:  # an expression that has no value, such as FIRST() of nothing
            lines = []
        found = lines[0].points if lines else {}
        rule = self._with_band(rule, definition, queries, computed)
        points = [
            (start, found.get(start))
            for start in range(end - period, end - (length + 1) * period, -period)
        ]
        if self._has_few_samples(alarm, period, end):
            return
        verdict = judge(rule, points, alarm.state)
        if verdict.state is not None and verdict.state != alarm.state:
            data = _reason_data(definition, rule, verdict, period, end)
            self.change(alarm, verdict.state, verdict.reason, data, end)
        else:
            self._repeat(alarm, end)

    def _with_band(
        self,
        rule: AlarmRule,
        definition: dict[str, Any],
        queries: list[MetricDataQuery],
        computed: MetricQueries,
    ) -> AlarmRule:
        """Return the rule with the limits of each period, if the alarm compares with a band."""
        band = definition.get("ThresholdMetricId")
        if band is None:
            return rule
        query = next(each for each in queries if each.id == band)
        try:
            lower, upper = computed.lines(query)
        except CompanionRefused:  # the metric is gone
            return replace(rule, band={})
        limits = {at: (low, upper.points[at]) for at, low in lower.points.items()}
        return replace(rule, band=limits)

    def _has_few_samples(self, alarm: Alarm, period: int, end: int) -> bool:
        """Whether a percentile must be ignored because it rests on too few samples.

        A percentile p needs 10 / (1 - p) samples in a period if it is the median or above, else 10
        / p.
        """
        definition = alarm.definition
        share = percentile_of(definition.get("ExtendedStatistic", ""))
        if share is None or definition.get("EvaluateLowSampleCountPercentile") != "ignore":
            return False
        rest = 1.0 - share if share >= 0.5 else share
        counted = {
            **{name: value for name, value in definition.items() if name != "ExtendedStatistic"},
            "Statistic": "SampleCount",
        }
        queries, returned = alarm_queries(alarm.scope, counted)
        computed = MetricQueries(self._metrics, alarm.scope, queries, end - period, end, end)
        samples = sum(computed.lines(returned)[0].points.values())
        return rest > 0.0 and samples < round(_TEN_SAMPLES / rest, 6)

    def change(
        self, alarm: Alarm, state: str, reason: str, reason_data: str | None, at: float
    ) -> None:
        """Put an alarm into a state, write the history, and carry out the state's actions."""
        old = {"stateValue": alarm.state, "stateReason": alarm.reason}
        if alarm.reason_data is not None:
            old["stateReasonData"] = orjson.loads(alarm.reason_data)
        if state != alarm.state:
            alarm.transitioned = at
        before = alarm.state
        alarm.state, alarm.reason, alarm.reason_data = state, reason, reason_data
        alarm.updated = at
        self._alarms.save(alarm)
        new = {"stateValue": state, "stateReason": reason}
        if reason_data is not None:
            new["stateReasonData"] = orjson.loads(reason_data)
        self._alarms.note(
            alarm,
            at,
            "StateUpdate",
            f"Alarm updated from {before} to {state}",
            {"version": "1.0", "oldState": old, "newState": new},
        )
        if state != before:
            self._act(alarm, at, again=False)

    def _repeat(self, alarm: Alarm, at: float) -> None:
        if alarm.has_actions and any(
            (action := self._actions.find(arn)) is not None and action.repeats
            for arn in alarm.actions(alarm.state)
        ):
            self._act(alarm, at, again=True)

    def _act(self, alarm: Alarm, at: float, *, again: bool) -> None:
        if not alarm.has_actions:
            return
        for arn in alarm.actions(alarm.state):
            action = self._actions.find(arn)
            if action is None:
                if not again:
                    summary = f"Action {arn} is recorded; Stator does not carry it out"
                    self._note_action(alarm, at, arn, "Recorded", summary, None)
                continue
            if again and not action.repeats:
                continue
            event = AlarmEvent(
                alarm.scope, alarm.described(), arn, alarm.state, alarm.reason, float(at)
            )
            try:
                action.run(event)
            except StatorError as error:
                summary = f"Failed to execute action {arn}"
                self._note_action(alarm, at, arn, "Failed", summary, str(error))
            else:
                if not again:
                    summary = f"Successfully executed action {arn}"
                    self._note_action(alarm, at, arn, "Succeeded", summary, None)

    def _note_action(
        self, alarm: Alarm, at: float, arn: str, outcome: str, summary: str, error: str | None
    ) -> None:
        data: dict[str, Any] = {
            "actionState": outcome,
            "stateUpdateTimestamp": int(alarm.updated * 1000),
            "notificationResource": arn,
            "error": error,
        }
        self._alarms.note(alarm, at, "Action", summary, data)


def _reason_data(
    definition: dict[str, Any], rule: AlarmRule, verdict: Verdict, period: int, end: int
) -> str:
    """Return StateReasonData as recorded on AWS: the deciding points, and the query."""
    points = verdict.evaluated
    data: dict[str, Any] = {"version": "1.0", "queryDate": _moment(end)}
    if points:
        data["startDate"] = _moment(points[-1][0])
    statistic = definition.get("Statistic", definition.get("ExtendedStatistic"))
    if statistic is not None:
        data["statistic"] = statistic
    if "Unit" in definition:
        data["unit"] = definition["Unit"]
    data |= {
        "period": period,
        "recentDatapoints": [value for _, value in reversed(points)],
        **_limits_data(rule, points),
        "evaluatedDatapoints": [{"timestamp": _moment(at), "value": value} for at, value in points],
    }
    return orjson.dumps(data).decode()


def _limits_data(rule: AlarmRule, points: list[tuple[int, float]]) -> dict[str, Any]:
    if rule.band is None:
        return {"threshold": rule.threshold}
    limits = [rule.band[at] for at, _ in reversed(points)]
    return {
        "recentLowerThresholds": [low for low, _ in limits],
        "recentUpperThresholds": [high for _, high in limits],
    }


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.000+0000")
