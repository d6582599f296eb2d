"""Large values when an answer is lost or the blob store fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stator import (
    Design,
    Entity,
    connect,
    connect_async,
    ident,
    large,
)
from stator.engine import Engine
from stator.errors import (
    OutcomeUnknown,
    Throttled,
)
from stator.tables.blobs.stores import FolderStore
from stator.testing import Fault, InterceptedCall, faulty


class Document(Entity):
    doc_id: str = ident()
    scan: bytes = large(compress=None, offload_over_bytes=2_000, default=b"")
    parts: dict[str, str] = large(default=None)


def test_a_blob_whose_write_may_have_happened_is_kept(tmp_path: Path) -> None:
    engine = Engine.open()
    design = Design("docs", [Document])
    db = connect(design, engine, blobs=FolderStore(tmp_path))
    unknown = Throttled("slow down")
    unknown.after_unknown = True

    def lose(call: InterceptedCall) -> Fault | None:
        return Fault("lost answer", error=unknown) if call.operation == "PutItem" else None

    with faulty(db, lose), pytest.raises(OutcomeUnknown):
        db.put(Document(doc_id="d", scan=b"x" * 5000, parts={}))
    found = db.get(Document, doc_id="d")
    assert found is not None and found.scan == b"x" * 5000


def test_a_dictionary_that_looks_packed_is_not(tmp_path: Path) -> None:
    db = connect(Design("docs", [Document]), blobs=FolderStore(tmp_path))
    there = Document(doc_id="d", parts={"stator": "zstd", "data": "x"})
    db.put(there)
    assert db.get(Document, doc_id="d") == there


def test_a_blob_store_that_fails_raises_its_own_error_awaited(tmp_path: Path) -> None:
    class Broken(FolderStore):
        def put(self, key: str, content: bytes) -> None:
            raise OSError("the store is down")

    async def main() -> None:
        async with connect_async(Design("docs", [Document]), blobs=Broken(tmp_path)) as db:
            with pytest.raises(OSError, match="down"):
                await db.put(Document(doc_id="d", scan=b"x" * 5000, parts={}))

    asyncio.run(main())
