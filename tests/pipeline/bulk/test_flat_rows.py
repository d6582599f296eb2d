"""``--flatten``: nested objects become dotted names, and nothing is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator import Design, Entity, connect, ident
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ConfigurationError, JournalDiffers, RowRefused
from stator.pipeline.bulk.export.export import ExportOptions
from stator.pipeline.bulk.export.sources import table_export
from stator.pipeline.bulk.load.flat_rows import flattened, map_members
from stator.pipeline.bulk.load.load import LoadOptions, load
from stator.pipeline.bulk.targets import BulkTarget
from stator.testing import Killed

from .stock import Through, create, engine_target, stored, target_through, write_lines

NESTED = {
    "pk": "a",
    "address": {"city": "Bonn", "geo": {"lat": 50.7, "tags": [{"x": 1}]}},
    "empty": {},
    "nothing": None,
}


@pytest.mark.parametrize(
    ("mapped", "expected"),
    [
        (
            {},
            {
                "pk": "a",
                "address.city": "Bonn",
                "address.geo.lat": 50.7,
                "address.geo.tags": [{"x": 1}],
                "empty": {},
                "nothing": None,
            },
        ),
        (
            {"address.geo": "geo"},
            {
                "pk": "a",
                "address.city": "Bonn",
                "address.geo": {"lat": 50.7, "tags": [{"x": 1}]},
                "empty": {},
                "nothing": None,
            },
        ),
        ({"address": ""}, NESTED),
    ],
)
def test_objects_become_dotted_names(mapped: dict[str, str], expected: dict[str, Any]) -> None:
    assert flattened(NESTED, mapped) == expected


def test_two_fields_of_one_name_are_refused() -> None:
    for row in ({"a": {"b": 1}, "a.b": 2}, {"a.b": 2, "a": {"b": 1}}):
        with pytest.raises(RowRefused, match=r"two fields become a\.b"):
            flattened(row, {})


VALUES = st.recursive(
    st.none() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), VALUES, max_size=4))
def test_no_value_is_lost(row: dict[str, Any]) -> None:
    """Without dots in the names, the nested row can be built again from the flat one."""
    built: dict[str, Any] = {}
    for path, value in flattened(row, {}).items():
        *parents, name = path.split(".")
        place = built
        for parent in parents:
            place = place.setdefault(parent, {})
        place[name] = value
    assert built == row


def test_maps_of_dynamodb_json_are_taken_apart_too() -> None:
    inner = {"x": {"N": "1"}, "l": {"L": [{"M": {}}]}}
    item = {"pk": {"S": "a"}, "m": {"M": inner}, "e": {"M": {}}}
    assert flattened(item, {}, map_members) == {
        "pk": {"S": "a"},
        "m.x": {"N": "1"},
        "m.l": {"L": [{"M": {}}]},
        "e": {"M": {}},
    }


@pytest.mark.parametrize("format_name", ["jsonl", "dynamodb-json"])
def test_a_nested_table_is_exported_and_loaded_flat(format_name: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [NESTED])
    out = tmp_path / "out.json"
    options = LoadOptions(
        flatten=True, map=("address.city=city", "nothing="), types=("address.geo.lat=S",)
    )
    with Engine.open() as engine, Engine.open() as flat:
        create(engine)
        create(flat)
        load(str(path), engine_target(engine))
        table_export(engine_target(engine), str(out), ExportOptions(format=format_name)).run()
        assert load(str(out), engine_target(flat), options).written == 1
        [item] = stored(flat).values()
        lat = {"S": "50.7"} if format_name == "jsonl" else {"N": "50.7"}
        assert item == {
            "pk": {"S": "a"},
            "city": {"S": "Bonn"},
            "address.geo.lat": lat,
            "address.geo.tags": {"L": [{"M": {"x": {"N": "1"}}}]},
            "empty": {"M": {}},
        }
        again = tmp_path / "again.jsonl"
        table_export(engine_target(flat), str(again)).run()
        assert json.loads(again.read_text())["address.geo.tags"] == [{"x": 1}]


class Customer(Entity):
    name: str = ident()
    city: str


def test_a_nested_row_becomes_an_entity(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"name": "a", "address": {"city": "Bonn", "zip": 1}}])
    design = Design("customers", [Customer])
    options = LoadOptions(flatten=True, map=("address.city=city", "address.zip="))
    with (
        Engine.open() as engine,
        BulkTarget.open(engine, design=design, entity=Customer) as target,
    ):
        report = load(str(path), target, options)
        assert (report.written, report.failed) == (1, 0)
        with connect(design, engine) as db:
            assert db.get(Customer, name="a") == Customer(name="a", city="Bonn")


def test_a_renamed_part_that_meets_another_field_is_a_bad_row(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"pk": "a", "city": "Ulm", "at": {"city": "Bonn"}}])
    with Engine.open() as engine:
        create(engine)
        options = LoadOptions(flatten=True, map=("at.city=city",), dead_letters=tmp_path / "dead")
        assert load(str(path), engine_target(engine), options).failed == 1
        assert "two fields become city" in (tmp_path / "dead").read_text()


def test_other_formats_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("pk\na\n")
    with Engine.open() as engine:
        create(engine)
        with pytest.raises(ConfigurationError, match=r"for JSON lines, and .*x\.csv is csv"):
            load(str(tmp_path / "x.csv"), engine_target(engine), LoadOptions(flatten=True))


def test_a_resumed_load_must_flatten_as_before(tmp_path: Path) -> None:
    def die(operation: str, request: Any) -> None:
        if operation == "BatchWriteItem":
            raise Killed

    path = write_lines(tmp_path / "x.jsonl", [NESTED])
    with Engine.open() as engine:
        create(engine)
        with pytest.raises(Killed):
            load(str(path), target_through(Through(engine, die)), clock=VirtualClock())
        with pytest.raises(JournalDiffers, match="flatten was null and is now true"):
            load(str(path), target_through(Through(engine)), LoadOptions(resume=True, flatten=True))
