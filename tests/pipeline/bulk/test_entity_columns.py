"""Entities out of Arrow's columns: the same items as one by one, whatever is in the columns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import Design, Entity, Query, find, ident, month_of, prefix_of, read, ttl, version
from stator.pipeline.bulk.job.pending_rows import Block, RowPosition
from stator.pipeline.bulk.load.entity_columns import EntityColumnEncoder, fits_columns
from stator.pipeline.bulk.load.entity_rows import EntityEncoder
from stator.pipeline.bulk.load.readers import RawRows
from stator.tables.schema.entity_map import EntityMap
from stator.tables.schema.schema import Schema

pyarrow = pytest.importorskip("pyarrow")


class Probe(Entity):
    router: str = ident()
    at: datetime = ident()
    isp: str
    latency: float
    hops: int
    ok: bool
    note: str | None = None
    expires: datetime | None = ttl(default=None)


class Counted(Entity):
    name: str = ident()
    number: int = version()


@read()
def probes_of(router: str) -> Query[Probe]:
    return find(Probe).where(Probe.router == router).newest_first(Probe.at)


@read()
def by_isp(isp: str) -> Query[Probe]:
    return find(Probe).where(Probe.isp == isp)


@read()
def counted(name: str) -> Query[Counted]:
    return find(Counted).where(Counted.name == name)


@read()
def of_month(month: str) -> Query[Probe]:
    return find(Probe).where(month_of(Probe.at) == month).limit(5)


@read()
def by_start(start: str) -> Query[Probe]:
    return find(Probe).where(prefix_of(Probe.isp, 3) == start).order_by(Probe.at)


SCHEMA = Schema(
    design := Design("fleet", [Probe, Counted], [probes_of, by_isp, counted, of_month, by_start]),
    design.plan(),
)
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)
TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "router": TEXTS,
            "at": MOMENTS,
            "isp": TEXTS,
            "latency": st.floats(allow_nan=True, allow_infinity=True, width=64),
            "hops": st.integers(-(2**62), 2**62),
            "ok": st.booleans(),
            "note": st.none() | st.text(st.characters(blacklist_categories=["Cs"]), max_size=5),
            "expires": st.none() | MOMENTS,
        }
    ),
    min_size=1,
    max_size=6,
)
TYPES = pyarrow.schema(
    [
        ("router", pyarrow.string()),
        ("at", pyarrow.timestamp("us", "UTC")),
        ("isp", pyarrow.string()),
        ("latency", pyarrow.float64()),
        ("hops", pyarrow.int64()),
        ("ok", pyarrow.bool_()),
        ("note", pyarrow.string()),
        ("expires", pyarrow.timestamp("us", "UTC")),
    ]
)


def of(cls: type[Any]) -> EntityMap:
    return SCHEMA.of(cls)


def written(encoder: Any, rows: list[dict[str, Any]]) -> tuple[list[Any], list[tuple[int, str]]]:
    batch = pyarrow.RecordBatch.from_pylist(rows, schema=TYPES)
    raw = RawRows(0, len(rows), tuple(TYPES.names), batch=batch)
    block = Block("test", 0, RowPosition(0, len(rows)), len(rows))
    letters: list[tuple[int, str]] = []
    entries = encoder.entries(raw, block, lambda _, at, row, reason: letters.append((at, reason)))
    return [(entry.key, numbers(orjson.loads(entry.item))) for entry in entries], letters


def numbers(item: dict[str, Any]) -> dict[str, Any]:
    """Numbers by their value: Arrow and Python spell some of them differently."""
    return {
        name: {"N": float(value["N"])} if "N" in value else value for name, value in item.items()
    }


@settings(max_examples=200)
@given(ROWS)
def test_both_ways_give_the_same(rows: list[dict[str, Any]]) -> None:
    assert fits_columns(of(Probe))
    quick = written(EntityColumnEncoder(of(Probe), {}, lambda: 0.0), rows)
    plain = written(EntityEncoder(of(Probe), {}, False, lambda: 0.0), rows)
    assert quick == plain


def test_entities_with_rules_of_their_own_go_one_by_one() -> None:
    assert not fits_columns(of(Counted))
