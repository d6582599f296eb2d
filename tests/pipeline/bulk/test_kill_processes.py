"""Commands that are killed with ``kill -9`` about a second after each start, and always resumed.

Every command has a rate at which a single run would take much longer. A run is killed a fixed time
after it has renewed its journal: nothing can get on if each kill falls before that.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stator.pipeline.bulk.targets import BulkTarget

from ...targets import stator_server
from .stock import write_lines

pytestmark = pytest.mark.slow
_STATOR = str(Path(sys.executable).with_name("stator"))
_ROWS = 12_000
_MOST_RUNS = 60


@pytest.fixture
def address() -> Iterator[str]:
    with stator_server() as found:
        yield found


def run_to_the_end(arguments: list[str], journal: Path) -> tuple[int, dict[str, Any]]:
    """Run a command until it ends by itself. Return the number of kills, and its report."""
    for kills in range(_MOST_RUNS):
        before = journal.stat().st_mtime_ns if journal.exists() else 0
        command = [_STATOR, *arguments, "--resume", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None and (
                not journal.exists() or journal.stat().st_mtime_ns == before
            ):
                time.sleep(0.01)
            try:
                out, _ = process.communicate(timeout=1.0)
            except subprocess.TimeoutExpired:
                process.kill()
                continue
        assert process.returncode == 0
        return kills, json.loads(out)
    raise AssertionError(f"{arguments[0]} has not ended in {_MOST_RUNS} runs")


def load_rows(address: str, path: Path) -> None:
    command = [_STATOR, "load", str(path), "--to", address, "--table", "orders"]
    subprocess.run([*command, "--create", "--key", "pk=S"], check=True, capture_output=True)


def rows(padding: int = 0) -> list[dict[str, Any]]:
    return [{"pk": f"{row:06d}", "n": row, "pad": "x" * padding} for row in range(_ROWS)]


def items_of(address: str, table: str) -> dict[str, int]:
    found: dict[str, int] = {}
    with BulkTarget.open(address, table) as target:
        request: dict[str, Any] = {"TableName": table}
        while True:
            page = target.transport.call("Scan", request)
            found |= {item["pk"]["S"]: int(item["n"]["N"]) for item in page["Items"]}
            if "LastEvaluatedKey" not in page:
                return found
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


WANTED = {f"{row:06d}": row for row in range(_ROWS)}


@pytest.mark.parametrize("condition", [False, True])
def test_a_load_gets_on(condition: bool, address: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", rows())
    arguments = ["load", str(path), "--to", address, "--table", "orders", "--rate", "3000"]
    arguments += ["--create", "--key", "pk=S"]
    arguments += ["--condition", "attribute_not_exists(pk)"] if condition else []
    kills, report = run_to_the_end(arguments, tmp_path / "x.jsonl.orders.journal")
    assert kills > 2
    assert (report["read"], report["written"], report["failed"]) == (_ROWS, _ROWS, 0)
    assert items_of(address, "orders") == WANTED


def test_a_copy_gets_on(address: str, tmp_path: Path) -> None:
    load_rows(address, write_lines(tmp_path / "x.jsonl", rows()))
    journal = tmp_path / "copy.journal"
    arguments = ["copy", address, address, "--table", "orders", "--to-table", "copied"]
    arguments += ["--create", "--write-rate", "3000", "--journal", str(journal)]
    kills, report = run_to_the_end(arguments, journal)
    assert kills > 2
    assert (report["read"], report["written"], report["verified"]) == (_ROWS, _ROWS, True)
    assert items_of(address, "copied") == WANTED


def test_an_export_gets_on(address: str, tmp_path: Path) -> None:
    load_rows(address, write_lines(tmp_path / "x.jsonl", rows(padding=1000)))
    journal = tmp_path / "export.journal"
    arguments = ["export", address, "--table", "orders", "--out", str(tmp_path / "out")]
    arguments += ["--format", "jsonl", "--segments", "1", "--rate", "300", "--journal"]
    kills, report = run_to_the_end([*arguments, str(journal)], journal)
    assert kills > 2
    assert (report["items"], report["verified"]) == (_ROWS, True)
    lines = [
        json.loads(line)
        for part in (tmp_path / "out").glob("part-*")
        for line in part.read_text().splitlines()
    ]
    assert sorted(line["n"] for line in lines) == list(range(_ROWS))
