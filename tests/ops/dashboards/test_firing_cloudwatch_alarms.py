"""Every alarm of ``stator alarms`` for CloudWatch goes off in the engine's CloudWatch, and ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress

import pytest

from stator import ProvisionedCapacity
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.companions.metrics.distribution import Distribution
from stator.engine.companions.metrics.series import Metric, MetricSeries, dimensions_of
from stator.errors import SlowDown
from stator.model.scope import DEFAULT_ACCOUNT, DEFAULT_REGION, Scope
from stator.ops.dashboards.cloudwatch_alarms import cloudwatch_alarms
from stator.ops.dashboards.design_alarms import design_alarms
from stator.ops.dashboards.monitored_design import MonitoredDesign
from stator.ops.dashboards.panels import NAMESPACE, CloudMetric
from stator.ops.dashboards.planned_alarm import PlannedAlarm
from stator.testing import boto3_session

from ...design.export.sources import sources
from .watched_shop import watched

SCOPE = Scope(DEFAULT_ACCOUNT, DEFAULT_REGION)
START = 1_790_000_100 // 300 * 300
DAY = 86_400
CAPACITY = 50
USUAL, UNUSUAL = 6.0, 60 * CAPACITY * 0.95
"""Units a minute: a fiftieth of the capacity, and nearly all of it."""
LIMITS = ("hot-key", "no-capacity", "account-limit")
LONGEST = 36
"""Minutes: six periods of five, and one more."""


class Account:
    """The engine's CloudWatch with the alarms of a design, and metrics that a test writes."""

    def __init__(self, alarms: Iterable[PlannedAlarm], name: str) -> None:
        self.clock = VirtualClock(START)
        self.engine = Engine.open(clock=self.clock, metrics=True)
        self.cloudwatch = boto3_session(self.engine).client("cloudwatch")
        self.alarms = [each for each in alarms if each.cloudwatch is not None]
        self._store = self.engine.companions.get().store
        self._learn()
        self.requests = cloudwatch_alarms(name, self.alarms, "docs/runbooks")
        for request in self.requests:
            self.cloudwatch.put_metric_alarm(**request)

    def _learn(self) -> None:
        """Write two weeks of usual use, which bands are made of."""
        for metric in {each for alarm in self.alarms for each in metrics_of(alarm)}:
            if metric.name.startswith("Consumed"):
                for at in range(START - 14 * DAY, START, 300):
                    self.put(metric, at, [5 * USUAL])

    def put(self, metric: CloudMetric, at: int, values: list[float]) -> None:
        named = dimensions_of(dict(metric.dimensions))
        series = MetricSeries(Metric(SCOPE, NAMESPACE, metric.name, named), "Count")
        self._store.add(series, at, Distribution.of(values))

    def run(self, minutes: int, values: Callable[[PlannedAlarm], dict[CloudMetric, float]]) -> None:
        """Write metrics minute by minute, and let minutes end."""
        for _ in range(minutes):
            at = int(self.clock.now())
            written: dict[CloudMetric, float] = {}
            for alarm in self.alarms:
                written |= values(alarm)
            for metric, value in written.items():
                self.put(metric, at, [value])
            self.clock.advance(60)
            self.engine.sweep()

    def states(self) -> dict[str, str]:
        pages = self.cloudwatch.get_paginator("describe_alarms").paginate()
        return {each["AlarmName"]: each["StateValue"] for p in pages for each in p["MetricAlarms"]}

    def transitions(self, name: str) -> list[str]:
        found = self.cloudwatch.describe_alarm_history(
            AlarmName=name, HistoryItemType="StateUpdate", ScanBy="TimestampAscending"
        )
        return [each["HistorySummary"] for each in found["AlarmHistoryItems"]]


def metrics_of(alarm: PlannedAlarm) -> tuple[CloudMetric, ...]:
    assert alarm.cloudwatch is not None
    return alarm.cloudwatch.query.metrics


def quiet(alarm: PlannedAlarm) -> dict[CloudMetric, float]:
    """What there is while nothing is wrong. Events that do not happen have no data."""
    found = {}
    for metric in metrics_of(alarm):
        if metric.name.startswith("Consumed"):
            found[metric] = USUAL
        elif metric.name.startswith("Provisioned"):
            found[metric] = float(CAPACITY)
        elif metric.name == "SuccessfulRequestLatency":
            found[metric] = 2.0
    return found


