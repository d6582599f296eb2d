"""What the journal of a load says about rows after the watermark."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.engine import Engine
from stator.errors import BulkError
from stator.pipeline.bulk.job import rows_ahead
from stator.pipeline.bulk.job.pending_rows import (
    LOST_REASON,
    Block,
    PendingRow,
    RowCounts,
    RowPosition,
    Watermark,
)
from stator.pipeline.bulk.job.rows_ahead import RowsAhead
from stator.pipeline.bulk.load.load import LoadOptions, load

from .stock import Through, create, stored, target_through, write_lines

Flags = dict[tuple[int, int], int]


def flags_of(ahead: RowsAhead, inputs: int, rows: int) -> Flags:
    return {
        (source, row): flag
        for source in range(inputs)
        for row, flag in enumerate(ahead.flags(source, 0, rows))
        if flag
    }


def blocks_of(flags: Flags, first: int, size: int, rows: int) -> list[tuple[int, int, bytes]]:
    """The blocks of input 0 from a row on, with these flags."""
    return [
        (0, at, bytes(flags.get((0, row), 0) for row in range(at, min(at + size, rows))))
        for at in range(first, rows, size)
    ]


@given(
    first=st.dictionaries(st.tuples(st.integers(0, 0), st.integers(0, 29)), st.integers(1, 255)),
    second=st.dictionaries(st.tuples(st.integers(0, 0), st.integers(0, 29)), st.integers(1, 255)),
    at=st.integers(0, 29),
    read=st.integers(0, 30),
    size=st.integers(1, 7),
)
def test_flags_of_runs_add_up(first: Flags, second: Flags, at: int, read: int, size: int) -> None:
    """A run that is killed before it reads all of them keeps the flags of the run before it."""
    begun = RowsAhead(RowsAhead().to_data(RowPosition(), blocks_of(first, 0, size, 30), []))
    assert flags_of(begun, 1, 30) == first
    seen = {**first, **second}
    blocks = blocks_of(seen, 0, size, read)
    found = RowsAhead(begun.to_data(RowPosition(0, at), blocks, []))
    wanted = {place: flag for place, flag in first.items() if place[1] >= max(at, read)}
    wanted |= {place: flag for place, flag in seen.items() if at <= place[1] < read}
    assert flags_of(found, 1, 30) == wanted


def test_finished_inputs_are_forgotten_and_later_ones_are_not() -> None:
    blocks = [(0, 0, b"\1\1"), (1, 0, b"\0\1"), (2, 0, b"\1")]
    begun = RowsAhead(RowsAhead().to_data(RowPosition(), blocks, []))
    assert flags_of(begun, 3, 2) == {(0, 0): 1, (0, 1): 1, (1, 1): 1, (2, 0): 1}
    found = RowsAhead(begun.to_data(RowPosition(1, 1), [], []))
    assert flags_of(found, 3, 2) == {(1, 1): 1, (2, 0): 1}


def test_rows_far_ahead_have_no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_ahead, "MOST_ROWS", 10)
    found = RowsAhead(RowsAhead().to_data(RowPosition(0, 5), [(0, 0, b"\1" * 100)], []))
    assert flags_of(found, 1, 100) == {(0, row): 1 for row in range(5, 15)}


def test_more_reasons_than_flags_are_refusals_still() -> None:
    watermark = Watermark({0: RowPosition()}, RowCounts(), lambda _: None)
    block = Block("x", 0, RowPosition(0, 301), 301, done=bytearray(301))
    watermark.opened(block)
    for row in range(300):
        watermark.refused(PendingRow(row, b"{}", row, block), {}, f"reason {row}")
    now = watermark.snapshot(lambda: 0, lambda _: {})
    ahead = RowsAhead(RowsAhead().to_data(RowPosition(), now.ahead, now.reasons))
    flags = ahead.flags(0, 0, 301)
    assert [ahead.reason(flag) for flag in flags[:253]] == [f"reason {row}" for row in range(253)]
    assert set(flags[253:300]) == {LOST_REASON} and "not known" in ahead.reason(LOST_REASON)
    assert flags[300] == 0


def test_a_snapshot_is_of_one_moment() -> None:
    """What ``passed`` sums up must agree with the positions, or a resumed copy counts twice."""
    passed: list[Block] = []
    watermark = Watermark({0: 0}, RowCounts(), passed.append)
    block = Block("x", 0, 1, 1)
    watermark.opened(block)
    row = PendingRow("a", b"{}", 0, block)
    writer = threading.Thread(target=watermark.written, args=([row],))

    def place_of(positions: dict[int, Any]) -> dict[str, Any]:
        writer.start()
        writer.join(0.2)
        return {"passed": len(passed)}

    now = watermark.snapshot(lambda: 0, place_of)
    writer.join()
    assert (now.positions[0], now.place["passed"]) == (0, 0)
    assert passed == [block]


# -- whole loads


def stopped_load(engine: Engine, path: Path, until: int, options: LoadOptions) -> dict[str, Any]:
    """Stop a load after ``until`` puts, one at a time in the file's order. Return its journal."""
    sent = 0

    def before(operation: str, request: Any) -> None:
        nonlocal sent
        if operation in ("BatchWriteItem", "BatchExecuteStatement", "PutItem"):
            sent += 1
            if sent > until:
                raise KeyboardInterrupt

    chosen = replace(options, writers=1, window_rows=1)
    with pytest.raises(KeyboardInterrupt):
        load(str(path), target_through(Through(engine, before)), chosen)
    [journal] = path.parent.glob("*.journal")
    state: dict[str, Any] = json.loads(journal.read_text())["state"]
    return state


