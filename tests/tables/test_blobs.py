"""Large values: compressed, offloaded, read back as they were, and nothing lost on the way."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stator import Design, Entity, Query, connect, connect_async, find, ident, large, read
from stator.engine import Engine
from stator.errors import (
    BlobDamaged,
    BlobMissing,
    ConditionFailed,
    ConfigurationError,
    DesignError,
    ItemExists,
    TransactionFailed,
    UpdateRefused,
)
from stator.patterns.blob_audit import BlobAudit
from stator.tables.blobs.compression import compress, decompress
from stator.tables.blobs.stores import BlobStore, FolderStore, S3Store
from tests.s3_servers import client, seaweedfs
from tests.targets import Target

WORDS = " ".join(random.Random(1).choices(["stator", "dynamo", "table", "key", "shard"], k=4000))
NOISE = random.Random(2).randbytes(60_000)


class Document(Entity):
    doc_id: str = ident()
    folder: str
    title: str = ""
    text: str = large(default="")
    scan: bytes = large(compress=None, offload_over_bytes=10_000, default=b"")


@read(rps=10)
def document(doc_id: str) -> Query[Document]:
    return find(Document).where(Document.doc_id == doc_id)


@read(rps=10)
def in_folder(folder: str) -> Query[Document]:
    return find(Document).where(Document.folder == folder)


DESIGN = Design("docs", [Document], [document, in_folder])


def stored(db: Any, doc_id: str = "d1") -> dict[str, Any]:
    of = db.context.schema.of(Document)
    item: dict[str, Any] = db.call(
        "GetItem",
        {"TableName": of.table.name, "Key": of.key_from({"doc_id": doc_id, "folder": "f"})},
    )["Item"]
    return item


def names(store: BlobStore) -> list[str]:
    return [key for key, _ in store.keys("")]


@pytest.fixture(scope="session")
def s3_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with seaweedfs(tmp_path_factory.mktemp("weed")) as made:
        yield made


@pytest.fixture(params=["folder", "seaweedfs", "moto"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlobStore]:
    if request.param == "folder":
        yield FolderStore(tmp_path / "blobs")
    elif request.param == "seaweedfs":
        yield S3Store(
            "blobs", f"t{os.urandom(4).hex()}", client=request.getfixturevalue("s3_client")
        )
    else:
        moto_server = pytest.importorskip("moto.server", reason="moto is not installed")
        server = moto_server.ThreadedMotoServer(port=0)
        server.start()
        made = client(f"http://127.0.0.1:{server.get_host_and_port()[1]}")
        made.create_bucket(Bucket="blobs")
        yield S3Store("blobs", "some/prefix", client=made)
        made.close()
        server.stop()


def test_compression_is_recorded_and_undone() -> None:
    for method in ("gzip", "lz4", "zstd", "auto"):
        used, made = compress(WORDS.encode(), method)
        assert used == method or method == "auto"
        assert len(made) < len(WORDS) / 2
        assert decompress(made, used) == WORDS.encode()
    sizes = {method: len(compress(WORDS.encode(), method)[1]) for method in ("gzip", "lz4", "zstd")}
    assert len(compress(WORDS.encode(), "auto")[1]) == min(sizes.values())
    with pytest.raises(ConfigurationError, match="does not know"):
        decompress(b"", "brotli")


def test_large_values_are_packed_and_read_back(target: Target, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "blobs")
    db = target.connect(DESIGN, blobs=store)
    there = Document(doc_id="d1", folder="f", text=WORDS, scan=NOISE)
    db.create(there)
    item = stored(db)
    assert (
        item["text"]["M"]["stator:packed"]["S"] in ("zstd", "gzip", "lz4")
        and "at" in item["scan"]["M"]
    )
    assert len(str(item)) < len(WORDS) / 2
    assert db.get(Document, doc_id="d1") == there
    assert list(db.fetch(in_folder("f"))) == [there]
    assert db.get_many(Document, ["d1"]) == [there]
    assert list(db.scan(Document, allow=True)) == [there]
    small = Document(doc_id="d2", folder="f", text="short", scan=b"tiny")
    db.put(small)
    assert stored(db, "d2")["text"] == {"S": "short"}
    assert db.get(Document, doc_id="d2") == small
    assert (
        db.write_many(
            [Document(doc_id=f"m{n}", folder="g", text=WORDS, scan=NOISE) for n in range(5)]
        ).written
        == 5
    )
    assert all(each.text == WORDS and each.scan == NOISE for each in db.fetch(in_folder("g")))
    assert len(names(store)) == 6


def test_blobs_live_and_die_with_their_items(store: BlobStore) -> None:
    db = connect(DESIGN, blobs=store)
    there = Document(doc_id="d1", folder="f", scan=NOISE)
    db.create(there)
    [first] = names(store)
    with db.update(there) as d:
        d.scan = NOISE[::-1]
    assert there.scan == NOISE[::-1]
    [second] = names(store)
    assert first != second
    db.put(Document(doc_id="d1", folder="f", scan=NOISE))
    assert first not in names(store) and second not in names(store) and len(names(store)) == 1
    assert db.upsert(Document(doc_id="d1", folder="f", scan=NOISE * 2)).scan == NOISE * 2
    assert len(names(store)) == 1
    with db.update(Document, doc_id="d1") as d:
        d.title = "nothing to do with it"
    with db.transaction() as tx:
        tx.put(Document(doc_id="d1", folder="f", scan=NOISE * 3))
        tx.put(Document(doc_id="d2", folder="f", scan=NOISE))
    assert len(names(store)) == 2
    old = db.delete(Document, doc_id="d1", returns="old")
    assert old is None or old.scan == NOISE * 3
    assert len(names(store)) == 1
    db.delete(Document, doc_id="d2", keep_blobs=True)
    [kept] = names(store)
    assert kept.startswith("kept/") and store.get(kept) == NOISE


def test_a_write_that_fails_leaves_nothing_behind_and_loses_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    db = connect(DESIGN, blobs=store)
    there = Document(doc_id="d1", folder="f", scan=NOISE)
    db.create(there)
    before = names(store)
    other = Document(doc_id="d1", folder="f", scan=NOISE[::-1])
    with pytest.raises(ItemExists):
        db.create(other)
    with pytest.raises(ConditionFailed):
        db.put(other, when=Document.title == "no")
    with (
        pytest.raises(ConditionFailed),
        db.update(Document, doc_id="d1", when=Document.title == "no") as d,
    ):
        d.scan = NOISE[::-1]
    with pytest.raises(TransactionFailed), db.transaction() as tx:
        tx.create(other)
    assert names(store) == before
    assert db.get(Document, doc_id="d1") == there


def test_a_crash_between_blob_and_item_leaves_a_blob_that_is_swept(tmp_path: Path) -> None:
    class Dying(FolderStore):
        def put(self, key: str, content: bytes) -> None:
            super().put(key, content)
            if dies:
                raise KeyboardInterrupt  # the process goes here: the blob is there, the item is not

    dies = False
    store = Dying(tmp_path)
    db = connect(DESIGN, blobs=store)
    there = Document(doc_id="d1", folder="f", scan=NOISE)
    db.create(there)
    dies = True
    with pytest.raises(KeyboardInterrupt):
        db.put(Document(doc_id="d1", folder="f", scan=NOISE[::-1]))
    dies = False
    assert db.get(Document, doc_id="d1") == there
    assert len(names(store)) == 2
    audit = BlobAudit(db, Document)
    assert audit.unnamed() == []  # too young: it might be on its way
    [gone] = audit.sweep(older_than_seconds=-1)
    assert gone not in names(store) and len(names(store)) == 1
    assert db.get(Document, doc_id="d1") == there


def test_a_blob_that_is_gone_or_damaged_is_told(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    db = connect(DESIGN, blobs=store)
    db.create(Document(doc_id="d1", folder="f", scan=NOISE))
    [key] = names(store)
    (tmp_path / key).write_bytes(b"something else")
    with pytest.raises(BlobDamaged):
        db.get(Document, doc_id="d1")
    store.delete([key])
    with pytest.raises(BlobMissing):
        db.get(Document, doc_id="d1")


def test_what_cannot_work_is_refused(tmp_path: Path) -> None:
    engine = Engine.open()
    db = connect(DESIGN, engine)
    with pytest.raises(ConfigurationError, match="no blob store"):
        db.create(Document(doc_id="d1", folder="f", scan=NOISE))
    assert db.get(Document, doc_id="d1") is None
    with_store = connect(DESIGN, engine, blobs=str(tmp_path))
    with_store.create(Document(doc_id="d1", folder="f", scan=NOISE))
    with pytest.raises(ConfigurationError, match="this connection has none"):
        db.get(Document, doc_id="d1")
    with pytest.raises(DesignError, match="DynamoDB cannot compare it"):
        db.put(Document(doc_id="d1", folder="f"), when=Document.text == "x")
    with (
        pytest.raises(UpdateRefused, match="as a whole"),
        with_store.update(Document, doc_id="d1") as d,
    ):
        d.text[0] = "x"  # type: ignore[index]  # wrong on purpose
    with pytest.raises(ConfigurationError, match="names no bucket"):
        connect(DESIGN, blobs="s3://")


def test_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect_async(DESIGN, blobs=FolderStore(tmp_path)) as db:
            there = Document(doc_id="d1", folder="f", text=WORDS, scan=NOISE)
            await db.create(there)
            assert await db.get(Document, doc_id="d1") == there
            assert [each async for each in db.fetch(in_folder("f"))] == [there]
            await db.delete(there)
            assert names(FolderStore(tmp_path)) == []

    asyncio.run(main())
