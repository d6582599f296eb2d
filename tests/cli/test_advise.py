"""``stator advise`` as an operator runs it: on a file, on live tables, with undo and mistakes.

AWS is moto's server, with CloudWatch and Application Auto Scaling.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests import warm_python

from .design_folder import stator_in
from .serving import ENVIRONMENT, TIMEOUT_SECONDS

moto_server = pytest.importorskip("moto.server", reason="moto is not installed")

ORDERS = """
from stator import Design, Entity, ident


class Order(Entity):
    order_id: str = ident()


orders = Design("orders", [Order], [])
"""
REGION = "eu-west-1"
DAYS = 2
HEAD = "time,table,index,read_units,write_units,size_bytes"


def write_days(path: Path, days: float = 1, table: str = "orders") -> None:
    """A history: steady reads, writes that stop at noon, an index that nobody reads."""
    lines = [HEAD]
    for minute in range(int(days * 1440)):
        at = f"2026-11-{2 + minute // 1440:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:00Z"
        writes = 6000 if minute % 1440 < 720 else 0
        lines += [f"{at},{table},,3000,{writes},1000000", f"{at},{table},GSI1,0,{writes},0"]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_days(tmp_path / "history.csv")
    return tmp_path


# --- a file ---------------------------------------------------------------------------------------


def test_a_file_is_enough(folder: Path) -> None:
    done = stator_in(folder, "advise", "--history", "history.csv", columns=80)
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "orders  on-demand, $", " a month, from 1 day of history", "auto scaling 70 %",
        "<- saves $", "why ", "if wrong ", "1 day of history is little", "units a second",
        "█ used",
        "Prices of us-east-1",
    ):  # fmt: skip
        assert text in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout


def test_json_has_the_same_figures(folder: Path) -> None:
    done = stator_in(
        folder, "advise", "--history", "history.csv", "--json", "--region", "eu-west-1",
        "--fixed", "50,100", "--table", "orders",
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["region"] == "eu-west-1"
    names = [each["name"] for each in found["tables"][0]["options"]]
    assert "fixed, as given" in names and len(names) > 8


def test_a_page_has_the_options_and_a_chart_of_each_dimension(folder: Path) -> None:
    from xml.etree import ElementTree

    done = stator_in(folder, "advise", "--history", "history.csv", "--html", "advice.html")
    assert (done.returncode, done.stderr) == (0, "wrote advice.html\n")
    text = (folder / "advice.html").read_text()
    root = ElementTree.fromstring(re.sub(r"<!doctype html>|<meta[^>]*>", "", text))
    assert len(root.findall(".//svg")) == 3  # reads and writes of the table, writes of the index
    rows = ["".join(each.itertext()) for each in root.findall(".//tbody/tr")]
    assert len(rows) > 8 and any("saves $" in each for each in rows)
    assert "http" not in text.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "name an address with --at, or a file with --history"),
        (["--history", "history.csv", "--apply"], 2, "name an address with --at"),
        (["--history", "none.csv"], 1, "none.csv: No such file or directory"),
        (["--history", "history.csv", "--table", "users"], 1, "has no history of users"),
        (["--history", "history.csv", "--days", "0.1"], 1, "orders has 2 h 24 min of history"),
        (["--history", "history.csv", "--timezone", "Mars"], 1, "'Mars' is not a time zone"),
        (["--history", "history.csv", "--region", "mars-1"], 1, "no prices for region 'mars-1'"),
        (["--history", "history.csv", "--fixed", "5"], 2, "write two numbers of units"),
        (["--history", "history.csv", "--years", "2"], 2, "--years 2 is not offered"),
        (["--history", "history.csv", "--option", "magic"], 1, "orders has no option 'magic'"),
        (["--at", "ftp://host", "--table", "t"], 1, "ftp://host is not a DynamoDB address"),
        (["--at", "aws://eu-west-1", "--table", "t", "shop.py"], 2, "name a design or tables"),
    ],
)
def test_a_mistake_is_named(folder: Path, arguments: list[str], code: int, message: str) -> None:
    done = stator_in(folder, "advise", *arguments)
    assert done.returncode == code, done.stderr
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""


# --- live tables ----------------------------------------------------------------------------------


@dataclass
class Aws:
    """moto's server with a provisioned table ``orders`` and two days of metrics."""

    url: str
    folder: Path

    def client(self, service: str) -> Any:
        return boto3.client(
            service, region_name=REGION, endpoint_url=self.url,
            aws_access_key_id="local", aws_secret_access_key="local",
        )  # fmt: skip

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        # A set profile or region would send the requests of the command elsewhere.
        return warm_python.run(
            "-m",
            "stator",
            command,
            *arguments,
            *self._where,
            cwd=self.folder,
            env={**ENVIRONMENT, "COLUMNS": "80", "HOME": str(self.folder)},
            timeout=TIMEOUT_SECONDS,
        )

    @property
    def _where(self) -> tuple[str, ...]:
        return ("--at", self.url, "--region", REGION)

    def units(self) -> dict[str, int]:
        table = self.client("dynamodb").describe_table(TableName="orders")["Table"]
        throughput = table["ProvisionedThroughput"]
        return {name: throughput[name] for name in ("ReadCapacityUnits", "WriteCapacityUnits")}

    def targets(self) -> int:
        client = self.client("application-autoscaling")
        found = client.describe_scalable_targets(ServiceNamespace="dynamodb")
        return len(found["ScalableTargets"])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")  # moto reads them in this process
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
    found = moto_server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    found.start()
    host, port = found.get_host_and_port()
    url = f"http://{host}:{port}"
    _put_metrics(Aws(url, Path()).client("cloudwatch"))
    yield url
    found.stop()


