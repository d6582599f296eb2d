"""The window: writers never starve while rows remain, and rows of one key keep their order."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.pipeline.bulk.copy import Copy, CopyOptions
from stator.pipeline.bulk.job.key_paces import KeyPaces
from stator.pipeline.bulk.job.pending_rows import Block, PendingRow, RowPosition
from stator.pipeline.bulk.job.window import Window
from stator.pipeline.bulk.load.load import LoadOptions, load

from .stock import create, engine_target, stored, write_lines


@contextmanager
def starvation() -> Iterator[Callable[[], int]]:
    """Return how often a writer's patience ended although there were rows to write.

    A window that works wakes its writers, so a patience that is long on any machine never ends.
    """
    made: list[Window] = []

    def window(*arguments: Any, **options: Any) -> Window:
        made.append(Window(*arguments, **options))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stator.pipeline.bulk.job.window._PATIENCE_SECONDS", 2.0)
        patch.setattr("stator.pipeline.bulk.job.write_job.Window", window)
        yield lambda: sum(each.impatient_takes for each in made)


def block_of(rows: int, first: int, size_bytes: int) -> list[PendingRow]:
    block = Block("test", first, None, rows)
    return [PendingRow(first + at, b"x" * size_bytes, at, block) for at in range(rows)]


@settings(max_examples=150, deadline=None, phases=set(Phase) - {Phase.shrink, Phase.explain})
@given(
    window_rows=st.integers(1, 60),
    window_bytes=st.integers(1, 400),
    blocks=st.lists(st.tuples(st.integers(1, 150), st.integers(1, 300)), max_size=5),
    readers=st.integers(1, 3),
    writers=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_a_block_of_any_size_flows_through_a_window_of_any_size(
    window_rows: int,
    window_bytes: int,
    blocks: list[tuple[int, int]],
    readers: int,
    writers: int,
    seed: int,
) -> None:
    window = Window(window_rows, window_bytes, random.Random(seed))
    written: list[int] = []
    held = [0]
    left = readers
    lock = threading.Lock()

    def read(reader: int) -> None:
        nonlocal left
        first = reader * 1_000_000
        for rows, size_bytes in blocks:
            window.add(block_of(rows, first, size_bytes))
            first += rows
        with lock:
            left -= 1
            if not left:
                window.complete()

    def write() -> None:
        while entries := window.take(7):
            held.append(window._held_rows)
            written.extend(entry.key for entry in entries)
            window.settled(entries)
            if window.impatient_takes:
                window.stop()  # it failed already

    threads = [threading.Thread(target=read, args=(number,)) for number in range(readers)]
    threads += [threading.Thread(target=write) for _ in range(writers)]
    with starvation():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert window.impatient_takes == 0
    assert max(held) <= window_rows
    total = sum(rows for rows, _ in blocks)
    assert sorted(written) == sorted(
        reader * 1_000_000 + at for reader in range(readers) for at in range(total)
    )


@pytest.mark.parametrize("window_rows", [1, 3, 999, 1001, 1500, 20_000])
def test_a_load_never_starves_its_writers(window_rows: int, tmp_path: Path) -> None:
    rows = [{"pk": f"{number}"} for number in range(3000)]
    path = write_lines(tmp_path / "x.jsonl", rows)
    with Engine.open() as engine, starvation() as starved:
        create(engine)
        report = load(str(path), engine_target(engine), LoadOptions(window_rows=window_rows))
        assert starved() == 0
        assert report.written == 3000
        assert len(stored(engine)) == 3000


@pytest.mark.parametrize("window_rows", [1, 400, 1500, 10_000])
def test_a_copy_never_starves_its_writers(window_rows: int, tmp_path: Path) -> None:
    """A page of the Scan holds 2,000 items, more than the window or more than half of it."""
    path = write_lines(tmp_path / "x.jsonl", [{"pk": f"{number}"} for number in range(2000)])
    with Engine.open() as source, Engine.open() as other:
        create(source)
        load(str(path), engine_target(source))
        options = CopyOptions(
            create=True, window_rows=window_rows, segments=1, journal=tmp_path / "journal"
        )
        with starvation() as starved:
            report = Copy(engine_target(source), engine_target(other), options).run()
        assert starved() == 0
        assert (report.written, report.verified) == (2000, True)


def test_a_stopped_window_lets_its_readers_go() -> None:
    window = Window(10, 1000, random.Random(1))
    reader = threading.Thread(target=lambda: window.add(block_of(50, 0, 1)))
    reader.start()
    window.stop()
    reader.join()
    assert window.take() == []


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99)), max_size=60),
    st.integers(1, 12),
    st.randoms(use_true_random=False),
)
def test_rows_of_one_key_never_overtake_each_other(
    rows: list[tuple[int, int]], capacity: int, chance: random.Random
) -> None:
    """Rows are taken, settled and given back at random; each key's rows come in order."""
    window = Window(capacity, 1 << 20, chance)
    block = Block("x", 0, RowPosition(), len(rows))
    waiting = [PendingRow(key, b"%d" % number, number, block) for key, number in rows]
    table: dict[int, list[int]] = {}
    under_way: list[list[PendingRow]] = []
    accounted = 0

    def step() -> None:
        nonlocal accounted
        if under_way and chance.random() < 0.6:
            taken = under_way.pop(chance.randrange(len(under_way)))
            if chance.random() < 0.2:
                window.give_back(taken)
                return
            for entry in taken:
                table.setdefault(entry.key, []).append(int(entry.item))
            accounted += len(taken)
            window.settled(taken)
        elif window._ready:
            taken = window._taken(3)
            assert len({entry.key for entry in taken}) == len(taken)
            assert not {entry.key for entry in taken} & {
                entry.key for batch in under_way for entry in batch
            }
            under_way.append(taken)

    while waiting:
        count = min(4, capacity)
        part, waiting = waiting[:count], waiting[count:]
        while window._held_rows and not window._fits(
            len(part), sum(len(entry.item) for entry in part)
        ):
            step()
        window.add(part)
    window.complete()
    while window._held_rows:
        step()
    assert accounted == len(rows)
    last: dict[int, list[int]] = {}
    for key, number in rows:
        last.setdefault(key, []).append(number)
    assert table == last


@pytest.mark.parametrize("is_paced", [False, True])
def test_rows_are_mixed_and_none_stays_for_ages(is_paced: bool) -> None:
    """A row leaves a window of 100 before 400 later ones have come, so the journal follows."""
    paces = KeyPaces(VirtualClock())
    if is_paced:  # a key that none of these rows has
        paces.refused("hot")
    window = Window(100, 1 << 20, random.Random(5), paces)
    block = Block("x", 0, RowPosition(), 5000)
    order: list[int] = []
    for start in range(0, 5000, 10):
        rows = range(start, start + 10)
        window.add([PendingRow(number, b"x", number, block) for number in rows])
        while window._held_rows > 90 or (start == 4990 and window._held_rows):
            taken = window.take(25) or [] if start < 4990 else window._taken(25)
            order += [entry.row for entry in taken]
            window.settled(taken)
    assert sorted(order) == list(range(5000))
    assert max(place - row for place, row in enumerate(order)) < 400
    neighbours = sum(abs(one - other) < 5 for one, other in pairwise(order))
    assert neighbours < 1500