def test_rows_ahead_are_not_sent_again(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"pk": f"{row}"} for row in range(50)])
    with Engine.open() as engine:
        create(engine)
        state = stopped_load(engine, path, 30, LoadOptions())
        assert state["place"]["row"] == 0
        sent: list[str] = []
        through = Through(engine, lambda operation, request: sent.append(operation))
        options = LoadOptions(resume=True, writers=1, window_rows=1)
        report = load(str(path), target_through(through), options)
        assert sent.count("BatchWriteItem") == 20
        assert (report.read, report.written, report.consumed_units) == (50, 50, 50.0)
        # The rate is that of this run, which wrote 20 of the 50 rows.
        assert report.written_before == 30
        assert report.per_second == 20 / report.seconds
        assert len(stored(engine)) == 50


def test_a_refused_row_is_not_tried_again_after_a_later_one(tmp_path: Path) -> None:
    """The second row is refused; the state that the third row leaves would admit it."""
    rows = [{"pk": "a", "step": step, "was": was} for step, was in ((0, 7), (9, 1), (1, 0))]
    rows += [{"pk": f"{row}", "step": 0, "was": 0} for row in range(20)]
    path = write_lines(tmp_path / "x.jsonl", rows)
    letters = tmp_path / "bad.jsonl"
    options = LoadOptions(condition="attribute_not_exists(pk) OR step = :was", dead_letters=letters)
    with Engine.open() as engine:
        create(engine)
        assert stopped_load(engine, path, 8, options)["place"]["row"] == 0
        report = load(str(path), target_through(Through(engine)), replace(options, resume=True))
        assert (report.read, report.written, report.failed) == (23, 22, 1)
        assert stored(engine)["a"]["step"] == {"N": "1"}
        [letter] = map(json.loads, letters.read_text().splitlines())
        assert (letter["row"], letter["content"]["step"]) == (2, {"N": "9"})
        assert "the condition is false" in letter["reason"]


@pytest.mark.parametrize("damage", ["base64", "zlib", "place", "counts", "state", "ahead"])
def test_a_damaged_journal_is_an_error_of_ours(damage: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"pk": "a"}])
    with Engine.open() as engine:
        create(engine)

        def die(operation: str, request: Any) -> None:
            if operation == "BatchWriteItem":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            load(str(path), target_through(Through(engine, die)))
        journal = tmp_path / "x.jsonl.orders.journal"
        content = json.loads(journal.read_text())
        changes: dict[str, dict[str, Any]] = {
            "base64": {"ahead": {"flags": {"0": [0, "!"]}}},
            "zlib": {"ahead": {"flags": {"0": [0, "AAAA"]}}},
            "place": {"place": {"elsewhere": 1}},
            "counts": {"counts": {"elsewhere": 1}},
            "state": {"elsewhere": 1},
            "ahead": {"ahead": [1]},
        }
        content["state"] |= changes[damage]
        journal.write_text(json.dumps(content))
        with pytest.raises(BulkError, match="is damaged") as caught:
            load(str(path), target_through(Through(engine)), LoadOptions(resume=True))
        assert "--restart" in str(caught.value.hint)
        assert load(str(path), target_through(Through(engine)), LoadOptions(restart=True)).ok
        assert stored(engine).keys() == {"a"}
