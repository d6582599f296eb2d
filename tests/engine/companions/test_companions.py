"""What all companions share: opening, checking requests, ends of minutes, restarts and kills."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.companions.companion import CompanionCall
from stator.engine.companions.request_check import check_companion_request
from stator.engine.verification import verify_folder
from stator.errors import CompanionRefused, ConfigurationError, StorageClosed
from stator.model.companion_service import AUTO_SCALING, CLOUDWATCH, CompanionService

from .bench import START, Bench, refused

KEY = {"pk": {"S": "a"}}


def test_metrics_survive_a_restart_with_the_gap_left_out(tmp_path: Path) -> None:
    bench = Bench({"path": tmp_path / "data"})
    bench.create()
    bench.dynamodb.put_item(TableName="orders", Item=KEY)
    bench.put(5)
    bench.reopen()  # in the middle of a minute
    bench.dynamodb.put_item(TableName="orders", Item=KEY)
    bench.put(6)
    bench.clock.advance(120)
    bench.engine.close()
    bench.clock.advance(120)
    bench.open()
    bench.clock.advance(60)
    assert bench.table_points("ConsumedWriteCapacityUnits") == {0: 2.0, 60: 0.0, 240: 0.0}
    assert bench.points("Load") == {0: 11.0}
    bench.engine.close()
    assert verify_folder(str(tmp_path / "data")).faults == []


KILLED = """
import os, sys
from stator.clock import VirtualClock
from stator.engine import Engine
clock = VirtualClock(float(sys.argv[2]))
engine = Engine.open(sys.argv[1], clock=clock, metrics=True)
for value in (1.0, 2.0):
    data = [{"MetricName": "Load", "Value": value}]
    engine.call_companion("cloudwatch", "PutMetricData", {"Namespace": "Shop", "MetricData": data})
    alarm = {"AlarmName": "a", "Namespace": "Shop", "MetricName": "Load", "Statistic": "Sum",
             "Period": 60, "EvaluationPeriods": 1, "Threshold": value,
             "ComparisonOperator": "GreaterThanThreshold"}
    engine.call_companion("cloudwatch", "PutMetricAlarm", alarm)
    if value == 1.0:
        clock.advance(60)
        engine.sweep()
os.kill(os.getpid(), 9)
"""


def test_a_kill_loses_the_current_minute_and_no_alarm(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    command = [sys.executable, "-c", KILLED, path, str(START)]
    assert subprocess.run(command, check=False).returncode == -9
    bench = Bench({"path": path})
    bench.clock.advance(120)
    assert bench.points("Load") == {0: 1.0}
    assert bench.cloudwatch.describe_alarms()["MetricAlarms"][0]["Threshold"] == 2.0
    bench.engine.close()


def test_stored_alarms_are_evaluated_by_an_engine_without_metrics(tmp_path: Path) -> None:
    bench = Bench({"path": tmp_path / "data"})
    bench.put(1)
    bench.options["metrics"] = False
    bench.reopen()
    assert bench.engine.companions.are_open
    bench.engine.close()


def test_an_engine_without_metrics_opens_no_companion_until_it_is_asked() -> None:
    with Engine.open() as engine:
        assert not engine.companions.are_open
        assert engine.companion_services() == (CLOUDWATCH, AUTO_SCALING)
        assert engine.call_companion("cloudwatch", "ListMetrics", {}) == {"Metrics": []}
        assert engine.companions.are_open


def test_a_closed_engine_answers_no_companion() -> None:
    engine = Engine.open()
    engine.close()
    with pytest.raises(StorageClosed):
        engine.call_companion("cloudwatch", "ListMetrics", {})


def test_an_operation_that_is_not_served_is_named(bench: Bench) -> None:
    with refused("InvalidAction", "Stator does not support the operation PutAnomalyDetector"):
        bench.cloudwatch.put_anomaly_detector(Namespace="Shop", MetricName="Load", Stat="Sum")


def test_an_unknown_service_is_named_with_the_known_ones(bench: Bench) -> None:
    with pytest.raises(ConfigurationError, match="no companion service 'sns'; use one of: cloudw"):
        bench.engine.call_companion("sns", "Publish", {})


def test_a_jump_of_years_ends_only_the_minutes_of_the_last_month() -> None:
    clock = VirtualClock(START)
    with Engine.open(clock=clock) as engine:
        echo = Echo()
        engine.companions.get().add(echo)
        clock.advance(3600 * 24 * 365 * 50)
        engine.sweep()
        assert len(echo.ends) == 31 * 24 * 60
        assert echo.ends[-1] == 3600 * 24 * 365 * 50


class Echo:
    """A companion that answers what it was asked."""

    service = CompanionService(
        "application-autoscaling", "2016-02-06", "AnyScaleFrontendService", "x", "Validation"
    )

    def __init__(self) -> None:
        self.operations = {"DescribeScalableTargets": self._answer}
        self.ends: list[int] = []

    def _answer(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        return {"asked": request, "now": call.now}

    def end_minute(self, end: int) -> None:
        self.ends.append(end - START)


def test_a_further_service_is_answered_and_told_of_minutes() -> None:
    clock = VirtualClock(START)
    with Engine.open(clock=clock) as engine:
        echo = Echo()
        engine.companions.get().add(echo)
        clock.advance(150)
        request = {"ServiceNamespace": "dynamodb"}
        answer = engine.call_companion(
            "application-autoscaling", "DescribeScalableTargets", request
        )
        assert answer == {"asked": request, "now": START + 150}
        assert echo.ends == [60, 120]


@pytest.mark.parametrize(
    ("operation", "request_body", "code", "message"),
    [
        ("ListMetrics", [], "SerializationException", "not an object"),
        ("ListMetrics", {"Namespace": 5}, "SerializationException", "'namespace' is a int"),
        ("ListMetrics", {"Namespace": ""}, "ValidationError", "greater than or equal to 1"),
        ("ListMetrics", {"Namespace": ":x"}, "ValidationError", "regular expression pattern"),
        (
            "DeleteAlarms",
            {},
            "ValidationError",
            "'alarmNames' failed to satisfy constraint",
        ),
        ("DeleteAlarms", {"AlarmNames": None}, "ValidationError", "must not be null"),
        ("DeleteAlarms", {"AlarmNames": ["", ""]}, "ValidationError", "2 validation errors"),
        (
            "DescribeAlarmHistory",
            {"MaxRecords": True},
            "SerializationException",
            "is a bool, not a integer",
        ),
        ("DescribeAlarmHistory", {"MaxRecords": 101}, "ValidationError", "less than or equal to"),
        ("DescribeAlarmHistory", {"StartDate": "today"}, "SerializationException", "timestamp"),
    ],
)
def test_a_request_that_does_not_fit_the_model_is_refused(
    operation: str, request_body: Any, code: str, message: str
) -> None:
    with pytest.raises(CompanionRefused) as caught:
        check_companion_request(CLOUDWATCH, operation, request_body)
    assert caught.value.code == code
    assert message in caught.value.message


def test_a_request_keeps_only_the_model_s_members_and_times_become_seconds() -> None:
    request = {"AlarmName": None, "StartDate": "2023-11-14T22:15:00Z", "Unknown": 1, "EndDate": 5}
    checked = check_companion_request(CLOUDWATCH, "DescribeAlarmHistory", request)
    assert checked == {"StartDate": float(START), "EndDate": 5.0}
