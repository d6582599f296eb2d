"""Parquet files in a folder and in SeaweedFS: each change once, despite crashes in a merge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from stator import Db
from stator.clock import VirtualClock
from stator.errors import ConfigurationError, LeaseLost
from stator.pipeline import Change, StreamApp, WorkerOptions
from stator.pipeline.sinks.parquet import ParquetSink, read_changes
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope
from stator.tables.blobs.stores import FolderStore, S3Store
from stator.tables.work import Work

from ...s3_servers import seaweedfs
from ..shop import Customer, Order, shop
from .worker_steps import (
    ORDERS,
    QUICK,
    ROUNDS,
    WRITTEN,
    Crashing,
    eventually,
    parked,
    work,
    write_orders,
)

BATCHES = WorkerOptions(
    **{**{name: getattr(QUICK, name) for name in QUICK.__slots__}, "batch_records": 10}
)


def totals(rows: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in sorted(rows, key=lambda row: int(row["_sequence"])):
        found.setdefault(row["order_id"], []).append(row["total"])
    return found


def merged(folder: Path) -> list[dict[str, Any]]:
    """The rows that a reader of the data files sees."""
    return [
        row
        for path in sorted(folder.glob("data/**/*.parquet"))
        for row in parquet.ParquetFile(path).read().to_pylist()
    ]


def staged(folder: Path) -> list[Path]:
    return sorted(folder.glob("staged/**/*.gz"))


def test_batches_are_staged_at_once_and_merged_when_due(
    app: StreamApp, db: Db, tmp_path: Path
) -> None:
    sink = ParquetSink("archive", tmp_path)
    app.add(sink)
    write_orders(db)
    work(app, db, BATCHES)
    assert len(staged(tmp_path)) > 2 and merged(tmp_path) == []
    assert totals(read_changes(tmp_path)) == WRITTEN
    assert db.run(sink.merge(db.context, app.name)) == ORDERS * ROUNDS
    assert staged(tmp_path) == []
    assert totals(merged(tmp_path)) == totals(read_changes(tmp_path)) == WRITTEN
    assert db.run(sink.merge(db.context, app.name)) == 0


def test_size_makes_a_merge_due(app: StreamApp, db: Db, tmp_path: Path) -> None:
    app.add(ParquetSink("archive", tmp_path, target_bytes=2000))
    write_orders(db)
    work(app, db, BATCHES)
    files = list(tmp_path.glob("data/**/*.parquet"))
    assert len(files) >= 2
    assert totals(read_changes(tmp_path)) == WRITTEN


def test_age_makes_a_merge_due(app: StreamApp, db: Db, tmp_path: Path) -> None:
    app.add(ParquetSink("archive", tmp_path, roll_seconds=0))
    write_orders(db)
    work(app, db, BATCHES)
    assert staged(tmp_path) == []
    assert totals(merged(tmp_path)) == WRITTEN


def test_rows_have_the_entitys_fields_as_columns(app: StreamApp, db: Db, tmp_path: Path) -> None:
    app.add(ParquetSink("archive", tmp_path, roll_seconds=0))
    db.put(Order(order_id="o1", total=5))
    db.put(Customer(customer_id="c1", name="Anna"))
    db.delete(Order, order_id="o1")
    work(app, db)
    [orders] = tmp_path.glob("data/entity=Order/date=*/*.parquet")
    [customers] = tmp_path.glob("data/entity=Customer/date=*/*.parquet")
    inserted, removed = parquet.ParquetFile(orders).read().to_pylist()
    assert (inserted["_kind"], inserted["order_id"], inserted["total"], inserted["_old"]) == (
        "INSERT",
        "o1",
        5,
        None,
    )
    assert (removed["_kind"], removed["order_id"], removed["total"]) == ("REMOVE", "o1", 5)
    assert json.loads(removed["_old"])["total"] == 5
    assert parquet.ParquetFile(customers).read().to_pylist()[0]["name"] == "Anna"
    [manifest] = tmp_path.glob("manifests/*/*.json")
    told = json.loads(manifest.read_text())
    assert told["rows"] == 3 and len(told["files"]) == 2 and len(told["replaces"]) >= 1


def test_a_transform_returns_the_columns(app: StreamApp, db: Db, tmp_path: Path) -> None:
    def row(change: Change[Order]) -> Any:
        assert change.new is not None
        return {
            "order": change.new.order_id,
            "half": change.new.total / 2,
            "exact": Decimal("0.10"),
        }

    app.add(ParquetSink("archive", tmp_path, roll_seconds=0, only=Order, transform=row))
    db.put(Order(order_id="o1", total=5))
    db.put(Customer(customer_id="c1", name="Anna"))
    work(app, db)
    [found] = merged(tmp_path)
    assert (found["order"], found["half"], float(found["exact"])) == ("o1", 2.5, 0.1)
    assert "total" not in found


def test_a_transform_that_returns_no_row_parks_its_item(
    app: StreamApp, db: Db, tmp_path: Path
) -> None:
    app.add(
        ParquetSink(
            "archive",
            tmp_path,
            transform=lambda change: "text" if change.new and change.new.total == 1 else {"a": 1},
        )
    )
    db.put(Order(order_id="bad", total=1))
    db.put(Order(order_id="good", total=2))
    work(app, db)
    assert len(list(read_changes(tmp_path))) == 1
    [key] = parked(app, db)
    assert "bad" in key.key and "not a dictionary" in key.error


class MergedThenCrashed(Crashing):
    """A sink whose staged files are merged before its worker dies."""

    def handle(self, records: Any, scope: HandlerScope) -> Work[list[HandlerFailure]]:
        try:
            return (yield from super().handle(records, scope))
        except LeaseLost:
            assert isinstance(self.sink, ParquetSink)
            yield from self.sink.merge(scope.context, scope.group)
            raise


@pytest.mark.parametrize("crashing", [Crashing, MergedThenCrashed])
def test_changes_staged_again_after_a_crash_are_read_once(
    app: StreamApp, db: Db, tmp_path: Path, crashing: type[Crashing]
) -> None:
    """This includes a first copy that was merged before the second was staged."""
    sink = ParquetSink("archive", tmp_path)
    app.add(crashing(sink, crashes=2))
    write_orders(db)
    work(app, db, BATCHES)
    db.run(sink.merge(db.context, app.name))
    read = [json.loads(path.read_text()) for path in tmp_path.glob("manifests/*/*.json")]
    assert len(read) >= (2 if crashing is MergedThenCrashed else 1)
    assert sum(each["rows"] for each in read) == ORDERS * ROUNDS
    assert totals(merged(tmp_path)) == WRITTEN


class Failing(FolderStore):
    """A store whose process dies at its nth write, or at the deletion after it."""

    left = 10**9

    def put(self, key: str, content: bytes) -> None:
        self._count()
        super().put(key, content)

    def delete(self, keys: Any) -> None:
        for key in keys:
            self._count()
            super().delete([key])

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


def test_a_merge_cut_off_anywhere_is_finished_by_another_worker(
    app: StreamApp, db: Db, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write_orders(db)
    db.put(Customer(customer_id="c1", name="Anna"))
    steps = 0
    is_cut_off = True
    while is_cut_off:
        folder = tmp_path_factory.mktemp("merge")
        store = Failing(folder)
        working = StreamApp(app.design, f"cut-{steps}")
        sink = ParquetSink("archive", store, only=Order)
        working.add(sink)
        work(working, db, BATCHES)
        store.left = steps
        try:
            db.run(sink.merge(db.context, working.name))
            is_cut_off = False
        except KeyboardInterrupt:
            pass
        store.left = 10**9
        seen = [row["_id"] for row in merged(folder)]
        assert len(seen) == len(set(seen))
        assert totals(read_changes(folder)) == WRITTEN
        other = ParquetSink("archive", folder)
        assert (
            not is_cut_off or db.run(other.merge(db.context, working.name)) == 0
        )  # the owner may still be alive
        db.context.clock = VirtualClock(db.context.now() + 1000)
        db.run(other.merge(db.context, working.name))
        assert staged(folder) == []
        assert totals(merged(folder)) == WRITTEN
        steps += 1
    assert steps > 5


class Away(FolderStore):
    left = 12

    def put(self, key: str, content: bytes) -> None:
        if self.left:
            self.left -= 1
            raise OSError(28, "No space left on device")
        super().put(key, content)


def test_the_sink_waits_while_the_disk_is_full(app: StreamApp, db: Db, tmp_path: Path) -> None:
    app.add(ParquetSink("archive", Away(tmp_path), roll_seconds=0))
    write_orders(db)
    work(app, db, BATCHES)
    assert totals(read_changes(tmp_path)) == WRITTEN
    assert parked(app, db) == []


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with seaweedfs(tmp_path_factory.mktemp("weed")) as client:
        yield client


def test_files_can_be_in_s3(app: StreamApp, db: Db, s3: Any) -> None:
    store = S3Store("blobs", "archive", client=s3)
    sink = ParquetSink("archive", store)
    app.add(Crashing(sink, crashes=1))
    write_orders(db)
    work(app, db, BATCHES)
    assert totals(read_changes(store)) == WRITTEN
    assert db.run(sink.merge(db.context, app.name)) == ORDERS * ROUNDS
    assert totals(read_changes(store)) == WRITTEN
    assert list(store.keys("staged/")) == []


def test_invalid_arguments_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="columns"):
        ParquetSink("archive", tmp_path, images="dynamodb")
    with pytest.raises(ConfigurationError, match="names no bucket"):
        ParquetSink("archive", "s3://")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be opened"):
        ParquetSink("archive", tmp_path / "file")


def test_staged_files_are_merged_while_the_stream_is_silent(
    app: StreamApp, db: Db, tmp_path: Path
) -> None:
    app.add(ParquetSink("archive", tmp_path))
    write_orders(db)
    work(app, db)
    assert staged(tmp_path) and not merged(tmp_path)  # left by a dead worker
    later = StreamApp(shop, app.name)
    later.add(ParquetSink("archive", tmp_path, roll_seconds=0.1))
    with later.start(db, QUICK):
        eventually(lambda: staged(tmp_path) == [])
    assert totals(merged(tmp_path)) == WRITTEN
