"""Damaged and truncated files stop a job with an error, wherever compressed data is read."""

from __future__ import annotations

import errno
import json
from base64 import b64encode
from hashlib import md5
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stator.engine import Engine
from stator.errors import BulkError, DataDamaged, JournalDamaged, StatorError
from stator.pipeline.bulk.copy import Copy, CopyOptions
from stator.pipeline.bulk.export.export import ExportOptions
from stator.pipeline.bulk.export.parts import read_items
from stator.pipeline.bulk.export.sources import snapshot_export, table_export
from stator.pipeline.bulk.job.dead_letters import DeadLetterFile
from stator.pipeline.bulk.job.journal import Journal, JournalState
from stator.pipeline.bulk.job.pending_rows import DeadLetter
from stator.pipeline.bulk.load.load import LoadOptions, load
from stator.pipeline.bulk.targets import BulkTarget

from ...formats.damage import COMPRESS, DAMAGE, WHOLE, lines
from .stock import create, engine_target, stored

ENDINGS = {"gzip": ".gz", "zstd": ".zst"}
ROWS = 3000


def content_of(format_name: str) -> bytes:
    if format_name == "dynamodb-json":
        return lines(ROWS)
    items = [json.loads(line)["Item"] for line in lines(ROWS).splitlines()]
    rows = [{"pk": item["pk"]["S"], "noise": item["noise"]["S"]} for item in items]
    if format_name == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if format_name == "csv":
        return "\n".join(["pk,noise", *(f"{row['pk']},{row['noise']}" for row in rows)]).encode()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("way", DAMAGE)
