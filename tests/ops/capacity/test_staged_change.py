"""Staged changes: the calls, what AWS would refuse, and undoing, against moto."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ConfigurationError, LiveTableUnreachable
from stator.model.scaling.decrease_budget import DecreaseRecord
from stator.model.scaling.scheduled_action import ScheduledAction
from stator.model.scaling.target_tracking import CapacityBounds, TargetTracking
from stator.ops.capacity.capacity_state import CapacityState, ScaledDimension
from stator.ops.capacity.live_table import LiveTable, describe_live
from stator.ops.capacity.scaling_registry import capacity_state
from stator.ops.capacity.staged_change import (
    StagedChange,
    apply_change,
    known_switches,
    read_record,
    stage,
)
from stator.ops.capacity.use_series import Dimension
from stator.testing import boto3_client

from .histories import READS, WRITES

NOW = 1_790_000_000.0
INDEX_READS, INDEX_WRITES = Dimension("GSI1", "read"), Dimension("GSI1", "write")
UNITS = {READS: 10, WRITES: 20, INDEX_READS: 5, INDEX_WRITES: 20}
PROVISIONED = CapacityState("orders", UNITS)
ON_DEMAND = CapacityState("orders", {})
SCALED = ScaledDimension(
    CapacityBounds(40, 400),
    TargetTracking(70),
    (ScheduledAction("cron(50 17 ? * MON-FRI *)", 160, name="weekdays-1750"),),
    "orders-table-write",
)
LIVE = LiveTable("orders", UNITS, ("GSI1",))


def staged(
    before: CapacityState, after: CapacityState, live: LiveTable = LIVE, *switches: float
) -> StagedChange:
    return stage(live, before, after, NOW, switches)


def operations(change: StagedChange) -> list[str]:
    return [each.operation for each in change.calls]


# --- the calls ------------------------------------------------------------------------------------


def test_no_difference_needs_no_call() -> None:
    both = replace(PROVISIONED, scaling={WRITES: SCALED})
    assert staged(both, both).calls == ()


def test_a_switch_to_provisioned_gives_every_index_its_units() -> None:
    (call,) = staged(ON_DEMAND, PROVISIONED).calls
    assert call.parameters == {
        "TableName": "orders",
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 10, "WriteCapacityUnits": 20},
        "GlobalSecondaryIndexUpdates": [
            {
                "Update": {
                    "IndexName": "GSI1",
                    "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 20},
                }
            }
        ],
    }


def test_a_switch_to_on_demand_ends_scaling_first() -> None:
    change = staged(replace(PROVISIONED, scaling={WRITES: SCALED}), ON_DEMAND)
    assert operations(change) == [
        "delete_scheduled_action", "delete_scaling_policy", "deregister_scalable_target",
        "update_table",
    ]  # fmt: skip
    assert change.calls[-1].parameters == {
        "TableName": "orders", "BillingMode": "PAY_PER_REQUEST"
    }  # fmt: skip


def test_only_what_differs_is_changed() -> None:
    change = staged(PROVISIONED, replace(PROVISIONED, units={**UNITS, INDEX_WRITES: 30}))
    (call,) = change.calls
    assert "ProvisionedThroughput" not in call.parameters
    before = replace(PROVISIONED, scaling={WRITES: SCALED})
    other = replace(SCALED, tracking=TargetTracking(60))
    assert operations(staged(before, replace(before, scaling={WRITES: other}))) == [
        "put_scaling_policy"
    ]
    wider = replace(SCALED, bounds=CapacityBounds(40, 500), actions=())
    assert operations(staged(before, replace(before, scaling={WRITES: wider}))) == [
        "register_scalable_target", "delete_scheduled_action"
    ]  # fmt: skip


def test_maxima_of_a_table_and_its_indexes_are_set_and_lifted_apart() -> None:
    change = staged(
        replace(ON_DEMAND, maxima={READS: 7}),
        replace(ON_DEMAND, maxima={WRITES: 9, INDEX_WRITES: 4}),
    )
    of_table, of_indexes = (each.parameters for each in change.calls)
    assert of_table["OnDemandThroughput"] == {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 9}
    assert of_indexes["GlobalSecondaryIndexUpdates"] == [
        {"Update": {"IndexName": "GSI1", "OnDemandThroughput": {"MaxWriteRequestUnits": 4}}}
    ]


def test_the_table_class_changes_alone() -> None:
    change = staged(PROVISIONED, replace(ON_DEMAND, table_class="infrequent_access"))
    assert [set(each.parameters) for each in change.calls] == [
        {"TableName", "TableClass"}, {"TableName", "BillingMode"}
    ]  # fmt: skip


# --- refusals -------------------------------------------------------------------------------------


def test_the_fifth_switch_of_a_day_is_refused() -> None:
    earlier = [NOW - hours * 3600 for hours in (4, 3, 2)]
    live = replace(LIVE, switched_at=NOW - 3600)
    assert staged(PROVISIONED, ON_DEMAND, live, *earlier[1:]).refusals == ()
    (refusal,) = staged(PROVISIONED, ON_DEMAND, live, *earlier).refusals
    assert "4 times in 24 hours: AWS refuses another switch before 2026-09-22" in refusal
    (refusal,) = staged(ON_DEMAND, PROVISIONED, live, *earlier).refusals
    assert "could not be undone before" in refusal


def test_a_decrease_beyond_the_budget_is_refused_for_the_table_or_index() -> None:
    live = replace(LIVE, decreases={"GSI1": DecreaseRecord(4, NOW - 60)})
    lower = replace(PROVISIONED, units={**UNITS, INDEX_WRITES: 1})
    (refusal,) = staged(PROVISIONED, lower, live).refusals
    assert refusal.startswith("the units of orders/GSI1 were decreased 4 times today: wait until")
    assert staged(lower, PROVISIONED, live).refusals == ()


def test_tables_that_change_or_are_replicated_are_left_alone() -> None:
    (busy,) = staged(PROVISIONED, ON_DEMAND, replace(LIVE, is_active=False)).refusals
    assert "wait until it and its indexes are ACTIVE" in busy
    (global_table,) = staged(PROVISIONED, ON_DEMAND, replace(LIVE, is_replicated=True)).refusals
    assert "is a global table" in global_table


# --- with services --------------------------------------------------------------------------------


@dataclass
class Services:
    dynamodb: Any
    scaling: Any

    def state(self) -> CapacityState:
        return capacity_state(self.scaling, describe_live(self.dynamodb, "orders"))

    def change(self, after: CapacityState, record: Path, *switches: float) -> StagedChange:
        live = describe_live(self.dynamodb, "orders")
        found = stage(live, self.state(), after, NOW, switches)
        clients = {"dynamodb": self.dynamodb, "application-autoscaling": self.scaling}
        apply_change(found, clients, record, VirtualClock(NOW))  # type: ignore[arg-type]
        return found


def create(client: Any) -> None:
    client.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("p", "g")],
        ProvisionedThroughput={"ReadCapacityUnits": 10, "WriteCapacityUnits": 20},
        GlobalSecondaryIndexes=[
            {
                "IndexName": "GSI1",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
                "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 20},
            }
        ],
    )


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """moto's Application Auto Scaling and DynamoDB."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        found = Services(
            *(
                boto3.client(name, region_name="eu-west-1")
                for name in ("dynamodb", "application-autoscaling")
            )
        )
        create(found.dynamodb)
        yield found


