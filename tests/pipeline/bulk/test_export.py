"""A table into files and back: every format, any crash, snapshots of AWS's, and S3."""

from __future__ import annotations

import csv
import gzip
import json
from base64 import b64encode
from hashlib import md5
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.engine import Engine
from stator.errors import BulkError, DataDiffers, JournalDiffers
from stator.pipeline.bulk.checksum import Digest, digest
from stator.pipeline.bulk.export.export import ExportOptions
from stator.pipeline.bulk.export.snapshots import Snapshot
from stator.pipeline.bulk.export.sources import snapshot_export, table_export
from stator.pipeline.bulk.load.load import load
from stator.testing import Killed

from ...s3_servers import seaweedfs
from .stock import Through, create, engine_target, stored, target_through

ITEMS = {
    f"k{number}": {
        "pk": {"S": f"k{number}"},
        "n": {"N": str(number * 10**30 if number == 7 else number)},
        "f": {"N": f"{number}.25"},
        **(
            {
                "tags": {"SS": ["a", "b"]},
                "deep": {"M": {"x": {"L": [{"NULL": True}, {"N": "1.50"}]}}},
            }
            if number % 3
            else {}
        ),
        **({"raw": {"B": "AAE="}, "yes": {"BOOL": True}} if number % 4 == 0 else {}),
    }
    for number in range(40)
}


@pytest.fixture
def engine() -> Any:
    with Engine.open() as made:
        create(made)
        for item in ITEMS.values():
            made.call("PutItem", {"TableName": "orders", "Item": item})
        yield made


@pytest.mark.parametrize("compression", [None, "gzip", "zstd"])
@pytest.mark.parametrize("is_file", [True, False])
def test_dynamodb_json_comes_back_as_it_was(
    engine: Engine, compression: str | None, is_file: bool, tmp_path: Path
) -> None:
    ending = {None: "", "gzip": ".gz", "zstd": ".zst"}[compression]
    out = tmp_path / (f"out.json{ending}" if is_file else "out")
    options = ExportOptions(format="dynamodb-json", compression=compression)
    report = table_export(engine_target(engine), str(out), options).run()
    assert (report.items, report.verified) == (40, True)
    with Engine.open() as other:
        create(other)
        files = [str(path) for path in out.glob("part-*")] if out.is_dir() else [str(out)]
        assert load(files, engine_target(other)).written == 40
        assert stored(other) == stored(engine)
        found = digest(list(stored(other).values()))
        assert (found.checksum, found.items) == (report.checksum, 40)


def test_plain_lines_keep_every_digit(engine: Engine, tmp_path: Path) -> None:
    table_export(engine_target(engine), str(tmp_path / "x.jsonl")).run()
    text = (tmp_path / "x.jsonl").read_text()
    rows = {row["pk"]: row for row in map(json.loads, text.splitlines())}
    assert rows["k1"] == {
        "pk": "k1",
        "n": 1,
        "f": 1.25,
        "tags": ["a", "b"],
        "deep": {"x": [None, 1.5]},
    }
    assert '"n":7000000000000000000000000000000' in text
    table_export(
        engine_target(engine), str(tmp_path / "x.json"), ExportOptions(format="jsonl")
    ).run()
    assert sorted((tmp_path / "x.json").read_text()) == sorted(text)
    assert len(rows) == 40


def test_csv_has_all_columns_in_one_header(engine: Engine, tmp_path: Path) -> None:
    for out in (tmp_path / "x.csv", tmp_path / "x.csv.gz"):
        table_export(engine_target(engine), str(out)).run()
        content = out.read_bytes()
        text = (gzip.decompress(content) if out.suffix == ".gz" else content).decode()
        rows = list(csv.DictReader(text.splitlines()))
        assert list(rows[0]) == ["pk", "deep", "f", "n", "raw", "tags", "yes"]
        assert len(rows) == 40
        found = {row["pk"]: row for row in rows}
        assert found["k4"]["tags"] == '["a","b"]'
        assert found["k0"]["raw"] == "AAE=" and found["k1"]["raw"] == ""
    assert not list(tmp_path.glob("*.parts"))


