"""Tables as Parquet: one schema in all files, every digit, and the way back into a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from stator import Design, Entity, Query, connect, find, ident, large, packed, read, stored, ttl
from stator.engine import Engine
from stator.errors import BulkError, ConfigurationError
from stator.pipeline.bulk.export.export import ExportOptions
from stator.pipeline.bulk.export.sources import table_export
from stator.pipeline.bulk.load.load import LoadOptions, load
from stator.pipeline.bulk.targets import BulkTarget

from .stock import create, engine_target, write_lines

LONG = "12345678901234567890123456789.123456789"
FOLDER = ExportOptions(format="parquet", part_items=10, readers=1)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Size:
    width: float
    height: float
    made: datetime | None = None


class Part(Entity):
    part_id: str = ident()
    owner: str = ident()
    d: Decimal
    f: float
    count: int
    ok: bool
    raw: bytes
    at: datetime
    day: date
    clock: time
    uid: UUID
    colour: Colour
    took: timedelta
    size: Size
    names: list[str]
    prices: list[Decimal]
    tags: set[str] = field(default_factory=set)
    numbers: frozenset[int] = frozenset()
    samples: Annotated[list[float], packed("float64")] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    pair: tuple[int, str] = (0, "")
    temperature: float | None = stored("t", default=None)
    note: str | None = None
    until: datetime | None = ttl(default=None)


class Other(Entity):
    other_id: str = ident()
    owner: str


@read()
def parts_of(owner: str) -> Query[Part]:
    return find(Part).where(Part.owner == owner)


@read()
def others_of(owner: str) -> Query[Other]:
    return find(Other).where(Other.owner == owner)


design = Design("parts", [Part, Other], [parts_of, others_of])
DECIMALS = [Decimal(LONG), Decimal(5), Decimal("0.1")]


def part(number: int) -> Part:
    return Part(
        part_id=f"p{number}",
        owner=f"u{number % 3}",
        d=DECIMALS[0 if number == 7 else 1 + number % 2],
        f=float(number) if number else 0.1,
        count=number,
        ok=number % 2 == 0,
        raw=bytes([number]),
        at=datetime(2026, 1, 1, 10, 0, number, 123456 * (number % 2), tzinfo=UTC),
        day=date(2026, 1, 1 + number % 28),
        clock=time(10, number % 60),
        uid=UUID(int=number),
        colour=Colour.RED if number % 2 else Colour.BLUE,
        took=timedelta(microseconds=number),
        size=Size(1.0, number / 4, datetime(2026, 1, 1, tzinfo=UTC) if number % 2 else None),
        names=["a"] * (number % 3),
        prices=[Decimal("1.10"), Decimal(LONG)],
        tags={"x", "y"} if number % 2 else set(),
        numbers=frozenset({number, 5}),
        samples=[number / 8, 1.0],
        extra={"x": {"y": [number]}} if number == 3 else {},
        pair=(number, "ä"),
        temperature=None if number % 2 else 20.5,
        note="late" if number == 59 else None,
        until=datetime(2030, 1, 1, tzinfo=UTC) if number % 5 == 0 else None,
    )


PARTS = {f"p{number}": part(number) for number in range(60)}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open() as made:
        with connect(design, made) as db:
            for each in PARTS.values():
                db.put(each)
            db.put(Other(other_id="x", owner="u1"))
        yield made


def target(engine: Engine) -> BulkTarget:
    return BulkTarget.open(engine, design=design, entity=Part)


def plain_engine(values: list[str]) -> Engine:
    made = Engine.open()
    create(made)
    for number, value in enumerate(values):
        item = {"pk": {"S": f"k{number}"}, "d": {"N": value}}
        if number == 3:
            item["seldom"] = {"S": "x"}
        made.call("PutItem", {"TableName": "orders", "Item": item})
    return made


@pytest.mark.parametrize("segments", [1, 8])
def test_one_file_keeps_every_digit(segments: int, tmp_path: Path) -> None:
    values = [LONG, "5", "0.1", *map(str, range(100, 140))]
    with plain_engine(values) as engine:
        out = tmp_path / "x.parquet"
        job = table_export(engine_target(engine), str(out), segments=segments)
        assert job.run().verified
        assert sorted(pq.read_table(out)["d"].to_pylist()) == sorted(map(Decimal, values))


def test_one_file_of_an_entity_keeps_every_digit(engine: Engine, tmp_path: Path) -> None:
    out = tmp_path / "x.parquet"
    assert table_export(target(engine), str(out)).run().verified
    rows = {row["part_id"]: row for row in pq.read_table(out).to_pylist()}
    assert {key: row["d"] for key, row in rows.items()} == {
        key: each.d for key, each in PARTS.items()
    }


def schemas(folder: Path) -> list[Any]:
    return [pq.read_schema(path) for path in sorted(folder.rglob("part-*.parquet"))]


def test_the_parts_of_a_table_have_one_schema(tmp_path: Path) -> None:
    with plain_engine([LONG, "5", "0.1", *map(str, range(100, 140))]) as engine:
        table_export(engine_target(engine), str(tmp_path / "out"), FOLDER).run()
    found = schemas(tmp_path / "out")
    assert len(found) > 3 and all(each == found[0] for each in found)
    assert {each.name: str(each.type) for each in found[0]} == {
        "pk": "string",
        "d": "decimal128(38, 9)",
        "seldom": "string",
    }
    assert ds.dataset(tmp_path / "out").to_table().num_rows == 43
    assert pq.read_table(tmp_path / "out").num_rows == 43
    pandas = pytest.importorskip("pandas")
    assert len(pandas.read_parquet(tmp_path / "out")) == 43


def test_the_parts_of_an_entity_have_the_types_of_its_fields(
    engine: Engine, tmp_path: Path
) -> None:
    table_export(target(engine), str(tmp_path / "out"), FOLDER).run()
    found = schemas(tmp_path / "out")
    assert len(found) > 1 and all(each == found[0] for each in found)
    assert {each.name: str(each.type) for each in found[0]} == {
        "part_id": "string",
        "owner": "string",
        "d": "decimal128(38, 9)",
        "f": "double",
        "count": "int64",
        "ok": "bool",
        "raw": "binary",
        "at": "timestamp[us, tz=UTC]",
        "day": "date32[day]",
        "clock": "time64[us]",
        "uid": "string",
        "colour": "string",
        "took": "int64",
        "size": "struct<width: double, height: double, made: timestamp[us, tz=UTC]>",
        "names": "list<element: string>",
        "prices": "list<element: string>",
        "tags": "list<element: string>",
        "numbers": "list<element: int64>",
        "samples": "list<element: double>",
        "extra": "string",
        "pair": "string",
        "temperature": "double",
        "note": "string",
        "until": "timestamp[us, tz=UTC]",
    }
    assert list(found[0].names)[:3] == ["part_id", "owner", "d"]
    assert ds.dataset(tmp_path / "out" / "entity=Part").to_table().num_rows == 60
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(tmp_path / "out" / "entity=Part")
    assert len(frame) == 60 and str(frame["at"].dtype).startswith("datetime64")
    assert len(pandas.read_parquet(tmp_path / "out")) == 60


@pytest.mark.parametrize(
    ("out", "form"),
    [
        ("x.parquet", None),
        ("out", "parquet"),
        ("x.csv", None),
        ("x.jsonl", None),
        ("lines", "jsonl"),
        ("items", "dynamodb-json"),
    ],
)
def test_what_an_entity_exports_it_loads(
    out: str, form: str | None, engine: Engine, tmp_path: Path
) -> None:
    options = ExportOptions(format=form, part_items=10)
    table_export(target(engine), str(tmp_path / out), options).run()
    with Engine.open() as other:
        loading = LoadOptions(format=form, dead_letters=tmp_path / "bad.jsonl")
        report = load(str(tmp_path / out), target(other), loading)
        assert report.failed == 0, (tmp_path / "bad.jsonl").read_text().splitlines()[0]
        assert report.written == 60
        with connect(design, other) as db:
            for key, each in PARTS.items():
                assert db.get(Part, part_id=key, owner=each.owner) == each


def test_a_value_that_does_not_fit_its_field_makes_the_column_wider(
    engine: Engine, tmp_path: Path
) -> None:
    table = target(engine).table
    [item] = [
        each
        for each in engine.call("Scan", {"TableName": table})["Items"]
        if each.get("part_id") == {"S": "p4"}
    ]
    odd = {"f": {"N": "0.10000000000000000000000001"}, "at": {"S": "yesterday"}, "new": {"N": "7"}}
    engine.call("PutItem", {"TableName": table, "Item": item | odd})
    assert table_export(target(engine), str(tmp_path / "x.parquet")).run().verified
    rows = {row["part_id"]: row for row in pq.read_table(tmp_path / "x.parquet").to_pylist()}
    assert rows["p4"]["f"] == Decimal("0.10000000000000000000000001")
    assert rows["p4"]["at"] == "yesterday" and rows["p5"]["at"] == "2026-01-01T10:00:05.123456Z"
    assert rows["p4"]["new"] == 7 and rows["p5"]["new"] is None
    assert rows["p5"]["count"] == 5


def test_every_field_is_a_column_of_an_empty_export(tmp_path: Path) -> None:
    with Engine.open() as empty:
        table_export(target(empty), str(tmp_path / "x.parquet")).run()
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert str(schema.field("at").type) == "timestamp[us, tz=UTC]" and "PK" not in schema.names


def test_each_entity_of_a_design_has_a_schema_of_its_own(engine: Engine, tmp_path: Path) -> None:
    for name in (table.name for table in design.plan().tables):
        everything = BulkTarget.open(engine, name, design=design)
        table_export(everything, str(tmp_path / name), FOLDER).run()
    [folder] = tmp_path.rglob("entity=Other")
    assert pq.read_schema(next(folder.glob("*.parquet"))).names == ["other_id", "owner"]


def test_the_journal_of_an_earlier_parquet_export_is_refused(tmp_path: Path) -> None:
    with plain_engine(["1"]) as engine:
        job = table_export(engine_target(engine), str(tmp_path / "out"), FOLDER)
        job.to.create_folder()
        part_file = {"name": "part-000-00000.parquet", "rows": 1, "size_bytes": 1, "md5": "x"}
        place = {"pieces": {}, "files": [part_file], "columns": [], "units": 1.0, "run": "r"}
        place["digest"] = {"items": 1, "checksum": "0"}
        state = {"place": place, "counts": {}, "dead_bytes": 0, "ahead": {}}
        journal = {"stator_journal": 2, "job": job._journal.job, "state": state}
        job.journal_path.write_text(json.dumps(journal))
        with pytest.raises(BulkError, match="earlier version of Stator"):
            table_export(
                engine_target(engine),
                str(tmp_path / "out"),
                ExportOptions(format="parquet", part_items=10, readers=1, resume=True),
            ).run()


# -- manifests


def test_an_export_with_a_manifest_of_the_earlier_name_is_complete(tmp_path: Path) -> None:
    resume = ExportOptions(format="jsonl", resume=True)
    with plain_engine(["1"]) as engine:
        for out, earlier in (("out", "out/manifest.json"), ("x.jsonl", "x.jsonl.manifest.json")):
            report = table_export(engine_target(engine), str(tmp_path / out), resume).run()
            Path(report.manifest).rename(tmp_path / earlier)
            again = table_export(engine_target(engine), str(tmp_path / out), resume).run()
            assert again.already_complete and not Path(report.manifest).exists()
        with pytest.raises(BulkError, match="not empty") as refused:
            table_export(engine_target(engine), str(tmp_path / "out")).run()
        assert "finished export" in str(refused.value.hint)


@pytest.mark.parametrize("name", ["_manifest.json", "manifest.json"])
def test_the_manifest_in_a_folder_is_not_loaded(name: str, tmp_path: Path) -> None:
    with plain_engine(["1", "2"]) as engine:
        options = ExportOptions(format="jsonl")
        report = table_export(engine_target(engine), str(tmp_path / "out"), options).run()
        Path(report.manifest).rename(tmp_path / "out" / name)
        assert load(str(tmp_path / "out"), engine_target(engine)).read == 2


def test_a_file_of_the_users_named_manifest_is_loaded(tmp_path: Path) -> None:
    write_lines(tmp_path / "manifest.json", [{"pk": "a"}])
    with plain_engine([]) as engine:
        assert load(str(tmp_path), engine_target(engine), LoadOptions(keep_journal=False)).read == 1


# -- columns


def test_all_unknown_columns_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("part_id,ownr,zz,f\n1,2,3,4\n")
    with Engine.open() as engine, pytest.raises(ConfigurationError) as refused:
        load(str(path), target(engine))
    assert "x.csv" in refused.value.message
    assert "ownr (did you mean owner?), zz" in refused.value.message
    assert "--map ownr= --map zz=" in str(refused.value.hint)


def test_all_missing_fields_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("part_id,owner\n1,2\n")
    with Engine.open() as engine, pytest.raises(ConfigurationError) as refused:
        load(str(path), target(engine))
    assert "d, f, count, ok" in refused.value.message and "x.csv" in refused.value.message


# -- large values


class Document(Entity):
    document_id: str = ident()
    body: str = large(compress="zstd", offload_over_bytes=2000)


@read()
def document(document_id: str) -> Query[Document]:
    return find(Document).where(Document.document_id == document_id)


@pytest.mark.parametrize("out", ["x.parquet", "x.jsonl"])
def test_large_values_are_unpacked(out: str, tmp_path: Path) -> None:
    documents, blobs = Design("documents", [Document], [document]), str(tmp_path / "blobs")
    random = "".join(sha256(bytes([number])).hexdigest() for number in range(100))
    bodies = {"short": "x", "packed": "x" * 5000, "offloaded": random}
    with Engine.open() as engine, connect(documents, engine, blobs=blobs) as db:
        for name, body in bodies.items():
            db.put(Document(document_id=name, body=body))
        with (
            BulkTarget.open(engine, design=documents, entity=Document) as storeless,
            pytest.raises(ConfigurationError, match="blob store"),
        ):
            table_export(storeless, str(tmp_path / f"no-{out}")).run()
        with BulkTarget.open(engine, design=documents, entity=Document, blobs=blobs) as found:
            table_export(found, str(tmp_path / out)).run()
    with Engine.open() as other, connect(documents, other, blobs=blobs) as db:
        with BulkTarget.open(other, design=documents, entity=Document, blobs=blobs) as copy:
            assert load(str(tmp_path / out), copy).failed == 0
        read_back = {name: db.get(Document, document_id=name) for name in bodies}
        assert {name: each and each.body for name, each in read_back.items()} == bodies