def test_scaling_is_registered_read_back_and_removed(services: Services, tmp_path: Path) -> None:
    before = services.state()
    assert before == PROVISIONED
    wanted = replace(
        before, scaling={WRITES: SCALED, INDEX_WRITES: replace(SCALED, policy_name="mine")}
    )
    services.change(wanted, tmp_path / "one.json")
    assert services.state() == wanted
    services.change(read_record(tmp_path / "one.json"), tmp_path / "two.json")
    assert services.state() == before
    left = services.scaling.describe_scaling_policies(ServiceNamespace="dynamodb")
    assert left["ScalingPolicies"] == []


def test_the_engine_takes_the_same_calls_there_and_back(services: Services, tmp_path: Path) -> None:
    """The table is the embedded engine's, which checks requests as AWS does."""
    with Engine.open() as engine:
        real = Services(boto3_client(engine), services.scaling)
        create(real.dynamodb)
        before = replace(PROVISIONED, scaling={WRITES: SCALED})
        real.change(before, tmp_path / "zero.json")
        capped = replace(ON_DEMAND, maxima={WRITES: 50, INDEX_WRITES: 60})
        real.change(capped, tmp_path / "one.json")
        assert real.state() == capped
        real.change(read_record(tmp_path / "one.json"), tmp_path / "two.json")
        assert real.state() == before
    assert known_switches(tmp_path, "orders") == [NOW]
    assert known_switches(tmp_path, "users") == known_switches(tmp_path / "none", "orders") == []


def test_a_refused_change_makes_no_call(services: Services, tmp_path: Path) -> None:
    switches = [NOW - second for second in range(1, 5)]
    with pytest.raises(ConfigurationError, match="orders is not changed: orders was switched"):
        services.change(ON_DEMAND, tmp_path / "one.json", *switches)
    assert services.state() == PROVISIONED
    assert not (tmp_path / "one.json").exists()


def test_a_call_that_fails_half_way_names_the_record_that_undoes_the_rest(
    services: Services, tmp_path: Path
) -> None:
    wanted = replace(PROVISIONED, units={**UNITS, WRITES: 30}, scaling={WRITES: SCALED})
    found = stage(LIVE, PROVISIONED, wanted, NOW)
    record = tmp_path / "one.json"
    nowhere = boto3.client(
        "application-autoscaling", region_name="eu-west-1", endpoint_url="http://127.0.0.1:1",
        config=Config(retries={"max_attempts": 0}),
    )  # fmt: skip
    clients = {"dynamodb": services.dynamodb, "application-autoscaling": nowhere}
    with pytest.raises(LiveTableUnreachable, match="register_scalable_target") as raised:
        apply_change(found, clients, record, VirtualClock(NOW))  # type: ignore[arg-type]
    assert raised.value.hint == f"undo what was done with --undo {record}"
    assert services.state().units[WRITES] == 30
    assert read_record(record) == PROVISIONED


def test_a_table_that_does_not_exist_is_named(services: Services) -> None:
    with pytest.raises(LiveTableUnreachable, match="there is no table users at"):
        describe_live(services.dynamodb, "users")


@pytest.mark.parametrize(
    "text",
    [
        "no", "[]", "{}", '{"format": 2}', '{"format": 1}',
        '{"format": 1, "before": {"table": "t"}}',
        '{"format": 1, "before": [], "at": 0, "switched_to_on_demand": false}',
        '{"format": 1, "before": {"table": "t"}, "at": "x", "switched_to_on_demand": false}',
        '{"format": 1, "before": {"table": "t"}, "at": 0, "switched_to_on_demand": false}',
    ],
)  # fmt: skip
def test_a_file_that_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="record") as raised:
        read_record(path)
    assert "--apply wrote" in str(raised.value.hint)
    assert known_switches(tmp_path, "other") == []  # another file that happens to lie there
