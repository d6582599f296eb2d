"""What a load says about values that do not fit: what was expected, and which value was found."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stator import Design, Entity, Query, find, ident, read
from stator.engine import Engine
from stator.errors import ConfigurationError
from stator.pipeline.bulk.load.estimate import estimate
from stator.pipeline.bulk.load.load import LoadOptions, LoadPlan, load
from stator.pipeline.bulk.targets import BulkTarget

from .stock import create, engine_target, write_lines


class State(Enum):
    OPEN = "open"
    DONE = "done"


class Job(Entity):
    job_id: str = ident()
    count: int = 0
    price: Decimal = Decimal(0)
    share: float = 0.0
    state: State = State.OPEN
    at: datetime | None = None
    ok: bool = True


@read()
def job(job_id: str) -> Query[Job]:
    return find(Job).where(Job.job_id == job_id)


jobs = Design("jobs", [Job], [job])
CASES: list[tuple[str, Any, str]] = [
    ("count", "three", "expected a whole number, got 'three'"),
    ("count", 1.5, "expected a whole number, got 1.5"),
    ("price", "NaN", "expected a number that is finite, got 'NaN'"),
    ("price", "dear", "expected a number, got 'dear'"),
    ("share", "much", "expected a number, got 'much'"),
    ("state", "lost", "expected one of 'open', 'done', got 'lost'"),
    ("ok", "maybe", "expected true or false, got 'maybe'"),
    ("at", "yesterday", "expected a time such as 2026-03-01T10:00:00Z, got 'yesterday'"),
    ("at", 1_763_535_600_000, "got 1763535600000, which looks like milliseconds"),
]


@pytest.mark.parametrize(("field", "value", "message"), CASES)
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_the_value_is_in_the_reason(
    form: str, field: str, value: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.{form}"
    if form == "csv":
        path.write_text(f"job_id,{field}\na,{value}\n")
        message = message.replace("got 1.5", "got '1.5'")
    else:
        write_lines(path, [{"job_id": "a", field: value}])
    with Engine.open() as engine, BulkTarget.open(engine, design=jobs, entity=Job) as target:
        options = LoadOptions(dead_letters=tmp_path / "bad.jsonl")
        dry = estimate(LoadPlan(str(path), target, options))
        assert message in dry.first_failures[0].reason
        assert load(str(path), target, options).failed == 1
    assert message in json.loads((tmp_path / "bad.jsonl").read_text())["reason"]


def test_a_decimal_that_is_not_a_number_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"job_id": ["a"], "price": [float("nan")]}), tmp_path / "x.parquet")
    with Engine.open() as engine, BulkTarget.open(engine, design=jobs, entity=Job) as target:
        plan = LoadPlan(str(tmp_path / "x.parquet"), target, LoadOptions())
        reason = estimate(plan).first_failures[0].reason
    assert "expected a number that is finite, got nan" in reason


def test_seconds_and_times_without_a_zone_are_utc(tmp_path: Path) -> None:
    lines = [{"job_id": "a", "at": 1_763_535_600}, {"job_id": "b", "at": "2025-11-19T07:00:00"}]
    path = write_lines(tmp_path / "x.jsonl", lines)
    with Engine.open() as engine, BulkTarget.open(engine, design=jobs, entity=Job) as target:
        assert load(str(path), target).written == 2
        items = engine.call("Scan", {"TableName": target.table})["Items"]
    assert {item["at"]["S"] for item in items} == {"2025-11-19T07:00:00.000000Z"}


def test_dead_letters_are_recognised(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"n": 1}])
    with Engine.open() as engine:
        create(engine)
        load(str(path), engine_target(engine), LoadOptions(dead_letters=tmp_path / "bad.jsonl"))
        with pytest.raises(ConfigurationError, match=r"bad\.jsonl holds dead letters") as refused:
            load(str(tmp_path / "bad.jsonl"), engine_target(engine))
        assert "--format dead-letters" in str(refused.value.hint)
