"""Replays of measured traffic, from rows and from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stator.design.simulation import MeasuredTraffic, Simulation
from stator.errors import ConfigurationError

from .designs import notes, settings, tickets


def rows(count: int, per_second: float, **values: Any) -> list[dict[str, Any]]:
    return [{"time": second, "count": per_second, **values} for second in range(count)]


def replay(found: list[dict[str, Any]]) -> Simulation:
    return notes(1, boards=5000).simulate(measured=MeasuredTraffic(found))


def test_counts_replace_the_declared_rates() -> None:
    found = replay(rows(120, 700, pattern="add"))
    assert found.minutes == 2
    add = found.pattern("add")
    assert (add.calls, add.refused, add.peak_per_second) == (120 * 700, 0, 700)


def test_a_measured_value_is_a_hot_key_with_its_name() -> None:
    measured = rows(120, 1500, pattern="add", board="news")
    measured += rows(120, 100, pattern="add", board="sport")
    add = replay(measured).pattern("add")
    assert add.hottest is not None
    assert (add.hottest.key, add.hottest.units) == ("BOARD#news", 1500)
    assert set(add.reasons) == {"TableWriteKeyRangeThroughputExceeded"}
    assert 500 / 1600 <= add.refused_share <= 600 / 1600


def test_a_key_that_is_hot_for_a_minute_refuses_for_a_minute() -> None:
    measured = rows(60, 100, pattern="add", board="news")
    measured += [
        {"time": second, "pattern": "add", "board": "sport", "count": 2000}
        for second in range(60, 120)
    ]
    measured += [
        {"time": second, "pattern": "add", "board": "news", "count": 100}
        for second in range(120, 180)
    ]
    add = replay(measured).pattern("add")
    assert (add.first_refused_minute, add.healthy_after_minutes) == (1.0, 2.0)


def test_an_argument_names_its_field() -> None:
    found = tickets(1, share=0.3).simulate(
        measured=MeasuredTraffic(rows(60, 9000, pattern="of_queue", queue="vip"))
    )
    hottest = found.pattern("of_queue").hottest
    assert hottest is not None
    assert (hottest.key, hottest.index) == ("QUEUE#vip", "by_queue")


def test_an_entity_and_an_operation_stand_for_a_pattern() -> None:
    found = replay(rows(60, 5, entity="Note", operation="PutItem"))
    assert found.pattern("add").calls == 300
    one = settings(1, 1).simulate(
        measured=MeasuredTraffic(rows(60, 5, entity="Setting", operation="update"))
    )
    assert one.pattern("change").calls == 300


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "calls.csv",
            (
                "time,pattern,board,count\n"
                "2026-11-19T10:00:00Z,add,news,30\n2026-11-19T10:00:59Z,add,,10\n"
            ),
        ),
        (
            "calls.jsonl",
            (
                '{"time": "10:00:00", "pattern": "add", "board": "news", "count": 30}\n\n'
                '{"time": "10:00:59", "pattern": "add", "count": 10}\n'
            ),
        ),
    ],
)
def test_files_are_csv_or_json_lines(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = notes(1, boards=9).simulate(measured=MeasuredTraffic.from_file(tmp_path / name))
    assert found.minutes == 1
    assert found.pattern("add").calls == 40


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"pattern": "add"}, "time is None"),
        ({"time": "noon", "pattern": "add"}, "time is 'noon'"),
        ({"time": "nan", "pattern": "add"}, "time is 'nan'"),
        ({"time": 1}, "names no pattern"),
        ({"time": 1, "pattern": "add", "count": "many"}, "count is 'many'"),
        ({"time": 1, "pattern": "add", "count": -1}, "count is -1"),
        ({"time": 1, "pattern": "subtract"}, "no pattern subtract"),
        ({"time": 1, "entity": "Note", "operation": "Scan"}, "sends Scan for Note"),
    ],
)
def test_a_wrong_row_is_named(row: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        replay([row])
    assert caught.value.hint
    assert "row" in caught.value.message


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("time,pattern\n")
    broken = tmp_path / "broken.jsonl"
    broken.write_text("[1]\n")
    for file, message in (
        (tmp_path / "missing.csv", "cannot read"),
        (empty, "no calls to replay"),
        (broken, "line 1 is not a JSON object"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            MeasuredTraffic.from_file(file)


def test_more_than_a_week_is_refused() -> None:
    measured = [{"time": 0, "pattern": "add"}, {"time": 700_000, "pattern": "add"}]
    with pytest.raises(ConfigurationError, match="more than a week"):
        MeasuredTraffic(measured)