@pytest.fixture
def aws(server: str, tmp_path: Path) -> Iterator[Aws]:
    found = Aws(server, tmp_path)
    client = found.client("dynamodb")
    client.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": 500, "WriteCapacityUnits": 400},
    )
    _make_old()
    yield found
    client.delete_table(TableName="orders")
    scaling = found.client("application-autoscaling")
    for target in scaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"]:
        names = ("ServiceNamespace", "ResourceId", "ScalableDimension")
        scaling.deregister_scalable_target(**{name: target[name] for name in names})


def _make_old() -> None:
    """The table was created long ago: its history does not begin now."""
    from moto.dynamodb.models import dynamodb_backends

    for backend in dynamodb_backends.values():
        table = backend[REGION].tables.get("orders")
        if table is not None:
            table.created_at = datetime(2026, 1, 1)


def _put_metrics(client: Any) -> None:
    last = int(time.time()) // 60 * 60
    data = [
        {
            "MetricName": f"Consumed{kind}CapacityUnits",
            "Dimensions": [{"Name": "TableName", "Value": "orders"}],
            "Timestamp": datetime.fromtimestamp(last - minute * 60, UTC),
            "Value": units,
        }
        for minute in range(DAYS * 1440)
        for kind, units in (("Read", 3000.0), ("Write", 6000.0 if minute % 1440 < 720 else 60.0))
    ]
    for at in range(0, len(data), 1000):
        client.put_metric_data(Namespace="AWS/DynamoDB", MetricData=data[at : at + 1000])


def test_a_live_table_is_advised_changed_and_changed_back(aws: Aws) -> None:
    kept = ("--table", "orders", "--days", "1.5", "--history", "kept.csv")
    staged = aws.run("advise", *kept, "--calls", "--option", "auto scaling 70 %")
    assert staged.returncode == 0, staged.stderr
    for text in (
        "orders  provisioned, $", "Prices of eu-west-1", "register_scalable_target",
        '"MinCapacity":', "put_scaling_policy", "nothing has changed; --apply makes these calls",
    ):  # fmt: skip
        assert text in staged.stdout
    assert (aws.folder / "kept.csv").exists() and aws.targets() == 0

    done = aws.run("advise", *kept, "--apply", "--option", "fixed, highest minute", "--json")
    assert done.returncode == 0, done.stderr
    (change,) = json.loads(done.stdout)["changes"]
    assert [each["operation"] for each in change["calls"]] == ["update_table"]
    assert aws.units() == {"ReadCapacityUnits": 50, "WriteCapacityUnits": 100}
    (record,) = (aws.folder / "capacity-changes").iterdir()
    assert f"undo with --undo capacity-changes/{record.name}" in done.stderr

    undone = aws.run("advise", "--undo", str(record))
    assert undone.returncode == 0, undone.stderr
    assert aws.units() == {"ReadCapacityUnits": 500, "WriteCapacityUnits": 400}


