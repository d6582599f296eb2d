"""``stator advise`` and ``stator scale`` on live tables of ``stator serve``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from .serving import ENVIRONMENT, TIMEOUT_SECONDS, Serving
from .test_advise import write_days

REGION = "us-east-1"


@dataclass
class Served:
    """A server with an empty on-demand table ``orders`` that has an index, created now."""

    url: str
    folder: Path

    def client(self, service: str) -> Any:
        return boto3.client(
            service, region_name=REGION, endpoint_url=self.url,
            aws_access_key_id="local", aws_secret_access_key="local",
        )  # fmt: skip

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "stator", *arguments, "--at", self.url],
            cwd=self.folder,
            env={**ENVIRONMENT, "COLUMNS": "80", "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def units(self) -> dict[str | None, tuple[int, int]]:
        table = self.client("dynamodb").describe_table(TableName="orders")["Table"]
        places = {None: table, **{each["IndexName"]: each for each in _indexes(table)}}
        found = {name: each["ProvisionedThroughput"] for name, each in places.items()}
        return {
            name: (each["ReadCapacityUnits"], each["WriteCapacityUnits"])
            for name, each in found.items()
        }


def _indexes(table: dict[str, Any]) -> list[dict[str, Any]]:
    return list(table.get("GlobalSecondaryIndexes", ()))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Serving() as serving:
        found = Served(serving.facts["url"], tmp_path)
        found.client("dynamodb").create_table(
            TableName="orders",
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"} for name in ("p", "g")
            ],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "GSI1",
                    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
            BillingMode="PAY_PER_REQUEST",
        )
        yield found


def test_a_new_table_is_changed_from_a_file_and_changed_back(served: Served) -> None:
    write_days(served.folder / "history.csv", 1)
    before = (served.folder / "history.csv").read_text()
    asked = ("advise", "--table", "orders", "--history", "history.csv", "--apply")
    done = served.run(*asked, "--option", "auto scaling 70 %", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert any("the history ends on 2026-11-0" in each for each in found["tables"][0]["notes"])
    assert (served.folder / "history.csv").read_text() == before
    assert all(read >= 1 and write >= 1 for read, write in served.units().values())
    scaling = served.client("application-autoscaling")
    targets = scaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"]
    assert len(targets) == 4  # reads and writes of the table and of its index
    shown = served.run("scale", "orders")
    assert shown.stdout.count("70 %") == 4, shown.stdout

    (record,) = (served.folder / "capacity-changes").iterdir()
    undone = served.run("advise", "--undo", str(record))
    assert undone.returncode == 0, undone.stderr
    assert set(served.units().values()) == {(0, 0)}
    targets = scaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"]
    assert targets == []


def test_an_index_that_only_the_file_has_is_left_out(served: Served) -> None:
    (served.folder / "history.csv").write_text(
        "time,table,index,read_units,write_units\n"
        + "".join(
            f"2026-11-02T{minute // 60:02d}:{minute % 60:02d}:00Z,orders,{index},6000,6000\n"
            for minute in range(1440)
            for index in ("", "GONE")
        )
    )
    asked = ("advise", "--table", "orders", "--history", "history.csv", "--apply", "--json")
    done = served.run(*asked, "--option", "fixed, highest minute")
    assert done.returncode == 0, done.stderr
    assert served.units() == {None: (100, 100), "GSI1": (1, 1)}


def test_a_target_with_a_warning_can_be_chosen_and_the_warning_is_there(served: Served) -> None:
    write_days(served.folder / "history.csv", 1)
    asked = ("advise", "--table", "orders", "--history", "history.csv", "--option")
    done = served.run(*asked, "auto scaling 90 %")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "a target of 90 % leaves little room for the minutes in which scaling is late" in said
