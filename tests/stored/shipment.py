"""The bulk jobs of the fixture: their input, their commands, and what is there in the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stator.engine import Engine

from .ledger import on_demand

ROWS = 60
BAD_ROWS = (4, 33, 51)
"""Rows without a key, counted from nought: one before the interruption, two after it."""

LOAD = ["load", "orders.jsonl", "--to", "loaded.db", "--table", "orders"]
LOAD += ["--map", "internal=", "--type", "code=S", "--dead-letters", "bad.jsonl"]
EXPORT = ["export", "source.db", "--table", "orders", "--segments", "3"]
EXPORT_FOLDER = [*EXPORT, "--out", "parts", "--format", "dynamodb-json"]
EXPORT_FILE = [*EXPORT, "--out", "orders.csv"]
COPY = ["copy", "source.db", "target.db", "--table", "orders", "--segments", "3"]


def write_input(path: Path) -> None:
    """JSON lines, of which some are no items."""
    rows: list[dict[str, Any]] = [
        {"pk": f"order-{number:02d}", "total": number * 1.5, "code": number, "internal": "x"}
        for number in range(ROWS)
    ]
    for number in BAD_ROWS:
        del rows[number]["pk"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def loaded_items() -> dict[str, Any]:
    return {
        f"order-{number:02d}": {
            "pk": {"S": f"order-{number:02d}"},
            "total": {"N": f"{number * 1.5:g}"},
            "code": {"S": str(number)},
        }
        for number in range(ROWS)
        if number not in BAD_ROWS
    }


def source_items() -> dict[str, Any]:
    return {
        f"k{number:02d}": {"pk": {"S": f"k{number:02d}"}, "n": {"N": str(number)}}
        | ({"tags": {"SS": ["a", "b"]}} if number % 3 else {})
        for number in range(40)
    }


def make_table(folder: Path, items: dict[str, Any]) -> None:
    with Engine.open(str(folder)) as engine:
        engine.call("CreateTable", on_demand("orders"))
        for item in items.values():
            engine.call("PutItem", {"TableName": "orders", "Item": item})


def table_items(folder: Path) -> dict[str, Any]:
    with Engine.open(str(folder)) as engine:
        found = engine.call("Scan", {"TableName": "orders"})["Items"]
    return {item["pk"]["S"]: item for item in found}
