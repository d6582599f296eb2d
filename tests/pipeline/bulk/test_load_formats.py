"""Whatever the format, the same rows become the same items."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from dataclasses import field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stator import Design, Entity, connect, ident
from stator.bulk import BulkTarget, ExportOptions, table_export
from stator.engine import Engine
from stator.errors import ConfigurationError
from stator.pipeline.bulk.load.inputs import find_inputs
from stator.pipeline.bulk.load.load import LoadOptions, LoadPlan, load
from stator.pipeline.bulk.load.readers import read

from .stock import ITEMS, ROWS, TABLE, create, engine_target, packed, stored, write_lines


def as_csv(path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0].keys())
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def as_parquet(path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=7)
    return path


def as_arrow(path: Path) -> Path:
    table = pa.Table.from_pylist(ROWS)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=11)
    return path


def as_arrow_stream(path: Path) -> Path:
    table = pa.Table.from_pylist(ROWS)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return path


MAKERS: dict[str, Any] = {
    "orders.csv": as_csv,
    "orders.jsonl": lambda path: write_lines(path, ROWS),
    "items.jsonl": lambda path: write_lines(path, ITEMS.values()),
    "export.json": lambda path: write_lines(path, ({"Item": item} for item in ITEMS.values())),
    "orders.parquet": as_parquet,
    "orders.arrow": as_arrow,
    "stream.arrows": as_arrow_stream,
}


@pytest.mark.parametrize("compression", [None, "gzip", "zstd"])
@pytest.mark.parametrize("name", MAKERS)
def test_every_format_gives_the_same_items(
    name: str, compression: str | None, tmp_path: Path
) -> None:
    path = MAKERS[name](tmp_path / name)
    if compression is not None:
        path = packed(path, compression)
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        report = load(str(path), target)
        assert (report.read, report.written, report.failed) == (60, 60, 0)
        assert stored(engine) == ITEMS


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_compressed_files_put_one_behind_the_other_are_one(
    compression: str, tmp_path: Path
) -> None:
    parts = [
        packed(write_lines(tmp_path / f"{at}.jsonl", ROWS[at * 20 : at * 20 + 20]), compression)
        for at in range(3)
    ]
    whole = tmp_path / f"whole.jsonl{parts[0].suffix}"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        assert load(str(whole), target).written == 60
        assert stored(engine) == ITEMS


def test_globs_folders_and_several_files_are_loaded_together(tmp_path: Path) -> None:
    for part in range(3):
        write_lines(tmp_path / f"part-{part}.jsonl", ROWS[part * 20 : part * 20 + 20])
    for given in (str(tmp_path / "part-*.jsonl"), str(tmp_path)):
        with Engine.open() as engine, engine_target(engine) as target:
            create(engine)
            assert load(given, target).written == 60
            assert stored(engine) == ITEMS


def test_stdin_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    content = io.BytesIO(write_lines(tmp_path / "x.jsonl", ROWS).read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        assert load("-", target, LoadOptions(format="jsonl")).written == 60
        assert stored(engine) == ITEMS


def test_csv_types_are_inferred_and_the_tables_keys_win(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("pk,zip,count,flag,empty,mixed\n1,00123,7,true,,1\n2,99999,-1.5e3,False,,x\n")
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        plan = LoadPlan(str(path), target)
        assert {each.target: (each.kind, each.why) for each in plan.types} == {
            "pk": ("S", "key"),
            "zip": ("S", "inferred"),
            "count": ("N", "inferred"),
            "flag": ("BOOL", "inferred"),
            "empty": ("S", "inferred"),
            "mixed": ("S", "inferred"),
        }
        plan.run()
        assert stored(engine)["2"] == {
            "pk": {"S": "2"},
            "zip": {"S": "99999"},
            "count": {"N": "-1500"},
            "flag": {"BOOL": False},
            "mixed": {"S": "x"},
        }


def test_a_number_key_takes_text_and_a_text_key_takes_numbers(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "x.jsonl", [{"pk": "7", "sk": "1"}, {"pk": 8, "sk": 2}])
    pq.write_table(pa.table({"pk": [9, 10], "sk": ["3", "4"]}), tmp_path / "x.parquet")
    for kind, keys in (("N", {"7", "8", "9", "10"}), ("S", {"7", "8", "9", "10"})):
        with Engine.open() as engine, engine_target(engine) as target:
            create(engine, sort="sk", kind=kind)
            assert load([str(lines), str(tmp_path / "x.parquet")], target).written == 4
            assert set(stored(engine)) == keys


def test_numbers_keep_all_their_digits(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"pk":"a","big":12345678901234567890123456789012345678,'
        '"small":0.12345678901234567890123}\n'
    )
    pq.write_table(
        pa.table(
            {
                "pk": ["b"],
                "big": pa.array([Decimal("123456789012345678901234567890.12")]),
                "f": pa.array([0.1], pa.float32()),
            }
        ),
        tmp_path / "x.parquet",
    )
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        load([str(path), str(tmp_path / "x.parquet")], target)
        found = stored(engine)
        assert found["a"]["big"] == {"N": "12345678901234567890123456789012345678"}
        assert found["a"]["small"] == {"N": "0.12345678901234567890123"}
        assert found["b"]["big"] == {"N": "123456789012345678901234567890.12"}
        assert found["b"]["f"] == {"N": "0.1"}


def test_nested_values_missing_values_and_bytes(tmp_path: Path) -> None:
    rows = [
        {"pk": "a", "tags": ["x", 1, None], "deep": {"n": 1.5}, "raw": b"\x00\x01"},
        {"pk": "b", "tags": None},
    ]
    pq.write_table(
        pa.table(
            {
                "pk": ["a", "b"],
                "tags": pa.array([["x", "y"], None]),
                "deep": pa.array([{"n": 1.5}, None]),
                "raw": pa.array([b"\x00\x01", None]),
                "at": pa.array([0, None], pa.timestamp("us", "UTC")),
            }
        ),
        tmp_path / "x.parquet",
    )
    assert rows
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        load(str(tmp_path / "x.parquet"), target)
        found = stored(engine)
        assert found["a"] == {
            "pk": {"S": "a"},
            "tags": {"L": [{"S": "x"}, {"S": "y"}]},
            "deep": {"M": {"n": {"N": "1.5"}}},
            "raw": {"B": "AAE="},
            "at": {"S": "1970-01-01T00:00:00.000000Z"},
        }
        assert found["b"] == {"pk": {"S": "b"}}


def test_fields_are_renamed_and_dropped_and_types_given(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('id,secret,tags,deep\na,x,"p,q","{""n"": 1}"\n')
    options = LoadOptions(map=("id=pk", "secret="), types=("tags=SS", "deep=M"))
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        load(str(path), target, options)
        assert stored(engine) == {
            "a": {"pk": {"S": "a"}, "tags": {"SS": ["p", "q"]}, "deep": {"M": {"n": {"N": "1"}}}}
        }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (LoadOptions(map=("total=pk2",)), "the table's key needs pk"),
        (LoadOptions(map=("id=pk", "nothing=x")), "--map names nothing"),
        (LoadOptions(map=("id=pk", "total=pk")), "two fields to pk"),
        (LoadOptions(map=("id",)), "cannot be parsed"),
        (LoadOptions(map=("id=pk",), types=("total=Z",)), "cannot be parsed"),
        (LoadOptions(map=("id=pk",), condition="total >"), "cannot be parsed"),
    ],
)
def test_what_cannot_be_right_is_refused_before_anything_is_written(
    options: LoadOptions, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,total\na,1\n")
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        with pytest.raises(ConfigurationError, match=message):
            load(str(path), target, options)
        assert stored(engine) == {}


def test_a_missing_table_or_file_or_format_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"x")
    with Engine.open() as engine, engine_target(engine) as target:
        with pytest.raises(ConfigurationError, match="no table orders"):
            load(str(write_lines(tmp_path / "x.jsonl", ROWS)), target)
        create(engine)
        with pytest.raises(ConfigurationError, match="does not exist"):
            load(str(tmp_path / "y.jsonl"), target)
        with pytest.raises(ConfigurationError, match=r"the format of .* is unknown"):
            load(str(tmp_path / "data.bin"), target)
        with pytest.raises(ConfigurationError, match="is not parquet"):
            load(str(tmp_path / "data.bin"), target, LoadOptions(format="parquet"))
    assert TABLE


def test_a_parquet_file_is_not_kept_in_memory(tmp_path: Path) -> None:
    """Of forty row groups one or two are there at a time, whatever the file has."""
    path = tmp_path / "x.parquet"
    rows, groups = 1000, 40
    schema = pa.schema([("k", pa.string()), ("noise", pa.binary())])
    with pq.ParquetWriter(path, schema) as writer:
        for group in range(groups):
            names = [f"{group}-{row}" for row in range(rows)]
            noise = [os.urandom(500) for _ in range(rows)]
            writer.write_table(pa.table({"k": names, "noise": noise}, schema=schema))
    [source] = find_inputs([str(path)])
    before, most, seen = pa.total_allocated_bytes(), 0, 0
    for block in read(source):
        seen += block.count
        most = max(most, pa.total_allocated_bytes() - before)
    assert seen == rows * groups
    assert path.stat().st_size > 20_000_000 and most < 5_000_000


@pytest.mark.parametrize("before", ["\n", "\r\n\r\n", "\ufeff\n\n", "\n" * 5_000])
def test_blank_lines_of_csv_are_skipped_before_the_header_too(before: str, tmp_path: Path) -> None:
    whole = as_csv(tmp_path / "whole.csv").read_text()
    header, first, rest = whole.split("\n", 2)
    path = tmp_path / "orders.csv"
    path.write_bytes(f"{before}{header}\n\n{first}\n\n\n{rest}\n\n".encode())
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        report = load(str(path), target)
        assert (report.read, report.written, report.failed) == (len(ROWS), len(ROWS), 0)
        assert stored(engine) == ITEMS


@pytest.mark.parametrize("content", ["", "\n", "\n\n\r\n"])
def test_a_file_of_blank_lines_has_no_header(content: str, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(content)
    with Engine.open() as engine, engine_target(engine) as target:
        create(engine)
        with pytest.raises(ConfigurationError, match="has no header line"):
            load(str(tmp_path / "orders.csv"), target)


class Pupil(Entity):
    pupil_id: str = ident()
    name: str
    marks: list[int] = field(default_factory=list)


@pytest.mark.parametrize("wrapped", [True, False])
def test_an_export_in_dynamodb_json_loads_back_as_entities(tmp_path: Path, wrapped: bool) -> None:
    school = Design("school", [Pupil])
    pupils = [Pupil(pupil_id="1", name="Ann", marks=[1]), Pupil(pupil_id="2", name="Bob")]
    with Engine.open() as engine:
        connect(school, engine).write_many(pupils)
        with BulkTarget.open(engine, design=school, entity=Pupil) as source:
            table_export(source, str(tmp_path / "out"), ExportOptions(format="dynamodb-json")).run()
    if not wrapped:
        for path in (tmp_path / "out").rglob("part*"):
            items = [json.loads(line)["Item"] for line in path.read_text().splitlines()]
            path.write_text("".join(json.dumps(item) + "\n" for item in items))
    with Engine.open() as engine:
        connect(school, engine)
        with BulkTarget.open(engine, design=school, entity=Pupil) as target:
            report = load(str(tmp_path / "out"), target, LoadOptions())
        assert (report.written, report.failed) == (2, 0)
        found = connect(school, engine).scan(Pupil, allow=True)
        assert sorted(found, key=lambda each: each.pupil_id) == pupils
