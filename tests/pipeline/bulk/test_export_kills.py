"""An export that is killed at any change of the disk is resumed to the same files.

Each test counts the changes that an export makes to the disk: files that are synced, renamed or
deleted, and folders that are created. Then it kills the export at the first change, at the second,
and so on, and resumes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from stator.engine import Engine
from stator.errors import BulkError, DataDiffers
from stator.pipeline.bulk.export.export import ExportOptions, ExportReport
from stator.pipeline.bulk.export.sources import table_export
from stator.pipeline.bulk.load.load import load
from stator.testing import Killed

from .stock import ROWS, create, engine_target, stored, write_lines

DESTINATIONS = {
    "a folder of lines": ("out", ExportOptions(format="jsonl", part_items=10, readers=1)),
    "a folder of CSV": ("out", ExportOptions(format="csv", part_items=10, readers=1)),
    "a CSV file": ("x.csv.gz", ExportOptions(part_items=10, readers=1)),
    "a folder of Parquet": ("out", ExportOptions(format="parquet", part_items=10, readers=1)),
    "a Parquet file": ("x.parquet", ExportOptions(part_items=10, readers=1)),
}
_CHANGES = ("fsync", "replace", "unlink", "rmdir", "mkdir")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open() as made:
        create(made)
        load(str(write_lines(tmp_path / "rows.jsonl", ROWS)), engine_target(made))
        (tmp_path / "rows.jsonl").unlink()
        yield made


@contextmanager
def killed_at(number: int, *, carried_out: bool) -> Iterator[None]:
    """Kill the program at its change of this number; it makes no further change."""
    changes = count(1)

    def watched(change: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            now = next(changes)
            if now == number and carried_out:
                change(*arguments, **named)
            if now >= number:
                raise Killed
            return change(*arguments, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in _CHANGES:
            patch.setattr(os, name, watched(getattr(os, name)))
        yield


def run(engine: Engine, out: Path, options: ExportOptions, **changes: Any) -> ExportReport:
    from dataclasses import replace

    job = table_export(engine_target(engine), str(out), replace(options, **changes), segments=2)
    return job.run()


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def check_whole(report: ExportReport, folder: Path) -> None:
    """Every file is in the manifest, and every row is there once."""
    assert (report.items, report.verified) == (len(ROWS), True)
    manifest = json.loads(Path(report.manifest).read_text())
    assert sum(part["rows"] for part in manifest["files"]) == len(ROWS)
    root = Path(report.manifest).parent.relative_to(folder)
    wanted = {(root / part["name"]).as_posix() for part in manifest["files"]}
    assert files_below(folder).keys() == wanted | {str(Path(report.manifest).relative_to(folder))}
    with Engine.open() as other:
        create(other)
        named = [str(Path(report.manifest).parent / part["name"]) for part in manifest["files"]]
        assert load(named, engine_target(other)).written == len(ROWS)
        assert stored(other).keys() == {row["pk"] for row in ROWS}


@pytest.mark.parametrize("carried_out", [False, True])
@pytest.mark.parametrize("way", DESTINATIONS)
def test_an_export_resumes_from_every_change_of_the_disk(
    way: str, carried_out: bool, engine: Engine, tmp_path: Path
) -> None:
    name, options = DESTINATIONS[way]
    items_before = set[int]()
    for number in count(1):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            with killed_at(number, carried_out=carried_out):
                assert run(engine, folder / name, options).items_before == 0
        except Killed:
            report = run(engine, folder / name, options, resume=True)
            check_whole(report, folder)
            items_before.add(report.items_before)
            written_now = report.per_second * report.seconds
            assert written_now == pytest.approx(report.items - report.items_before)
            before = files_below(folder)
            assert run(engine, folder / name, options, resume=True).already_complete
            assert files_below(folder) == before
        else:
            break
    assert number > 15
    assert {0, len(ROWS)} < items_before  # and some parts of it


@pytest.mark.parametrize("way", DESTINATIONS)
def test_an_export_restarts_from_every_change_of_the_disk(
    way: str, engine: Engine, tmp_path: Path
) -> None:
    name, options = DESTINATIONS[way]
    for number in count(1):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            with killed_at(number, carried_out=True):
                run(engine, folder / name, options)
        except Killed:
            if Path(folder / name / "_manifest.json").exists() or list(folder.glob("*.manifest.*")):
                break  # a finished export is not overwritten
            check_whole(run(engine, folder / name, options, restart=True), folder)
        else:
            break
    assert number > 10


def test_a_resumed_export_drops_parts_of_items_that_are_gone(
    engine: Engine, tmp_path: Path
) -> None:
    """A part that no journal recorded is removed, even if the run does not write it again."""
    out, options = tmp_path / "out", DESTINATIONS["a folder of lines"][1]
    with pytest.raises(Killed), killed_at(8, carried_out=True):
        run(engine, out, options)
    left = list(out.glob("part-*"))
    for row in ROWS:
        engine.call("DeleteItem", {"TableName": "orders", "Key": {"pk": {"S": row["pk"]}}})
    report = run(engine, out, options, resume=True)
    listed = {part["name"] for part in json.loads((out / "_manifest.json").read_text())["files"]}
    assert left
    assert {path.name for path in out.glob("part-*")} == listed
    assert report.items < len(ROWS)


def test_a_finished_export_that_was_changed_is_not_called_complete(
    engine: Engine, tmp_path: Path
) -> None:
    out, options = tmp_path / "x.csv.gz", DESTINATIONS["a CSV file"][1]
    run(engine, out, options)
    out.write_bytes(out.read_bytes()[:-1])
    with pytest.raises(DataDiffers, match=r"x\.csv\.gz has"):
        run(engine, out, options, resume=True)
    out.unlink()
    with pytest.raises(DataDiffers, match=r"x\.csv\.gz was written, but cannot be read"):
        run(engine, out, options, resume=True)


def test_a_finished_export_of_another_job_is_not_called_complete(
    engine: Engine, tmp_path: Path
) -> None:
    out, options = tmp_path / "out", DESTINATIONS["a folder of lines"][1]
    run(engine, out, options)
    before = files_below(out)
    with pytest.raises(BulkError, match=r"belongs to another export: format was .* is now"):
        run(engine, out, options, resume=True, format="csv")
    with pytest.raises(BulkError, match="is not empty"):
        run(engine, out, options)
    assert files_below(out) == before