def test_parquet_has_types(engine: Engine, tmp_path: Path) -> None:
    table_export(engine_target(engine), str(tmp_path / "x.parquet")).run()
    rows = {row["pk"]: row for row in pq.read_table(tmp_path / "x.parquet").to_pylist()}
    assert (
        rows["k1"]["f"] == 1.25
        and rows["k1"]["tags"] == ["a", "b"]
        and rows["k0"]["raw"] == b"\x00\x01"
    )
    assert json.loads(rows["k1"]["deep"]) == {"x": [None, 1.5]}
    assert rows["k0"]["yes"] is True and rows["k1"]["yes"] is None
    assert int(rows["k7"]["n"]) == 7 * 10**30


def test_an_export_needs_a_place_of_its_own(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(BulkError, match="is not empty"):
        table_export(engine_target(engine), str(tmp_path)).run()
    (tmp_path / "x.jsonl").write_text("x")
    with pytest.raises(BulkError, match="exists already"):
        table_export(engine_target(engine), str(tmp_path / "x.jsonl")).run()


@settings(max_examples=25)
@given(
    deaths=st.lists(st.integers(1, 30), max_size=3),
    format_name=st.sampled_from(["jsonl", "csv", "dynamodb-json"]),
)
def test_an_export_is_taken_up_wherever_it_died(
    deaths: list[int], format_name: str, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("export")
    out = folder / "out"
    with Engine.open() as engine:
        create(engine)
        for item in ITEMS.values():
            engine.call(
                "PutItem", {"TableName": "orders", "Item": item | {"pad": {"S": "x" * 100_000}}}
            )
        options = ExportOptions(format=format_name, part_items=3, readers=2)
        begun = False
        for at in deaths:
            calls = 0

            def die(operation: str, request: Any, at: int = at) -> None:
                nonlocal calls
                calls += operation == "Scan"
                if calls >= at:
                    raise Killed

            try:
                target = target_through(Through(engine, die))
                table_export(target, str(out), _with(options, resume=begun), segments=3).run()
            except Killed:
                begun = True
            else:
                return
        report = table_export(
            target_through(Through(engine)), str(out), _with(options, resume=begun), segments=3
        ).run()
        assert report.items == 40
        manifest = json.loads((out / "_manifest.json").read_text())
        assert sorted(path.name for path in out.iterdir() if path.name.startswith("part")) == [
            part["name"] for part in manifest["files"]
        ]
        assert report.checksum == digest(list(stored(engine).values())).checksum
        assert sum(part["rows"] for part in manifest["files"]) == 40
        assert not (out / ".journal").exists() and not (out / ".spool").exists()


def _with(options: ExportOptions, **changes: Any) -> ExportOptions:
    from dataclasses import replace

    return replace(options, **changes)


def test_a_damaged_part_is_found(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stator.pipeline.bulk.export import export as exporting
    from stator.pipeline.bulk.export.parts import write_part

    def damaging(folder: Path, name: str, content: bytes, rows: int) -> Any:
        made = write_part(folder, name, content, rows)
        (folder / name).write_bytes(content[:-2] + b"x\n")
        return made

    monkeypatch.setattr(exporting, "write_part", damaging)
    with pytest.raises(DataDiffers, match="were written"):
        table_export(engine_target(engine), str(tmp_path / "out")).run()


def test_the_journal_of_another_export_is_refused(engine: Engine, tmp_path: Path) -> None:
    def die(operation: str, request: Any) -> None:
        if operation == "Scan":
            raise Killed

    with pytest.raises(Killed):
        table_export(target_through(Through(engine, die)), str(tmp_path / "out")).run()
    with pytest.raises(JournalDiffers, match="pieces was 8 and is now 3"):
        table_export(
            target_through(Through(engine)),
            str(tmp_path / "out"),
            ExportOptions(resume=True),
            segments=3,
        ).run()


def test_a_checksum_does_not_depend_on_order_or_spelling() -> None:
    one: Any = [{"a": {"N": "1.0"}, "b": {"SS": ["x", "y"]}}, {"a": {"N": "2"}}]
    two: Any = [{"a": {"N": "2e0"}}, {"b": {"SS": ["y", "x"]}, "a": {"N": "1"}}]
    assert digest(one) == digest(two) == digest(one[:1]) + digest(two[:1])
    assert digest(one) != digest([{"a": {"N": "1"}, "b": {"SS": ["x", "y"]}}, {"a": {"N": "3"}}])
    assert digest(one) != digest([*one, {"c": {"NULL": True}}])
    assert Digest.from_data(digest(one).to_data()) == digest(one)


# -- what AWS writes


ORDERS_ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/orders"


def snapshot(folder: Path, files: dict[str, list[str]], kind: str = "FULL_EXPORT") -> Path:
    """An export to S3 as AWS lays it out."""
    root = folder / "AWSDynamoDB" / "01693685827463-2d8752fd"
    (root / "data").mkdir(parents=True)
    (root / "_started").write_bytes(b"")
    lines = []
    for name, records in files.items():
        content = gzip.compress("".join(f"{record}\n" for record in records).encode())
        (root / "data" / name).write_bytes(content)
        checksum = b64encode(md5(content).digest()).decode()
        lines.append(
            {
                "itemCount": len(records),
                "md5Checksum": checksum,
                "etag": f"{md5(content).hexdigest()}-1",
                "dataFileS3Key": f"some/prefix/AWSDynamoDB/01693685827463-2d8752fd/data/{name}",
            }
        )
    listed = "".join(json.dumps(line) + "\n" for line in lines).encode()
    summary = {
        "version": "2020-06-30",
        "tableArn": ORDERS_ARN,
        "exportType": kind,
        "exportArn": f"{ORDERS_ARN}/export/01693685827463-2d8752fd",
        "itemCount": sum(map(len, files.values())),
        "outputFormat": "DYNAMODB_JSON",
    }
    told = json.dumps(summary).encode()
    for name, content in (("manifest-files", listed), ("manifest-summary", told)):
        (root / f"{name}.json").write_bytes(content)
        (root / f"{name}.md5").write_text(b64encode(md5(content).digest()).decode())
    return root


def full(folder: Path) -> Path:
    items = [json.dumps({"Item": item}) for item in ITEMS.values()]
    return snapshot(
        folder, {"aaa.json.gz": items[:15], "bbb.json.gz": items[15:], "empty.json.gz": []}
    )


def test_a_full_snapshot_is_read_and_checked(tmp_path: Path) -> None:
    root = full(tmp_path / "bucket")
    for place in (root, tmp_path / "bucket"):
        out = tmp_path / f"{place.name}.json"
        report = snapshot_export(str(place), str(out)).run()
        assert report.items == 40
        assert {
            json.loads(line)["Item"]["pk"]["S"] for line in out.read_text().splitlines()
        } == set(ITEMS)


def test_a_damaged_or_incomplete_snapshot_is_refused(tmp_path: Path) -> None:
    root = full(tmp_path / "a")
    path = root / "data" / "aaa.json.gz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(DataDiffers, match=r"aaa.* is not what AWS wrote"):
        snapshot_export(str(root), str(tmp_path / "x.jsonl")).run()
    path.unlink()
    with pytest.raises(BulkError, match="is missing"):
        snapshot_export(str(root), str(tmp_path / "y.jsonl")).run()
    root = full(tmp_path / "b")
    (root / "manifest-summary.json").write_text("{}")
    with pytest.raises(DataDiffers, match=r"manifest-summary.* is not what AWS wrote"):
        Snapshot(str(root))


def test_an_incremental_snapshot_has_puts_and_deletes(tmp_path: Path) -> None:
    def change(key: str, new: Any) -> str:
        record: dict[str, Any] = {
            "Metadata": {"WriteTimestampMicros": {"N": "1680109764000000"}},
            "Keys": {"pk": {"S": key}},
            "OldImage": {"pk": {"S": key}, "v": {"N": "1"}},
        }
        return json.dumps(record | ({} if new is None else {"NewImage": new}))

    root = snapshot(
        tmp_path,
        {"a.json.gz": [change("x", {"pk": {"S": "x"}, "v": {"N": "2"}}), change("y", None)]},
        "INCREMENTAL_EXPORT",
    )
    snapshot_export(str(root), str(tmp_path / "x.jsonl")).run()
    rows = {
        row["pk"]: row for row in map(json.loads, (tmp_path / "x.jsonl").read_text().splitlines())
    }
    assert rows == {
        "x": {"pk": "x", "v": 2, "_operation": "put", "_written_at": 1680109764000000},
        "y": {"pk": "y", "_operation": "delete", "_written_at": 1680109764000000},
    }


def test_an_incremental_snapshot_in_ion_has_puts_and_deletes(tmp_path: Path) -> None:
    head = "$ion_1_0 {Record:{Metadata:{WriteTimestampMicros:1680109764000000.},"
    records = [head + 'Keys:{pk:"x"},NewImage:{pk:"x",v:2.}}}', head + 'Keys:{pk:"y"}}}']
    root = snapshot(tmp_path, {"a.ion.gz": records}, "INCREMENTAL_EXPORT")
    snapshot_export(str(root), str(tmp_path / "x.jsonl")).run()
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert rows == [
        {"pk": "x", "v": 2, "_operation": "put", "_written_at": 1680109764000000},
        {"pk": "y", "_operation": "delete", "_written_at": 1680109764000000},
    ]


def test_a_snapshot_in_ion(tmp_path: Path) -> None:
    record = (
        '$ion_1_0 {Item:{pk:"a",n:1.50,yes:true,none:null,raw:{{AAE=}},'
        'tags:$dynamodb_SS::["x","y"],'
        'nums:$dynamodb_NS::[1.,2.5],deep:{l:["z",3.]}}}'
    )
    root = snapshot(tmp_path, {"a.ion.gz": [record]})
    snapshot_export(str(root), str(tmp_path / "x.json")).run()
    item = json.loads((tmp_path / "x.json").read_text())["Item"]
    assert item == {
        "pk": {"S": "a"},
        "n": {"N": "1.5"},
        "yes": {"BOOL": True},
        "none": {"NULL": True},
        "raw": {"B": "AAE="},
        "tags": {"SS": ["x", "y"]},
        "nums": {"NS": ["1", "2.5"]},
        "deep": {"M": {"l": {"L": [{"S": "z"}, {"N": "3"}]}}},
    }


def test_s3_as_source_and_as_destination(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weed").mkdir()
    with seaweedfs(tmp_path / "weed") as client:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", client.meta.endpoint_url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.chdir(tmp_path)
        report = table_export(
            engine_target(engine),
            "s3://blobs/out",
            ExportOptions(format="dynamodb-json", compression="gzip"),
        ).run()
        assert report.manifest == "s3://blobs/out/_manifest.json"
        told = json.loads(
            client.get_object(Bucket="blobs", Key="out/_manifest.json")["Body"].read()
        )
        assert told["items"] == 40
        assert not list(tmp_path.glob("stator-export*"))
        again = ExportOptions(format="dynamodb-json", compression="gzip", resume=True)
        finished = table_export(engine_target(engine), "s3://blobs/out", again).run()
        assert (finished.already_complete, finished.items) == (True, 40)

        def die(operation: str, request: Any) -> None:
            if operation == "Scan":
                raise Killed

        with pytest.raises(Killed):  # a second export to the same place, over the first
            target = target_through(Through(engine, die), place="memory")
            table_export(target, "s3://blobs/out", _with(again, resume=False)).run()
        resumed = table_export(engine_target(engine), "s3://blobs/out", again).run()
        assert (resumed.already_complete, resumed.items) == (False, 40)
        with Engine.open() as other:
            create(other)
            assert load("s3://blobs/out/part-*.json.gz", engine_target(other)).written == 40
            assert stored(other) == stored(engine)
            assert not list(tmp_path.glob("*.journal"))
        root = full(tmp_path / "full")
        for path in (path for path in root.rglob("*") if path.is_file()):
            client.put_object(
                Bucket="blobs",
                Key=f"p/AWSDynamoDB/x/{path.relative_to(root).as_posix()}",
                Body=path.read_bytes(),
            )
        assert snapshot_export("s3://blobs/p/", str(tmp_path / "s.jsonl")).run().items == 40
        with pytest.raises(BulkError, match="s3://nothing-here/x: "):
            snapshot_export("s3://nothing-here/x", str(tmp_path / "t.jsonl"))


def test_an_empty_table_becomes_an_empty_parquet_file(tmp_path: Path) -> None:
    with Engine.open() as empty:
        create(empty)
        report = table_export(engine_target(empty), str(tmp_path / "x.parquet")).run()
        assert (report.items, report.files, report.verified) == (0, 1, True)
        assert load(str(tmp_path / "x.parquet"), engine_target(empty)).read == 0
