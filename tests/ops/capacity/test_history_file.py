"""Histories in files: CSV as people write it, Parquet as it is kept, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from stator.errors import ConfigurationError
from stator.ops.capacity.history_file import read_history, write_history
from stator.ops.capacity.use_series import Dimension

from .histories import MONDAY, READS, WRITES, history

HEAD = "time,table,index,read_units,write_units,read_throttles,write_throttles,provisioned_write\n"


def written(folder: Path, *rows: str, head: str = HEAD) -> Path:
    path = folder / "history.csv"
    path.write_text(head + "\n".join(rows) + "\n")
    return path


def test_a_row_is_a_minute_of_a_table_or_an_index(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "2026-11-02T00:00:00Z,orders,,120,60,0,3,10",
        "2026-11-02T01:01:00+01:00,orders,,180,90,0,0,20",
        "2026-11-02 00:01:00,orders,GSI1,0,45,0,0,5",
    )
    (found,) = read_history(path)
    assert (found.table, found.start, found.minutes, found.indexes) == (
        "orders", MONDAY, 2, ("GSI1",)
    )  # fmt: skip
    assert found.of(READS).consumed == [120.0, 180.0]
    assert found.of(WRITES).throttles == [3.0, 0.0]
    assert found.of(WRITES).demand() == [63.0, 90.0]
    assert found.of(WRITES).provisioned == [10.0, 20.0]
    assert found.of(Dimension("GSI1", "write")).consumed == [0.0, 45.0]
    assert found.was_provisioned


def test_a_missing_minute_was_idle_and_units_stayed(tmp_path: Path) -> None:
    path = written(
        tmp_path, "2026-11-02T00:00:00Z,t,,1,1,0,0,7", "2026-11-02T00:03:00Z,t,,1,1,0,0,9"
    )
    (found,) = read_history(path)
    assert found.of(READS).consumed == [1.0, 0.0, 0.0, 1.0]
    assert found.of(WRITES).provisioned == [7.0, 7.0, 7.0, 9.0]


def test_five_minute_points_are_spread_over_their_minutes(tmp_path: Path) -> None:
    path = written(
        tmp_path, "2026-11-02T00:00:00Z,t,,300,0,0,0,", "2026-11-02T00:05:00Z,t,,600,0,0,0,"
    )
    (found,) = read_history(path)
    assert (found.source_seconds, found.minutes) == (300, 10)
    assert found.of(READS).consumed == [60.0] * 5 + [120.0] * 5


def test_requests_say_how_many_units_a_throttled_one_would_have_taken(tmp_path: Path) -> None:
    head = "time,table,read_units,write_units,write_throttles,write_requests\n"
    path = written(
        tmp_path, "2026-11-02T00:00:00Z,t,0,50,4,10", "2026-11-02T00:01:00Z,t,0,0,0,0", head=head
    )
    (found,) = read_history(path)
    assert found.of(WRITES).demand() == [70.0, 0.0]
    assert found.of(WRITES).hidden_units == 20.0


@pytest.mark.parametrize("name", ["kept.parquet", "kept.csv"])
def test_what_is_written_is_read_back(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    one = history(
        [60.0, 0.5, 7.0], [1.0, 2.0, 3.0], indexes={"GSI1": ([0.0] * 3, [30.0] * 3)},
        throttles=[0.0, 2.0], provisioned=12.0, size_bytes=4096.0,
    )  # fmt: skip
    other = history([5.0, 6.0], table="users")
    write_history(tmp_path / name, [one, other])
    read_one, read_other = read_history(tmp_path / name)
    assert (read_one.table, read_one.start, read_one.sizes[None]) == ("orders", MONDAY, 4096.0)
    for each in one.series:
        found = read_one.of(each.dimension)
        assert list(found.consumed) == list(each.consumed)
        assert list(found.throttles) == list(each.throttles)
        assert list(found.provisioned) == list(each.provisioned)
    assert read_other.table == "users" and list(read_other.of(WRITES).consumed) == [5.0, 6.0]


@pytest.mark.parametrize(
    ("head", "row", "problem"),
    [
        ("time,table,read_units\n", "2026-11-02T00:00:00Z,t,1", "it lacks write_units"),
        (HEAD.replace("index", "gsi"), "2026-11-02T00:00:00Z,t,,1,1,0,0,", "it has gsi"),
        (HEAD, "yesterday,t,,1,1,0,0,", "row 2: Invalid isoformat string: 'yesterday'"),
        (HEAD, "2026-11-02T00:00:00Z,t,,one,1,0,0,", "row 2: could not convert string to float"),
        (HEAD, "2026-11-02T00:00:00Z,t,,-1,1,0,0,", "row 2: a negative number"),
        (HEAD, "2026-11-02T00:00:00Z,t,,nan,1,0,0,", "row 2: a value that is no number"),
        (HEAD, "2026-11-02T00:00:00Z,t,,1,inf,0,0,", "row 2: a value that is no number"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, head: str, row: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as raised:
        read_history(written(tmp_path, row, head=head))
    assert raised.value.hint


def test_a_mistyped_year_does_not_make_a_history_of_centuries(tmp_path: Path) -> None:
    rows = ("0226-11-02T00:00:00Z,t,,1,1,0,0,", "2026-11-02T00:00:00Z,t,,1,1,0,0,")
    with pytest.raises(ConfigurationError, match="from 0226-11-02 to 2026-11-02") as raised:
        read_history(written(tmp_path, *rows))
    assert "at most 732 days" in str(raised.value.hint)


def test_an_empty_file_and_one_that_is_not_parquet_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(ConfigurationError, match="has no rows"):
        read_history(written(tmp_path))
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(ConfigurationError, match="is not a Parquet file"):
        read_history(tmp_path / "x.parquet")
