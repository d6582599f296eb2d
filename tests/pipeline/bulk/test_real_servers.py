"""Load, export and copy on DynamoDB Local: the same program on a server that is not ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stator.engine import Engine
from stator.pipeline.bulk.copy import Copy, CopyOptions
from stator.pipeline.bulk.export.sources import table_export
from stator.pipeline.bulk.load.load import LoadOptions, load
from stator.pipeline.bulk.targets import BulkTarget

from ...dynamodb_local import dynamodb_local
from .stock import create, engine_target, stored, write_lines

OPTIONS: Any = {"region": "us-east-1", "access_key_id": "local", "secret_access_key": "local"}


def test_dynamodb_local_is_loaded_exported_and_copied(tmp_path: Path) -> None:
    rows = [
        {"pk": f"k{number}", "n": number, "tags": ["a", number], "note": "x" * 300}
        for number in range(700)
    ]
    rows[333] = {"pk": "k333", "big": "x" * 410_000}
    path = write_lines(tmp_path / "x.jsonl", rows)
    with (
        dynamodb_local() as url,
        BulkTarget.open(url, "orders", options=OPTIONS) as target,
        Engine.open() as engine,
    ):
        target.transport.call(
            "CreateTable",
            {
                "TableName": "orders",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        report = load(str(path), target, LoadOptions(dead_letters=tmp_path / "dead.jsonl"))
        assert (report.written, report.failed) == (699, 1)
        [letter] = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
        assert (
            letter["row"] == 334
            and "ValidationException: Item size has exceeded" in letter["reason"]
        )
        again = load(str(path), target, LoadOptions(condition="attribute_not_exists(pk)"))
        assert (again.written, again.already_there, again.failed) == (699, 699, 1)
        exported = table_export(target, str(tmp_path / "out.json")).run()
        assert exported.items == 699
        create(engine)
        copied = Copy(
            target, engine_target(engine), CopyOptions(journal=tmp_path / "copy.journal")
        ).run()
        assert (copied.written, copied.verified, copied.checksum) == (699, True, exported.checksum)
        assert len(stored(engine)) == 699