def wrong(which: int) -> Callable[[PlannedAlarm], dict[CloudMetric, float]]:
    """What sets the alarm off. Of metrics that are added up, one alone has events: by its place."""

    def values(alarm: PlannedAlarm) -> dict[CloudMetric, float]:
        found = quiet(alarm)
        events = [each for each in metrics_of(alarm) if each not in found]
        if events:
            found[events[which % len(events)]] = 3.0
        for metric in found:
            if metric.name.startswith("Consumed"):
                found[metric] = UNUSUAL
            elif metric.name == "SuccessfulRequestLatency":
                found[metric] = 60_000.0
        return found

    return values


DESIGNS: dict[str, Callable[[], MonitoredDesign]] = {
    "on-demand": watched,
    "provisioned": lambda: watched(ProvisionedCapacity(CAPACITY, CAPACITY)),
    "tables": lambda: MonitoredDesign(sources()["shop-tables"], prefix="prod-"),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_every_alarm_goes_off_and_ends(name: str) -> None:
    design = DESIGNS[name]()
    account = Account(design_alarms(design), design.name)
    kinds = {each.runbook for each in account.alarms}
    assert {"hot-key", "no-capacity", "slow-requests", "service-errors", "unusual-traffic"} <= kinds
    assert ("capacity-used" in kinds) == (name == "provisioned")

    account.run(LONGEST, quiet)
    assert Counter(account.states().values()) == {"OK": len(account.requests)}
    account.run(LONGEST, wrong(0))
    assert Counter(account.states().values()) == {"ALARM": len(account.requests)}
    account.run(LONGEST, quiet)
    assert Counter(account.states().values()) == {"OK": len(account.requests)}
    for request in account.requests:
        history = account.transitions(request["AlarmName"])
        assert history[-2:] == [
            "Alarm updated from OK to ALARM", "Alarm updated from ALARM to OK"
        ]  # fmt: skip
    account.engine.close()


@pytest.mark.parametrize("which", range(4))
def test_each_of_the_metrics_that_are_added_up_is_enough(which: int) -> None:
    design = watched()
    alarms = [each for each in design_alarms(design) if each.runbook in LIMITS]
    account = Account(alarms, design.name)
    account.run(6, wrong(which))
    assert set(account.states().values()) == {"ALARM"}
    account.engine.close()


def test_one_bad_period_is_not_enough_where_several_are_asked_for() -> None:
    design = watched(ProvisionedCapacity(CAPACITY, CAPACITY))
    account = Account(design_alarms(design), design.name)
    account.run(10, quiet)
    account.run(1, wrong(0))
    account.run(10, quiet)
    several = [each["AlarmName"] for each in account.requests if each["DatapointsToAlarm"] > 1]
    assert several
    assert all("to ALARM" not in " ".join(account.transitions(name)) for name in several)
    account.engine.close()


def test_a_refused_request_sets_the_alarm_off() -> None:
    """From a real throttle event to the state of the alarm, without metrics of the test's own."""
    design = watched(ProvisionedCapacity(1, 1))
    clock = VirtualClock(START)
    with Engine.open(clock=clock, metrics=True, throughput="enforced") as engine:
        session = boto3_session(engine)
        dynamodb, cloudwatch = session.client("dynamodb"), session.client("cloudwatch")
        units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
        dynamodb.create_table(
            TableName="shop",
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
            ProvisionedThroughput=units,
        )
        for alarm in cloudwatch_alarms(design.name, design_alarms(design), "docs/runbooks"):
            cloudwatch.put_metric_alarm(**alarm)
        for minute in range(15):
            # All at once, at the start of a minute: twice what the table saves up in it.
            for _ in range(120 if minute < 5 else 0):
                with suppress(SlowDown):
                    engine.call("PutItem", {"TableName": "shop", "Item": {"PK": {"S": "x"}}})
            clock.advance(60)
            engine.sweep()
        name = f"stator {design.name} no-capacity shop"
        history = cloudwatch.describe_alarm_history(
            AlarmName=name, HistoryItemType="StateUpdate", ScanBy="TimestampAscending"
        )
        assert [each["HistorySummary"] for each in history["AlarmHistoryItems"]][-2:] == [
            "Alarm updated from OK to ALARM", "Alarm updated from ALARM to OK"
        ]  # fmt: skip
