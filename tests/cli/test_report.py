"""``stator report`` on an engine that was used hours ago."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.server import BackgroundServer

from .serving import ENVIRONMENT, TIMEOUT_SECONDS

WRITES = 240
ORDERS = """
from stator import Design, Entity, ident


class Order(Entity):
    order_id: str = ident()


orders = Design("orders", [Order], [])
"""


def table(name: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


class Used:
    """A table that got writes four hours ago, and what commands say of it."""

    def __init__(self, engine: Engine, url: str, month: str, folder: Path) -> None:
        self._engine, self.url, self.month, self._folder = engine, url, month, folder

    def create(self, name: str) -> None:
        self._engine.call("CreateTable", table(name))

    def write_design(self) -> None:
        (self._folder / "shop.py").write_text(ORDERS)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "stator", "report", *arguments],
            cwd=self._folder,
            env={**ENVIRONMENT, "COLUMNS": "100", "HOME": str(self._folder)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def report(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        where = ("--table", "orders", "--at", self.url)
        return self.run(*where, "--month", self.month, *arguments)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Used]:
    start = time.time() - 4 * 3600
    clock = VirtualClock(start)
    with Engine.open(clock=clock, metrics=True) as engine, BackgroundServer(engine) as server:
        engine.call("CreateTable", table("orders"))
        for number in range(WRITES):
            item = {"pk": {"S": str(number)}}
            engine.call("PutItem", {"TableName": "orders", "Item": item})
        for _ in range(4):
            clock.advance(3600)
            engine.sweep()
        month = datetime.fromtimestamp(start, UTC).strftime("%Y-%m")
        yield Used(engine, server.url, month, tmp_path_factory.mktemp("report"))


def test_units_and_dollars_are_those_of_the_requests(used: Used) -> None:
    done = used.report("--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (place,) = found["places"]
    assert (place["table"], place["index"], place["writes"]["units"]) == ("orders", None, WRITES)
    assert place["writes"]["busiest_hour_units_a_second"] == round(WRITES / 3600, 3)
    assert found["region"] == "us-east-1" and found["month"] == used.month
    assert found["notes"] == ["no advice on orders: it has less than a day of history"]


def test_a_design_is_reported_with_the_table_of_its_patterns_if_it_is_there(used: Used) -> None:
    used.write_design()
    where = ("shop.py", "--at", used.url, "--month", used.month, "--no-advice", "--json")
    for expected in (["orders"], ["orders", "orders-stator"]):
        done = used.run(*where)
        assert done.returncode == 0, done.stderr
        assert [each["table"] for each in json.loads(done.stdout)["places"]] == expected
        if len(expected) == 1:
            used.create("orders-stator")


def test_text_fits_and_says_what_to_change(used: Used) -> None:
    done = used.report()
    assert done.returncode == 0, done.stderr
    assert "What to change" in done.stdout and "nothing" in done.stdout
    assert f"{WRITES}" in done.stdout and "storage at its present size" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_markdown_has_tables(used: Used) -> None:
    done = used.report("--format", "markdown", "--no-advice")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Tables in ")
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("| orders |")]
    assert row.split(" | ")[2] == str(WRITES)
    assert "## What to change\n\nNothing." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--table", "orders"], 2, "name an address with --at"),
        (["--table", "orders", "--at", "AT", "--month", "2026-13"], 1, "'2026-13' is not a month"),
        (["--table", "orders", "--at", "AT", "--month", "2400-01"], 1, "has not begun"),
        (["--table", "orders", "--at", "AT", "--month", "2020-01"], 1, "the 455 days"),
        (["--table", "gone", "--at", "AT"], 1, "there is no table gone at http://"),
        (["--table", "orders", "--at", "folder"], 1, "folder"),
        (
            ["--table", "orders", "--at", "AT", "--prometheus", "localhost:9090"],
            1,
            "localhost:9090 is not the address of a Prometheus server",
        ),
    ],
)
def test_a_mistake_is_named(used: Used, arguments: list[str], code: int, message: str) -> None:
    if "--month" not in arguments and "--at" in arguments:
        arguments = [*arguments, "--month", used.month]
    done = used.run(*(used.url if each == "AT" else each for each in arguments))
    assert done.returncode == code, done.stdout + done.stderr
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""
