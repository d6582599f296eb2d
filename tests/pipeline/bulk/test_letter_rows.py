"""Dead letters hold what was read without loss, and can be loaded once they are repaired."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.engine import Engine
from stator.errors import ConfigurationError
from stator.pipeline.bulk.job.dead_letters import decode_content, encode_content
from stator.pipeline.bulk.load.load import LoadOptions, LoadReport, load

from .stock import create, engine_target, stored, write_lines

_CONTENT = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["a", "$number", "$base64", "$map"]), inner)
    ),
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(_CONTENT)
def test_content_comes_back_as_it_was(value: Any) -> None:
    assert same(value, decode_content(json.loads(json.dumps(encode_content(value)))))


def loaded(engine: Engine, path: Path, letters: Path, **options: Any) -> LoadReport:
    return load(str(path), engine_target(engine), LoadOptions(dead_letters=letters, **options))


def letters_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_bytes_that_are_not_utf8_are_kept(tmp_path: Path) -> None:
    """In CSV and in JSON; what is repaired is loaded with the types of the first load."""
    (tmp_path / "x.csv").write_bytes(b"pk,zip,note\na,0123,x\nb,123,caf\xe9\nc,5,fine\n")
    (tmp_path / "x.jsonl").write_bytes(b'{"pk": "d", "note": "caf\xe9"}\n')
    bad = tmp_path / "bad.jsonl"
    with Engine.open() as engine:
        create(engine)
        for name in ("x.csv", "x.jsonl"):
            report = loaded(engine, tmp_path / name, bad)
            assert report.failed == 1
            [letter] = letters_in(bad)
            content = decode_content(letter["content"])
            if name == "x.csv":
                assert (letter["row"], content["note"], content["zip"]) == (2, b"caf\xe9", "123")
                letter["content"]["note"] = "café"
            else:
                assert content == b'{"pk": "d", "note": "caf\xe9"}'
                letter["content"] = {"pk": "d", "note": "café"}
            again = loaded(engine, bad, tmp_path / "worse.jsonl", format="dead-letters")
            assert (again.written, again.failed) == (0, 1)
            assert (
                letters_in(tmp_path / "worse.jsonl")[0]["content"] == letters_in(bad)[0]["content"]
            )
            write_lines(bad, [letter])
            assert loaded(engine, bad, tmp_path / "none", format="dead-letters").written == 1
        found = stored(engine)
        assert found["b"] == {"pk": {"S": "b"}, "zip": {"S": "123"}, "note": {"S": "café"}}
        assert found["d"] == {"pk": {"S": "d"}, "note": {"S": "café"}}


def test_values_of_parquet_are_kept(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 600, UTC)
    rows = {
        "pk": ["a", "b"],
        "ratio": [float("nan"), 1.5],
        "raw": [b"\xff\x00", b"x"],
        "price": [Decimal("1.10"), Decimal("2.20")],
        "at": [moment, moment],
        "deep": [{"$number": [1, 2]}, {"$number": []}],
    }
    pq.write_table(pa.table(rows), tmp_path / "x.parquet")
    bad = tmp_path / "bad.jsonl"
    with Engine.open() as engine:
        create(engine)
        assert loaded(engine, tmp_path / "x.parquet", bad).failed == 1
        [letter] = letters_in(bad)
        content = decode_content(letter["content"])
        assert math.isnan(content.pop("ratio"))
        assert content == {
            "pk": "a",
            "raw": b"\xff\x00",
            "price": Decimal("1.10"),
            "at": "2026-01-02T03:04:05.000600Z",
            "deep": {"$number": [1, 2]},
        }
        letter["content"]["ratio"] = 2.5
        write_lines(bad, [letter])
        assert loaded(engine, bad, tmp_path / "none", format="dead-letters").written == 1
        assert stored(engine)["a"] == {
            "pk": {"S": "a"},
            "ratio": {"N": "2.5"},
            "raw": {"B": "/wA="},
            "price": {"N": "1.1"},
            "at": {"S": "2026-01-02T03:04:05.000600Z"},
            "deep": {"M": {"$number": {"L": [{"N": "1"}, {"N": "2"}]}}},
        }


def test_letters_of_every_kind_are_loaded_from_one_file(tmp_path: Path) -> None:
    large = "x" * 410_000
    write_lines(tmp_path / "a.jsonl", [{"pk": "a", "n": 1, "text": large}, {"n": 2}])
    (tmp_path / "b.csv").write_text("pk,n\n,3\nc,4,5\nd,6\n")
    bad = tmp_path / "bad.jsonl"
    with Engine.open() as engine:
        create(engine)
        files = [str(tmp_path / "a.jsonl"), str(tmp_path / "b.csv")]
        report = load(files, engine_target(engine), LoadOptions(dead_letters=bad))
        assert (report.written, report.failed) == (1, 4)
        letters = {(Path(each["source"]).name, each["row"]): each for each in letters_in(bad)}
        assert {place: each["format"] for place, each in letters.items()} == {
            ("a.jsonl", 1): "dynamodb-json",
            ("a.jsonl", 2): "jsonl",
            ("b.csv", 1): "csv",
            ("b.csv", 2): "csv",
        }
        assert letters["b.csv", 2]["content"] == ["c", "4", "5"]
        letters["a.jsonl", 1]["content"]["text"] = {"S": "short"}
        letters["a.jsonl", 2]["content"] = '{"pk": "b", "n": 2}'
        letters["b.csv", 1]["content"]["pk"] = "x"
        unrepaired = write_lines(tmp_path / "new.jsonl", [*letters.values(), {"pk": "no letter"}])
        with unrepaired.open("a") as file:
            file.write("no json\n\n")
        report = loaded(engine, unrepaired, tmp_path / "worse.jsonl", format="dead-letters")
        assert (report.written, report.failed) == (3, 3)
        assert stored(engine) == {
            "a": {"pk": {"S": "a"}, "n": {"N": "1"}, "text": {"S": "short"}},
            "b": {"pk": {"S": "b"}, "n": {"N": "2"}},
            "x": {"pk": {"S": "x"}, "n": {"N": "3"}},
            "d": {"pk": {"S": "d"}, "n": {"N": "6"}},
        }


def test_a_row_with_an_open_quote_is_a_dead_letter_and_the_others_are_loaded(
    tmp_path: Path,
) -> None:
    lines = ["pk,v", *(f"k{number},v{number}" for number in range(5000))]
    lines[3000] = 'k2999,"open'
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    with Engine.open() as engine:
        create(engine)
        report = loaded(engine, tmp_path / "x.csv", tmp_path / "bad.jsonl")
        assert (report.read, report.written, report.failed) == (5000, 4999, 1)
        [letter] = letters_in(tmp_path / "bad.jsonl")
        assert (letter["row"], letter["content"]) == (3000, 'k2999,"open')
        assert letter["reason"] == "a quote of the row that begins in line 3001 does not close"


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("pk,v\n\na,1\n\n\nb,2\n\n")
    with Engine.open() as engine:
        create(engine)
        report = loaded(engine, tmp_path / "x.csv", tmp_path / "bad.jsonl")
        assert (report.read, report.written, report.failed) == (2, 2, 0)


# -- columns without a name


@pytest.mark.parametrize("format_name", ["csv", "parquet"])
def test_a_column_without_a_name_is_refused_unless_it_is_dropped(
    format_name: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.{format_name}"
    if format_name == "csv":
        path.write_text("pk,,v\na,lost,1\n")
    else:
        pq.write_table(pa.table({"pk": ["a"], "": ["lost"], "v": [1]}), path)
    with Engine.open() as engine:
        create(engine)
        with pytest.raises(ConfigurationError, match="column 2 has no name") as caught:
            load(str(path), engine_target(engine))
        assert "--map =" in (caught.value.hint or "")
        assert load(str(path), engine_target(engine), LoadOptions(map=("=",))).written == 1
        assert stored(engine) == {"a": {"pk": {"S": "a"}, "v": {"N": "1"}}}


def test_a_json_field_without_a_name_is_refused_unless_it_is_dropped(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"id": "a", "": "lost"}])
    with Engine.open() as engine:
        create(engine)
        report = loaded(engine, path, tmp_path / "bad", map=("id=pk",))
        assert (report.written, report.failed) == (0, 1)
        report = loaded(engine, path, tmp_path / "bad", map=("id=pk", "="))
        assert (report.written, report.failed) == (1, 0)


@pytest.mark.parametrize(
    "made", [pa.float32(), pa.float64(), pa.int8(), pa.decimal128(9, 4)], ids=str
)
def test_numbers_of_a_repaired_parquet_row_stay_numbers(tmp_path: Path, made: Any) -> None:
    value: Any = Decimal(5) if pa.types.is_decimal(made) else 5
    table = pa.table(
        {"pk": ["a", "b"], "size": pa.array([value, value], made), "bad": [1.0, math.nan]}
    )
    pq.write_table(table, tmp_path / "x.parquet")
    bad = tmp_path / "bad.jsonl"
    with Engine.open() as engine:
        create(engine)
        assert loaded(engine, tmp_path / "x.parquet", bad).failed == 1
        [letter] = letters_in(bad)
        letter["content"]["bad"] = 2
        again = write_lines(tmp_path / "again.jsonl", [letter])
        assert loaded(engine, again, tmp_path / "still.jsonl", format="dead-letters").failed == 0
        items = stored(engine)
        assert items["a"]["size"] == items["b"]["size"]
        assert "N" in items["a"]["size"]


def test_one_file_is_not_both_journal_and_dead_letters(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [{"pk": "a"}])
    same = tmp_path / "same"
    with Engine.open() as engine:
        create(engine)
        for options in (
            LoadOptions(journal=same, dead_letters=same),
            LoadOptions(journal=path, keep_journal=True),
        ):
            with pytest.raises(ConfigurationError, match="--journal"):
                load(str(path), engine_target(engine), options)
        assert json.loads(path.read_text()) == {"pk": "a"}


def test_hidden_files_of_a_folder_are_not_loaded(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [{"pk": "a"}])
    write_lines(tmp_path / ".b.jsonl", [{"pk": "b"}])
    with Engine.open() as engine:
        create(engine)
        report = load(str(tmp_path), engine_target(engine), LoadOptions(keep_journal=False))
        assert report.written == 1
