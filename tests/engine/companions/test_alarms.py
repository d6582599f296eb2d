"""Alarms end to end: definitions, states at the end of minutes, history and actions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stator.engine.companions.cloudwatch.alarms.alarm_actions import AlarmEvent
from stator.errors import StatorError

from .bench import START, Bench, refused

POLICY = "arn:aws:autoscaling:us-east-1:123456789012:scalingPolicy:x:resource/dynamodb/table/t"
TOPIC = "arn:aws:sns:us-east-1:123456789012:ops"


def define(bench: Bench, name: str = "busy", **options: Any) -> None:
    bench.cloudwatch.put_metric_alarm(
        **{
            "AlarmName": name,
            "Namespace": "Shop",
            "MetricName": "Load",
            "Statistic": "Sum",
            "Period": 60,
            "EvaluationPeriods": 2,
            "Threshold": 10.0,
            "ComparisonOperator": "GreaterThanThreshold",
            **options,
        }
    )


def state(bench: Bench, name: str = "busy") -> str:
    [alarm] = bench.cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return str(alarm["StateValue"])


def minute(bench: Bench, *values: float) -> None:
    for value in values:
        bench.put(value)
    bench.clock.advance(60)


def history(bench: Bench, kind: str, **options: Any) -> list[str]:
    answer = bench.cloudwatch.describe_alarm_history(
        AlarmName="busy", HistoryItemType=kind, ScanBy="TimestampAscending", **options
    )
    return [item["HistorySummary"] for item in answer["AlarmHistoryItems"]]


def test_an_alarm_follows_its_metric_and_keeps_a_history(bench: Bench) -> None:
    define(bench)
    assert state(bench) == "INSUFFICIENT_DATA"
    minute(bench, 1)
    assert state(bench) == "OK"
    minute(bench, 11)
    assert state(bench) == "OK"
    minute(bench, 12)
    assert state(bench) == "ALARM"
    minute(bench)
    minute(bench)
    minute(bench)
    minute(bench)
    assert state(bench) == "INSUFFICIENT_DATA"
    assert history(bench, "StateUpdate") == [
        "Alarm updated from INSUFFICIENT_DATA to OK",
        "Alarm updated from OK to ALARM",
        "Alarm updated from ALARM to INSUFFICIENT_DATA",
    ]
    assert history(bench, "ConfigurationUpdate") == ['Alarm "busy" created']


def test_the_reason_of_a_state_has_the_points_that_decided(bench: Bench) -> None:
    define(bench, Unit="Count")
    for value in (11, 12):
        bench.put(value, Unit="Count")
        bench.clock.advance(60)
    [alarm] = bench.cloudwatch.describe_alarms()["MetricAlarms"]
    assert alarm["StateReason"] == (
        "Threshold Crossed: 2 datapoints [12.0 (14/11/23 22:16:00), 11.0 (14/11/23 22:15:00)] were "
        "greater than the threshold (10.0)."
    )
    assert json.loads(alarm["StateReasonData"]) == {
        "version": "1.0",
        "queryDate": "2023-11-14T22:17:00.000+0000",
        "startDate": "2023-11-14T22:15:00.000+0000",
        "statistic": "Sum",
        "unit": "Count",
        "period": 60,
        "recentDatapoints": [11.0, 12.0],
        "threshold": 10.0,
        "evaluatedDatapoints": [
            {"timestamp": "2023-11-14T22:16:00.000+0000", "value": 12.0},
            {"timestamp": "2023-11-14T22:15:00.000+0000", "value": 11.0},
        ],
    }
    assert alarm["StateUpdatedTimestamp"].timestamp() == START + 120


def test_every_minute_of_a_jump_in_time_is_evaluated(bench: Bench) -> None:
    define(bench, EvaluationPeriods=1, TreatMissingData="notBreaching")
    for at, value in enumerate((0, 20, 0, 20)):
        bench.put(value, Timestamp=bench.moment(60 * at))
    bench.clock.advance(7 * 60)  # a point decides until three periods have none
    bench.engine.sweep()
    changes = [line.rpartition(" ")[2] for line in history(bench, "StateUpdate")]
    assert changes == ["OK", "ALARM", "OK", "ALARM", "OK"]


def test_an_alarm_of_five_minutes_is_evaluated_when_its_period_ends(bench: Bench) -> None:
    define(bench, Period=300, EvaluationPeriods=1)
    for _ in range(4):
        minute(bench, 5)
    assert state(bench) == "INSUFFICIENT_DATA"
    minute(bench, 5)
    assert state(bench) == "ALARM"


def test_an_alarm_on_a_table_s_consumption(bench: Bench) -> None:
    bench.create()
    define(
        bench,
        Namespace="AWS/DynamoDB",
        MetricName="ConsumedWriteCapacityUnits",
        Dimensions=[{"Name": "TableName", "Value": "orders"}],
        Threshold=2.0,
    )
    for count in (3, 3):
        for at in range(count):
            bench.dynamodb.put_item(TableName="orders", Item={"pk": {"S": str(at)}})
        bench.clock.advance(60)
    assert state(bench) == "ALARM"
    bench.clock.advance(60)  # zeros of an idle table are points
    assert state(bench) == "OK"


def test_an_alarm_on_metric_math(bench: Bench) -> None:
    metrics: list[dict[str, Any]] = [
        {
            "Id": "errors",
            "MetricStat": {
                "Metric": {"Namespace": "Shop", "MetricName": "Errors"},
                "Period": 60,
                "Stat": "Sum",
            },
            "ReturnData": False,
        },
        {
            "Id": "calls",
            "MetricStat": {
                "Metric": {"Namespace": "Shop", "MetricName": "Load"},
                "Period": 60,
                "Stat": "SampleCount",
            },
            "ReturnData": False,
        },
        {"Id": "rate", "Expression": "100 * FILL(errors, 0) / calls"},
    ]
    bench.cloudwatch.put_metric_alarm(
        AlarmName="busy",
        Metrics=metrics,
        EvaluationPeriods=1,
        Threshold=10,
        ComparisonOperator="GreaterThanThreshold",
    )
    minute(bench, 1, 1, 1, 1)
    assert state(bench) == "OK"
    bench.put(1, "Errors")
    minute(bench, 1, 1, 1, 1)
    assert state(bench) == "ALARM"
    assert bench.cloudwatch.describe_alarms()["MetricAlarms"][0]["Metrics"] == metrics


def test_a_percentile_of_few_samples_can_be_ignored(bench: Bench) -> None:
    few = {"Statistic": None, "ExtendedStatistic": "p90", "EvaluationPeriods": 1}
    for name, treatment in (("kept", "ignore"), ("busy", "evaluate")):
        options = {**few, "EvaluateLowSampleCountPercentile": treatment}
        bench.cloudwatch.put_metric_alarm(
            AlarmName=name,
            Namespace="Shop",
            MetricName="Load",
            Period=60,
            Threshold=10.0,
            ComparisonOperator="GreaterThanThreshold",
            **{key: value for key, value in options.items() if value is not None},
        )
    minute(bench, *[20] * 99)
    assert (state(bench, "kept"), state(bench)) == ("INSUFFICIENT_DATA", "ALARM")
    minute(bench, *[20] * 100)
    assert state(bench, "kept") == "ALARM"


def test_a_registered_action_runs_and_others_are_recorded(bench: Bench) -> None:
    events: list[AlarmEvent] = []
    bench.engine.companions.get().cloudwatch.actions.register("arn:aws:autoscaling:", events.append)
    define(bench, EvaluationPeriods=1, AlarmActions=[POLICY, TOPIC], OKActions=[POLICY])
    minute(bench, 11)
    minute(bench, 11)
    minute(bench, 1)
    assert state(bench) == "OK"
    assert [(event.state, event.action_arn, event.at) for event in events] == [
        ("ALARM", POLICY, START + 60),
        ("OK", POLICY, START + 180),
    ]
    assert events[0].alarm["AlarmName"] == "busy"
    assert history(bench, "Action") == [
        f"Successfully executed action {POLICY}",
        f"Action {TOPIC} is recorded; Stator does not carry it out",
        f"Successfully executed action {POLICY}",
    ]


def test_a_repeating_action_runs_every_minute_and_a_failure_is_recorded(bench: Bench) -> None:
    times: list[float] = []

    def scale(event: AlarmEvent) -> None:
        times.append(event.at - START)
        raise StatorError("the table is being updated")

    bench.engine.companions.get().cloudwatch.actions.register("arn:", scale, repeats=True)
    define(bench, EvaluationPeriods=1, AlarmActions=[POLICY])
    for _ in range(3):
        minute(bench, 11)
    assert state(bench) == "ALARM"
    assert times == [60, 120, 180]
    assert history(bench, "Action") == [f"Failed to execute action {POLICY}"] * 3


def test_an_action_may_send_requests(bench: Bench) -> None:
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    bench.create(BillingMode="PROVISIONED", ProvisionedThroughput=units)

    def scale(event: AlarmEvent) -> None:
        more = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 1}
        bench.engine.call("UpdateTable", {"TableName": "orders", "ProvisionedThroughput": more})

    bench.engine.companions.get().cloudwatch.actions.register("arn:", scale)
    define(bench, EvaluationPeriods=1, AlarmActions=[POLICY])
    minute(bench, 11)
    assert state(bench) == "ALARM"
    table = bench.dynamodb.describe_table(TableName="orders")["Table"]
    assert table["ProvisionedThroughput"]["ReadCapacityUnits"] == 5


def test_a_state_can_be_set_until_the_next_evaluation(bench: Bench) -> None:
    define(bench, EvaluationPeriods=1)
    minute(bench, 1)
    bench.cloudwatch.set_alarm_state(AlarmName="busy", StateValue="ALARM", StateReason="a drill")
    assert state(bench) == "ALARM"
    minute(bench, 1)
    assert state(bench) == "OK"
    with refused("InvalidFormat"):
        bench.cloudwatch.set_alarm_state(
            AlarmName="busy", StateValue="OK", StateReason="x", StateReasonData="{"
        )
    with refused("ResourceNotFound"):
        bench.cloudwatch.set_alarm_state(AlarmName="no", StateValue="OK", StateReason="x")


def test_actions_can_be_disabled(bench: Bench) -> None:
    define(bench, EvaluationPeriods=1, AlarmActions=[TOPIC])
    bench.cloudwatch.disable_alarm_actions(AlarmNames=["busy", "unknown"])
    minute(bench, 11)
    assert (state(bench), history(bench, "Action")) == ("ALARM", [])
    bench.cloudwatch.enable_alarm_actions(AlarmNames=["busy"])
    minute(bench, 1)
    minute(bench, 11)
    assert state(bench) == "ALARM"
    assert len(history(bench, "Action")) == 1


def test_alarms_are_found_by_name_state_action_and_metric(bench: Bench) -> None:
    define(bench, "a-1", AlarmActions=[TOPIC])
    define(bench, "a-2", EvaluationPeriods=1, Statistic="Maximum")
    define(bench, "b-1", MetricName="Other", ActionsEnabled=False)
    minute(bench, 11)

    def names(**options: Any) -> list[str]:
        found = bench.cloudwatch.describe_alarms(**options)["MetricAlarms"]
        return [alarm["AlarmName"] for alarm in found]

    assert names() == ["a-1", "a-2", "b-1"]
    assert names(AlarmNamePrefix="a-") == ["a-1", "a-2"]
    assert names(AlarmNames=["b-1", "c"]) == ["b-1"]
    assert names(StateValue="ALARM") == ["a-2"]
    assert names(ActionPrefix="arn:aws:sns") == ["a-1"]
    assert names(AlarmTypes=["CompositeAlarm"]) == []
    assert names(ParentsOfAlarmName="a-1") == []
    pages = bench.cloudwatch.get_paginator("describe_alarms").paginate(
        PaginationConfig={"PageSize": 2}
    )
    assert [len(page["MetricAlarms"]) for page in pages] == [2, 1]
    found = bench.cloudwatch.describe_alarms_for_metric(Namespace="Shop", MetricName="Load")
    assert [alarm["AlarmName"] for alarm in found["MetricAlarms"]] == ["a-1", "a-2"]
    found = bench.cloudwatch.describe_alarms_for_metric(
        Namespace="Shop", MetricName="Load", Statistic="Maximum"
    )
    assert [alarm["AlarmName"] for alarm in found["MetricAlarms"]] == ["a-2"]


def test_an_update_keeps_the_state_and_a_deletion_is_all_or_nothing(bench: Bench) -> None:
    define(bench, EvaluationPeriods=1)
    minute(bench, 11)
    define(bench, EvaluationPeriods=1, Threshold=20.0)
    assert state(bench) == "ALARM"
    with refused("ResourceNotFound", "no alarm named other"):
        bench.cloudwatch.delete_alarms(AlarmNames=["busy", "other"])
    assert state(bench) == "ALARM"
    bench.cloudwatch.delete_alarms(AlarmNames=["busy"])
    assert bench.cloudwatch.describe_alarms()["MetricAlarms"] == []
    assert history(bench, "ConfigurationUpdate") == [
        'Alarm "busy" created',
        'Alarm "busy" updated',
        'Alarm "busy" deleted',
    ]


def test_history_is_kept_for_thirty_days(bench: Bench) -> None:
    define(bench)
    bench.clock.advance(29 * 86_400)
    define(bench)
    assert len(history(bench, "ConfigurationUpdate")) == 2
    bench.clock.advance(2 * 86_400)
    assert history(bench, "ConfigurationUpdate") == ['Alarm "busy" updated']


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"Threshold": None}, "MissingParameter", "Threshold"),
        ({"MetricName": None}, "MissingParameter", "MetricName"),
        ({"Period": None}, "MissingParameter", "Period"),
        ({"Period": 90}, "ValidationError", "10, 20, 30 or a multiple of 60"),
        ({"Statistic": None}, "InvalidParameterCombination", "Statistic"),
        ({"Statistic": None, "ExtendedStatistic": "p"}, "ValidationError", "ExtendedStatistic"),
        ({"DatapointsToAlarm": 3}, "ValidationError", "DatapointsToAlarm"),
        ({"TreatMissingData": "zero"}, "ValidationError", "zero"),
        ({"EvaluationPeriods": 1441}, "ValidationError", "1 day"),
        ({"AlarmActions": ["page me"]}, "ValidationError", "page me"),
        ({"ComparisonOperator": "GreaterThanUpperThreshold"}, "ValidationError", "anomaly"),
        ({"EvaluationInterval": 60}, "ValidationError", "EvaluationInterval"),
        (
            {"Metrics": [{"Id": "a", "Expression": "1"}]},
            "InvalidParameterCombination",
            "mutually exclusive",
        ),
    ],
)
def test_a_wrong_definition_is_refused(
    bench: Bench, options: dict[str, Any], code: str, message: str
) -> None:
    with refused(code, message):
        bench.cloudwatch.put_metric_alarm(
            **{
                name: value
                for name, value in {
                    "AlarmName": "busy",
                    "Namespace": "Shop",
                    "MetricName": "Load",
                    "Statistic": "Sum",
                    "Period": 60,
                    "EvaluationPeriods": 2,
                    "Threshold": 10.0,
                    "ComparisonOperator": "GreaterThanThreshold",
                    **options,
                }.items()
                if value is not None
            }
        )
    assert bench.cloudwatch.describe_alarms()["MetricAlarms"] == []


def test_alarms_and_history_survive_a_restart(tmp_path: Any) -> None:
    bench = Bench({"path": tmp_path / "data"})
    define(bench, EvaluationPeriods=1)
    minute(bench, 11)
    assert state(bench) == "ALARM"
    bench.reopen()
    assert state(bench) == "ALARM"
    minute(bench, 1)
    assert state(bench) == "OK"
    assert len(history(bench, "StateUpdate")) == 2
    bench.engine.close()
