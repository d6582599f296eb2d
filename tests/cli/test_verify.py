"""``stator verify``: folders in order, damaged folders, and folders that are not Stator's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stator.cli.main import build_app
from stator.engine import Engine

TABLE = {
    "TableName": "things",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    with Engine.open(str(path)) as engine:
        engine.call("CreateTable", TABLE)
        for number in range(1500):
            item = {"id": {"S": f"i{number}"}, "text": {"S": "x" * number}}
            engine.call("PutItem", {"TableName": "things", "Item": item})
        engine.storage._db.flush()  # type: ignore[attr-defined]  # into a file that can be damaged
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(["verify"]), ["verify", *arguments])


def test_a_folder_in_order(folder: Path) -> None:
    done = run(str(folder))
    assert done.exit_code == 0, done.output
    assert "1 table, 1,500 items" in done.stdout
    assert "everything agrees" in done.stdout


def test_a_damaged_folder_is_exit_code_1(folder: Path) -> None:
    largest = max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 3] ^= 1
    largest.write_bytes(content)
    done = run(str(folder))
    assert done.exit_code == 1
    assert "table things: cannot be read to its end" in done.stdout
    facts = json.loads(run(str(folder), "--json").stdout)
    assert facts["faults"][0]["where"] == "table things"


def test_a_folder_that_is_in_use_or_not_stator_s_is_refused(folder: Path, tmp_path: Path) -> None:
    with Engine.open(str(folder)):
        used = run(str(folder))
    assert used.exception is not None and "process" in str(used.exception)
    other = run(str(tmp_path))
    assert other.exception is not None and "is not a data folder" in str(other.exception)
