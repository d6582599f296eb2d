"""The changes of a table as AWS Lambda delivers them."""

from __future__ import annotations

from typing import Any

from stator import Db, Engine
from tests.engine.streams.reading import read_all


def event_of(engine: Engine, db: Db) -> dict[str, Any]:
    """An event with every change of the design's first table."""
    table = db.context.schema.plan.tables[0].name
    arn = engine.call("DescribeTable", {"TableName": table})["Table"]["LatestStreamArn"]
    records = read_all(engine, arn)
    records.sort(key=lambda record: int(record["dynamodb"]["SequenceNumber"]))
    for record in records:
        record["eventSourceARN"] = arn
    return {"Records": records}
