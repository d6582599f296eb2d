"""Tables, rows and transports that the bulk tests share."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import zstandard

from stator.addresses import EngineTransport
from stator.engine import Engine
from stator.pipeline.bulk.targets import BulkTarget
from stator.testing import Fault, FaultyTransport, InterceptedCall

TABLE = "orders"
ROWS = [
    {
        "pk": f"order-{number:04d}",
        "total": number * 1.5,
        "quantity": number,
        "paid": number % 2 == 0,
        "note": f'ä "{number}" %s',
    }
    for number in range(60)
]
ITEMS = {
    row["pk"]: {
        "pk": {"S": row["pk"]},
        "total": {"N": f"{row['total']:g}"},
        "quantity": {"N": str(row["quantity"])},
        "paid": {"BOOL": row["paid"]},
        "note": {"S": row["note"]},
    }
    for row in ROWS
}


def create(engine: Engine, table: str = TABLE, sort: str | None = None, kind: str = "S") -> None:
    schema = [{"AttributeName": "pk", "KeyType": "HASH"}]
    attributes = [{"AttributeName": "pk", "AttributeType": kind}]
    if sort is not None:
        schema.append({"AttributeName": sort, "KeyType": "RANGE"})
        attributes.append({"AttributeName": sort, "AttributeType": "N"})
    engine.call(
        "CreateTable",
        {
            "TableName": table,
            "KeySchema": schema,
            "AttributeDefinitions": attributes,
            "BillingMode": "PAY_PER_REQUEST",
        },
    )


def stored(engine: Engine, table: str = TABLE) -> dict[str, Any]:
    """Every item by its partition key."""
    found: dict[str, Any] = {}
    request: dict[str, Any] = {"TableName": table}
    while True:
        page = engine.call("Scan", request)
        for item in page["Items"]:
            [key] = item["pk"].values()
            assert key not in found
            found[key] = item
        if "LastEvaluatedKey" not in page:
            return found
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def engine_target(engine: Engine, table: str = TABLE) -> BulkTarget:
    return BulkTarget.open(engine, table)


def target_through(transport: Any, table: str = TABLE, place: str = "test") -> BulkTarget:
    return BulkTarget(transport, table, address=place, owned=False)


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def packed(path: Path, compression: str) -> Path:
    content = path.read_bytes()
    made = path.with_name(path.name + {"gzip": ".gz", "zstd": ".zst"}[compression])
    made.write_bytes(
        gzip.compress(content)
        if compression == "gzip"
        else zstandard.ZstdCompressor().compress(content)
    )
    return made


class Through(FaultyTransport):
    """A transport to an engine on which something may happen before and after each call."""

    def __init__(
        self,
        engine: Engine,
        before: Callable[[str, Mapping[str, Any]], None] | None = None,
        answer: Callable[[str, dict[str, Any], dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self.operations: list[str] = []

        def look(call: InterceptedCall) -> Fault | None:
            self.operations.append(call.operation)
            if before is not None:
                before(call.operation, call.request)
            return None

        def reply(call: InterceptedCall, found: dict[str, Any]) -> dict[str, Any]:
            return found if answer is None else answer(call.operation, dict(call.request), found)

        super().__init__(EngineTransport(engine, owned=False), look, reply, parallel=True)


def seeded(number: int = 7) -> random.Random:
    return random.Random(number)
