"""Settings of tables: in exports, in ``db.ensure``, and in the comparison with live tables."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from stator import (
    Design,
    Entity,
    ProvisionedCapacity,
    Query,
    TableSettings,
    connect,
    find,
    ident,
    read,
    ttl,
)
from stator.design.export import export
from stator.design.plan.drift import drift
from stator.engine import Engine
from stator.errors import ConfigurationError
from tests.design.export.test_tables import _Recorder

KEY = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
SETTINGS = TableSettings(
    stream="NEW_AND_OLD_IMAGES",
    point_in_time_recovery=True,
    recovery_days=14,
    tags={"team": "blue", "cost-center": "7"},
    deletion_protection=True,
    kms_key=KEY,
    table_class="STANDARD_INFREQUENT_ACCESS",
    capacity=ProvisionedCapacity(
        100,
        50,
        most_read_units=1_000,
        most_write_units=500,
        indexes={"GSI1": ProvisionedCapacity(20, 10)},
    ),
)


class Order(Entity):
    order_id: str = ident()
    user_id: str
    at: datetime
    gone: datetime | None = ttl(default=None)


@read(rps=10)
def orders_of(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id).newest_first(Order.at)


def shop(settings: TableSettings | None = SETTINGS) -> Design:
    return Design("shop", [Order], [orders_of], settings=settings)


def test_the_template_has_every_setting_and_cfn_lint_finds_nothing(tmp_path: Path) -> None:
    text = export(shop(), "cloudformation").text
    resources = json.loads(text)["Resources"]
    made = resources["ShopTable"]["Properties"]
    assert made["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert made["PointInTimeRecoverySpecification"]["RecoveryPeriodInDays"] == 14
    assert made["SSESpecification"]["KMSMasterKeyId"] == KEY
    assert made["DeletionProtectionEnabled"] is True
    assert made["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert made["ProvisionedThroughput"]["ReadCapacityUnits"] == 100
    [index] = made["GlobalSecondaryIndexes"]
    assert index["ProvisionedThroughput"]["WriteCapacityUnits"] == 10
    assert {"Key": "team", "Value": "blue"} in made["Tags"]
    kinds = [each["Type"].rsplit("::", 1)[-1] for each in resources.values()]
    assert kinds.count("ScalableTarget") == kinds.count("ScalingPolicy") == 2
    pytest.importorskip("cfnlint")
    file = tmp_path / "shop.json"
    file.write_text(text)
    ran = subprocess.run(
        [Path(sys.executable).parent / "cfn-lint", "--", file], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


def test_terraform_has_every_setting() -> None:
    text = export(shop(), "terraform").text
    for line in (
        'billing_mode                = "PROVISIONED"',
        "read_capacity               = 100",
        'stream_view_type            = "NEW_AND_OLD_IMAGES"',
        "deletion_protection_enabled = true",
        "recovery_period_in_days = 14",
        f'kms_key_arn = "{KEY}"',
        "ignore_changes  = [read_capacity, write_capacity]",
        'resource_id        = "table/${aws_dynamodb_table.shop.name}"',
        "target_value = 70",
        'predefined_metric_type = "DynamoDBReadCapacityUtilization"',
    ):
        assert line in text, text


def test_the_cdk_app_has_every_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = _Recorder()
    for name, module in recorder.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    exec(compile(ast.parse(export(shop(), "cdk").text), "app.py", "exec"), {"__name__": "app"})
    [made] = recorder.tables
    assert made["billing"].read_capacity.max_capacity == 1_000
    assert made["point_in_time_recovery_specification"].recovery_period_in_days == 14
    assert (made["dynamo_stream"], made["table_class"]) == ("both", "infrequent")
    assert made["encryption"] == KEY
    assert made["deletion_protection"] is True
    assert [each.key for each in made["tags"]] == ["team", "cost-center"]
    assert made["global_secondary_indexes"][0].read_capacity == 20


def test_the_boto3_script_applies_every_setting(dynamodb_client: Any) -> None:
    module: dict[str, Any] = {"__name__": "create_tables"}
    exec(compile(export(shop(), "boto3").text, "create_tables.py", "exec"), module)
    module["create_tables"](dynamodb_client)
    described = dynamodb_client.describe_table(TableName="shop")["Table"]
    described |= dynamodb_client.describe_time_to_live(TableName="shop")
    backups = dynamodb_client.describe_continuous_backups(TableName="shop")
    described |= backups["ContinuousBackupsDescription"]
    assert drift(shop().plan(), {"shop": described}, settings=SETTINGS) == []
    called: list[tuple[str, dict[str, Any]]] = []

    class Scaling:
        def register_scalable_target(self, **request: Any) -> None:
            called.append(("target", request))

        def put_scaling_policy(self, **request: Any) -> None:
            called.append(("policy", request))

    module["scale_tables"](Scaling())
    assert [what for what, _ in called] == ["target", "policy"] * 2
    assert called[0][1]["ResourceId"] == "table/shop"


def test_without_settings_a_table_can_still_be_recovered() -> None:
    template = json.loads(export(shop(None), "cloudformation").text)
    made = template["Resources"]["ShopTable"]["Properties"]
    assert made["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    off = json.loads(
        export(shop(TableSettings(point_in_time_recovery=False)), "cloudformation").text
    )
    assert "PointInTimeRecoverySpecification" not in off["Resources"]["ShopTable"]["Properties"]


def test_ensure_applies_the_settings_of_the_design_to_new_and_old_tables() -> None:
    for is_new in (True, False):
        with Engine.open() as engine:
            db = connect(shop(), engine)
            if is_new:
                for name in engine.call("ListTables", {})["TableNames"]:
                    engine.call("DeleteTable", {"TableName": name})
            assert len(db.ensure()) > 2
            assert db.ensure() == []
            assert drift(shop().plan(), {"shop": _described(engine)}, settings=SETTINGS) == []


def _described(engine: Engine) -> dict[str, Any]:
    found: dict[str, Any] = engine.call("DescribeTable", {"TableName": "shop"})["Table"]
    found |= engine.call("DescribeTimeToLive", {"TableName": "shop"})
    found |= engine.call("DescribeContinuousBackups", {"TableName": "shop"})[
        "ContinuousBackupsDescription"
    ]
    return found


def test_drift_names_each_setting_that_differs() -> None:
    with Engine.open() as engine:
        connect(shop(None), engine).close()
        found = drift(shop().plan(), {"shop": _described(engine)}, settings=SETTINGS)
    shown = "\n".join(map(str, found))
    for words in (
        "its stream is off, and the design requires NEW_AND_OLD_IMAGES",
        "its deletion protection is off, and the design requires on",
        "its table class is STANDARD",
        "its billing is by request",
        "its point-in-time recovery is off",
        f"it is not encrypted with {KEY}",
    ):
        assert words in shown
    assert len(found) == 6


def test_drift_of_expiry() -> None:
    plan = shop(None).plan()
    with Engine.open() as engine:
        connect(shop(None), engine).close()
        there = _described(engine)
    [found] = drift(plan, {"shop": there})  # the embedded engine has no recovery by default
    assert "its point-in-time recovery is off" in found.message
    del there["PointInTimeRecoveryDescription"]
    assert drift(plan, {"shop": there}) == []
    off = {**there, "TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    assert [each.severity for each in drift(plan, {"shop": off})] == ["missing"]
    other = {"TimeToLiveStatus": "ENABLED", "AttributeName": "until"}
    [found] = drift(plan, {"shop": {**there, "TimeToLiveDescription": other}})
    assert "expire by until" in found.message
    bare = replace(plan, tables=tuple(replace(each, ttl=None) for each in plan.tables))
    assert [each.severity for each in drift(bare, {"shop": there})] == ["extra"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (lambda: TableSettings(stream="ALL"), "not a view type"),  # type: ignore[arg-type]
        (lambda: TableSettings(table_class="COLD"), "not a table class"),  # type: ignore[arg-type]
        (lambda: TableSettings(recovery_days=99), "not between 1 and 35"),
        (lambda: ProvisionedCapacity(0, 1), "not positive"),
        (lambda: ProvisionedCapacity(1.5, 1), "not a whole number"),  # type: ignore[arg-type]
        (lambda: ProvisionedCapacity(10, 1, most_read_units=5), "is below"),
        (lambda: ProvisionedCapacity(1, 1, target=7), "not between 0.2 and 0.9"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        settings()


# --- schedules ------------------------------------------------------------------------------------

SCHEDULED = TableSettings(
    capacity=ProvisionedCapacity(
        10,
        20,
        most_write_units=500,
        write_schedule=("weekdays 17:50-22:30 min=160",),
        timezone="Europe/Zurich",
    )
)


def test_the_template_schedules_capacity_and_cfn_lint_finds_nothing(tmp_path: Path) -> None:
    text = export(shop(SCHEDULED), "cloudformation").text
    target = json.loads(text)["Resources"]["ShopTableWriteTarget"]["Properties"]
    rise, fall = target["ScheduledActions"]
    assert rise == {
        "ScheduledActionName": "weekdays-1750",
        "Schedule": "cron(50 17 ? * MON-FRI *)",
        "Timezone": "Europe/Zurich",
        "ScalableTargetAction": {"MinCapacity": 160},
    }
    assert fall["ScalableTargetAction"] == {"MinCapacity": 20}
    pytest.importorskip("cfnlint")
    file = tmp_path / "shop.json"
    file.write_text(text)
    ran = subprocess.run(
        [Path(sys.executable).parent / "cfn-lint", "--", file], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


def test_terraform_schedules_capacity() -> None:
    text = export(shop(SCHEDULED), "terraform").text
    resource = text.split(
        'resource "aws_appautoscaling_scheduled_action" "shop_write_weekdays_1750"'
    )
    assert len(resource) == 2
    for line in (
        '  schedule           = "cron(50 17 ? * MON-FRI *)"',
        '  timezone           = "Europe/Zurich"',
        "    min_capacity = 160",
    ):
        assert line in resource[1]


def test_the_boto3_script_schedules_capacity() -> None:
    module: dict[str, Any] = {"__name__": "create_tables"}
    exec(compile(export(shop(SCHEDULED), "boto3").text, "create_tables.py", "exec"), module)
    called: list[dict[str, Any]] = []

    class Scaling:
        def register_scalable_target(self, **request: Any) -> None:
            pass

        def put_scaling_policy(self, **request: Any) -> None:
            pass

        def put_scheduled_action(self, **request: Any) -> None:
            called.append(request)

    module["scale_tables"](Scaling())
    # GSI1 has the table's units, and so its schedule.
    assert [each["ResourceId"] for each in called] == ["table/shop"] * 2 + [
        "table/shop/index/GSI1"
    ] * 2
    assert called[0]["ScalableDimension"] == "dynamodb:table:WriteCapacityUnits"


def test_cdk_says_that_it_takes_no_schedule() -> None:
    assert "run stator scale --schedule" in export(shop(SCHEDULED), "cdk").notes[0]
    assert export(shop(), "cdk").notes == ()


@pytest.mark.parametrize(
    ("capacity", "problem"),
    [
        ({"write_schedule": ("daily 01:00-02:00 min=5",)}, "most_write_units is not set"),
        (
            {"most_write_units": 50, "write_schedule": ("often",)},
            "'often' is not a schedule",
        ),
        (
            {"most_write_units": 50, "write_schedule": ("daily 01:00-02:00 min=60",)},
            "its min is above the max of 50",
        ),
        (
            {"most_read_units": 50, "read_schedule": ("daily 01:00-02:00 min=6",), "timezone": "X"},
            "'X' is not a time zone",
        ),
    ],
)
def test_a_schedule_that_cannot_work_is_refused(capacity: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        ProvisionedCapacity(1, 2, **capacity)
