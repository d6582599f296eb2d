"""Packed numbers: equal after a round trip, small, compared only for equality."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator import Design, Entity, Query, attr, connect, find, ident, packed, read
from stator.design.documents.document import document_of
from stator.design.entities.entity import info
from stator.design.entities.packed_numbers import Packing
from stator.engine import Engine
from stator.errors import DesignError, ItemMismatch
from stator.model.values import size_bytes
from stator.pipeline.bulk.load.load import LoadOptions, load
from stator.pipeline.bulk.targets import BulkTarget


class Reading(Entity):
    reading_id: str = ident()
    samples: Annotated[list[float], packed("float64")]
    counts: Annotated[tuple[int, ...] | None, packed("uint16")] = None
    level: Annotated[float, packed("float32")] = 0.0


DESIGN = Design("readings", [Reading], [])


@given(
    st.lists(st.floats(allow_nan=False)),
    st.none() | st.lists(st.integers(0, 65_535)).map(tuple),
    st.floats(width=32, allow_nan=False),
)
def test_what_is_stored_comes_back(
    samples: list[float], counts: tuple[int, ...] | None, level: float
) -> None:
    codec = info(Reading).codec
    made = Reading(reading_id="1", samples=samples, counts=counts, level=level)
    assert codec.decode(codec.encode(made)) == made


def test_values_are_little_endian_bytes() -> None:
    item = info(Reading).codec.encode(Reading(reading_id="1", samples=[1.0], counts=(1, 256)))
    assert item["samples"] == {"B": "AAAAAAAA8D8="}
    assert item["counts"] == {"B": "AQAAAQ=="}


@pytest.mark.parametrize(
    "wrong",
    [
        {"samples": ["x"]},
        {"samples": (1.0,)},
        {"counts": (70_000,)},
        {"counts": (-1,)},
        {"counts": (True,)},
        {"counts": (1.5,)},
        {"level": "x"},
        {"level": 1e300},
    ],
)
def test_values_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    made = Reading(**({"reading_id": "1", "samples": []} | wrong))
    with pytest.raises(ItemMismatch) as refused:
        info(Reading).codec.encode(made)
    assert refused.value.field in wrong


def test_a_number_that_would_be_infinite_is_refused() -> None:
    class Wave(Entity):
        wave_id: str = ident()
        points: Annotated[list[float], packed("float32")]

    encode = info(Wave).codec.encode
    for points in ([1.0, 1e39], [-1e39], [float("inf"), 1e300]):
        with pytest.raises(ItemMismatch, match="is too large"):
            encode(Wave(wave_id="1", points=points))
    for points in ([], [3.4e38, -3.4e38], [float("inf"), 1.0]):
        encode(Wave(wave_id="1", points=points))


def test_a_packed_field_is_read_written_and_updated() -> None:
    db = connect(DESIGN)
    db.write_many([Reading(reading_id="1", samples=[0.1, 0.2])])
    with db.update(Reading, reading_id="1") as reading:
        reading.samples = [0.3]
    assert db.get_one(Reading, reading_id="1").samples == [0.3]
    db.patch(Reading, {"counts": [1, 2]}, reading_id="1")
    assert db.get_one(Reading, reading_id="1").counts == (1, 2)
    db.delete(Reading, reading_id="1", when=Reading.samples == [0.3])


def test_rows_of_a_file_are_packed(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [
        {"reading_id": "1", "samples": [1, 2.5], "counts": [3]},
        {"reading_id": "2", "samples": ["x"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Engine.open() as engine:
        options = LoadOptions(dead_letters=str(tmp_path / "dead.jsonl"))
        with BulkTarget.open(engine, design=DESIGN, entity=Reading) as target:
            report = load(str(path), target, options)
        assert (report.written, report.failed) == (1, 1)
        stored = connect(DESIGN, engine).get_one(Reading, reading_id="1")
        assert (stored.samples, stored.counts) == ([1.0, 2.5], (3,))


def test_only_equality_can_be_asked() -> None:
    @read()
    def loud(level: float) -> Query[Reading]:
        return find(Reading).where(Reading.reading_id == "1").filter(attr(Reading.level) > level)

    with pytest.raises(DesignError, match="is packed"):
        Design("readings", [Reading], [loud]).plan()
    db = connect(DESIGN)
    with pytest.raises(DesignError, match="is packed"):
        db.delete(Reading, reading_id="1", when=attr(Reading.level) > 3.0)


def test_no_key_holds_a_packed_field() -> None:
    class Keyed(Entity):
        level: Annotated[float, packed("float32")] = ident()

    with pytest.raises(DesignError):
        Design("keyed", [Keyed], []).plan()


@pytest.mark.parametrize("hint", [list[str], list[int], int, dict[str, float]])
def test_other_types_cannot_be_packed(hint: Any) -> None:
    Wrong = type(
        "Wrong",
        (Entity,),
        {
            "__annotations__": {"wrong_id": str, "value": Annotated[hint, packed("float32")]},
            "wrong_id": ident(),
        },
    )
    with pytest.raises(DesignError, match="packed"):
        Design("wrong", [Wrong], []).plan()


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(DesignError, match="no such kind"):
        packed("float16")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int8", 127),
        ("int16", 32_767),
        ("int32", 2_147_483_647),
        ("int64", 2**63 - 1),
        ("uint64", 2**64 - 1),
        ("float64", 0.12345678901234568),
    ],
)
def test_the_bytes_saved_are_those_of_dynamodb(kind: Any, value: float) -> None:
    packing = Packing(kind)
    plain = size_bytes({"L": [{"N": repr(value)}] * 100})
    assert packing.number_bytes(100) == plain
    assert packing.saved_bytes(100) == plain - len(packing.of_list([value] * 100))


def test_documents_show_the_bytes_saved() -> None:
    shown = [each.kind for entity in document_of(DESIGN).entities for each in entity.attributes]
    assert any("800 B for 100 values (up to 1103 B as numbers)" in each for each in shown)
