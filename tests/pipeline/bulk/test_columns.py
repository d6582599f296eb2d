"""Column-wise and row-wise encoding agree."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from stator.pipeline.bulk.job.pending_rows import Block, RowPosition
from stator.pipeline.bulk.load.columns import Column, ColumnEncoder
from stator.pipeline.bulk.load.readers import RawRows

TEXT = st.text(max_size=8)
VALUES: dict[str, Any] = {
    "S": TEXT,
    "N": st.one_of(
        st.lists(st.none() | st.integers(-(10**30), 10**30), min_size=1),
        st.lists(st.none() | st.floats(allow_nan=True), min_size=1),
        st.lists(
            st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=3), min_size=1
        ),
    ),
    "BOOL": st.booleans(),
    "csv": TEXT,
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[RawRows, tuple[Column, ...]]:
    count = draw(st.integers(1, 8))
    names, values, kinds, made = (
        ["pk"],
        [draw(st.lists(st.text(min_size=0, max_size=3), min_size=count, max_size=count))],
        ["S"],
        [],
    )
    made.append(Column(0, "pk", "pk", "S", "S"))
    for at in range(1, draw(st.integers(1, 5))):
        given_kind = draw(st.sampled_from(["S", "N", "BOOL", "csv"]))
        if given_kind == "N":
            pool = draw(VALUES["N"])
            column = [pool[index % len(pool)] for index in range(count)]
        else:
            gap = st.just("") if given_kind == "csv" else st.none()
            column = draw(st.lists(VALUES[given_kind] | gap, min_size=count, max_size=count))
        kind = draw(st.sampled_from(["S", "N"])) if given_kind == "csv" else given_kind
        names.append(f"c{at}%")
        values.append(column)
        kinds.append(given_kind)
        made.append(Column(at, names[-1], names[-1], kind, given_kind))
    return RawRows(0, count, tuple(names), values, tuple(kinds)), tuple(made)


@given(columns())
def test_both_ways_of_encoding_agree(given_rows: tuple[RawRows, tuple[Column, ...]]) -> None:
    rows, made = given_rows
    encoder = ColumnEncoder(made, ("pk",))
    refused: dict[int, str] = {}

    def dead(_block: Block, row: int, _content: Any, reason: str) -> None:
        refused[row] = reason

    block = Block("x", 0, RowPosition(), rows.count)
    quick = {
        entry.row: (entry.key, orjson.loads(entry.item))
        for entry in encoder.entries(rows, block, dead)
    }
    plain = {}
    for at, values in enumerate(zip(*rows.columns)):
        try:
            item = encoder.item(values)
            orjson.dumps(item)
        except Exception:
            assert at in refused
            continue
        plain[at] = (item["pk"]["S"], item)
    for _, item in [*quick.values(), *plain.values()]:
        for value in item.values():
            if "N" in value:
                value["N"] = str(Decimal(value["N"]).normalize())
    assert quick == plain


ARROW: dict[str, tuple[Any, Any]] = {
    "S": (pa.string(), st.text(max_size=6)),
    "N": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float64(), st.floats(allow_infinity=False)),
    "decimal": (pa.decimal128(20, 4), st.decimals(-(10**9), 10**9, places=4)),
    "BOOL": (pa.bool_(), st.booleans()),
    "B": (pa.binary(), st.binary(max_size=6)),
    "any": (pa.list_(pa.string()), st.lists(st.text(max_size=3), max_size=3)),
}


@given(
    st.lists(st.sampled_from(sorted(ARROW)), max_size=5).flatmap(
        lambda kinds: st.tuples(
            st.just(kinds),
            st.lists(
                st.tuples(st.text(max_size=2), *(st.none() | ARROW[kind][1] for kind in kinds)),
                min_size=1,
                max_size=8,
            ),
        )
    )
)
def test_arrows_kernels_give_what_python_gives(
    given_rows: tuple[list[str], list[tuple[Any, ...]]],
) -> None:
    kinds, rows = given_rows
    arrays = [pa.array([row[0] for row in rows], pa.string())]
    arrays += [
        pa.array([row[at + 1] for row in rows], ARROW[kind][0]) for at, kind in enumerate(kinds)
    ]
    names = ["pk", *(f'c"{at}' for at in range(len(kinds)))]
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    types = {"float": "N", "decimal": "N", "any": None}
    columns = (
        Column(0, "pk", "pk", "S", "S"),
        *(
            Column(at, names[at], names[at], types.get(kind, kind), types.get(kind, kind) or "any")
            for at, kind in enumerate(kinds, 1)
        ),
    )
    encoder = ColumnEncoder(columns, ("pk",))
    found: list[dict[int, Any]] = []
    for raw in (
        RawRows(0, len(rows), tuple(names), batch=batch),
        RawRows(0, len(rows), tuple(names), [array.to_pylist() for array in arrays]),
    ):
        dead: set[int] = set()
        block = Block("x", 0, RowPosition(), len(rows))

        def reject(
            _block: Any, row: int, _content: Any, _reason: Any, dead: set[int] = dead
        ) -> None:
            dead.add(row)

        entries = encoder.entries(raw, block, reject)
        made = {entry.row: (entry.key, orjson.loads(entry.item)) for entry in entries}
        for _, item in made.values():
            for value in item.values():
                if "N" in value:
                    value["N"] = str(Decimal(value["N"]).normalize())
        found.append(made | dict.fromkeys(dead))
    assert found[0] == found[1]
