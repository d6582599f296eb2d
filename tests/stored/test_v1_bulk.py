"""Loads, exports and copies that version 0.1 began are taken up with ``--resume``."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from stator.cli.main import main as stator

from .packing import expected, unpack
from .shipment import (
    BAD_ROWS,
    COPY,
    EXPORT_FILE,
    EXPORT_FOLDER,
    LOAD,
    ROWS,
    loaded_items,
    source_items,
    table_items,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of the commands, for their journals name everything as seen from it."""
    found = unpack("bulk", tmp_path)
    monkeypatch.chdir(found)
    return found


def resumed(
    arguments: list[str], capsys: pytest.CaptureFixture[str], exit_code: int = 0
) -> dict[str, Any]:
    """The report of a command that is given ``--resume``."""
    with pytest.raises(SystemExit) as ended:
        stator([*arguments, "--resume", "--json"])
    captured = capsys.readouterr()
    assert ended.value.code == exit_code, captured.err
    report: dict[str, Any] = json.loads(captured.out)
    return report


def place(job: str) -> dict[str, Any]:
    found: dict[str, Any] = expected("bulk")["places"][job]["place"]
    return found


def test_an_interrupted_load_is_taken_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = resumed(LOAD, capsys, exit_code=3)  # some rows failed
    assert report["resumed_at_row"] == place("load")["row"] > 0
    assert (report["read"], report["written"], report["failed"]) == (
        ROWS,
        ROWS - len(BAD_ROWS),
        len(BAD_ROWS),
    )
    assert table_items(folder / "loaded.db") == loaded_items()
    again = resumed(LOAD, capsys, exit_code=3)
    assert again == report | {"already_done": True}


def test_dead_letters_of_both_runs_are_there_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "bad.jsonl").read_bytes()
    resumed(LOAD, capsys, exit_code=3)
    after = (folder / "bad.jsonl").read_bytes()
    kept = expected("bulk")["places"]["load"]["dead_bytes"]
    assert kept and before[:kept] == after[:kept]
    letters = [json.loads(line) for line in after.splitlines()]
    assert [(letter["source"], letter["row"]) for letter in letters] == [
        ("orders.jsonl", row + 1) for row in BAD_ROWS
    ]
    assert {letter["reason"] for letter in letters} == {"the key attribute pk is missing"}


def test_a_load_of_another_input_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "orders.jsonl").write_text('{"pk": "other"}\n')
    with pytest.raises(SystemExit):
        stator([*LOAD, "--resume"])
    assert "inputs: orders.jsonl has changed: it had" in capsys.readouterr().err
    assert (folder / "orders.jsonl.orders.journal").exists()


def test_an_interrupted_export_to_a_folder_is_taken_up(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in (folder / "parts").glob("part-*")}
    report = resumed(EXPORT_FOLDER, capsys)
    assert (report["items"], report["verified"]) == (40, True)
    known = [part["name"] for part in place("export-folder")["files"]]
    assert known and all((folder / "parts" / name).read_bytes() == before[name] for name in known)
    manifest = json.loads((folder / "parts" / "_manifest.json").read_text())
    lines = [
        json.loads(line)["Item"]
        for part in manifest["files"]
        for line in (folder / "parts" / part["name"]).read_text().splitlines()
    ]
    assert len(lines) == 40
    assert {item["pk"]["S"]: item for item in lines} == source_items()


def test_an_interrupted_export_to_a_file_is_taken_up(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = resumed(EXPORT_FILE, capsys)
    assert (report["items"], report["files"]) == (40, 1)
    rows = list(csv.DictReader((folder / "orders.csv").read_text().splitlines()))
    assert {row["pk"]: row["n"] for row in rows} == {
        key: item["n"]["N"] for key, item in source_items().items()
    }
    assert len(rows) == 40 and not (folder / "orders.csv.parts").exists()


def test_an_interrupted_copy_is_taken_up_and_verified(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = resumed(COPY, capsys)
    assert (report["read"], report["written"], report["failed"]) == (40, 40, 0)
    assert report["verified"] is True
    assert table_items(folder / "target.db") == source_items()
    assert not list(folder.glob("copy-*.journal"))
