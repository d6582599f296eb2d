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
from stator.errors import BulkError, DataDamaged, StatorError
from stator.pipeline.bulk.export.export import ExportOptions
from stator.pipeline.bulk.export.parts import read_items
from stator.pipeline.bulk.export.sources import snapshot_export, table_export
from stator.pipeline.bulk.job.dead_letters import DeadLetterFile
from stator.pipeline.bulk.job.journal import Journal, JournalState
from stator.pipeline.bulk.job.pending_rows import DeadLetter
from stator.pipeline.bulk.load.load import LoadOptions, load

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