@pytest.mark.parametrize("format_name", ["csv", "jsonl", "dynamodb-json", "parquet"])
def test_a_load_of_a_damaged_file_fails(
    compression: str, way: str, format_name: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.data{ENDINGS[compression]}"
    path.write_bytes(DAMAGE[way](COMPRESS[compression], content_of(format_name)))
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        with pytest.raises(StatorError, match=compression):
            load(str(path), target, LoadOptions(format=format_name))
        assert len(stored(engine)) < 2 * ROWS


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("format_name", ["csv", "jsonl", "dynamodb-json", "parquet"])
def test_a_load_reads_every_member(
    compression: str, way: str, format_name: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.data{ENDINGS[compression]}"
    path.write_bytes(WHOLE[way](COMPRESS[compression], content_of(format_name)))
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        assert load(str(path), target, LoadOptions(format=format_name)).written == ROWS
        assert len(stored(engine)) == ROWS


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("format_name", ["parquet", "arrow"])
def test_a_load_of_a_truncated_columnar_file_fails(
    share: float, format_name: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.{format_name}"
    table = pa.table({"pk": [f"p{number}" for number in range(ROWS)]})
    if format_name == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        with pytest.raises(StatorError, match=f"is not {format_name}"):
            load(str(path), target)
        assert stored(engine) == {}


# -- snapshots and parts


def snapshot(folder: Path, content: bytes, name: str) -> Path:
    """A full export as AWS lays it out, with one data file."""
    (folder / "data").mkdir(parents=True)
    (folder / "data" / name).write_bytes(content)
    checksum = b64encode(md5(content).digest()).decode()
    file = {"itemCount": ROWS, "md5Checksum": checksum, "dataFileS3Key": f"x/data/{name}"}
    (folder / "manifest-files.json").write_text(json.dumps(file) + "\n")
    (folder / "manifest-summary.json").write_text(json.dumps({"itemCount": ROWS}))
    return folder


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("way", DAMAGE)
def test_a_damaged_snapshot_is_refused(compression: str, way: str, tmp_path: Path) -> None:
    packed = DAMAGE[way](COMPRESS[compression], lines(ROWS))
    root = snapshot(tmp_path / "s", packed, f"a.json{ENDINGS[compression]}")
    with pytest.raises(DataDamaged, match=compression):
        snapshot_export(str(root), str(tmp_path / "x.jsonl")).run()


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("way", WHOLE)
def test_a_snapshot_may_have_several_members(compression: str, way: str, tmp_path: Path) -> None:
    packed = WHOLE[way](COMPRESS[compression], lines(ROWS))
    root = snapshot(tmp_path / "s", packed, f"a.json{ENDINGS[compression]}")
    assert snapshot_export(str(root), str(tmp_path / "x.jsonl")).run().items == ROWS


def test_a_line_of_a_snapshot_that_is_no_json_is_an_error_of_ours(tmp_path: Path) -> None:
    root = snapshot(tmp_path / "s", COMPRESS["gzip"](lines(10) + b"{..."), "a.json.gz")
    with pytest.raises(DataDamaged, match=r"a\.json\.gz cannot be read: line 11 is not JSON"):
        snapshot_export(str(root), str(tmp_path / "x.jsonl")).run()


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("way", DAMAGE)
def test_a_damaged_part_is_not_read_back(compression: str, way: str, tmp_path: Path) -> None:
    path = tmp_path / f"part-000-00000.json{ENDINGS[compression]}"
    path.write_bytes(DAMAGE[way](COMPRESS[compression], lines(ROWS)))
    with pytest.raises(DataDamaged, match=compression):
        list(read_items(path))


@pytest.mark.parametrize("compression", COMPRESS)
def test_parts_in_every_compression_are_read_back_and_compared(
    compression: str, tmp_path: Path
) -> None:
    path = tmp_path / f"part-000-00000.json{ENDINGS[compression]}"
    path.write_bytes(WHOLE["three members"](COMPRESS[compression], lines(ROWS)))
    assert len(list(read_items(path))) == ROWS


# -- full disks


class FullDisk:
    """A file that takes nothing any more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, matching: str) -> None:
        original = Path.open

        def opened(path: Path, mode: str = "r", *rest: Any, **named: Any) -> Any:
            if "w" in mode and matching in path.name:
                raise OSError(errno.ENOSPC, "No space left on device")
            return original(path, mode, *rest, **named)

        monkeypatch.setattr(Path, "open", opened)


@pytest.mark.parametrize("matching", ["part-", "journal", "manifest", "out.csv", "out.parquet"])
def test_an_export_to_a_full_disk_says_so(
    matching: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        path = tmp_path / "x.json"
        path.write_bytes(lines(50))
        load(str(path), target, LoadOptions(format="dynamodb-json"))
        out = tmp_path / (matching if matching.startswith("out") else "out")
        FullDisk(monkeypatch, matching)
        with pytest.raises(BulkError, match="No space left on device") as caught:
            table_export(target, str(out), ExportOptions()).run()
        assert "free some space" in (caught.value.hint or "")


def test_dead_letters_on_a_full_disk_say_so(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    letters = DeadLetterFile(Path("/dev/full"))
    letters.add([DeadLetter("x.csv", 1, {"pk": "a"}, "reason")])
    with pytest.raises(BulkError, match="/dev/full cannot be written: No space left on device"):
        letters.flush()
    with pytest.raises(BulkError, match="No space left on device"):
        letters.close()


# -- versions of journals


def journal_with(path: Path, **changes: Any) -> Journal:
    journal = Journal(path, {"table": "orders"})
    journal.write(JournalState({"row": 5}))
    content = json.loads(path.read_text()) | changes
    content = {name: value for name, value in content.items() if value is not None}
    path.write_text(json.dumps(content))
    return journal


def test_a_journal_without_a_version_continues(tmp_path: Path) -> None:
    journal = journal_with(tmp_path / "journal", stator_journal=None)
    state = journal.begin(resume=True, restart=False)
    assert state is not None and state.place == {"row": 5}


def test_a_journal_of_a_newer_version_is_refused_and_can_be_restarted(tmp_path: Path) -> None:
    journal = journal_with(tmp_path / "journal", stator_journal=3)
    with pytest.raises(BulkError, match=r"has version 3, .* up to 2") as caught:
        journal.begin(resume=True, restart=False)
    assert "the newer Stator that wrote it" in (caught.value.hint or "")
    assert journal.begin(resume=False, restart=True) is None
    assert not (tmp_path / "journal").exists()


def test_a_file_that_is_no_journal_is_never_deleted(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text('{"my": "data"}')
    with pytest.raises(BulkError, match="is not a journal"):
        Journal(tmp_path / "journal", {}).begin(resume=False, restart=True)
    assert (tmp_path / "journal").exists()


# -- damaged journals

DAMAGED_JOURNALS = {
    "empty": b"",
    "cut": b'{"stator_journal": 2, "job": {"table"',
    "zeros": b"\0" * 200,
    "bytes": b"\xff\xfe\x00",
    "a list as job": b'{"stator_journal": 2, "job": [], "state": {}}',
    "a text as state": b'{"stator_journal": 2, "job": {}, "state": "x"}',
}
# Damage that only shows when the state is used.
DAMAGED_STATES: dict[str, dict[str, Any]] = {
    "no place": {"place": []},
    "another place": {"place": {"x": 1}},
    "no numbers": {"place": {"source": "x", "row": "y"}},
    "no counts": {"counts": 5},
    "other counts": {"counts": {"x": 1}},
    "no length": {"dead_bytes": "x"},
    "another field": {"x": 1},
}


def _load(engine: Engine, folder: Path, **options: Any) -> Any:
    rows = folder / "rows.csv"
    if not rows.exists():  # its time is part of the journal
        rows.write_text("pk\na\nb\n")
    with engine_target(engine) as target:
        return load(str(folder / "rows.csv"), target, LoadOptions(**options))


def _export(engine: Engine, folder: Path, **options: Any) -> Any:
    with engine_target(engine) as target:
        return table_export(target, str(folder / "out"), ExportOptions(**options)).run()


def _copy(engine: Engine, folder: Path, **options: Any) -> Any:
    with engine_target(engine) as source, BulkTarget.open(engine, "copy") as target:
        return Copy(source, target, CopyOptions(create=True, **options)).run()


JOBS = {"load": _load, "export": _export, "copy": _copy}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("damage", [*DAMAGED_JOURNALS, *DAMAGED_STATES])
def test_a_damaged_journal_is_named_and_restart_discards_it(
    job: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (job, damage) == ("export", "other counts"):
        pytest.skip("an export has no counts of rows")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "the.journal"
    with Engine.open() as engine:
        create(engine)
        if damage in DAMAGED_JOURNALS:
            path.write_bytes(DAMAGED_JOURNALS[damage])
        else:
            description = _description_of(job, engine, tmp_path, path)
            state: dict[str, Any] = {"place": {}, "counts": {}, "dead_bytes": 0}
            state |= DAMAGED_STATES[damage]
            content = {"stator_journal": 2, "job": description, "state": state}
            path.write_text(json.dumps(content))
        for resume in (True, False) if damage in DAMAGED_JOURNALS else (True,):
            with pytest.raises(JournalDamaged) as caught:
                JOBS[job](engine, tmp_path, journal=path, resume=resume)
            assert "--restart" in (caught.value.hint or "")
        JOBS[job](engine, tmp_path, journal=path, restart=True)
        assert not path.exists()
        moved = path.with_name("the.journal.damaged")
        assert moved.exists() == (damage in DAMAGED_JOURNALS)


def _description_of(job: str, engine: Engine, folder: Path, path: Path) -> Any:
    """Return how the job describes itself, from the journal of a run that is stopped."""
    found: list[Any] = []

    def write(self: Journal, state: JournalState) -> None:
        found.append(self.job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "write", write)
        JOBS[job](engine, folder, journal=path)
    for made in (folder / "out").glob("*"):
        made.unlink()
    return found[0]


def test_restart_of_an_export_removes_what_a_run_with_a_damaged_journal_left(
    tmp_path: Path,
) -> None:
    with Engine.open() as engine:
        create(engine)
        out = tmp_path / "out"
        with engine_target(engine) as target:
            job = table_export(target, str(out), ExportOptions(restart=True))
            out.mkdir()
            (out / "part-000-00000.jsonl").write_text("half")
            job.journal_path.write_bytes(b"")
            assert job.run().items == 0
        assert [path.name for path in out.iterdir() if path.suffix == ".jsonl"] == []
        job.journal_path.write_bytes(b"")
        with engine_target(engine) as target, pytest.raises(BulkError, match="is not empty"):
            table_export(target, str(out), ExportOptions(restart=True)).run()
        assert (out / "_manifest.json").exists()  # a finished export is never removed
