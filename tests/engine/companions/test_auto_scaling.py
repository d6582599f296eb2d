"""Application Auto Scaling end to end: targets, policies, alarms, schedules and activities."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from stator.testing import boto3_session

from .bench import START, refused
from .scaling_bench import INDEX_TARGET, READ_TARGET, TARGET, ScalingBench

VALIDATION = "ValidationException"


@pytest.fixture
def bench() -> Iterator[ScalingBench]:
    made = ScalingBench()
    made.provision()
    yield made
    made.engine.close()


# -- targets


def test_a_target_is_registered_changed_and_described(bench: ScalingBench) -> None:
    arn = bench.register(2, 20)
    assert bench.register(3, 20, SuspendedState={"DynamicScalingInSuspended": True}) == arn
    bench.scaling.register_scalable_target(**TARGET, MaxCapacity=30)
    [target] = bench.scaling.describe_scalable_targets(ServiceNamespace="dynamodb")[
        "ScalableTargets"
    ]
    assert {name: target[name] for name in TARGET} == TARGET
    assert (target["MinCapacity"], target["MaxCapacity"]) == (3, 30)
    assert target["RoleARN"].endswith("AWSServiceRoleForApplicationAutoScaling_DynamoDBTable")
    assert target["SuspendedState"]["DynamicScalingInSuspended"] is True
    assert target["CreationTime"].timestamp() == START
    assert target["ScalableTargetARN"] == arn


def test_units_outside_the_bounds_are_pulled_inside_at_once(bench: ScalingBench) -> None:
    bench.register(8, 20)
    assert bench.units() == 8
    bench.register(1, 4)
    assert bench.units() == 4
    assert [activity["Cause"] for activity in bench.activities()] == [
        "maximum capacity was set to 4",
        "minimum capacity was set to 8",
    ]


def test_units_set_by_hand_outside_the_bounds_stay(bench: ScalingBench) -> None:
    """Captured from AWS: bounds count when they are registered, and for later decisions."""
    bench.register(4, 20)
    bench.dynamodb.update_table(
        TableName="orders",
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 2},
    )
    bench.minutes(0, 0, 0)
    assert bench.units() == 2
    assert bench.activities() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"MinCapacity": 5, "MaxCapacity": 4}, "Maximum capacity cannot be less than minimum"),
        ({"MinCapacity": 0, "MaxCapacity": 4}, "Minimum capacity must be at least 1"),
        ({"MaxCapacity": 4}, "Both minimum and maximum capacity must be specified"),
        ({"ResourceId": "table/none"}, "DynamoDB table does not exist: table/none"),
        ({"ResourceId": "orders"}, "Unsupported service namespace, resource type"),
        ({"ScalableDimension": "dynamodb:index:WriteCapacityUnits"}, "Unsupported service"),
        ({"ScalableDimension": "wrong"}, "Member must satisfy enum value set"),
        ({"ResourceId": "table/orders/index/none",
          "ScalableDimension": "dynamodb:index:ReadCapacityUnits"}, "DynamoDB index does not"),
    ],
)  # fmt: skip
def test_a_target_is_refused(bench: ScalingBench, options: dict[str, Any], message: str) -> None:
    request = {**TARGET, "MaxCapacity": 9, **options}
    if "MaxCapacity" not in options:
        request["MinCapacity"] = 1
    with refused(VALIDATION, message):
        bench.scaling.register_scalable_target(**request)


def test_targets_have_tags(bench: ScalingBench) -> None:
    arn = bench.register(Tags={"team": "shop"})
    bench.scaling.tag_resource(ResourceARN=arn, Tags={"stage": "test"})
    bench.scaling.untag_resource(ResourceARN=arn, TagKeys=["team"])
    assert bench.scaling.list_tags_for_resource(ResourceARN=arn)["Tags"] == {"stage": "test"}
    with refused("ResourceNotFoundException", "doesn't exist"):
        bench.scaling.list_tags_for_resource(ResourceARN=arn + "0")


def test_answers_come_in_pages(bench: ScalingBench) -> None:
    bench.register()
    bench.scaling.register_scalable_target(**READ_TARGET, MinCapacity=1, MaxCapacity=9)
    pages = bench.scaling.get_paginator("describe_scalable_targets").paginate(
        ServiceNamespace="dynamodb", PaginationConfig={"PageSize": 1}
    )
    found = [page["ScalableTargets"][0]["ScalableDimension"] for page in pages]
    assert found == [READ_TARGET["ScalableDimension"], TARGET["ScalableDimension"]]
    with refused("InvalidNextTokenException"):
        bench.scaling.describe_scalable_targets(ServiceNamespace="dynamodb", NextToken="x")


def test_a_table_that_cannot_change_yet_is_pulled_inside_later() -> None:
    bench = ScalingBench(status_delay_seconds=90)
    bench.provision()
    bench.register(8, 20)
    assert bench.units() == 5
    bench.clock.advance(60)
    bench.engine.sweep()
    assert bench.activities() == []
    bench.clock.advance(60)
    bench.engine.sweep()
    assert [activity["StatusCode"] for activity in bench.activities()] == ["InProgress"]
    assert bench.units() == 8, "DescribeTable shows the new units while they are not in force"
    bench.clock.advance(60)
    bench.engine.sweep()
    assert [activity["StatusCode"] for activity in bench.activities()] == ["InProgress"]
    bench.clock.advance(60)
    bench.engine.sweep()
    assert [activity["StatusCode"] for activity in bench.activities()] == ["Successful"]
    bench.engine.close()


def test_a_change_whose_table_is_deleted_has_failed() -> None:
    bench = ScalingBench(status_delay_seconds=60)
    bench.provision()
    bench.clock.advance(60)
    bench.register(8, 20)
    bench.engine.lifecycle.delay_seconds = 0.0
    table = next(iter(bench.engine.database.catalog.all()))
    table.definition.status_until = bench.clock.now()  # it is ACTIVE early, and deleted
    bench.dynamodb.delete_table(TableName="orders")
    bench.dynamodb.list_tables()
    bench.clock.advance(60)
    bench.engine.sweep()
    [activity] = bench.activities()
    assert activity["StatusCode"] == "Failed"
    assert activity["StatusMessage"].endswith("table/orders is gone or on-demand.")
    bench.engine.close()


def test_tags_of_a_registered_target_change_by_tag_resource(bench: ScalingBench) -> None:
    bench.register(Tags={"team": "shop"})
    with refused(VALIDATION, "use TagResource"):
        bench.register(Tags={"team": "other"})


def test_a_dimension_needs_a_resource(bench: ScalingBench) -> None:
    place = {name: TARGET[name] for name in ("ServiceNamespace", "ScalableDimension")}
    for operation in (
        bench.scaling.describe_scalable_targets,
        bench.scaling.describe_scaling_policies,
        bench.scaling.describe_scheduled_actions,
        bench.scaling.describe_scaling_activities,
    ):
        with refused(VALIDATION, "needs the parameter ResourceId"):
            operation(**place)


# -- policies and alarms


def test_a_policy_has_four_alarms(bench: ScalingBench) -> None:
    bench.register()
    answer = bench.put_policy()
    alarms = bench.alarms()
    assert {alarm["AlarmName"] for alarm in answer["Alarms"]} == {
        alarm["AlarmName"] for alarm in alarms.values()
    }
    facts = {
        kind: (
            alarm["MetricName"],
            alarm["Statistic"],
            alarm["Period"],
            alarm["EvaluationPeriods"],
            alarm["ComparisonOperator"],
            alarm["Threshold"],
        )
        for kind, alarm in alarms.items()
    }
    # A public capture of AWS has these numbers for five units and a target of 70.
    assert facts == {
        "AlarmHigh": ("ConsumedWriteCapacityUnits", "Sum", 60, 2, "GreaterThanThreshold", 210.0),
        "AlarmLow": ("ConsumedWriteCapacityUnits", "Sum", 60, 15, "LessThanThreshold", 150.0),
        "ProvisionedCapacityHigh": (
            "ProvisionedWriteCapacityUnits", "Average", 300, 3, "GreaterThanThreshold", 5.0,
        ),
        "ProvisionedCapacityLow": (
            "ProvisionedWriteCapacityUnits", "Average", 300, 3, "LessThanThreshold", 5.0,
        ),
    }  # fmt: skip
    high = alarms["AlarmHigh"]
    assert high["AlarmActions"] == [answer["PolicyARN"]]
    assert high["AlarmDescription"] == (
        f"DO NOT EDIT OR DELETE. For TargetTrackingScaling policy {answer['PolicyARN']}."
    )
    [policy] = bench.scaling.describe_scaling_policies(**TARGET)["ScalingPolicies"]
    assert policy["Alarms"] == answer["Alarms"]


def test_a_changed_policy_keeps_its_alarms_with_new_thresholds(bench: ScalingBench) -> None:
    bench.register()
    first = bench.put_policy(70.0)
    assert bench.put_policy(50.0)["PolicyARN"] == first["PolicyARN"]
    assert bench.alarms()["AlarmHigh"]["Threshold"] == 150.0
    assert bench.alarms()["AlarmHigh"]["AlarmName"] == first["Alarms"][0]["AlarmName"]


def test_scale_out_and_in_with_activities(bench: ScalingBench) -> None:
    bench.register(2, 20)
    answer = bench.put_policy()
    bench.minutes(240, 240)
    assert bench.units() == 6  # 4 a second are 70 % of 5.7
    assert bench.alarms()["AlarmHigh"]["Threshold"] == pytest.approx(252.0)
    bench.minutes(*[0] * 15)
    assert bench.units() == 2
    low, high = bench.activities(**_place())
    assert high["Description"] == "Setting write capacity units to 6."
    name = answer["Alarms"][0]["AlarmName"]
    assert high["Cause"] == f"monitor alarm {name} in state ALARM triggered policy steady"
    assert high["StatusCode"] == "Successful"
    assert high["StatusMessage"] == (
        "Successfully set write capacity units to 6. Change successfully fulfilled by dynamodb."
    )
    assert high["StartTime"].timestamp() == START + 120
    assert low["Description"] == "Setting write capacity units to 2."


def _place() -> dict[str, str]:
    return {name: value for name, value in TARGET.items() if name != "ServiceNamespace"}


def test_thresholds_follow_units_set_by_hand_after_fifteen_minutes(bench: ScalingBench) -> None:
    bench.register(1, 50)
    bench.put_policy(DisableScaleIn=True)
    bench.dynamodb.update_table(
        TableName="orders",
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 10},
    )
    bench.minutes(*[0] * 10)
    assert bench.alarms()["AlarmHigh"]["Threshold"] == 210.0
    bench.minutes(*[0] * 10)
    assert bench.alarms()["AlarmHigh"]["Threshold"] == 420.0


def test_suspended_scaling_does_nothing(bench: ScalingBench) -> None:
    bench.register(2, 20, SuspendedState={"DynamicScalingOutSuspended": True})
    bench.put_policy()
    bench.minutes(240, 240)
    assert bench.units() == 5
    bench.scaling.register_scalable_target(
        **TARGET, SuspendedState={"DynamicScalingOutSuspended": False}
    )
    bench.minutes(240)
    assert bench.units() == 6


def test_a_refused_change_is_an_activity_that_failed_once(bench: ScalingBench) -> None:
    bench.register(40_001, 50_000)
    bench.minutes(0, 0)
    [activity] = bench.activities()
    assert activity["StatusCode"] == "Failed"
    assert activity["StatusMessage"].startswith(
        "Failed to set write capacity units to 40001. Reason: The requested WriteCapacityUnits"
    )
    assert bench.units() == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"PolicyType": "StepScaling"}, "StepScaling is not supported for DynamoDB"),
        ({"PolicyType": None}, "StepScaling is not supported for DynamoDB"),
        ({"TargetValue": 95.0}, "95"),
        ({"TargetValue": 10.0}, "10"),
        ({"PredefinedMetricType": "DynamoDBReadCapacityUtilization"}, "is not valid for"),
        ({"ScaleInCooldown": -1}, "ScaleInCooldown must be 0 or more"),
    ],
)
def test_a_policy_is_refused(bench: ScalingBench, options: dict[str, Any], message: str) -> None:
    bench.register()
    configuration = {
        "TargetValue": options.get("TargetValue", 70.0),
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": options.get(
                "PredefinedMetricType", "DynamoDBWriteCapacityUtilization"
            )
        },
        "ScaleInCooldown": options.get("ScaleInCooldown", 0),
    }
    request = {
        **TARGET,
        "PolicyName": "steady",
        "TargetTrackingScalingPolicyConfiguration": configuration,
    }
    kind = options.get("PolicyType", "TargetTrackingScaling")
    if kind is not None:
        request["PolicyType"] = kind
    with refused(VALIDATION, message):
        bench.scaling.put_scaling_policy(**request)


def test_a_target_has_one_policy(bench: ScalingBench) -> None:
    with refused("ObjectNotFoundException", "No scalable target registered for service namespace"):
        bench.put_policy()
    bench.register()
    bench.put_policy()
    with refused(VALIDATION, "Only one TargetTrackingScaling policy"):
        bench.scaling.put_scaling_policy(
            **TARGET,
            PolicyName="other",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": 50.0,
                "PredefinedMetricSpecification": {
                    "PredefinedMetricType": "DynamoDBWriteCapacityUtilization"
                },
            },
        )


def test_deleting_a_policy_deletes_its_alarms(bench: ScalingBench) -> None:
    bench.register()
    bench.put_policy()
    bench.cloudwatch.delete_alarms(AlarmNames=[bench.alarms()["AlarmLow"]["AlarmName"]])
    bench.scaling.delete_scaling_policy(**TARGET, PolicyName="steady")
    assert bench.alarms() == {}
    with refused("ObjectNotFoundException", "No scaling policy found"):
        bench.scaling.delete_scaling_policy(**TARGET, PolicyName="steady")


def test_deregistering_a_target_removes_what_belongs_to_it(bench: ScalingBench) -> None:
    bench.register()
    bench.put_policy()
    _schedule(bench, "rate(1 hour)", 2)
    bench.scaling.deregister_scalable_target(**TARGET)
    assert bench.alarms() == {}
    place = {"ServiceNamespace": "dynamodb"}
    assert bench.scaling.describe_scaling_policies(**place)["ScalingPolicies"] == []
    assert bench.scaling.describe_scheduled_actions(**place)["ScheduledActions"] == []
    with refused("ObjectNotFoundException", "No scalable target found"):
        bench.scaling.deregister_scalable_target(**TARGET)


def test_an_index_is_scaled(bench: ScalingBench) -> None:
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    bench.dynamodb.update_table(
        TableName="orders",
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "g", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": "by-g",
                    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                    "ProvisionedThroughput": units,
                }
            }
        ],
    )
    bench.scaling.register_scalable_target(**INDEX_TARGET, MinCapacity=1, MaxCapacity=9)
    bench.put_policy(place=INDEX_TARGET)
    names = [alarm["AlarmName"] for alarm in bench.alarms().values()]
    assert all(name.startswith("TargetTracking-table/orders/index/by-g-") for name in names)
    bench.minutes(*[0] * 16)
    table = bench.dynamodb.describe_table(TableName="orders")["Table"]
    [index] = table["GlobalSecondaryIndexes"]
    assert index["ProvisionedThroughput"]["WriteCapacityUnits"] == 1


# -- tables come and go


def test_a_deleted_table_leaves_its_scaling_behind(bench: ScalingBench) -> None:
    bench.register(2, 20)
    bench.put_policy()
    bench.dynamodb.delete_table(TableName="orders")
    bench.clock.advance(600)
    bench.engine.sweep()
    assert len(bench.alarms()) == 4
    bench.provision()
    bench.minutes(240, 239)
    assert bench.units() == 6


def test_an_on_demand_table_keeps_its_scaling_for_later(bench: ScalingBench) -> None:
    bench.register(2, 20)
    bench.put_policy()
    bench.dynamodb.update_table(TableName="orders", BillingMode="PAY_PER_REQUEST")
    bench.minutes(600, 600, 600)
    assert bench.activities() == []
    bench.dynamodb.update_table(
        TableName="orders",
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    bench.minutes(240)
    # Use before the switch counts, too: 600 and 240 units in two minutes are 7 a second.
    assert bench.units() == 10


def test_scaling_survives_a_restart(tmp_path: Path) -> None:
    bench = ScalingBench(path=str(tmp_path), durability="process")
    bench.provision()
    bench.register(2, 20, Tags={"team": "shop"})
    bench.put_policy()
    _schedule(bench, "rate(10 minutes)", 7)
    bench.minutes(240)
    bench.reopen()
    bench.minutes(240)
    assert bench.units() == 6
    bench.minutes(*[100] * 9)
    assert bench.units() == 7
    [schedule] = bench.scaling.describe_scheduled_actions(**TARGET)["ScheduledActions"]
    assert schedule["Schedule"] == "rate(10 minutes)"
    assert len(bench.activities()) == 3
    bench.engine.close()


# -- scheduled actions


def _schedule(
    bench: ScalingBench, expression: str, least: int, name: str = "morning", **options: Any
) -> None:
    bench.scaling.put_scheduled_action(
        **TARGET,
        ScheduledActionName=name,
        Schedule=expression,
        ScalableTargetAction={"MinCapacity": least},
        **options,
    )


def test_a_scheduled_action_changes_bounds_and_pulls_units_inside(bench: ScalingBench) -> None:
    bench.register(1, 20)
    # START is 22:15 UTC, a quarter past eleven in Zurich.
    _schedule(bench, "cron(20 23 ? * * *)", 12, Timezone="Europe/Zurich")
    bench.minutes(*[0] * 4)
    assert bench.units() == 5
    bench.minutes(0)
    assert bench.units() == 12
    pulled, action = bench.activities()
    assert action["Description"] == "Setting min capacity to 12"
    assert action["Cause"] == "scheduled action name morning was triggered"
    assert action["StatusMessage"] == "Successfully set min capacity to 12"
    assert pulled["Cause"] == "minimum capacity was set to 12"
    [target] = bench.scaling.describe_scalable_targets(ServiceNamespace="dynamodb")[
        "ScalableTargets"
    ]
    assert target["MinCapacity"] == 12


def test_an_action_within_its_times_only(bench: ScalingBench) -> None:
    bench.register(1, 20)
    start = datetime.fromtimestamp(START, UTC)
    _schedule(
        bench,
        "rate(2 minutes)",
        9,
        StartTime=start + timedelta(minutes=4),
        EndTime=start + timedelta(minutes=5),
    )
    bench.minutes(0, 0, 0)
    assert bench.units() == 5
    bench.minutes(0, 0, 0, 0, 0)
    assert [activity["Cause"] for activity in bench.activities()] == [
        "minimum capacity was set to 9",
        "scheduled action name morning was triggered",
    ]


def test_actions_that_fell_due_while_the_engine_was_closed_run_later(tmp_path: Path) -> None:
    bench = ScalingBench(path=str(tmp_path))
    bench.provision()
    bench.register(1, 20)
    at = datetime.fromtimestamp(START + 300, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    _schedule(bench, f"at({at})", 8)
    bench.engine.close()
    bench.clock.advance(3600)
    bench.open()
    bench.minutes(0)
    assert bench.units() == 8
    bench.engine.close()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("cron(1 2 3)", "is not a cron expression"),
        ("rate(0 minutes)", "is not a rate"),
        ("at(tomorrow)", "is not a time"),
        ("daily", "is not a schedule"),
    ],
)
def test_a_schedule_is_refused(bench: ScalingBench, expression: str, message: str) -> None:
    bench.register()
    with refused(VALIDATION, message):
        _schedule(bench, expression, 2)
    with refused(VALIDATION, "is not a time zone"):
        _schedule(bench, "rate(1 hour)", 2, Timezone="Mars")


def test_a_scheduled_action_is_changed_and_deleted(bench: ScalingBench) -> None:
    with refused("ObjectNotFoundException", "No scalable target registered"):
        _schedule(bench, "rate(1 hour)", 2)
    bench.register()
    _schedule(bench, "rate(1 hour)", 2)
    bench.scaling.put_scheduled_action(
        **TARGET, ScheduledActionName="morning", Schedule="rate(2 hours)"
    )
    [action] = bench.scaling.describe_scheduled_actions(
        ServiceNamespace="dynamodb", ScheduledActionNames=["morning"]
    )["ScheduledActions"]
    assert action["Schedule"] == "rate(2 hours)"
    assert action["ScalableTargetAction"] == {"MinCapacity": 2}
    bench.scaling.delete_scheduled_action(**TARGET, ScheduledActionName="morning")
    with refused("ObjectNotFoundException", "No scheduled action found"):
        bench.scaling.delete_scheduled_action(**TARGET, ScheduledActionName="morning")


# -- a day in a moment


def test_a_day_under_a_virtual_clock(bench: ScalingBench) -> None:
    """A wave of load through a day: units follow it up and down, within the daily limit."""
    bench.register(2, 40)
    bench.put_policy()
    seen = set()
    for minute in range(1440):
        units = 60 if 8 <= minute / 60 < 18 else 0
        bench.spike(units)
        seen.add(bench.units())
    falls = [each for each in bench.activities() if "AlarmLow" in each["Cause"]]
    assert min(seen) == 2
    assert 1 <= len(falls) <= 27


def test_two_regions_do_not_share_targets(bench: ScalingBench) -> None:
    bench.register()
    elsewhere = boto3_session(bench.engine, region_name="eu-west-1").client(
        "application-autoscaling"
    )
    answer = elsewhere.describe_scalable_targets(ServiceNamespace="dynamodb")
    assert answer["ScalableTargets"] == []