def test_a_table_that_is_missing_is_named(aws: Aws) -> None:
    done = aws.run("advise", "--table", "nowhere", "--json")
    assert done.returncode == 1
    error = json.loads(done.stderr)["error"]
    assert error["message"].startswith("there is no table nowhere at http://")


# --- stator scale ---------------------------------------------------------------------------------


def test_scaling_is_shown_staged_applied_and_removed(aws: Aws) -> None:
    assert "does not scale" in aws.run("scale", "orders").stdout
    asked = (
        "--target", "60", "--min", "40", "--max", "400", "--kind", "write",
        "--schedule", "weekdays 17:50-22:30 min=160", "--timezone", "Europe/Zurich",
    )  # fmt: skip
    staged = aws.run("scale", "orders", *asked)
    assert "orders needs 4 calls:" in staged.stdout and aws.targets() == 0
    assert "warning: a target of 60 % keeps 40 % of the units unused" in staged.stderr
    done = aws.run("scale", "orders", *asked, "--apply")
    assert done.returncode == 0 and aws.targets() == 1, done.stderr
    shown = aws.run("scale", "orders").stdout
    assert "40  400    60 %  cron(50 17 ? * MON-FRI *) min=160" in shown
    assert aws.run("scale", "orders", *asked, "--apply").stdout == "orders needs no change\n"
    removed = aws.run("scale", "orders", "--remove", "--apply")
    assert removed.returncode == 0 and aws.targets() == 0, removed.stderr


def test_scaling_can_be_undone_and_read_as_json(aws: Aws) -> None:
    aws.run("scale", "orders", "--min", "5", "--max", "50", "--apply")
    (record,) = (aws.folder / "capacity-changes").iterdir()
    (state,) = json.loads(aws.run("scale", "orders", "--json").stdout)
    assert [each["value"]["tracking"]["target"] for each in state["scaling"]] == [70.0, 70.0]
    staged = json.loads(aws.run("scale", "orders", "--max", "60", "--json").stdout)
    assert [each["operation"] for each in staged[0]["calls"]] == ["register_scalable_target"] * 2
    undone = aws.run("scale", "orders", "--undo", str(record))
    assert undone.returncode == 0 and aws.targets() == 0, undone.stderr


def test_a_design_names_its_tables(aws: Aws) -> None:
    (aws.folder / "orders.py").write_text(ORDERS)
    by_design = aws.run("scale", "orders.py", "--min", "5", "--max", "50")
    assert by_design.returncode == 0, by_design.stderr
    assert by_design.stdout.startswith("orders needs 4 calls:")
    prefixed = aws.run("advise", "orders.py", "--prefix", "prod-")
    assert "there is no table prod-orders at" in prefixed.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--target", "70"], 1, "the reads of orders do not scale yet"),
        (["--min", "5", "--max", "4"], 1, "the most units, 4, are below the least, 5"),
        (["--target", "95", "--min", "1", "--max", "2"], 1, "a target of 95 % is not between"),
        (["--schedule", "often"], 1, "'often' is not a schedule"),
        (["--schedule", "auto", "--schedule", "none"], 2, "stand alone"),
        (["--schedule", "auto", "--days", "1"], 1, "a schedule needs a week"),
        (["--remove", "--min", "3"], 2, "--remove ends scaling"),
        (["--index", "GSI9", "--min", "1", "--max", "2"], 1, "orders has no index GSI9"),
        (["--index", "G", "--all-indexes", "--min", "1"], 2, "not both"),
        (["--kind", "all", "--min", "1"], 2, "write both, read or write"),
        (["--undo", "none.json"], 1, "none.json: No such file"),
    ],
)
def test_a_wrong_request_is_named(aws: Aws, arguments: list[str], code: int, message: str) -> None:
    done = aws.run("scale", "orders", *arguments)
    assert done.returncode == code, done.stderr
    assert message in " ".join(done.stderr.split())
    assert aws.targets() == 0
