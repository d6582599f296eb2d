"""Rows that DynamoDB refuses: each row is in the table or a dead letter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stator.engine import Engine
from stator.errors import BulkError, ConfigurationError
from stator.pipeline.bulk.job.dead_letters import DeadLetterFile
from stator.pipeline.bulk.load.load import LoadOptions, load

from .stock import create, engine_target, write_lines

_TOO_LARGE = "x" * 410_000


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=30))
def test_a_bad_row_takes_no_good_row_of_its_key_with_it(
    tmp_path: Path, rows: list[tuple[int, bool]]
) -> None:
    """The last good row of each key is in the table; every bad row is a dead letter."""
    data = [
        {"pk": f"o{key}", "n": number, **({"text": _TOO_LARGE} if is_bad else {})}
        for number, (key, is_bad) in enumerate(rows)
    ]
    letters = tmp_path / "dead.jsonl"
    with Engine.open() as engine:
        create(engine)
        options = LoadOptions(dead_letters=str(letters), restart=True)
        report = load(
            str(write_lines(tmp_path / "rows.jsonl", data)), engine_target(engine), options
        )
        found = engine.call("Scan", {"TableName": "orders"})["Items"]
    good = {f"o{key}": number for number, (key, is_bad) in enumerate(rows) if not is_bad}
    bad = [number for number, (_, is_bad) in enumerate(rows) if is_bad]
    assert {item["pk"]["S"]: int(item["n"]["N"]) for item in found} == good
    written = [json.loads(line) for line in letters.read_text().splitlines()]
    assert sorted(line["row"] - 1 for line in written) == bad
    assert (report.failed, report.written) == (len(bad), len(rows) - len(bad))


def test_dead_letters_that_cannot_be_written_end_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal stays where all letters are in the file, so that a resumed load writes them."""
    rows: list[dict[str, Any]] = [
        {"pk": f"o{number}", **({"text": _TOO_LARGE} if number % 10 == 0 else {})}
        for number in range(200)
    ]
    path, letters = write_lines(tmp_path / "rows.jsonl", rows), tmp_path / "dead.jsonl"

    def full(self: DeadLetterFile, dead: Any) -> None:
        if dead:
            raise BulkError(f"{self.path} cannot be written: No space left on device")

    with Engine.open() as engine:
        create(engine)
        options = LoadOptions(dead_letters=str(letters))
        with monkeypatch.context() as patched:
            patched.setattr(DeadLetterFile, "add", full)
            with pytest.raises(BulkError, match="No space left"):
                load(str(path), engine_target(engine), options)
        report = load(
            str(path), engine_target(engine), LoadOptions(dead_letters=str(letters), resume=True)
        )
    assert len(letters.read_text().splitlines()) == report.failed == 20


def test_dead_letters_do_not_overwrite_an_input(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [{"pk": "a"}, {"no": "key"}])
    before = path.read_bytes()
    with Engine.open() as engine:
        create(engine)
        with pytest.raises(ConfigurationError, match="is one of the files to load"):
            load(str(path), engine_target(engine), LoadOptions(dead_letters=str(path)))
    assert path.read_bytes() == before


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_rate_that_cannot_be_kept_is_refused(rate: float, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("pk\na\n")
    with Engine.open() as engine:
        create(engine)
        with pytest.raises(ConfigurationError, match="cannot be kept") as caught:
            load(str(path), engine_target(engine), LoadOptions(rate=rate))
        assert "above 0" in str(caught.value.hint)
        assert not list(tmp_path.glob("*.journal"))


@pytest.mark.parametrize("delimiter", ["ab", "", '"', "\n", "\r"])
def test_a_delimiter_that_separates_nothing_is_refused(delimiter: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("pk,n\na,1\n")
    with Engine.open() as engine:
        create(engine)
        with pytest.raises(ConfigurationError, match="is not one character"):
            load(str(path), engine_target(engine), LoadOptions(delimiter=delimiter))


def test_a_type_that_contradicts_the_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("pk,n\na,1\n")
    with Engine.open() as engine:
        create(engine)
        with pytest.raises(ConfigurationError, match="pk is a key of type S"):
            load(str(path), engine_target(engine), LoadOptions(types=("pk=N",)))
        assert load(str(path), engine_target(engine), LoadOptions(types=("pk=S",))).written == 1


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_utf_16_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text('{"pk":"a"}\n', encoding="utf-16")
    with Engine.open() as engine:
        create(engine)
        with pytest.raises(BulkError, match="must be UTF-8") as caught:
            load(str(path), engine_target(engine))
        assert "iconv" in str(caught.value.hint)
